"""Find what a link points to: which note, and which heading in it."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from knapper.vault import paths
from knapper.vault.paths import NotePath

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_HEADING_NOISE: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")
_NOTE_SUFFIX: Final = ".md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Hold what a link's target leads to."""

    path: NotePath | None
    """None where no file fits."""
    ambiguous: tuple[NotePath, ...] = ()
    """All files that fit as well as *path* but for the rule that chose it, itself included; empty where it is alone."""


def is_external(target: str) -> bool:
    """Tell whether a Markdown link's target is an address: any scheme, or ``//host``."""
    return _SCHEME.match(target) is not None


def key(name: str) -> str:
    r"""Fold a file's name for a lookup: ``"Über.MD"`` and ``"u\\u0308ber"`` are both ``"über"``."""
    return folded(name).removesuffix(_NOTE_SUFFIX)


def resolve(target: str, source: NotePath, lookup: Callable[[str], Sequence[NotePath]]) -> Resolution:
    """Find the file that a link means, as Obsidian does.

    In order: the note itself for an empty target; a path from the vault's root; for ``./`` and ``../`` a path from the
    note's folder and nothing else; else the files whose path ends with the target: first the one in the note's own
    folder, then the one with the shortest path, then the first by name. ``.md`` may be left out, other suffixes not.
    Of files whose paths differ only in case, the one that is spelled as the target is meant.

    Args:
        target: A link's target, decoded and without fragment.
        source: The note that holds the link.
        lookup: Gives all files of which the name has the given `key`.
    """
    wanted = folded(target.replace("\\", "/")).strip()
    if not wanted:
        return Resolution(path=source)
    folder = folded(source).rpartition("/")[0]
    if wanted.startswith(("./", "../")):
        return _exact(joined(folder, wanted), target, lookup)
    if wanted.startswith("/"):
        return _exact(wanted.strip("/"), target, lookup)
    named = _candidates(wanted, lookup)
    exact = _at(wanted, target, named)
    found = _ending(wanted, named) if exact is None else ()
    if not found:
        return Resolution(path=exact)
    best = _at(f"{folder}/{wanted}" if folder else wanted, target, found) or min(found, key=_rank)
    return Resolution(path=best, ambiguous=tuple(sorted(found, key=_rank)) if len(found) > 1 else ())


def heading_matches(wanted: str, title: str) -> bool:
    """Compare a link's heading with a section's title, as Obsidian does: punctuation, spaces and case don't count."""
    return heading_key(wanted) == heading_key(title)


def heading_key(text: str) -> str:
    """Fold a heading: ``"What's *new*, v1.2?"`` is ``"what's new v1 2"``."""
    return folded(_HEADING_NOISE.sub(" ", text).strip())


def folded(path: str) -> str:
    """Fold a path or a part of one, as targets and files are compared: `knapper.vault.paths.key`, and plain spaces."""
    return paths.key(path.replace("\xa0", " "))


def joined(folder: str, relative: str) -> str:
    """Give the path that a relative one leads to from a folder; empty where it leaves the vault.

    ``../img/a.png`` leads from ``Notes/Work`` to ``Notes/img/a.png``.
    """
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return ""
            _ = parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def _spellings(wanted: str) -> tuple[str, str]:
    """Give the paths that a target may mean: as written, and as a note without its suffix."""
    return wanted, wanted + _NOTE_SUFFIX


def _candidates(wanted: str, lookup: Callable[[str], Sequence[NotePath]]) -> list[NotePath]:
    name = wanted.rpartition("/")[2]
    keys = dict.fromkeys(key(spelling) for spelling in _spellings(name))
    return [path for name_key in keys for path in lookup(name_key)]


def _exact(wanted: str, written: str, lookup: Callable[[str], Sequence[NotePath]]) -> Resolution:
    return Resolution(path=_at(wanted, written, _candidates(wanted, lookup)))


def _at(wanted: str, written: str, found: Sequence[NotePath]) -> NotePath | None:
    """Find the file at a path; a note ``v1.md`` before a file ``v1``, as a link without suffix means a note."""
    places: dict[str, list[NotePath]] = {}
    for path in found:
        places.setdefault(folded(path), []).append(path)
    fits = next((places[spelling] for spelling in reversed(_spellings(wanted)) if spelling in places), ())
    return _as_written(written, fits) if len(fits) > 1 else next(iter(fits), None)


def _as_written(written: str, fits: Sequence[NotePath]) -> NotePath:
    """Choose among files whose paths differ only in case: the one that is spelled as the target, else the last."""
    name = _spelled(written.replace("\\", "/")).strip().lstrip("./")
    spelled = (path for path in fits if _spelled(path).endswith(_spellings(name)))
    return next(spelled, fits[-1])


def _spelled(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\xa0", " "))


def _ending(wanted: str, named: Sequence[NotePath]) -> list[NotePath]:
    """List the files whose path ends with the target at a folder's border."""
    endings = tuple("/" + spelling for spelling in _spellings(wanted))
    return list(dict.fromkeys(p for p in named if ("/" + folded(p)).endswith(endings)))


def _rank(path: NotePath) -> tuple[int, str]:
    return len(path), path
