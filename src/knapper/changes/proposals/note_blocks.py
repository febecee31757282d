"""Blocks in notes that show hunks of proposals: rendering them, and reading what a person did to them."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from knapper.changes.disk.storage import SharedDatabase
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import parts, tables
from knapper.changes.proposals.model import Decision, ItemState, Proposal, ProposedFile, ProposedHunk
from knapper.changes.proposals.parts import BlockHunks, ChosenHunks
from knapper.changes.proposals.tables import ProposalReader
from knapper.changes.text import blocks, diff, splices
from knapper.changes.text.diff import Hunk
from knapper.errors import BadInput, ConflictError
from knapper.jsontypes import list_or_empty, loads, object_or_empty
from knapper.vault import parser
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRendering:
    """A note with blocks in it, as a draft."""

    draft: Draft
    blocks: BlockHunks
    """For `NoteBlockStore.put`, once the draft is applied."""
    left_out: tuple[str, ...] = ()
    """Hunks that can't be shown in the note, such as those of properties, each with the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDecisions:
    """What a person did to the blocks of a note."""

    states: Mapping[str, ItemState]
    """New states by hunk id, for `NoteBlockStore.mark`."""
    blocks: BlockHunks
    """Those that still wait."""
    problems: tuple[str, ...]
    """Blocks that were edited or half deleted, or whose outcome is unclear; it is never guessed."""


