"""What holds for every note, and notes made to be hard."""

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from knapper.vault import frontmatter, pending
from knapper.vault.parser import parse_head, parse_note
from knapper.vault.source import Outline

PIECES = (
    *(
        "# a",
        "## b ##",
        "a\n===",
        "---",
        "%%",
        "$$",
        "```",
        "~~~~",
        "````",
        "`",
        "$",
        "[[a|b]]",
        "![[c#d]]",
        "[t](e.md)",
    ),
    *("[r][x]", "[x]: f.md", "\n", "\n\n", "\r\n", "\r", " ", "    ", "\t", "- ", "> ", "1. ", "- [ ] ", "- [/] x"),
    *(
        "|a|b|\n|-|-|\n|c|d|",
        "#tag",
        "^id",
        " ^id-2\n",
        "<div>",
        "</div>",
        "<!--",
        "-->",
        "é",
        "🔥",
        "\u2028",
        "\0",
        "\ufeff",
    ),
    *(
        "---\n",
        "a: [b]\n",
        "tags: x\n",
        '---\nk: "[[v]]"\n---\n',
        "*",
        "**",
        "_",
        "==",
        "\\",
        "https://a.b",
        "[[",
        "]]",
        "](",
    ),
    *(
        "```ai-edit\n",
        '{"id":"1","type":"add","before":"","after":"x"}\n',
        "#ai_edit\n",
        "&amp;",
        "(",
        ")",
        "[^1]",
        "[^1]: ",
    ),
)
NOTES = st.lists(st.sampled_from(PIECES), max_size=25).map("".join).map(str.encode)
ANY = NOTES | st.binary() | st.lists(NOTES | st.binary(max_size=3), max_size=5).map(b"".join)


def spans(outline: Outline) -> list[tuple[int, int]]:
    found = [(part.start, part.stop) for part in (*outline.sections, *outline.blocks, *outline.links, *outline.tags)]
    found += [(part.start, part.stop) for part in (*outline.tasks, *outline.block_ids)]
    found += [(part.target_start, part.target_stop) for part in outline.links]
    return found + list(outline.code_spans)


@hypothesis.given(ANY)
def test_every_span_lies_in_the_file(raw: bytes) -> None:
    hypothesis.assume(raw[:2] not in {b"\xff\xfe", b"\xfe\xff"})

    assert all(0 <= start <= stop <= len(raw) for start, stop in spans(parse_note(raw)))


@hypothesis.given(ANY)
@hypothesis.example(b"\xef\xbb\xbf---\na: [1\n---\r\nb")
def test_a_head_says_of_the_properties_what_the_whole_outline_does(raw: bytes) -> None:
    outline = parse_note(raw)

    found = parse_head(raw)

    empty = dict.fromkeys(("sections", "blocks", "links", "tags", "tasks", "block_ids", "code_spans"), ())
    assert found == dataclasses.replace(outline, **empty)


@hypothesis.given(NOTES)
@hypothesis.example(b"\xef\xbb\xbf# a")
def test_frontmatter_and_sections_join_to_the_file(raw: bytes) -> None:
    outline = parse_note(raw)

    front = [(outline.frontmatter.start, outline.frontmatter.stop)] if outline.frontmatter else []
    at = frontmatter.find_text_start(raw)
    for start, stop in (*front, *((section.start, section.own_stop) for section in outline.sections)):
        assert not raw[at:start].strip()
        assert start >= at
        at = stop
    assert not raw[at:].strip()


@hypothesis.given(NOTES)
def test_a_section_holds_the_sections_below_it(raw: bytes) -> None:
    sections = parse_note(raw).sections

    for index, section in enumerate(sections):
        below = [other for other in sections[index + 1 :] if other.start < section.stop]
        assert section.start <= section.body_start <= section.own_stop <= section.stop
        assert section.line <= section.end_line
        assert all(other.level > section.level and other.stop <= section.stop for other in below)
        assert all(other.path[: len(section.path)] == section.path for other in below)


@hypothesis.given(NOTES)
@hypothesis.example(b"\xef\xbb\xbf# a")
def test_blocks_are_whole_lines_with_only_blank_ones_between(raw: bytes) -> None:
    outline = parse_note(raw)

    at = outline.body_start
    for block in outline.blocks:
        assert block.start in {*outline.line_starts, outline.body_start}
        assert block.stop in {*outline.line_starts, len(raw)}
        assert block.start >= at
        assert not raw[at : block.start].strip()
        assert all(block.start <= item < block.stop for item in block.items)
        at = block.stop
    assert not raw[at:].strip()


