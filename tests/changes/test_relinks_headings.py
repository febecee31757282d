"""Links into a note follow the heading or block that they mean, and no other of the same text."""

from pathlib import Path

import pytest

from knapper.changes.drafts import Draft, RenameBlock, RenameHeading
from knapper.changes.links import moving
from knapper.vault import parser
from knapper.vault.access import Policy
from tests.changes import relinking
from tests.changes.relinking import OWNER, World


def rename(world: World, old: str, new: str, *, path: str = "N.md", policy: Policy = OWNER) -> Draft:
    is_block = old.startswith("^")
    request = RenameBlock(path=path, old=old, new=new) if is_block else RenameHeading(path=path, heading=old, title=new)
    return moving.draft_rename(world.view(policy), world.view(), world.engine.graph, request)


CASES = [
    # what the note S.md says, the heading's new title, what S.md says then
    ("[[N#Old]] [[n#old|x]] ![[N#Old]]", "New", "[[N#New]] [[n#New|x]] ![[N#New]]"),
    ("[[N#Top#Old]] [[N#Old#Deep]] [[N#Top#Deep]]", "New", "[[N#Top#New]] [[N#New#Deep]] [[N#Top#Deep]]"),
    ("[[N#Old]] [[N]] [[N#Top]] [[N^id]] [[N#^id]]", "Old!", None),
    ("[[N.md#Old]]", "A: b #c | d ^e [f]", "[[N.md#A b c d e f]]"),
    ("[n](N.md#Old) [n](<N.md#Old> 't')", "A (b) c", "[n](N.md#A%20%28b%29%20c) [n](<N.md#A (b) c> 't')"),
    ("[n][r] [r]\n\n[r]: N.md#Old 'T'", "New one", "[n][r] [r]\n\n[r]: N.md#New%20one 'T'"),
    ("|a|\n|-|\n|[[N#Old\\|x]]|", "New", "|a|\n|-|\n|[[N#New\\|x]]|"),
    ("`[[N#Old]]` [[Other#Old]] [[#Old]]\n# Old", "New", None),
    ("---\nup: '[[N#Old]]'\n---\n", "It's", "---\nup: '[[N#It''s]]'\n---\n"),
    ("---\nup: see [[N#Old]]\n---\n", "a - b", "---\nup: see [[N#a - b]]\n---\n"),
    ("[[N#Old]]", "\u65b0\u3057\u3044 \u00fc", "[[N#\u65b0\u3057\u3044 \u00fc]]"),
]


@pytest.mark.parametrize(("text", "title", "wanted"), CASES)
def test_links_to_a_heading_follow_it(tmp_path: Path, text: str, title: str, wanted: str | None) -> None:
    note = "# Top\n\n## Old\n\n### Deep\n\ntext ^id\n\n# End\n\n## Old\n"
    world = relinking.make(tmp_path, {"N.md": note, "Other.md": "# Old\n", "S.md": text})

    world.do(rename(world, "# Top > ## Old", title))

    assert world.text("N.md") == note.replace("## Old", f"## {title}", 1)
    assert (world.root / "S.md").read_bytes().decode() == (text if wanted is None else wanted)


