"""Rewrite the links of one file so that they lead where they led, after files have moved."""

from collections.abc import Sequence
from dataclasses import replace

from knapper.changes.linking import link_edits, link_styles
from knapper.changes.linking.link_edits import Broken, Edit, Relinked
from knapper.changes.linking.link_forms import Forms, is_card
from knapper.changes.linking.link_styles import Aim, Habit
from knapper.changes.linking.pages import Page
from knapper.changes.linking.pasts import Past
from knapper.changes.linking.relocation import Relocation
from knapper.changes.text.splices import Splice
from knapper.vault import links, paths
from knapper.vault.outline import Link
from knapper.vault.paths import NotePath


def rewrite(page: Page, relocation: Relocation, habit: Habit, pasts: Sequence[Past] = ()) -> Relinked:
    """Rewrite the links of a file that would lead elsewhere after a move; every other byte stays.

    Args:
        page: The file as it is, by the path that it has before.
        relocation: What moves.
        habit: How the vault writes links.
        pasts: What earlier moves, which are made backwards now, rewrote in the file: links get back what they said,
            even those that are still right, where nobody has changed them since.
    """
    forms = Forms(page.raw, page.kind, page.outline)
    earlier = _earlier(page, pasts)
    edits: dict[tuple[int, int], Edit] = {}
    broken: list[Broken] = []
    healed = 0
    stays = page.path not in relocation.files and not relocation.folders
    for number, link in enumerate(page.outline.links):
        if link.kind == "external" or not link.target:
            continue
        if stays and number not in earlier and not relocation.concerns(link.target):
            continue
        aim = _aim(page, forms, link, relocation, habit, is_sure=number in earlier)
        found = _home(aim, earlier.get(number, ()), relocation) if aim else None
        if aim is None or (found is None and link_styles.is_right(aim, link.target, relocation.after)):
            healed += _heals(page, link, relocation)
            continue
        found = found or next(link_styles.choose(aim, habit, relocation.after), None)
        if found is None or not page.takes(found[1]):
            if relocation.after.resolve(link.target, aim.source).path != aim.new:
                broken.append(link_edits.broken(page, link, aim.new))
        elif found[1] != _written(page.raw, link):
            healed += not aim.is_file and relocation.leads(found[0], aim.source)
            span = (link.target_start, link.target_stop)
            splice = Splice(start=span[0], stop=span[1], new=found[1])
            edits[span] = Edit(
                link=link, wanted=replace(link, target=found[0]), splice=splice, scalar=aim.form.scalar, path=aim.new
            )
    made = link_edits.apply(page, list(edits.values())) if edits else Relinked(after=page.raw)
    return replace(made, broken=(*broken, *made.broken), healed=healed)


def _earlier(page: Page, pasts: Sequence[Past]) -> dict[int, list[tuple[str, bytes]]]:
    """Find the links that still say what earlier moves made them say, and what they said before, the oldest first."""
    found: dict[int, list[tuple[str, bytes]]] = {}
    says = [_written(page.raw, link) for link in page.outline.links]
    for before, after in filter(None, (past.read() for past in reversed(pasts))):
        old, new = page.reread(before).links, page.reread(after).links
        if not len(old) == len(new) == len(says):
            continue
        for number, (one, other, link) in enumerate(zip(old, new, page.outline.links, strict=True)):
            said = _written(before, one)
            if said != says[number] == _written(after, other) and _shape(one) == _shape(other) == _shape(link):
                found.setdefault(number, []).insert(0, (one.target, said))
                says[number] = said
    return found


def _written(raw: bytes, link: Link) -> bytes:
    return raw[link.target_start : link.target_stop]


def _shape(link: Link) -> tuple[str, tuple[str, ...], str, str | None]:
    return link.kind, link.headings, link.block, link.alias


def _home(aim: Aim, earlier: Sequence[tuple[str, bytes]], relocation: Relocation) -> tuple[str, bytes] | None:
    """Give the first of what a link said before earlier moves that leads where it is to lead now."""
    asked = aim if aim.style == "card" else replace(aim, style="name")
    return next((said for said in earlier if link_styles.is_right(asked, said[0], relocation.after)), None)


def _heals(page: Page, link: Link, relocation: Relocation) -> bool:
    before = relocation.led(link.target, page.path).path
    return before is None and relocation.leads(link.target, relocation.place(page.path))


def _aim(page: Page, forms: Forms, link: Link, relocation: Relocation, habit: Habit, *, is_sure: bool) -> Aim | None:
    """Tell where a link leads and is to lead; None where nothing changes, or it leads nowhere and didn't say where."""
    found = relocation.led(link.target, page.path)
    card = is_card(page.raw, link)
    old = found.path or _nowhere(page.path, link.target, is_card=card)
    if old is None or (not is_sure and found.path and _is_untouched(found.path, link, page, relocation)):
        return None
    form = forms.of(link)
    return Aim(
        target=link.target,
        form=form,
        style=link_styles.style(link.target, form, (page.path, old), habit, is_card=card),
        source=relocation.place(page.path),
        old=old,
        new=relocation.place(old),
        is_file=found.path is not None,
        ambiguous=bool(found.ambiguous),
        dotted=forms.are_dotted,
    )


def _is_untouched(path: NotePath, link: Link, page: Page, relocation: Relocation) -> bool:
    """Tell quickly of most links that nothing about them changes."""
    if path in relocation.files or page.path in relocation.files:
        return False
    return relocation.after.resolve(link.target, page.path).path == path


def _nowhere(source: NotePath, target: str, *, is_card: bool) -> NotePath | None:
    """Give the place that a path means though the index knows no file there: an ignored one, or one to be."""
    if is_card:
        return NotePath(target)
    if not target.startswith(("./", "../")):
        return None
    return NotePath(links.join_relative(paths.parent_folder(source), target)) or None
