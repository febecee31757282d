"""Make notes with everything in them that has broken an editor before, and take parts of notes that people wrote."""

from pathlib import Path

from hypothesis import strategies as st

WRITTEN = [page.read_text(encoding="utf-8") for page in sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))]
"""The project's own pages, which are a vault of notes."""
LINES = 40

PIECES = [
    "# One",
    "## Two",
    "## Two ##",
    "### Three",
    "Setext\n======",
    "text",
    "text with *marks* and `code`",
    "trailing  ",
    "\ttab",
    "- item",
    "  - inner",
    "1. first",
    "- [ ] task #tag",
    "- [x] done ^id-1",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "> [!note] Callout\n> body",
    "> > deep",
    "```python\n# no heading\n```",
    "````md\n```ai-edit\n{}\n```\n````",
    "~~~\n```\n~~~",
    "$$\nx = y\n$$",
    "price: $5 and $$ twice",
    "%% a comment\n# hidden\n%%",
    "[[Link#H|alias]] and [t](a%20b.md)",
    "#tag/inner",
    "<div>\nraw\n</div>",
    "---",
    "🪨 émoji e\u0301 中文",
    "\u201ccurly\u201d \u2014 dash\u00a0space",
    "line\u2028separator",
    "",
    "",
    "",
    "```",
    "[^1]: foot",
    "    indented",
    "^block",
    "#ai_edit",
    "%%",
    "$$",
    "***",
]
PROPERTIES = [
    "title: plain",
    "title2: 'single' # beside",
    'q: "double \\" quote"',
    "tags: [a, b/c]",
    "tags:\n  - a # one\n  # above\n  - b/c",
    "aliases:\n- x\n- y",
    "n: 007",
    "no: no",
    "date: 2024-01-01",
    "empty:",
    "list2: []",
    "# a comment",
    "",
    "anchor: &x [1, 2]",
    "alias: *x",
    "lit: |\n  several\n  lines\n\n",
    "folded: >-\n  one\n  two",
    "multi: one\n  two",
    "map: {a: 1, b: [c]}",
    "deep:\n  k:\n    - v: 1\n      w: ",
    "'quoted key': 1",
    "Case: x",
    "emoji: 🪨",
    "flow: [\n  a, # c\n  b,\n  ]",
    "keep: |+\n  x\n\n\n",
    "u: \u00e9",
    'link: "[[A]]"',
]

endings = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def frontmatters(draw: st.DrawFn) -> str:
    """Make a block of properties whose keys differ and whose aliases have an anchor."""
    chosen = draw(st.lists(st.sampled_from(PROPERTIES), max_size=6, unique_by=lambda row: row.split(":")[0] or row))
    if "alias: *x" in chosen:
        chosen = ["anchor: &x [1, 2]", *(row for row in chosen if not row.startswith("anchor"))]
    return "\n".join(("---", *chosen, "---"))


@st.composite
def notes(draw: st.DrawFn, *, properties: bool = True) -> bytes:
    """Make a whole file, or take a part of one that somebody wrote."""
    text = draw(made(properties=properties) if draw(st.integers(0, 3)) else written(properties=properties))
    text = draw(rewritten(text + draw(st.sampled_from(["", "\n", "\n\n"]))))
    return draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"])) + text.encode()


@st.composite
def made(draw: st.DrawFn, *, properties: bool) -> str:
    """Put a note together from pieces."""
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=12))
    if properties and draw(st.booleans()):
        pieces.insert(0, draw(frontmatters()))
    return "\n".join(pieces)


@st.composite
def written(draw: st.DrawFn, *, properties: bool) -> str:
    """Take some lines of a page: its properties and what follows, or any others."""
    page = draw(st.sampled_from(WRITTEN))
    if properties:
        return "\n".join(page.split("\n")[:LINES])
    rows = page.partition("\n---\n")[2].split("\n")
    start = draw(st.integers(0, max(0, len(rows) - LINES)))
    return "\n".join(rows[start : start + LINES])


@st.composite
def rewritten(draw: st.DrawFn, text: str) -> str:
    """Give a text one kind of line endings, or several."""
    if not draw(st.integers(0, 4)):
        rows = text.split("\n")
        marks = draw(st.lists(endings, min_size=len(rows) - 1, max_size=len(rows) - 1))
        return "".join(row + mark for row, mark in zip(rows, [*marks, ""], strict=True))
    return text.replace("\n", draw(endings))


texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("\n".join)
"""Text to put into a note."""


@st.composite
def edits(draw: st.DrawFn, raw: bytes) -> bytes:
    """Change some lines of a note, below its frontmatter where it has one, or anywhere."""
    rows = raw.splitlines(keepends=True)
    made: list[bytes] = []
    for row in rows:
        kind = draw(st.sampled_from(["keep", "keep", "keep", "drop", "change", "insert"]))
        ending = row[len(row.rstrip(b"\r\n")) :]
        if kind == "insert":
            made.append(draw(st.sampled_from(PIECES)).encode() + (ending or b"\n"))
        made += {"drop": [], "change": [draw(st.sampled_from(PIECES)).encode() + ending]}.get(kind, [row])
    if draw(st.booleans()):
        made.append(draw(texts).encode())
    return b"".join(made)
