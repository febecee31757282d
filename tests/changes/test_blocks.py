import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import blocks, diff, splices
from knapper.changes.text.blocks import BlockChoice, RenderedBlocks
from knapper.changes.text.splices import Splice
from knapper.errors import BadInput, ConflictError, KnapError, NotFound
from knapper.vault import parser
from tests.changes import generated


def shown(before: bytes, after: bytes) -> RenderedBlocks:
    return blocks.insert_blocks(splices.take_snapshot(before), diff.diff_hunks(before, after))


def resolved(raw: bytes, choice: BlockChoice) -> bytes:
    return splices.merge(raw, blocks.resolve_blocks(splices.take_snapshot(raw), choice))


def test_a_block_has_the_documented_form() -> None:
    rendered = shown(b"a\nb\nc\n", b"a\nB\nc\n")
    (name,) = rendered.ids

    assert rendered.raw.decode() == (
        f'a\n```ai-edit\n{{"id":"{name}","type":"replace","before":"b\\n","after":"B\\n"}}\n```\n#ai_edit\nc\n'
    )


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(b"a\n", b"a\nb\n", "add"), (b"a\nb\n", b"a\n", "delete"), (b"a\n", b"b\n", "replace")],
)
def test_a_block_tells_its_kind(before: bytes, after: bytes, kind: str) -> None:
    raw = shown(before, after).raw

    assert [block.kind for block in blocks.find_blocks(splices.take_snapshot(raw))] == [kind]


AWKWARD = {
    "a fence": (b"a\n```py\nx\n```\n", b"b\n```py\ny\n```\n"),
    "a fence in a fence": (b"````\n```\nx\n```\n````\nt\n", b"````\n```\ny\n```\n````\nt\n"),
    "a fence that isn't closed": (b"a\n```\nx\n", b"a\n```\nx\ny\n"),
    "a fence in a list": (b"- a\n  ```\n  x\n  ```\n- b\n", b"- a\n  ```\n  y\n  ```\n- b\n"),
    "a line in a callout": (b"> [!note]\n> a\n> b\n", b"> [!note]\n> x\n> b\n"),
    "a fence in a callout": (b"> [!note]\n> ```\n> a\n> ```\n", b"> [!note]\n> ```\n> x\n> ```\n"),
    "a table's row": (b"| a |\n|---|\n| 1 |\n| 2 |\n", b"| a |\n|---|\n| x |\n| 2 |\n"),
    "dollars": (b"$$\nx\n$$\ncost $$ 5\n", b"$$\ny\n$$\ncost $ $$ 6\n"),
    "a comment": (b"%%\na\nb\n%%\n", b"%%\na\nc\n%%\n"),
    "raw HTML": (b"<div>a</div>\n", b"<div>a</div>\nb\n"),
    "raw HTML's inside": (b"<div>\na\n</div>\n\nb\n", b"<div>\nx\n</div>\n\nb\n"),
    "blank lines": (b"a\n\n\n\nb\n\n\n", b"a\n\nx\n\n\nb\n\n"),
    "CRLF": (b"a\r\nb\r\n", b"a\r\nx\r\ny\r\nb\r\n"),
    "a change of line endings": (b"a\nb\n", b"a\r\nb\r\n"),
    "a bare CR": (b"a\rb\r", b"a\rx\r"),
    "no last newline": (b"a\nb", b"a\nx"),
    "a last newline that comes": (b"a", b"a\n"),
    "a last newline that goes": (b"a\n", b"a"),
    "an empty file": (b"", b"a"),
    "a file that becomes empty": (b"a\n", b""),
    "a byte-order mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfx\nb\n"),
    "a byte-order mark alone": (b"\xef\xbb\xbf", b"\xef\xbb\xbfx\n"),
    "text below frontmatter": (b"---\na: 1\n---\nb\n", b"---\na: 1\n---\nx\nb\n"),
    "a line separator": ("a\u2028b\n".encode(), "x\u2028\u0085y\n".encode()),
    "six backticks": (b"a\n", b"x `````` y\n"),
    "a setext heading": (b"a\n---\nb\n", b"x\n---\nb\n"),
    "a tag like the block's": (b"#ai_edit x\n", b"#ai_edit y\n"),
    "a backslash": (b"a\\n\n", b'x\\n"\\u0041\n'),
}


@pytest.mark.parametrize("what", AWKWARD)
def test_resolving_gives_exact_bytes_around(what: str) -> None:
    before, after = AWKWARD[what]
    raw = shown(before, after).raw

    assert resolved(raw, "accept") == after
    assert resolved(raw, "reject") == before


def test_accepting_an_edit_does_not_join_it_to_the_line_above() -> None:
    before = b"above\nbelow\n"
    raw = shown(before, b"above\nnew\nbelow\n").raw

    assert resolved(raw, "accept") == b"above\nnew\nbelow\n"


