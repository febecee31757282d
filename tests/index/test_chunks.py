import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.index import chunker
from knapper.index.chunker import HEADING_SLACK
from knapper.index.documents import Chunk
from knapper.vault import canvas
from knapper.vault.parser import parse_note
from knapper.vault.paths import NotePath


def split(text: str | bytes, *, limit: int = 1500, path: str = "Folder/Note.md") -> list[Chunk]:
    raw = text.encode() if isinstance(text, str) else text
    return chunker.split_note(NotePath(path), raw, parse_note(raw), limit=limit)


def test_a_chunk_tells_its_section_its_place_and_its_text() -> None:
    found = split("intro\n\n# Plan\n\n## Meeting Notes\n\nBuy milk.\nAnd bread.\n")

    assert [(c.kind, c.heading, c.path, c.start_line, c.end_line, c.text) for c in found] == [
        ("text", "top-level", (), 1, 1, "intro"),
        (
            "text",
            "## Meeting Notes",
            ("Plan", "Meeting Notes"),
            3,
            8,
            "# Plan\n\n## Meeting Notes\n\nBuy milk.\nAnd bread.",
        ),
    ]


def test_sections_are_never_merged() -> None:
    assert [c.text for c in split("# A\na\n# B\nb\n## C\nc\n# D\nd\n")] == ["# A\na", "# B\nb", "## C\nc", "# D\nd"]


def test_an_empty_section_is_a_chunk_only_without_sub_sections() -> None:
    assert [c.heading for c in split("# A\n\n## B\n\n## C\n\n# D\n")] == ["## B", "## C", "# D"]


def test_blocks_are_packed_until_the_limit() -> None:
    found = split("# H\n\n" + "\n\n".join(letter * 30 for letter in "abcd"), limit=70)

    assert [c.text.split() for c in found] == [["#", "H", "a" * 30, "b" * 30], ["c" * 30, "d" * 30]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("- a\n- b\n", "list"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "table"),
        ("```python\n# no heading\n```\n", "code"),
        ("> [!note] Title\n> text\n", "quote"),
        ("# H\n\n- a\n", "list"),
        ("text\n\n- a\n", "text"),
        ("%%\na comment\n%%\n", "text"),
        ("$$\nx\n$$\n", "text"),
    ],
)
def test_a_chunk_of_one_kind_of_block_has_that_kind(text: str, kind: str) -> None:
    assert [c.kind for c in split(text)] == [kind]


def test_a_block_within_the_limit_is_not_cut() -> None:
    paragraph = "One sentence. " * 9

    assert [c.text for c in split(f"# {'H' * 20}\n\n{paragraph}\n\ntail\n", limit=130)] == [
        f"# {'H' * 20}\n\n{paragraph.strip()}",
        "tail",
    ]


def test_a_long_list_is_cut_at_its_items() -> None:
    items = [f"- item {n} with some words\n  - and a child\n" for n in range(20)]

    found = split("".join(items), limit=120)

    assert all(c.text.startswith("- item") and c.kind == "list" for c in found)
    assert "\n".join(c.text for c in found) == "".join(items).strip()


def test_a_long_table_is_cut_at_its_rows() -> None:
    rows = ["| a | b |", "|---|---|", *(f"| {n} | {'x' * 20} |" for n in range(20))]

    found = split("\n".join(rows), limit=100)

    assert len(found) > 3
    assert all(c.text.startswith("|") and c.text.endswith("|") and c.kind == "table" for c in found)


def test_long_code_is_cut_at_its_lines() -> None:
    lines = [f"    call_{n}(argument)" for n in range(20)]

    found = split("```\n" + "\n".join(lines) + "\n```\n", limit=100)

    assert found[1].text.startswith("    call_")
    assert [line for c in found for line in c.text.splitlines()] == ["```", *lines, "```"]


def test_a_long_paragraph_is_cut_at_sentence_ends() -> None:
    found = split("This is one sentence. " * 20, limit=100)

    assert all(c.text.endswith("sentence.") for c in found)


def test_text_without_sentences_is_cut_at_white_space_and_then_anywhere() -> None:
    assert {c.text for c in split("word " * 50, limit=24)} == {"word word word word"} | {"word word"}
    assert [len(c.text) for c in split("検" * 250, limit=100)] == [100, 100, 50]


def test_a_letter_keeps_its_marks_and_an_emoji_its_parts() -> None:
    assert {len(c.text) % 2 for c in split("e\u0301" * 99, limit=25)} == {0}
    assert all(c.text.endswith("👧") for c in split("👩\u200d👧" * 30, limit=25))