def render_note(file: ProposedFile, raw: bytes, shown: BlockHunks) -> NoteRendering:
    """Put the waiting hunks of an edit into its note as blocks, without those that can't be shown there.

    Args:
        file: What is proposed, fitted to the note without blocks.
        raw: The note's content.
        shown: Blocks of the proposal that the note has already; they are rendered again.

    Raises:
        BadInput: Nothing of it can be shown as a block, or nothing waits.
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    plain = withdraw_blocks(raw, shown)
    _check_fits(file, plain)
    rendered, left_out = _insert_waiting(file, plain)
    note_draft = _draft_note(file, raw, rendered.raw)
    return NoteRendering(draft=Draft(files=(note_draft,)), blocks=_hunk_ids_by_block(file, rendered), left_out=left_out)


def _check_fits(file: ProposedFile, plain: bytes) -> None:
    if file.kind != "edit" or plain != file.before:
        what = "only edits are shown in their notes" if file.kind != "edit" else "the note changed meanwhile"
        raise ConflictError(f"'{file.path}': {what}", hint="fit the proposal to the note first", code="stale")


def _draft_note(file: ProposedFile, raw: bytes, after: bytes) -> FileDraft:
    return FileDraft(
        path=file.path,
        base=parser.content_hash(raw),
        before=raw,
        after=after,
        needs=frozenset({"add"}),
        anchored=True,
        cause=file.cause,
    )


def _insert_waiting(file: ProposedFile, plain: bytes) -> tuple[blocks.RenderedBlocks, tuple[str, ...]]:
    """Render all hunks, or if that fails, those that can be rendered one by one."""
    snapshot = splices.take_snapshot(plain)
    try:
        return blocks.insert_blocks(snapshot, [one.hunk for one in file.waiting]), ()
    except (BadInput, ConflictError) as error:
        drawable: list[Hunk] = []
        left_out: list[str] = []
        for one in file.waiting:
            try:
                _ = blocks.insert_blocks(snapshot, [one.hunk])
            except (BadInput, ConflictError) as cause:
                left_out.append(f"{one.id} of {file.path} isn't shown in the note: {cause.message}")
            else:
                drawable.append(one.hunk)
        if not (drawable and left_out):
            raise error from None
        return blocks.insert_blocks(snapshot, drawable), tuple(left_out)


def draft_removal(file: ProposedFile, raw: bytes, shown: Iterable[str]) -> FileDraft:
    """Draft a note without some blocks of a proposal: their old text takes their place again, byte for byte.

    Args:
        file: What is proposed for the note.
        raw: The note's content.
        shown: The blocks' ids.

    Raises:
        ConflictError: A block was edited by hand.
    """
    return FileDraft(
        path=file.path,
        base=parser.content_hash(raw),
        before=raw,
        after=withdraw_blocks(raw, shown),
        needs=frozenset({"delete"}),
        anchored=True,
        cause=file.cause,
    )


def withdraw_blocks(raw: bytes, shown: Iterable[str]) -> bytes:
    """Return a note without some blocks; those that aren't in it any more are skipped.

    Raises:
        ConflictError: One was edited by hand.
    """
    block_ids = set(shown)
    if not block_ids:
        return raw
    snapshot = splices.take_snapshot(raw)
    present_ids = [block.id for block in blocks.find_blocks(snapshot) if block.id in block_ids]
    return splices.merge(raw, blocks.resolve_blocks(snapshot, dict.fromkeys(present_ids, "reject")))


def intact_blocks(raw: bytes, shown: Collection[str]) -> set[str]:
    """Return which of some blocks are in a note unchanged."""
    if not shown:
        return set()
    return {
        block.id
        for block in blocks.find_blocks(splices.take_snapshot(raw))
        if block.id in shown and not blocks.block_problem(block)
    }


def render_edited_hunk(
    old: ProposedFile, new: ProposedFile, raw: bytes, shown: BlockHunks, hunk: str
) -> NoteRendering | None:
    """Render the blocks of a note again after the text of a hunk was edited.

    Hunks that can't be shown with that text wait outside of the note.

    Args:
        old: What was proposed, fitted to the note without blocks.
        new: What is proposed now.
        raw: The note's content.
        shown: Blocks of the proposal; those that are gone from the note aren't rendered again.
        hunk: Id of the edited hunk.

    Returns:
        None if no block in the note shows the hunk.

    Raises:
        ConflictError: A block was edited by hand, or the note isn't what the proposal fits.
    """
    present_blocks = {name: shown[name] for name in intact_blocks(raw, shown)}
    hunk_ids = {name for hunks in present_blocks.values() for name in hunks}
    if hunk not in hunk_ids:
        return None
    plain = withdraw_blocks(raw, present_blocks)
    _check_fits(old, plain)
    part = replace(new, hunks=tuple(one for one in new.hunks if one.id in hunk_ids))
    after, rendered, left_out = _render_waiting(part, plain)
    note_draft = _draft_note(new, raw, after)
    return NoteRendering(draft=Draft(files=(note_draft,)), blocks=rendered, left_out=left_out)


def render_remaining(
    proposal: Proposal, chosen: ChosenHunks, plain: Draft, note_contents: Mapping[NotePath, bytes]
) -> tuple[Draft, dict[NotePath, BlockHunks]]:
    """Render what still waits again in notes that had blocks, so that accepting one block keeps the others.

    Args:
        proposal: The proposal.
        chosen: What is accepted of it.
        plain: The draft of that, made against the notes without blocks.
        note_contents: Contents of the notes with blocks.

    Returns:
        The draft against the notes with blocks, and the blocks that they will have.
    """
    files: list[FileDraft] = []
    blocks_by_path: dict[NotePath, BlockHunks] = {}
    for own in plain.files:
        raw = note_contents.get(own.path)
        if raw is None or own.before is None or own.after is None:
            files.append(own)
            continue
        file = next(file for file in proposal.files if file.path == own.path)
        remaining = parts.mark_file_accepted(file, chosen[file.number], own)
        after, blocks_by_path[own.path], _ = _render_waiting(remaining, own.after)
        files.append(replace(own, base=parser.content_hash(raw), before=raw, after=after))
    return replace(plain, files=tuple(files)), blocks_by_path


def _render_waiting(file: ProposedFile, content: bytes) -> tuple[bytes, BlockHunks, tuple[str, ...]]:
    """Render what waits; if it can't be shown, it waits outside of the note, and the cause is returned."""
    if not file.waiting:
        return content, {}, ()
    try:
        rendered, left_out = _insert_waiting(file, content)
    except (BadInput, ConflictError) as error:
        return content, {}, (error.message,)
    return rendered.raw, _hunk_ids_by_block(file, rendered), left_out