def test_two_dollars_stay_two_dollars() -> None:
    before, after = b"a\n", b"$$x$$ $& $1 $$$$\n"

    assert resolved(shown(before, after).raw, "accept") == after


def test_resolving_one_block_leaves_blank_lines_elsewhere() -> None:
    before = b"\n\n\na\n\n\n\nb\n\n\n"
    rendered = shown(before, before.replace(b"b", b"B").replace(b"a", b"A"))
    first, second = rendered.ids
    note = splices.take_snapshot(rendered.raw)
    one = splices.merge(note.raw, [blocks.accept_block(note, first)])
    two = splices.take_snapshot(one)

    assert splices.merge(one, [blocks.reject_block(two, second)]) == before.replace(b"a", b"A")


def test_an_edit_with_fences_can_be_resolved() -> None:
    before, after = b"a\n", b"````\n```ai-edit\n{}\n```\n#ai_edit\n````\n"
    raw = shown(before, after).raw

    assert raw.startswith(b"`````ai-edit\n")
    assert resolved(raw, "accept") == after
    assert resolved(raw, "reject") == before


def test_the_two_ends_of_a_new_fence_share_a_block_so_that_neither_hides_the_rest() -> None:
    before, after = b"a\nb\nc\nd\n", b"a\n```\nb\n```\nc\nD\n"
    rendered = shown(before, after)

    assert [len(hunks) for hunks in rendered.ids.values()] == [2, 1]


def test_a_line_feed_after_a_bare_carriage_return_stays_a_line_of_its_own() -> None:
    before, after = b"a\rb\r\nc", b"A\r\nb\r\nc"
    raw = shown(before, after).raw

    assert resolved(raw, "accept") == after
    assert resolved(raw, "reject") == before


def test_lines_between_blocks_hide_none_where_a_bare_carriage_return_ends_them() -> None:
    before, after = b"text\r\ttab\r# One", b"\ttab\r"
    rendered = shown(before, after)
    raw = rendered.raw
    for name in rendered.ids:
        note = splices.take_snapshot(raw)
        raw = splices.merge(raw, [blocks.accept_block(note, name)])

    assert raw == after


def test_edits_inside_one_fence_share_a_block() -> None:
    before = b"```\na\nb\nc\n```\n"
    rendered = shown(before, b"```\nA\nb\nC\n```\n")

    assert [len(hunks) for hunks in rendered.ids.values()] == [2]


@given(generated.notes(properties=False), st.data())
def test_accepting_equals_the_edit_and_rejecting_the_original(before: bytes, data: st.DataObject) -> None:
    after = data.draw(generated.edits(before))
    found = diff.diff_hunks(before, after)
    try:
        rendered = blocks.insert_blocks(splices.take_snapshot(before), found)
    except KnapError as error:
        assert error.code in {"not_in_text", "no_change"}  # noqa: PT017
        return

    note = splices.take_snapshot(rendered.raw)
    accepted: dict[str, BlockChoice] = dict.fromkeys(rendered.ids, "accept")
    rejected: dict[str, BlockChoice] = dict.fromkeys(rendered.ids, "reject")
    assert splices.merge(note.raw, blocks.resolve_blocks(note, accepted)) == after
    assert splices.merge(note.raw, blocks.resolve_blocks(note, rejected)) == before


@given(generated.notes(properties=False), st.data())
def test_blocks_can_be_resolved_in_any_order(before: bytes, data: st.DataObject) -> None:
    after = data.draw(generated.edits(before))
    try:
        rendered = blocks.insert_blocks(splices.take_snapshot(before), diff.diff_hunks(before, after))
    except KnapError:
        return
    names = list(rendered.ids)
    choices: dict[str, BlockChoice] = {name: data.draw(st.sampled_from(["accept", "reject"])) for name in names}
    at_once = splices.merge(rendered.raw, blocks.resolve_blocks(splices.take_snapshot(rendered.raw), choices))
    raw = rendered.raw
    for name in data.draw(st.permutations(names)):
        note = splices.take_snapshot(raw)
        act = blocks.accept_block if choices[name] == "accept" else blocks.reject_block
        raw = splices.merge(raw, [act(note, name)])

    assert raw == at_once


def whole(**changes: str) -> bytes:
    fields = {"id": "abc123", "type": "replace", "before": "b", "after": "B"} | changes
    return f"a\n```ai-edit\n{json.dumps(fields)}\n```\n#ai_edit\nc\n".encode()


