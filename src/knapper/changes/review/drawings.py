"""Know which blocks in notes show hunks of proposals, so that a block and its hunk always say the same.

Where a hunk gets another text, its block is drawn anew, which is a change of the note. What each of the blocks said is
kept: a note that shows another of them afterwards, because that change failed, was undone or made again, takes the
hunk's text along.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from knapper.changes.disk.ledger import Ledger
from knapper.changes.review import attempts, choices, hunking, proposal_rows, rendering, settling
from knapper.changes.review.choices import Blocks
from knapper.changes.review.proposal_records import ItemState, Proposal, ProposedFile
from knapper.changes.review.proposal_rows import Reader
from knapper.changes.review.rendering import Rendering
from knapper.vault.paths import NotePath

_Texts: TypeAlias = Mapping[str, tuple[str, bool]]
"""Ids of the hunks that a block shows, each with its new text then, and whether that was edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrawn:
    """Hold a proposal with another text of a hunk, and what its note is to hold."""

    proposal: Proposal
    rendering: Rendering | None = None
    """None where no block shows the hunk."""


class Drawings:
    """Hold what is known of blocks; `Proposals` has one."""

    def __init__(self, own: Ledger, reader: Reader) -> None:
        """Wrap the file of the proposals."""
        self._ledger = own
        self._reader = reader

    def get(self, proposal_id: str) -> Mapping[NotePath, Blocks]:
        """Tell which notes hold blocks that show hunks of a proposal, and which blocks."""
        with self._ledger.reading() as database:
            return proposal_rows.blocks(database, self._reader.get(database, proposal_id).id)

    def put(self, proposal_id: str, path: NotePath, blocks: Blocks) -> None:
        """Note which blocks of a note show hunks of a proposal, in the place of those that did.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            proposal_rows.put_blocks(database, found.id, choices.file_at(found, path).number, blocks)

    def keep(self, proposal_id: str, made: Mapping[NotePath, Blocks]) -> None:
        """Keep what blocks will say before notes are written, so that they are known there whatever happens then.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            for path, blocks in made.items():
                _keep(database, found.id, choices.file_at(found, path), blocks)

    def mark(
        self, proposal_id: str, states: Mapping[str, ItemState], reason: str = "", *, change_id: str = ""
    ) -> Proposal:
        """Note what a person did to blocks in a note itself.

        Args:
            proposal_id: Which.
            states: Hunk ids with what became of each.
            reason: Why they were rejected.
            change_id: The change that accepted blocks came to; empty where none is known.

        Raises:
            NotFound: There is no such proposal or hunk.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            if change_id and "accepted" in states.values():
                attempts.made(database, proposal_id, change_id)
            for state in set(states.values()) - {"open"}:
                chosen = choices.hunks_of(found, [name for name, own in states.items() if own == state])
                found = settling.close(database, found, chosen, state, reason)
            return found

    def edit(self, proposal_id: str, digest: str, hunk: str, text: str, noted: Mapping[NotePath, bytes]) -> Redrawn:
        """Put another text in the place of a hunk's new side, and draw the block that shows it anew.

        If the note can't be written afterwards, `follow` with what it held takes the text back.

        Args:
            proposal_id: Which.
            digest: Of the state that was shown.
            hunk: Its id, such as ``2.1``.
            text: The new lines.
            noted: What notes hold that have blocks of this proposal, to which it is fitted.

        Raises:
            NotFound: There is no such proposal or hunk.
            ConflictError: It isn't what was shown any more, is closed, or the note isn't what the proposal fits.
            BadInput: The hunk isn't open, or would change nothing.
        """
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            choices.check_open(found)
            settling.check_shown(found, digest)
            ((number, own),) = choices.hunks_of(found, [hunk]).items()
            old = found.files[number - 1]
            new = hunking.edited(old, min(own), text, found.id)
            shown = proposal_rows.blocks(database, found.id).get(old.path, {})
            raw = noted.get(old.path)
            made = None if raw is None else rendering.redraw(old, new, raw, shown, f"{number}.{min(own)}")
            if made is not None:
                _keep(database, found.id, old, shown)
                _keep(database, found.id, new, made.blocks)
                proposal_rows.put_blocks(database, found.id, number, made.blocks)
            return Redrawn(proposal=settling.keep(database, found, [new]), rendering=made)

    def follow(self, proposal_id: str, current: Mapping[NotePath, bytes | None]) -> bool:
        """Give hunks the texts that the blocks in notes show, where those are others than were drawn last.

        Args:
            proposal_id: Which.
            current: What notes hold; of others nothing is known.

        Returns:
            Whether something is another now.

        Raises:
            NotFound: There is no such proposal.
        """
        with self._ledger.reading() as database:
            turned = _turned(database, proposal_id, current)
        if not turned:
            return False
        with self._ledger.writing() as database:
            found = self._reader.get(database, proposal_id)
            turned = _turned(database, proposal_id, current)
            if not turned or found.status not in {"open", "stale"}:
                return False
            shown = proposal_rows.blocks(database, found.id)
            changed: list[ProposedFile] = []
            for path, blocks in turned.items():
                file = choices.file_at(found, path)
                taken = _open(file, blocks)
                changed.append(_with(file, {hunk: text for texts in taken.values() for hunk, text in texts.items()}))
                again = {hunk for texts in taken.values() for hunk in texts}
                left = {name: hunks for name, hunks in shown.get(path, {}).items() if again.isdisjoint(hunks)}
                now = {**left, **{name: tuple(texts) for name, texts in taken.items()}}
                proposal_rows.put_blocks(database, found.id, file.number, now)
            settling.keep(database, found, changed)
        return True


def _keep(database: sqlite3.Connection, proposal_id: str, file: ProposedFile, blocks: Blocks) -> None:
    texts = {one.id: (one.hunk.new.decode(errors="replace"), one.edited) for one in file.hunks}
    said = {name: {hunk: texts[hunk] for hunk in hunks} for name, hunks in blocks.items()}
    rows = [(proposal_id, file.number, name, json.dumps(one)) for name, one in said.items()]
    database.executemany("INSERT OR REPLACE INTO drawings VALUES (?, ?, ?, ?)", rows)


def _turned(
    database: sqlite3.Connection, proposal_id: str, current: Mapping[NotePath, bytes | None]
) -> dict[NotePath, dict[str, _Texts]]:
    """Find the blocks in notes that say something else of hunks than was drawn last."""
    found: dict[NotePath, dict[str, _Texts]] = {}
    shown = proposal_rows.blocks(database, proposal_id)
    for path, kept in _kept(database, proposal_id).items():
        raw = current.get(path)
        if raw is None:
            continue
        there = rendering.standing(raw, kept.keys() | shown.get(path, {}).keys())
        held = {hunk for name, hunks in shown.get(path, {}).items() if name in there for hunk in hunks}
        others = {name: kept[name] for name in there if name not in shown.get(path, {})}
        counts = Counter(hunk for texts in others.values() for hunk in texts)
        sure = {
            name: texts
            for name, texts in others.items()
            if held.isdisjoint(texts) and all(counts[hunk] == 1 for hunk in texts)
        }
        if sure:
            found[path] = sure
    return found


def _kept(database: sqlite3.Connection, proposal_id: str) -> dict[NotePath, dict[str, _Texts]]:
    rows = database.execute(
        "SELECT path, block, texts FROM drawings JOIN files ON files.proposal = drawings.proposal AND number = file"
        " WHERE drawings.proposal = ?",
        (proposal_id,),
    )
    found: dict[NotePath, dict[str, _Texts]] = {}
    for row in rows.fetchall():
        texts = cast("dict[str, list[object]]", json.loads(row["texts"]))
        said = {hunk: (str(text), bool(edited)) for hunk, (text, edited) in texts.items()}
        found.setdefault(NotePath(row["path"]), {})[row["block"]] = said
    return found


def _open(file: ProposedFile, blocks: Mapping[str, _Texts]) -> dict[str, _Texts]:
    waiting = {one.id for one in file.hunks if one.state == "open"}
    return {name: texts for name, texts in blocks.items() if waiting.issuperset(texts)}


def _with(file: ProposedFile, texts: _Texts) -> ProposedFile:
    return replace(file, hunks=tuple(_turned_hunks(file, texts)))


def _turned_hunks(file: ProposedFile, texts: _Texts) -> Iterable[hunking.ProposedHunk]:
    for one in file.hunks:
        if one.id not in texts:
            yield one
            continue
        text, edited = texts[one.id]
        yield replace(one, hunk=replace(one.hunk, new=text.encode()), edited=edited)