def _hunk_ids_by_block(file: ProposedFile, rendered: blocks.RenderedBlocks) -> BlockHunks:
    names = {one.hunk.id: one.id for one in file.hunks}
    return {block: tuple(names[hunk] for hunk in hunk_ids) for block, hunk_ids in rendered.ids.items()}


def read_decisions(file: ProposedFile, raw: bytes, shown: BlockHunks) -> BlockDecisions:
    """Return what a person did to the blocks of a note.

    A missing block was accepted if its new text is in its place, and rejected if its old text is.

    Args:
        file: What was proposed when the blocks were rendered.
        raw: The note's content.
        shown: The blocks that were rendered.
    """
    snapshot = splices.take_snapshot(raw)
    present_blocks = {block.id: block for block in blocks.find_blocks(snapshot) if block.id in shown}
    problems = [
        f"line {block.line}: {blocks.block_problem(block)}"
        for block in present_blocks.values()
        if blocks.block_problem(block)
    ]
    intact_ids = [name for name, block in present_blocks.items() if not blocks.block_problem(block)]
    current = splices.merge(raw, blocks.resolve_blocks(snapshot, dict.fromkeys(intact_ids, "reject")))
    states: dict[str, ItemState] = {}
    still = {one.id for one in file.hunks if one.state == "open"}
    missing_blocks = [
        name for name, hunks in shown.items() if name not in present_blocks and not still.isdisjoint(hunks)
    ]
    for one in (
        parts.find_hunk(file, int(name.partition(".")[2])) for block in missing_blocks for name in shown[block]
    ):
        state = _hunk_outcome(one, file, current, {name for block in missing_blocks for name in shown[block]})
        if state is None:
            problems.append(f"hunk {one.id}: its block is gone, and neither side stands in its place")
        elif one.state == "open":
            states[one.id] = state
    return BlockDecisions(states=states, blocks={name: shown[name] for name in intact_ids}, problems=tuple(problems))


def _hunk_outcome(one: ProposedHunk, file: ProposedFile, current: bytes, gone: set[str]) -> ItemState | None:
    if _is_applicable(one.hunk, one.origin, current):
        return "rejected"
    others = [other.hunk for other in file.waiting if other.id in gone]
    for chosen in (others, [one.hunk]):
        after = diff.apply_hunks(one.origin, chosen)
        shift = sum(len(other.new) - len(other.old) for other in chosen if other.start < one.hunk.start)
        reversed_hunk = replace(one.hunk, start=one.hunk.start + shift, old=one.hunk.new, new=one.hunk.old)
        if _is_applicable(reversed_hunk, after, current):
            return "accepted"
    return None


def _is_applicable(hunk: Hunk, origin: bytes, current: bytes) -> bool:
    try:
        splices.rebase(hunk.splice, origin, current)
    except ConflictError:
        return False
    return True