def test_a_block_of_another_program_keeps_to_its_line() -> None:
    assert resolved(whole(), "accept") == b"a\nB\nc\n"
    assert resolved(whole(), "reject") == b"a\nb\nc\n"
    assert resolved(whole(type="add", before=""), "reject") == b"a\nc\n"
    assert resolved(whole(after="x\ny").replace(b"\n", b"\r\n"), "accept") == b"a\r\nx\r\ny\r\nc\r\n"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"#ai_edit\n", b"", "its tag #ai_edit is gone"),
        (b"```\n#ai", b"#ai", "its fence isn't closed"),
        (b"```ai-edit\n", b"", "its opening fence is gone"),
        (b'"before"', b'before"', "its JSON can't be read"),
        (b'"type"', b'"kind"', "its fields aren't those of an edit"),
        (b'"b\\n"', b'"changed\\n"', "its text was changed by hand"),
    ],
)
def test_a_block_that_a_person_changed_is_refused_with_its_place(old: bytes, new: bytes, why: str) -> None:
    rendered = shown(b"a\nb\nc\n", b"a\nB\nc\n")
    (name,) = rendered.ids
    raw = rendered.raw.replace(old, new, 1)
    with pytest.raises(ConflictError, match=why) as caught:
        resolved(raw, "accept")

    assert caught.value.details == {"lines": [2]}
    with pytest.raises(KnapError):
        blocks.accept_block(splices.take_snapshot(raw), name)


def test_one_damaged_block_keeps_all_from_being_resolved_at_once() -> None:
    rendered = shown(b"a\nb\nc\n", b"A\nb\nC\n")
    with pytest.raises(ConflictError, match="tag #ai_edit is gone"):
        resolved(rendered.raw.replace(b"#ai_edit\n", b"", 1), "accept")


def test_blocks_of_one_id_are_refused() -> None:
    with pytest.raises(ConflictError, match="another block has its id"):
        resolved(whole() + whole(), "accept")


def test_a_block_that_is_missing_is_answered_with_those_there_are() -> None:
    with pytest.raises(NotFound) as caught:
        blocks.accept_block(splices.take_snapshot(whole()), "zz")

    assert "abc123" in caught.value.hint


def test_a_line_that_text_was_put_below_stays_a_line() -> None:
    before, after = b"a\nb", b"a\nx"
    raw = shown(before, after).raw + b"typed below\n"

    assert resolved(raw, "accept") == b"a\nx\ntyped below\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"---\na: 1\n---\nb\n", b"---\na: 2\n---\nb\n"), (b"---\na: 1\n---\n", b"x\n---\na: 1\n---\n")],
)
def test_properties_are_not_shown_as_blocks(before: bytes, after: bytes) -> None:
    with pytest.raises(BadInput) as caught:
        shown(before, after)

    assert caught.value.code == "not_in_text"


def test_text_that_is_no_utf_8_is_not_shown_as_a_block() -> None:
    with pytest.raises(BadInput) as caught:
        shown(b"caf\xe9\n", b"tea\n")

    assert caught.value.code == "not_utf8"


def test_a_byte_order_mark_that_would_go_is_not_shown_as_a_block() -> None:
    with pytest.raises(BadInput):
        shown(b"\xef\xbb\xbfa\n", b"a\n")


def test_no_hunks_make_no_block() -> None:
    with pytest.raises(BadInput):
        shown(b"a\n", b"a\n")


def test_a_change_that_cuts_into_a_waiting_block_is_refused() -> None:
    note = splices.take_snapshot(whole())
    start, stop, _ = note.line(3)
    with pytest.raises(ConflictError, match="line 3 cuts into the pending edit abc123, lines 2-5") as caught:
        blocks.check_blocks_untouched(note, [Splice(start=start, stop=stop, new=b"x")])

    assert caught.value.code == "block_touched"


def test_a_change_that_cuts_into_several_lines_of_a_block_is_refused_in_good_words() -> None:
    note = splices.take_snapshot(whole())
    start, stop = note.line(2)[0], note.line(4)[1]
    with pytest.raises(ConflictError, match="lines 2-4 cut into the pending edit abc123"):
        blocks.check_blocks_untouched(note, [Splice(start=start, stop=stop, new=b"x")])


def test_a_change_beside_a_waiting_block_or_of_a_damaged_one_is_not() -> None:
    note = splices.take_snapshot(whole())
    block = blocks.find_blocks(note)[0]
    blocks.check_blocks_untouched(note, [Splice(start=at, stop=at, new=b"x\n") for at in (block.start, block.stop)])
    damaged = splices.take_snapshot(whole().replace(b"#ai_edit\n", b""))
    blocks.check_blocks_untouched(damaged, [Splice(start=3, stop=8, new=b"x")])

    assert len(blocks.find_blocks(damaged)) == 1


def test_the_tag_is_found_where_a_block_waits() -> None:
    raw = shown(b"a\n", b"b\n").raw

    assert "ai_edit" in {tag.name for tag in parser.parse_note(raw).tags}
