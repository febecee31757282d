"""Choose what a link says so as to lead to a file: a name, a path from the vault, a relative path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.changes.linking.link_forms import Form
from knapper.changes.linking.relocation import Names
from knapper.vault import links, paths
from knapper.vault.obsidian import LinkFormat
from knapper.vault.paths import NotePath

Style = Literal["name", "partial", "absolute", "rooted", "relative", "literal", "card"]
"""``B`` · ``folder/B``, the end of the path · all of it · with ``/`` before · with ``./`` or ``../`` · a Markdown path
that any reader takes as relative · a card's, which Obsidian takes as written."""

_SUFFIX: Final = ".md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """Say how a vault writes links."""

    format: LinkFormat
    is_app_vault: bool
    """Obsidian has opened it; elsewhere a Markdown link is what any reader of Markdown takes it for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Hold what one link says, where it led, and where it is to lead."""

    target: str
    form: Form
    style: Style
    source: NotePath
    """The file that holds the link, by its path afterwards."""
    old: NotePath
    new: NotePath
    is_file: bool
    """False for a relative path to nothing that the index knows."""
    ambiguous: bool
    """Other files fitted the target as well."""
    dotted: bool = False
    """Links of the file that lead below its folder begin with ``./``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Hold one way to say where a link leads."""

    prefix: str
    parts: tuple[str, ...]
    alone: bool = False
    """Only good where no other file fits."""

    @property
    def target(self) -> str:
        """Give the target, decoded."""
        return self.prefix + "/".join(self.parts)


def style(target: str, form: Form, ends: tuple[NotePath, NotePath], habit: Habit, *, is_card: bool) -> Style:
    """Tell how a link says where it leads.

    Args:
        target: Decoded.
        form: How it is written.
        ends: The file that holds it, and the file that it leads to.
        habit: The vault's.
        is_card: It is a canvas's card.
    """
    source, path = ends
    said = target.replace("\\", "/").strip()
    is_absolute = _is(said, path)
    if is_card and links.fold_target(said) == links.fold_target(path):
        return "card"
    if said.startswith(("./", "../")):
        return "relative"
    if said.startswith("/"):
        return "rooted"
    if form.markup == "markdown" and _is(links.join_relative(paths.parent_folder(source), said), path):
        relative = habit.format == "relative" or not habit.is_app_vault
        if relative or ("/" in said and not is_absolute):
            return "literal"
    if "/" not in said:
        return "name"
    return "absolute" if is_absolute else "partial"


def is_right(aim: Aim, target: str, names: Names) -> bool:
    """Tell whether a target leads where its link is to lead, in the way that the link's style promises."""
    if aim.style == "card":
        return links.fold_target(target) == links.fold_target(aim.new)
    if (aim.style == "literal" or not aim.is_file) and not _is(
        links.join_relative(paths.parent_folder(aim.source), target.replace("\\", "/").strip()), aim.new
    ):
        return False
    return not aim.is_file or names.leads(target, aim.source, aim.new)


def choose(aim: Aim, habit: Habit, names: Names) -> Iterator[tuple[str, bytes]]:
    """Give what a link could say, best first: decoded, and as the file has it.

    Args:
        aim: The link's.
        habit: The vault's.
        names: Files as they are to be.
    """
    for choice in _choices(aim, habit):
        if not is_right(aim, choice.target, names):
            continue
        if choice.alone and not names.leads(choice.target, aim.source, aim.new, alone=True):
            continue
        written = _spelled(aim, choice)
        if written is not None:
            yield choice.target, written


def _choices(aim: Aim, habit: Habit) -> Iterator[Choice]:
    whole = tuple(aim.new.split("/"))
    name = _name(aim)
    for last in dict.fromkeys((name, whole[-1])):
        parts = (*whole[:-1], last)
        absolute = Choice(prefix="", parts=parts)
        relative = _relative(aim, parts)
        longer = [relative, absolute] if habit.format == "relative" else [absolute, relative]
        match aim.style:
            case "name":
                yield Choice(prefix="", parts=(last,), alone=not aim.ambiguous)
                yield from longer
            case "partial":
                count = len(aim.target.replace("\\", "/").strip().split("/"))
                yield Choice(prefix="", parts=parts[-count:], alone=not aim.ambiguous)
                yield from longer
            case "absolute":
                yield from (absolute, relative)
            case "rooted":
                yield from (Choice(prefix="/", parts=parts), absolute, relative)
            case "literal":
                yield from (_bare(aim, relative), relative)
            case "relative":
                yield from (_bare(aim, relative), relative, absolute)
            case "card":
                yield Choice(prefix="", parts=whole)


def _name(aim: Aim) -> str:
    """Give the file's name as the link would say it: without ``.md``, unless the link says it."""
    new = paths.base_name(aim.new)
    if not _is_note(new) or aim.style == "card":
        return new
    if _is_note(aim.old):
        said = aim.target.replace("\\", "/").strip().rpartition("/")[2]
        return new if links.fold_target(said) == links.fold_target(paths.base_name(aim.old)) else new[: -len(_SUFFIX)]
    return new if aim.form.markup == "markdown" else new[: -len(_SUFFIX)]


def _relative(aim: Aim, parts: Sequence[str]) -> Choice:
    """Say the way from the link's folder, with dots before it."""
    here = paths.parent_folder(aim.source).split("/") if "/" in aim.source else []
    same = 0
    while same < min(len(here), len(parts) - 1) and here[same] == parts[same]:
        same += 1
    up = len(here) - same
    return Choice(prefix="../" * up or "./", parts=tuple(parts[same:]))


def _bare(aim: Aim, relative: Choice) -> Choice:
    """Leave out the dot that says nothing to a reader of Markdown, unless the link or the file is used to it."""
    is_dotted = aim.dotted or aim.target.startswith("./") or aim.form.markup != "markdown"
    return relative if relative.prefix != "./" or is_dotted else Choice(prefix="", parts=relative.parts)


def _spelled(aim: Aim, choice: Choice) -> bytes | None:
    """Write a choice; the parts that stay the same keep the spelling that they have in the file."""
    written: list[bytes] = []
    for place, part in enumerate(reversed(choice.parts)):
        piece = _kept(aim, place, part)
        if piece is None:
            piece = aim.form.write(part)
        if piece is None:
            return None
        written.append(piece)
    ending = b"/" if aim.target.endswith("/") else b""
    prefix = choice.prefix.encode().replace(b"/", aim.form.slash)
    return prefix + aim.form.slash.join(reversed(written)) + ending


def _kept(aim: Aim, place: int, part: str) -> bytes | None:
    """Give the file's own spelling of a part, counted from the end, where old and new path agree in it."""
    old, new = aim.old.split("/"), aim.new.split("/")
    said = aim.target.split("/")
    if place >= min(len(aim.form.pieces), len(old), len(new)) or old[-1 - place] != new[-1 - place]:
        return None
    return aim.form.pieces[-1 - place] if links.fold_target(said[-1 - place]) == links.fold_target(part) else None


def _is(said: str, path: str) -> bool:
    """Tell whether a path, its ``.md`` perhaps left out, is that of a file."""
    return links.fold_target(said) in {links.fold_target(path), links.fold_target(path).removesuffix(_SUFFIX)}


def _is_note(path: str) -> bool:
    return path.lower().endswith(_SUFFIX)