def test_a_line_of_twenty_thousand_characters_is_cut() -> None:
    found = split("x" * 20_000)

    assert "".join(c.text for c in found) == "x" * 20_000
    assert max(len(c.text) for c in found) == 1500


def test_frontmatter_is_a_chunk_of_its_own() -> None:
    head = "---\ntags: [a, b]\nup: '[[Home]]'\naliases:\n  - Nick\ndone: true\nempty:\nnested: {k: 1}\n---\n"

    found = split(f"{head}text\n")

    assert found[0].text == "tags: a, b\nup: Home\naliases: Nick\ndone: true\nnested: k: 1"
    assert (found[0].kind, found[0].heading, found[0].path) == ("frontmatter", "frontmatter", ())
    assert (found[0].start, found[0].stop, found[0].start_line, found[0].end_line) == (0, len(head), 1, 9)
    assert (found[1].start, found[1].start_line, found[1].heading) == (len(head), 10, "top-level")


def test_invalid_frontmatter_is_searched_as_written() -> None:
    assert split("---\nup: [[Home]\n x: {{date}}\n---\ntext\n")[0].text == "up: Home]\n x: {{date}}"


@pytest.mark.parametrize("text", ["", "\n\n \n", "---\n---\n", "---\ntags:\n---\n\n", "\ufeff", "\u00a0\u3000\n"])
def test_nothing_gives_no_chunk(text: str) -> None:
    assert split(text) == []


def test_long_frontmatter_is_cut_at_its_lines() -> None:
    found = split("---\n" + "".join(f"key{n}: {'v' * 20}\n" for n in range(20)) + "---\n", limit=100)

    assert {c.kind for c in found} == {"frontmatter"}
    assert all(line.startswith("key") and line.endswith("v") for c in found for line in c.text.splitlines())


def test_half_a_character_in_a_property_does_not_spoil_the_text() -> None:
    assert chunker.render_properties({"a": "x\ud800"}).encode() == b"a: x?"


def test_text_that_is_not_utf_8_is_read_as_windows_1252() -> None:
    found = split(b"# Caf\xe9\n\n\x93text\x94\nna\xc3\xafve\n")

    assert found[0].text == "# Café\n\n“text”\nnaïve"
    assert (found[0].start, found[0].stop) == (0, 21)


def test_utf_16_is_read() -> None:
    assert [c.text for c in split("# H\n\ntext ä\n".encode("utf-16"))] == ["# H\n\ntext ä"]


def test_lines_end_as_the_file_says() -> None:
    found = split(b"\xef\xbb\xbf# A\r\n\r\none\r\n\r\n# B\rtwo\r")

    assert [(c.start_line, c.end_line, c.start) for c in found] == [(1, 3, 3), (5, 6, 17)]


def test_a_first_line_keeps_its_indent() -> None:
    assert split("\n\n    code\n")[0].text == "    code"


def test_the_digest_is_the_same_wherever_the_chunk_stands() -> None:
    first, moved = split("# A\ntext\n"), split("\n\n\n# A\ntext\n\n\n")

    assert first[0].digest == moved[0].digest
    assert len(first[0].digest) == 16


@pytest.mark.parametrize(
    ("text", "path"),
    [("# A\nother\n", "N.md"), ("# A\ntext\n", "M.md"), ("# B\n## A\ntext\n", "N.md"), ("# A\n- text\n", "N.md")],
)
def test_the_digest_tells_what_is_embedded_apart(text: str, path: str) -> None:
    assert split(text, path=path)[0].digest != split("# A\ntext\n", path="N.md")[0].digest


def test_the_embedded_text_names_note_and_headings_once() -> None:
    assert chunker.embedding_text("Week", ("Plan", "Monday"), "Buy milk.") == "[Week > Plan > Monday] Buy milk."
    assert chunker.embedding_text("Week", ("week", "Monday"), "Buy milk.") == "[Week > Monday] Buy milk."
    assert chunker.embedding_text("bad\udcff", (), "x") == "[bad?] x"


