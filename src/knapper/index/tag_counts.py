"""Count the notes of each tag."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from knapper.index.store import Store
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """Say how many notes have a tag."""

    name: str
    """In the spelling that most notes use."""
    key: str
    notes: int


def count(store: Store, visible: Callable[[NotePath], bool]) -> list[TagCount]:
    """Count notes by tag, tags that only differ in case as one; the most used first, then by name.

    Args:
        store: The index.
        visible: Which files count.
    """
    rows = store.database.reader().execute(
        "SELECT DISTINCT f.path, f.target, t.key, t.name FROM tags t JOIN files f ON f.id = t.file_id"
        " ORDER BY t.key, t.name"
    )
    names: dict[str, Counter[str]] = {}
    notes: dict[str, set[str]] = {}
    shown: dict[str, bool] = {}
    for path, target, key, name in rows:
        if path not in shown:
            shown[path] = visible(NotePath(path)) and (not target or visible(NotePath(target)))
        if shown[path]:
            names.setdefault(key, Counter())[name] += 1
            notes.setdefault(key, set()).add(path)
    found = [TagCount(name=names[key].most_common(1)[0][0], key=key, notes=len(notes[key])) for key in names]
    return sorted(found, key=lambda one: (-one.notes, one.key))