_HunkTexts: TypeAlias = Mapping[str, tuple[str, bool]]
"""Ids of the hunks that a block shows, each with its new text when rendered, and whether that was edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedHunk:
    """A proposal with an edited hunk, and the rendering of its note."""

    proposal: Proposal
    rendering: NoteRendering | None = None
    """None if no block shows the hunk."""


class NoteBlockStore:
    """Store of the blocks in notes, in the file of the proposals; `Proposals.note_blocks` is one."""

    def __init__(self, own: SharedDatabase, reader: ProposalReader, clock: Callable[[], datetime]) -> None:
        """Wrap the file of the proposals."""
        self._ledger = own
        self._clock = clock
        self._reader = reader

    def get(self, proposal_id: str) -> Mapping[NotePath, BlockHunks]:
        """Return which notes have blocks that show hunks of a proposal, and which blocks."""
        with self._ledger.reading() as database:
            return tables.read_blocks(database, self._reader.get(database, proposal_id).id)

    def find_tainted(self, block_ids: Iterable[str]) -> str:
        """Return a proposal of a tainted client that one of the blocks shows; empty for none."""
        sql = (
            "SELECT proposal FROM shown JOIN proposals ON proposals.id = shown.proposal"
            " WHERE tainted AND block IN (SELECT value FROM json_each(?)) LIMIT 1"
        )
        with self._ledger.reading() as database:
            row = database.execute(sql, (json.dumps([*block_ids]),)).fetchone()
        return row["proposal"] if row is not None else ""

    def put(self, proposal_id: str, path: NotePath, blocks: BlockHunks) -> None:
        """Store which blocks of a note show hunks of a proposal, in place of those stored before.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            tables.put_blocks(database, proposal.id, parts.file_at(proposal, path).number, blocks)

    def store_texts(self, proposal_id: str, made: Mapping[NotePath, BlockHunks]) -> None:
        """Store the texts of blocks before notes are written, so that the blocks are recognised even after a kill.

        Raises:
            NotFound: There is no such proposal or file.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            for path, blocks in made.items():
                _store_texts(database, proposal.id, parts.file_at(proposal, path), blocks)

    def mark(
        self,
        proposal_id: str,
        states: Mapping[str, ItemState],
        reason: str = "",
        *,
        client: str = "",
        change_id: str = "",
    ) -> Proposal:
        """Record what a person did to blocks in a note.

        Args:
            proposal_id: Which.
            states: New states by hunk id.
            reason: Why they were rejected.
            client: Who did it.
            change_id: The change that accepted them; empty where none is known.

        Raises:
            NotFound: There is no such proposal or hunk.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            if change_id and "accepted" in states.values():
                tables.log_change(database, proposal_id, change_id)
            for state in set(states.values()) - {"open"}:
                chosen = parts.choose_hunks(proposal, [name for name, own in states.items() if own == state])
                if state == "rejected":
                    decision = Decision(state=state, at=self._clock(), client=client, reason=reason)
                    proposal = tables.reject_chosen(database, proposal, chosen, decision)
                else:
                    proposal = tables.close_chosen(database, proposal, chosen, state, reason)
            return proposal

    def edit(
        self, proposal_id: str, digest: str, hunk: str, text: str, note_contents: Mapping[NotePath, bytes]
    ) -> EditedHunk:
        """Replace the new side of a hunk, and render the block that shows it again.

        If the note can't be written afterwards, `sync_texts` with its old content restores the old text.

        Args:
            proposal_id: Which.
            digest: Of the state that was shown.
            hunk: Its id, such as ``2.1``.
            text: The new lines.
            note_contents: Contents of the notes that have blocks of this proposal, to which it is fitted.

        Raises:
            NotFound: There is no such proposal or hunk.
            ConflictError: It isn't what was shown any more, is closed, or the note isn't what the proposal fits.
            BadInput: The hunk isn't open, or would change nothing.
        """
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            parts.check_open(proposal)
            parts.check_digest(proposal, digest)
            ((number, own),) = parts.choose_hunks(proposal, [hunk]).items()
            old = proposal.files[number - 1]
            new = parts.edit_hunk_text(old, min(own), text, proposal.id)
            block_hunks = tables.read_blocks(database, proposal.id).get(old.path, {})
            raw = note_contents.get(old.path)
            new_rendering = (
                None if raw is None else render_edited_hunk(old, new, raw, block_hunks, f"{number}.{min(own)}")
            )
            if new_rendering is not None:
                _store_texts(database, proposal.id, old, block_hunks)
                _store_texts(database, proposal.id, new, new_rendering.blocks)
                tables.put_blocks(database, proposal.id, number, new_rendering.blocks)
            return EditedHunk(proposal=tables.save_progress(database, proposal, [new]), rendering=new_rendering)

    def sync_texts(self, proposal_id: str, current: Mapping[NotePath, bytes | None]) -> bool:
        """Update hunks to the texts that the blocks in notes show, where those differ from what was rendered last.

        They differ after an undo, for example, which brings back a block with an earlier text.

        Args:
            proposal_id: Which.
            current: Contents of notes; nothing is known of notes that aren't listed.

        Returns:
            True if any text changed.

        Raises:
            NotFound: There is no such proposal.
        """
        with self._ledger.reading() as database:
            changed_texts = _changed_texts(database, proposal_id, current)
        if not changed_texts:
            return False
        with self._ledger.writing() as database:
            proposal = self._reader.get(database, proposal_id)
            # Checked again under the write lock: another process may have done it since.
            changed_texts = _changed_texts(database, proposal_id, current)
            if not changed_texts or proposal.status not in {"open", "stale"}:
                return False
            shown_blocks = tables.read_blocks(database, proposal.id)
            changed: list[ProposedFile] = []
            for path, blocks in changed_texts.items():
                file = parts.file_at(proposal, path)
                waiting = {one.id for one in file.hunks if one.state == "open"}
                open_texts = {name: texts for name, texts in blocks.items() if waiting.issuperset(texts)}
                new_texts = {hunk: text for texts in open_texts.values() for hunk, text in texts.items()}
                changed.append(replace(file, hunks=tuple(_hunks_with_texts(file, new_texts))))
                reappeared = new_texts.keys()
                other_blocks = {
                    name: hunks for name, hunks in shown_blocks.get(path, {}).items() if reappeared.isdisjoint(hunks)
                }
                now = {**other_blocks, **{name: tuple(texts) for name, texts in open_texts.items()}}
                tables.put_blocks(database, proposal.id, file.number, now)
            tables.save_progress(database, proposal, changed)
        return True


