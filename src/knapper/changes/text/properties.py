"""Change a note's properties, and no line of the frontmatter but those of the property.

Each change is checked before it is handed out: the frontmatter is read again, and every other property has to have the
value it had. Where that can't be had by the property's own lines, the change is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from knapper.changes.text import (
    property_checks,
    property_lines,
    property_values,
    yaml_text,
    yaml_tree,
)
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.changes.text.yaml_tree import Entry
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Hold what a change of a property does."""

    key: str
    """As written in the note, which may differ in case from what was asked for."""
    splices: tuple[Splice, ...]
    """Empty where a list held the value already."""
    before: JSONValue
    """None where the note didn't have the property, or had it without a value."""
    after: JSONValue


def assign(snapshot: Snapshot, key: str, value: JSONValue) -> Outcome:
    """Set a property, in the style in which it or the note's other properties are written.

    A note without frontmatter gets one, and `remove` of its only property takes it away again.

    Args:
        snapshot: The note.
        key: The property; case matters only where two keys differ in it.
        value: What it holds afterwards; text from a person goes through `property_values.interpret` first.

    Raises:
        BadInput: The frontmatter is invalid, nothing would change, or the property can't be changed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_tree.entries(snapshot)
    entry = find(entries, key)
    values = property_checks.values(snapshot)
    name = entry.name if entry else key
    if entry is not None and property_checks.same(values[name], value):
        raise BadInput(
            f"Nothing would change: {name!r} has this value.", hint="Nothing has to be done.", code="no_change"
        )
    if entry is None:
        ways = property_lines.added(snapshot, entries, name, value)
    else:
        ways = [property_lines.replaced(snapshot, entries, entry, value)]
    made = property_checks.first_sound(snapshot, ways, {**values, name: value}, name)
    return Outcome(key=name, splices=made, before=values.get(name), after=value)


def remove(snapshot: Snapshot, key: str) -> Outcome:
    """Remove a property with its lines; a frontmatter that holds nothing at all afterwards goes too.

    Raises:
        NotFound: The note doesn't have it; the hint names the nearest.
        BadInput: The frontmatter is invalid, or the property can't be removed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_tree.entries(snapshot)
    entry = _existing(entries, key)
    values = property_checks.values(snapshot)
    kept = {name: value for name, value in values.items() if name != entry.name}
    made = property_checks.first_sound(snapshot, property_lines.removed(snapshot, entry), kept, entry.name)
    return Outcome(key=entry.name, splices=made, before=values[entry.name], after=None)


def append(snapshot: Snapshot, key: str, value: JSONValue) -> Outcome:
    """Add a value, or each value of a list, to a list property; what it holds already is skipped.

    A missing or empty property becomes a list, and so does a single value.

    Raises:
        BadInput: The frontmatter is invalid, the property holds a map, or it can't be changed safely.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_tree.entries(snapshot)
    entry = find(entries, key)
    values = property_checks.values(snapshot)
    name = entry.name if entry else key
    before = values.get(name)
    if isinstance(before, dict):
        raise BadInput(f"{name!r} holds further properties, so nothing can be appended to it.", hint="Set it anew.")
    there = property_values.as_list(name, before)
    fresh = property_values.fresh(name, there, value if isinstance(value, list) else [value])
    after: list[JSONValue] = [*there, *fresh]
    if not fresh:
        return Outcome(key=name, splices=(), before=before, after=before)
    if entry is None:
        ways = property_lines.added(snapshot, entries, name, after)
    elif entry.value.kind == "list":
        ways = [property_lines.extended(snapshot, entries, entry, fresh)]
    else:
        ways = [property_lines.replaced(snapshot, entries, entry, after)]
    made = property_checks.first_sound(snapshot, ways, {**values, name: after}, name)
    return Outcome(key=name, splices=made, before=before, after=after)


def rename(snapshot: Snapshot, key: str, new: str) -> Outcome:
    """Give a property another name, at its place and with its value as written.

    Raises:
        NotFound: The note doesn't have it.
        BadInput: It has one of the new name already, or as for `assign`.
        Ambiguous: Several keys differ from *key* in case only.
    """
    entries = yaml_tree.entries(snapshot)
    entry = _existing(entries, key)
    other = find([one for one in entries if one is not entry], new)
    if other is not None:
        hint = "Remove one of the two, or append one's value to the other."
        raise BadInput(f"The note has a property {other.name!r} already.", hint=hint, code="exists")
    if new == entry.name:
        raise BadInput(
            f"Nothing would change: the property is named {new!r}.", hint="Nothing has to be done.", code="no_change"
        )
    values = property_checks.values(snapshot)
    renamed = {new if name == entry.name else name: value for name, value in values.items()}
    start, stop = entry.key.start, entry.key.stop
    way = [Splice(start=start, stop=stop, new=snapshot.encode(yaml_text.key(new), start))]
    made = property_checks.first_sound(snapshot, [way], renamed, entry.name)
    return Outcome(key=new, splices=made, before=values[entry.name], after=values[entry.name])


def find(entries: Sequence[Entry], key: str) -> Entry | None:
    """Find a property: by its name as given, else by its name in another case.

    Raises:
        Ambiguous: Several keys differ from *key* in case only.
    """
    exact = [entry for entry in entries if entry.name == key]
    found = exact or [entry for entry in entries if entry.name.casefold() == key.casefold()]
    if len(found) > 1:
        names = ", ".join(repr(entry.name) for entry in found)
        raise Ambiguous(f"Several properties fit {key!r}: {names}.", hint="Write it as one of them is written.")
    return found[0] if found else None


def _existing(entries: Sequence[Entry], key: str) -> Entry:
    entry = find(entries, key)
    if entry is not None:
        return entry
    names = [other.name for other in entries]
    near = [name for name, _, _ in process.extract(key, names, scorer=fuzz.ratio, processor=str.casefold, limit=3)]
    hint = f"It has {', '.join(near)}." if near else "It has no properties."
    raise NotFound(
        f"The note has no property {key!r}.", hint=hint, code="property_not_found", details={"nearest": near}
    )