MARKDOWN = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "# H",
                "## Sub",
                "### Deep\n",
                "Title\n===",
                "- item\n  more",
                "1. x",
                "```",
                "~~~py",
                "| a | b |",
                "|---|---|",
            ]
        ),
        st.sampled_from(
            ["> quote", "---", "%%", "$$", "", "", "  ", "[[a|b]] #tag ^id", "[x]: y", "<div>", "\t- t", "a\u3000"]
        ),
        st.text(alphabet="ab .!。検👩\u200d\u0301\u00a0\x00", max_size=60),
    ),
    max_size=30,
)


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from([1, 7, 40, 1500]))
def test_chunks_cover_all_text_once_within_the_limit(lines: list[str], newline: str, limit: int) -> None:
    raw = newline.join(lines).encode()
    outline = parse_note(raw)
    found = [c for c in chunker.split_note(NotePath("N.md"), raw, outline, limit=limit) if c.kind != "frontmatter"]

    bounds = [outline.body_start, *(edge for c in found for edge in (c.start, c.stop)), len(raw)]
    between = [raw[start:stop].decode() for start, stop in list(pairwise(bounds))[::2]]
    assert bounds == sorted(bounds)
    assert not "".join(between).strip()
    assert [c.text for c in found] == [raw[c.start : c.stop].decode() for c in found]
    assert all(len(c.text) <= limit + HEADING_SLACK for c in found)
    assert all(c.start_line <= c.end_line for c in found)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_split(raw: bytes) -> None:
    for chunk in split(raw, limit=20):
        assert chunk.text.encode()


@pytest.mark.slow
def test_a_note_of_fifty_megabytes_is_split() -> None:
    raw = b"".join(b"# H%d\n\nSome words here. %s\n\n- a\n- b\n\n" % (n, b"word " * 100) for n in range(95_000))

    found = split(raw)

    assert len(raw) > 50_000_000
    assert len(found) == 95_000


def waiting(kind: str, before: str, after: str) -> str:
    fields = json.dumps({"id": "e1", "type": kind, "before": before, "after": after})
    return f"```ai-edit\n{fields}\n```\n#ai_edit\n"


def test_a_waiting_edit_is_searched_by_what_it_would_change() -> None:
    block = waiting("replace", "old words\n\n## Sub\n\nold end", "new words")
    text = f"# A\n\n{block}\n# B\n\ntail\n"

    found = split(text)

    assert [(c.heading, c.text, c.start_line, c.end_line) for c in found] == [
        ("# A", "# A\n\nold words", 1, 6),
        ("## Sub", "## Sub\n\nold end", 3, 6),
        ("# B", "# B\n\ntail", 8, 10),
    ]
    assert text[found[1].start : found[1].stop] == block.rstrip()
    assert text[found[2].start : found[2].stop] == "# B\n\ntail"


def test_what_a_waiting_edit_would_add_is_not_found() -> None:
    found = split("above\n\n" + waiting("add", "", "new words") + "\nbelow\n")

    assert [(c.text.split(), c.start_line, c.end_line) for c in found] == [(["above", "below"], 1, 8)]


def test_a_block_that_cannot_be_read_stays_text() -> None:
    assert "{broken" in split("```ai-edit\n{broken\n```\n#ai_edit\n")[0].text


def test_a_canvas_gives_a_chunk_a_card() -> None:
    raw = b'{"nodes": [\n{"id": "a", "text": "first\\ncard"},\n{"id": "b", "text": "second"}\n]}'

    found = chunker.split_note(NotePath("Board.canvas"), raw, canvas.parse_canvas(raw))

    assert [(c.kind, c.heading, c.text, c.start_line) for c in found] == [
        ("canvas", "top-level", "first\ncard", 2),
        ("canvas", "top-level", "second", 3),
    ]
    assert raw[found[1].start : found[1].stop] == b"second"


@given(MARKDOWN, MARKDOWN, MARKDOWN, st.sampled_from(["replace", "delete"]))
def test_a_waiting_edit_changes_no_text_until_it_is_accepted(
    above: list[str], before: list[str], below: list[str], kind: str
) -> None:
    head, old, tail = ("\n".join(lines).replace("```", "~").replace("%%", "") for lines in (above, before, below))
    plain = f"{head}\n\n{old}\n\n{tail}"
    pending = f"{head}\n\n{waiting(kind, old, '' if kind == 'delete' else 'new')}\n{tail}"

    expected, found = split(plain, limit=40), split(pending, limit=40)

    if "~~~" not in plain and "<div>" not in plain and "$$" not in plain:
        assert [(c.digest, c.text) for c in found] == [(c.digest, c.text) for c in expected]
    assert [c.start for c in found] == sorted(c.start for c in found)
    assert all(0 <= c.start < c.stop <= len(pending.encode()) for c in found)