def _store_texts(database: sqlite3.Connection, proposal_id: str, file: ProposedFile, blocks: BlockHunks) -> None:
    texts = {one.id: (one.hunk.new.decode(errors="replace"), one.edited) for one in file.hunks}
    block_texts = {name: {hunk: texts[hunk] for hunk in hunks} for name, hunks in blocks.items()}
    rows = [(proposal_id, file.number, name, json.dumps(one)) for name, one in block_texts.items()]
    database.executemany("INSERT OR REPLACE INTO drawings VALUES (?, ?, ?, ?)", rows)


def _changed_texts(
    database: sqlite3.Connection, proposal_id: str, current: Mapping[NotePath, bytes | None]
) -> dict[NotePath, dict[str, _HunkTexts]]:
    """Return the blocks in notes whose texts differ from what was rendered last."""
    changed_texts: dict[NotePath, dict[str, _HunkTexts]] = {}
    shown_blocks = tables.read_blocks(database, proposal_id)
    rows = database.execute(
        "SELECT path, block, texts FROM drawings JOIN files ON files.proposal = drawings.proposal AND number = file"
        " WHERE drawings.proposal = ?",
        (proposal_id,),
    )
    by_path: dict[NotePath, dict[str, _HunkTexts]] = {}
    for row in rows.fetchall():
        stored_texts = object_or_empty(loads(row["texts"]))
        pairs = {hunk: list_or_empty(pair) for hunk, pair in stored_texts.items()}
        hunk_texts = {hunk: (str(text), bool(edited)) for hunk, (text, edited) in pairs.items()}
        by_path.setdefault(NotePath(row["path"]), {})[row["block"]] = hunk_texts
    for path, stored in by_path.items():
        raw = current.get(path)
        if raw is None:
            continue
        intact = intact_blocks(raw, stored.keys() | shown_blocks.get(path, {}).keys())
        held_hunks = {hunk for name, hunks in shown_blocks.get(path, {}).items() if name in intact for hunk in hunks}
        others = {name: stored[name] for name in intact if name not in shown_blocks.get(path, {})}
        counts = Counter(hunk for texts in others.values() for hunk in texts)
        sure = {
            name: texts
            for name, texts in others.items()
            if held_hunks.isdisjoint(texts) and all(counts[hunk] == 1 for hunk in texts)
        }
        if sure:
            changed_texts[path] = sure
    return changed_texts


def _hunks_with_texts(file: ProposedFile, texts: _HunkTexts) -> Iterable[parts.ProposedHunk]:
    for one in file.hunks:
        if one.id not in texts:
            yield one
            continue
        text, edited = texts[one.id]
        yield replace(one, hunk=replace(one.hunk, new=text.encode()), edited=edited)
