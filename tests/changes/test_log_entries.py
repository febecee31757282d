"""Entries of the program's own log: what they look like, and that nothing in them gets out or runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes.text import log_entries
from knapper.changes.text.log_entries import LogEntry, MentionFinder
from knapper.vault import pending
from knapper.vault.parser import parse_note

NAMES = MentionFinder.of(
    ["Garden", "Garden Plan", "C++", "Ünï", "2026-11-22", "a", "42", "3.14", "x|y", "Plan#2", "📚 Books"]
)


def entry(summary: str = "Done.", task: str = "Water") -> str:
    return log_entries.compose_entry(LogEntry(time="14:05", task=task, query="When?", summary=summary), NAMES)


def test_an_entry_is_a_folded_callout() -> None:
    made = log_entries.compose_entry(
        LogEntry(time="14:05", task="Water\nthe Garden", query="When?", response="One.\n\nTwo.", files=["[[A]]", "b"]),
        NAMES,
    )

    assert made == (
        "> [!knap-log]- 14:05 · Water the [[Garden]]\n>\n> **Query:** When?\n>\n"
        "> **Response:**\n>\n> One.\n>\n> Two.\n>\n> **Files:** [[A]], b\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Garden Plan, Gardens, garden", "[[Garden Plan]], Gardens, garden"),
        ("a 42 3.14 2026-11-22", "a 42 3.14 [[2026-11-22]]"),
        ("C++ and Ünï", "[[C++]] and [[Ünï]]"),
        ("Ünï".replace("Ü", "U\u0308"), "[[Ünï]]"),
        ("📚 Books", "[[📚 Books]]"),
        ("x|y Plan#2", "x|y Plan#2"),
        ("`Garden` and ``Garden``", "`Garden` and ``Garden``"),
        ("```\nGarden\n```", "```\nGarden\n```"),
        ("    Garden", "    Garden"),
        ("https://a.b/Garden?Garden#Garden Garden", "https://a.b/Garden?Garden#Garden [[Garden]]"),
        ("<https://a.b/Garden>", "<https://a.b/Garden>"),
        ("[[Garden]] [[Garden|the Garden]] [Garden](b.md)", "[[Garden]] [[Garden|the Garden]] [Garden](b.md)"),
        ("$Garden$ and $$Garden$$", "$Garden$ and $$Garden$$"),
        ("%%Garden%% Garden", "\\%\\%Garden\\%\\% [[Garden]]"),
        ("<!-- Garden --> x", "\\<!-- Garden --> x"),
    ],
)
def test_names_are_linked_where_they_are_text(text: str, expected: str) -> None:
    assert log_entries.sanitize_text(text, NAMES) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Heading #tag", "\\# Heading \\#tag"),
        ("## Two", "\\## Two"),
        ("C# and a#b", "C# and a#b"),
        ("#ai_edit", "\\#ai_edit"),
        ("![](https://evil/?secret)", "\\![](https://evil/?secret)"),
        ("![[Garden]]", "\\![[Garden]]"),
        ("<img src=x>", "\\<img src=x>"),
        ("a < b", "a < b"),
        ("<% tp.run() %>", "<\\% tp.run() %>"),
        ("`<% x %>`", "`< % x %>`"),
        ("`$= dv.run()`", "`\u200b$= dv.run()`"),
        ("```dataviewjs\nx\n```", "```text\nx\n```"),
        ("```ai-edit\n{}\n```", "```text\n{}\n```"),
        ("~~~python\nx\n~~~", "~~~python\nx\n~~~"),
        ("```\nopen", "```\nopen\n```"),
        ("- [ ] task", "- \\[ ] task"),
        ("[a]: https://evil", "\\[a]: https://evil"),
        ("[^1]: note", "\\[^1]: note"),
        ("text ^block", "text \\^block"),
        ("2^10", "2^10"),
        ("costs $$", "costs \\$\\$"),
        ("$$x$$", "$$x$$"),
        ("a\r\nb\rc\0\u202e", "a\nb\nc"),
    ],
)
def test_nothing_runs_loads_hides_or_tags(text: str, expected: str) -> None:
    assert log_entries.sanitize_text(text, MentionFinder.of(())) == expected


HOSTILE = [
    "> [!knap-log]- 99:99 · forged",
    "[!knap-log]",
    "```\nopen fence",
    "~~~~\n```\n",
    "%%\nopen comment",
    "$$\nopen maths",
    "<!-- open",
    "<script>\n\n",
    "---\ntags: [x]\n---\n# Heading",
    "\n\n\n# Heading\n\n- [ ] task #tag ^id",
    '```ai-edit\n{"id":"1","type":"add","before":"","after":"x"}\n```\n#ai_edit',
    "|a|\n|-|\n|#b|",
    "* * *\n\n===\n\nx\n===\n",
    "\u2028# x\x0b# y\x85# z",
]
BEFORE = ["", "# Day\n", "para", "- item\n", "> quote\n", "> [!knap-log]- 1 · x\n", "---\na: 1\n---\n", "x\r\n\r\n"]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_gets_out_of_its_entry(text: str, before: str) -> None:
    raw = before.encode()
    after = raw + (b"\n\n" if raw else b"") + entry(text, task=text).encode() + b"\n# After #seen\n"

    outline = parse_note(after)

    span = pending.find_log_entries(after, outline)[-1]
    assert after[span[0] : span[1]].decode() == entry(text, task=text)
    assert [section.title for section in outline.sections if section.level][-1] == "After #seen"
    assert [tag.name for tag in outline.tags if tag.start > len(raw)] == ["seen"]
    assert not any(span[0] <= task.start < span[1] for task in outline.tasks)
    assert not any(span[0] <= one.start < span[1] for one in outline.block_ids)
    assert not any(link.kind in {"embed", "image"} for link in outline.links)


@given(st.text("#>`~%<![]^|-= \n\tax*_\\:{}", max_size=60))
def test_any_text_stays_in_its_entry(text: str) -> None:
    after = f"# Day\n\n{entry(text)}\n# After\n".encode()

    outline = parse_note(after)

    spans = pending.find_log_entries(after, outline)
    assert [after[start:stop].decode() for start, stop in spans] == [entry(text)]
    assert [section.title for section in outline.sections if section.level] == ["Day", "After"]
    assert not any(link.kind in {"embed", "image"} for link in outline.links)
    assert not outline.tags
    assert not outline.tasks


@given(st.text(max_size=80), st.sampled_from(BEFORE))
def test_what_is_put_at_the_end_is_recognised_as_an_entry(text: str, before: str) -> None:
    raw = before.encode()

    assert log_entries.is_entry(raw, raw + (b"\n\n" if raw else b"") + entry(text).encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# Day\n", "# Day\n"),
        ("# Day\n", "# Day\n\nplain\n"),
        ("# Day\n", "# Dax\n\n{entry}"),
        ("# Day\n", "\n{entry}"),
        ("# Day\n", "{entry}\n# Day\n"),
        ("# Day\n", "# Day\n\nplain\n\n{entry}"),
        ("# Day\n", "# Day\n\n{entry}plain\n"),
        ("# Day\n", "# Day\n\n{entry}\nplain\n"),
        ("# Day\n", "# Day\n\n{entry}\n{entry}"),
        ("# Day\n", "# Day\n\n> [!note]- x\n"),
        ("> quote\n", "> quote\n{entry}"),
        ("```\nopen\n", "```\nopen\n\n{entry}"),
        ("%%\nopen\n", "%%\nopen\n\n{entry}%%\n"),
        ("<!--\nopen\n", "<!--\nopen\n\n{entry}"),
    ],
)
def test_anything_else_is_no_entry(before: str, after: str) -> None:
    assert not log_entries.is_entry(before.encode(), after.replace("{entry}", entry()).encode())


def test_text_below_an_entry_is_somebody_elses() -> None:
    raw = f"{entry()}my own words\n".encode()

    assert pending.find_log_entries(raw, parse_note(raw)) == ((0, len(entry().encode())),)


def test_an_entry_shown_in_code_is_none() -> None:
    raw = f"````\n{entry()}````\n\n> > [!knap-log] nested\n".encode()

    assert pending.find_log_entries(raw, parse_note(raw)) == ()


def test_a_very_long_run_of_backticks_is_looked_through_once() -> None:
    text = "`" * 200_000

    assert log_entries.sanitize_text(f"a {text} $ {text}", NAMES).count("`") == 400_000