def test_of_equal_headings_links_mean_the_first(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# A\n## X\n# B\n## X\n", "S.md": "[[N#X]] [[N#B#X]]\n"})

    draft = world.do(rename(world, "# B > ## X", "Y"))

    assert world.text("S.md") == "[[N#X]] [[N#B#Y]]\n"
    assert [one.new for one in draft.rewritten] == ["[[N#B#Y]]"]


def test_a_link_that_a_new_title_would_take_over_names_the_headings_above(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# A\n## X\n# B\n## Y\n", "S.md": "[[N#Y]] [[N#X]]\n"})

    world.do(rename(world, "## X", "Y"))

    assert world.text("S.md") == "[[N#B#Y]] [[N#Y]]\n"


def test_a_link_that_can_reach_its_heading_no_more_is_told(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# X\n# Y\n", "S.md": "[[N#Y]]\n"})

    draft = rename(world, "# X", "Y")

    assert [file.path for file in draft.files] == ["N.md"]
    assert any("S.md, line 1: [[N#Y]] can't be written" in notice for notice in draft.notices)


def test_a_title_of_nothing_but_signs_cant_be_linked_to(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# X\n[[#X]]\n", "S.md": "[[N#X]]\n"})

    draft = world.do(rename(world, "# X", "| |"))

    assert world.text("N.md") == "# | |\n[[#X]]\n"
    assert len(draft.notices) == 2


def test_the_notes_own_links_follow_and_those_in_the_new_title_stay(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# Old\r\n\r\n[[#Old]] [x](#Old) [[N#Old]]\r\n"})

    draft = world.do(rename(world, "# Old", "New [[#Old]]"))

    assert (world.root / "N.md").read_bytes() == (
        b"# New [[#Old]]\r\n\r\n[[#New Old]] [x](#New%20Old) [[N#New Old]]\r\n"
    )
    assert [one.line for one in draft.rewritten] == [3, 3, 3]


def test_a_canvass_cards_and_texts_follow(tmp_path: Path) -> None:
    raw = (
        '{"nodes":[{"type":"file","subpath":"#Old","file":"N.md"},'
        '{"type":"text","text":"\\"q\\"\\n[[N#Old|x]] [y](N.md#Old)"},{"type":"file","file":"N.md"}]}'
    )
    world = relinking.make(tmp_path, {"N.md": "# Old\n", "m.canvas": raw})

    world.do(rename(world, "# Old", 'Say "hi" \u00fc'))

    assert world.text("m.canvas") == raw.replace('"#Old"', '"#Say \\"hi\\" \u00fc"').replace(
        "[[N#Old|x]]", '[[N#Say \\"hi\\" \u00fc|x]]'
    ).replace("N.md#Old)", "N.md#Say%20%22hi%22%20\u00fc)")


def test_a_bases_links_follow(tmp_path: Path) -> None:
    raw = "filters:\n  and:\n    - file.hasLink(\"N#Old\")\n    - up == '[[N#Old]]'\n"
    world = relinking.make(tmp_path, {"N.md": "# Old\n", "q.base": raw})

    world.do(rename(world, "# Old", "New"))

    assert world.text("q.base") == raw.replace("Old", "New")


def test_links_to_a_block_follow_its_id(tmp_path: Path) -> None:
    text = "[[N#^old]] ![[N^OLD|x]] [n](N.md#^old) [n](N.md#%5Eold) [[N#^older]] [[N#H#^old]]\n"
    world = relinking.make(tmp_path, {"N.md": "# H\n\ntext ^old\n\n[[#^old]] [[^old]]\n", "S.md": text})

    world.do(rename(world, "^old", "new-1"))

    assert world.text("N.md") == "# H\n\ntext ^new-1\n\n[[#^new-1]] [[^new-1]]\n"
    assert world.text("S.md") == (
        "[[N#^new-1]] ![[N^new-1|x]] [n](N.md#^new-1) [n](N.md#%5Enew-1) [[N#^older]] [[N#H#^new-1]]\n"
    )


def test_links_in_hidden_files_follow_unnamed(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# Old\n", "Journal/d.md": "[[N#Old]]\n"})

    draft = rename(world, "# Old", "New", policy=Policy(client="mcp", hidden=("Journal/",)))

    assert [(file.path, file.hidden, file.cause) for file in draft.files] == [
        ("N.md", False, "asked"),
        ("Journal/d.md", True, "link"),
    ]
    assert draft.rewritten == ()
    assert "1 link in files that aren't yours to see followed too" in draft.notices


def test_a_file_that_changed_since_it_was_indexed_is_read_anew(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": "# Old\n", "S.md": "[[N]]\n"})
    (world.root / "S.md").write_bytes(b"now [[N#Old]]\n")

    draft = rename(world, "# Old", "New")

    assert [file.after for file in draft.files if file.path == "S.md"] == [b"now [[N#New]]\n"]


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("A", (0,)),
        ("C", (2,)),
        ("A#C", (0, 2)),
        ("B#C", (1, 2)),
        ("D#C", (3, 4)),
        ("C#A", ()),
        ("A#B#C", (0, 1, 2)),
        ("", ()),
    ],
)
def test_a_chain_of_headings_may_leave_some_out(wanted: str, place: tuple[int, ...]) -> None:
    sections = parser.parse_note(b"# A\n## B\n### C\n# D\n### C\n").sections

    assert moving.find_heading_path([part for part in wanted.split("#") if part], sections) == place


def test_the_headings_above_one_are_those_that_hold_it() -> None:
    sections = parser.parse_note(b"# A\n### B\n## C\n### D\n").sections

    assert [moving.ancestors(number, sections) for number in range(4)] == [(0,), (0, 1), (0, 2), (0, 2, 3)]