@hypothesis.given(NOTES)
def test_every_link_is_its_text(raw: bytes) -> None:
    for link in parse_note(raw).links:
        is_reference = not link.start <= link.target_start <= link.stop
        if link.kind == "property" or link.key or is_reference:
            continue
        alone = [
            (part.kind, part.target, part.headings, part.block)
            for part in parse_note(raw[link.start : link.stop]).links
        ]
        assert (link.kind, link.target, link.headings, link.block) in alone


@hypothesis.given(NOTES)
def test_every_tag_and_id_is_its_text(raw: bytes) -> None:
    outline = parse_note(raw)

    for tag in outline.tags:
        assert raw[tag.start : tag.stop].decode().removeprefix("#") == tag.name
        assert outline.line_starts[tag.line - 1] <= tag.start
    for block_id in outline.block_ids:
        assert raw[block_id.id_start :].startswith(f"^{block_id.name}".encode())


@hypothesis.given(NOTES)
def test_nothing_in_code_is_a_link_tag_or_task(raw: bytes) -> None:
    outline = parse_note(raw)

    places = [part.start for part in (*outline.links, *outline.tags) if part.start >= outline.body_start]
    assert not [place for place in places for start, stop in outline.code_spans if start <= place < stop]


@hypothesis.given(NOTES)
def test_waiting_edits_never_overlap(raw: bytes) -> None:
    at = 0
    for block in pending.find_pending(raw, parse_note(raw)):
        assert at <= block.start < block.tag_stop <= block.stop
        at = block.stop


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("---\na: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(15)) + "---\n",
            id="aliases that grow"),
        pytest.param("---\na: " + "[" * 100_000 + "]" * 100_000 + "\n---\n", id="brackets"),
        pytest.param("---\na: " + "{a: " * 50_000 + "\n---\n", id="braces"),
        pytest.param("---\na:\n  " + "- " * 100_000 + "\n---\n", id="dashes"),
        pytest.param("---\n" + "? " * 100_000 + "\n---\n", id="question marks"),
        pytest.param("---\n" + "".join(" " * n + "a:\n" for n in range(600)) + "---\n", id="indentation"),
        pytest.param("---\na: " + "x" * 1_000_001 + "\n---\n", id="length"),
    ],
)  # fmt: skip
def test_properties_made_to_break_the_reader_are_invalid(raw: str) -> None:
    outline = parse_note(raw.encode())

    assert outline.frontmatter is not None
    assert not outline.frontmatter.valid
    assert [problem.code for problem in outline.problems] == ["invalid_yaml"]


REPEATED = (
    *(
        "[",
        "![",
        "[[",
        "[[a]]",
        "[a](",
        "](",
        "[^a]",
        "[a]: b\n",
        "> ",
        ">",
        "*",
        "*a ",
        "_a ",
        "`",
        "$",
        "$$a\n",
        "<",
        "<a ",
    ),
    *(
        "%%a%% ",
        "%%\n```\n%%\ntext `a\n",
        "$$\n```\n$$\n",
        "#a",
        "# a\n",
        "- ",
        "- [",
        "- a\n\n  ^b\n\n",
        "|a",
        "a ^b\n\n",
    ),
    *("http://", "a)", "\\", "&#32;", "---\n", "a: b\n", "\r", "\0", " ", "\x0c"),
)


@pytest.mark.parametrize("piece", REPEATED)
def test_much_of_the_same_is_read(piece: str) -> None:
    raw = (piece * (100_000 // len(piece))).encode()

    outline = parse_note(raw + b"\n[[end]] http://a.b" + b")" * 50_000)

    assert outline.line_starts


def test_an_odd_note_of_a_real_vault_is_read() -> None:
    raw = "---\ntags:\ndate: {{date}}\n---\n# A\u2028b\n```\nopen\n".encode() + b"x\0y " * 10_000

    outline = parse_note(raw)

    assert [problem.code for problem in outline.problems] == ["nul_bytes", "invalid_yaml"]
    assert [section.title for section in outline.sections] == ["A\u2028b"]


def test_an_empty_note_has_nothing() -> None:
    outline = parse_note(b"")

    assert (outline.line_starts, outline.body_start, outline.newline, outline.problems) == ((0,), 0, "\n", ())
    assert not (outline.sections)
    assert not (outline.blocks)
    assert not (outline.links)
    assert not (outline.frontmatter)


def test_a_fence_ends_indented_code_where_lines_end_with_a_bare_carriage_return() -> None:
    outline = parse_note(b"\ttab\r```x\ra\r```\r# H\r")

    assert [section.title for section in outline.sections if section.level] == ["H"]
