"""A link that would lead elsewhere is rewritten in the form that it has, and every other byte stays."""

from pathlib import Path

import pytest

from knapper.changes.links import rewriting
from knapper.changes.links.rewriting import LinkForms, Scalar
from knapper.vault.source import Outline
from tests.changes import relinking

CASES = [
    # what the note S.md says, the move, what it says then
    ("[[B]]", ("B.md", "C.md"), "[[C]]"),
    ("[[B|b]] ![[B]] [[B#H|x]] [[B^id]]", ("B.md", "C.md"), "[[C|b]] ![[C]] [[C#H|x]] [[C^id]]"),
    ("[[B.md]]", ("B.md", "C.md"), "[[C.md]]"),
    ("[[b]] [[B ]]", ("B.md", "sub/B.md"), "[[b]] [[B ]]"),
    ("[[a/N]] [[N]]", ("a/N.md", "c/N.md"), "[[c/N]] [[N]]"),
    ("[[/a/N]]", ("a/N.md", "c/N.md"), "[[/c/N]]"),
    ("[[./a/N]] [[./a/N.md]]", ("a/N.md", "c/N.md"), "[[./c/N]] [[./c/N.md]]"),
    ("[n](./a/N.md)", ("a/N.md", "c/N.md"), "[n](./c/N.md)"),
    ("[n](a/N.md#h 'title')", ("a/N.md", "c d/N.md"), "[n](c%20d/N.md#h 'title')"),
    ("[n](<a/N.md#h>)", ("a/N.md", "c d/N.md"), "[n](<c d/N.md#h>)"),
    ("![](p/my%20pic.png)", ("p/my pic.png", "q/my pic.png"), "![](q/my%20pic.png)"),
    ("![](p/my%20pic.png)", ("p/my pic.png", "p/a (1).png"), "![](p/a%20%281%29.png)"),
    ("![](p/my%20pic.png)", ("p/my pic.png", "p/50%.png"), "![](p/50%25.png)"),
    ("![](p/%C3%BC.png)", ("p/\u00fc.png", "q/\u00fc \u00e9.png"), "![](q/%C3%BC%20%C3%A9.png)"),
    ("![](p/\u00fc.png)", ("p/\u00fc.png", "q/\u00fc \u00e9.png"), "![](q/\u00fc%20\u00e9.png)"),
    ("[x][r] [r]\n\n[r]: a/N.md 'T'", ("a/N.md", "c/N.md"), "[x][r] [r]\n\n[r]: c/N.md 'T'"),
    ("|a|\n|-|\n|[[a/N\\|x]]|", ("a/N.md", "c/N.md"), "|a|\n|-|\n|[[c/N\\|x]]|"),
    ("[![alt](p/my%20pic.png)](a/N.md)", ("p", "q"), "[![alt](q/my%20pic.png)](a/N.md)"),
    ("`[[B]]` %%[[B]]%% $[[B]]$\n\n```\n[[B]]\n```", ("B.md", "C.md"), None),
    ("[[B]]\r\n[[a/N]]\r\n", ("B.md", "C.md"), "[[C]]\r\n[[a/N]]\r\n"),
    ("\ufeff[[B]] no end", ("B.md", "C.md"), "\ufeff[[C]] no end"),
    ("---\nup: '[[B]]'\n---\n", ("B.md", "it's.md"), "---\nup: '[[it''s]]'\n---\n"),
    ('---\nup: "[[B]]" # c\n---\n', ("B.md", "it's.md"), '---\nup: "[[it\'s]]" # c\n---\n'),
    ("---\nup: see [[B]] and [[B]]\n---\n", ("B.md", "C.md"), "---\nup: see [[C]] and [[C]]\n---\n"),
    ("---\nup: see [[B]], [[B]]\n---\n", ("B.md", "a #b.md"), None),
    ("---\nup: see [[B]], [[B]]\nx: 1\n---\n", ("B.md", "x - y.md"), "---\nup: see [[x - y]], [[x - y]]\nx: 1\n---\n"),
    ("---\nl: [see [[B]], 2]\n---\n[[B]]", ("B.md", "C.md"), "---\nl: [see [[B]], 2]\n---\n[[C]]"),
    ("---\nl:\n  - '[b](B.md)'\n---\n", ("B.md", "c d's.md"), "---\nl:\n  - '[b](c%20d%27s.md)'\n---\n"),
    ("---\nup: |\n  a [[B]]\n  b\n---\n", ("B.md", "C.md"), "---\nup: |\n  a [[C]]\n  b\n---\n"),
    ("[[e\u0301]]", ("\u00e9.md", "x/\u00e9.md"), "[[e\u0301]]"),
    ("[[\u0416\u0443\u043a]]", ("\u0416\u0443\u043a.md", "\u7532\u866b.md"), "[[\u7532\u866b]]"),
    ("[[v1.2]]", ("v1.2.md", "v1.3.md"), "[[v1.3]]"),
    ("[[x.md]]", ("x.md.md", "y.md.md"), "[[y.md]]"),
    ("[[https://x.y]] https://B.md <B.md>", ("B.md", "C.md"), None),
]


@pytest.mark.parametrize(("text", "move", "wanted"), CASES)
def test_a_link_keeps_its_form(tmp_path: Path, text: str, move: tuple[str, str], wanted: str | None) -> None:
    files = dict.fromkeys(
        ("B.md", "a/N.md", "p/my pic.png", "p/\u00fc.png", "\u00e9.md", "\u0416\u0443\u043a.md", "v1.2.md", "x.md.md"),
        "",
    )
    world = relinking.make(tmp_path, {**files, "S.md": text})
    (world.root / ".obsidian").mkdir()

    world.move(move)

    assert (world.root / "S.md").read_bytes().decode() == (text if wanted is None else wanted)


def test_quotes_are_put_around_a_property_that_needs_them(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"S.md": "---\nup: see [[a/B]] and [[a/B|b]]\nn: 1\n---\n", "a/B.md": ""})
    (world.root / "C: d").mkdir()

    draft = world.move(("a/B.md", "C: d/B.md"))

    assert world.text("S.md") == '---\nup: "see [[C: d/B]] and [[C: d/B|b]]"\nn: 1\n---\n'
    assert [one.new for one in draft.rewritten] == ["[[C: d/B]]", "[[C: d/B|b]]"]


AMBIGUOUS = {
    "S.md": "[[N]] [[b/N]] [n](b/N.md)\n",
    "a/N.md": "",
    "b/N.md": "",
    "b/T.md": "[[N]] [n](N.md) [[T]]\n",
}


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [("shortest", "[[c/N]]"), ("absolute", "[[c/N]]"), ("relative", "[[./c/N]]")],
)
def test_a_name_that_would_lead_elsewhere_gets_the_path_that_the_vault_is_used_to(
    tmp_path: Path, setting: str, wanted: str
) -> None:
    world = relinking.make(tmp_path, {**AMBIGUOUS, ".obsidian/app.json": f'{{"newLinkFormat": "{setting}"}}'})

    world.move(("a/N.md", "c/N.md"))  # which leaves b/N.md the first of that name

    assert world.text("S.md").startswith(f"{wanted} [[b/N]] [n](b/N.md)")
    assert world.text("b/T.md") == AMBIGUOUS["b/T.md"]


def test_a_name_that_its_folder_gave_a_meaning_gets_a_path_when_the_note_leaves(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {**AMBIGUOUS, ".obsidian/app.json": "{}"})

    world.move(("b/T.md", "T.md"))

    assert world.text("T.md") == "[[b/N]] [n](b/N.md) [[T]]\n"


def test_a_link_elsewhere_isnt_taken_over_by_a_note_that_gets_its_name(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"x/S.md": "[[N]] [[n#h|t]]\n", "long/folder/N.md": "", "M.md": "[[M]]\n"})

    draft = world.move(("M.md", "N.md"))

    assert world.text("x/S.md") == "[[long/folder/N]] [[long/folder/n#h|t]]\n"
    assert world.text("N.md") == "[[N]]\n"
    assert [one.path for one in draft.rewritten] == ["M.md", "x/S.md", "x/S.md"]


def test_a_link_stays_where_a_rival_of_its_name_goes(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"S.md": "[[long/N]] [[N]]\n", "long/N.md": "", "N.md": ""})

    world.move(("N.md", "M.md"))

    assert world.text("S.md") == "[[long/N]] [[M]]\n"


def test_a_new_name_that_several_files_have_gets_its_path(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"S.md": "[[M]]\n", "long/N.md": "", "x/M.md": ""})

    world.move(("x/M.md", "x/N.md"))

    assert world.text("S.md") == "[[x/N]]\n"


def test_a_notes_own_relative_links_lead_where_they_led(tmp_path: Path) -> None:
    text = "[a](./x.md) [b](../r.md) [[../r]] ![p](img/p.png) [n](gone.md) [i](../.hidden/i.png) [o](../../out.md)\n"
    world = relinking.make(
        tmp_path, {"a/S.md": text, "a/x.md": "", "r.md": "", "a/img/p.png": "", ".obsidian/app.json": "{}"}
    )

    world.move(("a/S.md", "b/c/S.md"))

    assert world.text("b/c/S.md") == (
        "[a](../../a/x.md) [b](../../r.md) [[../../r]] ![p](../../a/img/p.png) [n](gone.md) "
        "[i](../../.hidden/i.png) [o](../../out.md)\n"
    )


def test_outside_of_obsidian_a_markdown_link_stays_what_any_reader_follows(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"a/S.md": "[t](T.md) [[T]]\n", "a/T.md": "[s](S.md)\n"})

    world.move(("a/T.md", "b/T.md"))

    assert world.text("a/S.md") == "[t](../b/T.md) [[T]]\n"
    assert world.text("b/T.md") == "[s](../a/S.md)\n"


def test_links_to_a_name_that_no_wikilink_can_hold_stay_and_are_told(tmp_path: Path) -> None:
    world = relinking.make(
        tmp_path, {"S.md": "[[B]] [b](B.md)\n", "B.md": "", "m.canvas": '{"nodes":[{"file":"B.md"}]}'}
    )

    draft = world.move(("B.md", "C#[1]^|.md".replace("|", "")))

    assert world.text("S.md") == "[[B]] [b](C%23[1]^.md)\n"
    assert world.text("m.canvas") == '{"nodes":[{"file":"C#[1]^.md"}]}'
    assert any("S.md, line 1: [[B]] can't be written" in notice for notice in draft.notices)
    assert any("links to it break" in notice for notice in draft.notices)


def test_a_canvas_keeps_its_escapes(tmp_path: Path) -> None:
    raw = (
        '{"nodes":[{"id":"1","type":"file","file":"a\\/\\u00fc.md","subpath":"#H"},\n'
        '{"id":"2","type":"text","text":"\\u00e9 \\"q\\"\\n[[a/\\u00fc|x]] [y](a/%C3%BC.md)"},'
        '{"id":"3","file":"a/N.md"}]}'
    )
    world = relinking.make(tmp_path, {"m.canvas": raw, "a/\u00fc.md": "", "a/N.md": ""})

    world.move(("a/\u00fc.md", 'b/"\u00e4".md'.replace('"', "")))

    assert world.text("m.canvas") == raw.replace("a\\/\\u00fc.md", "b\\/\\u00e4.md").replace(
        "[[a/\\u00fc|x]]", "[[b/\\u00e4|x]]"
    ).replace("a/%C3%BC.md", "b/%C3%A4.md")


def test_a_card_says_the_whole_path_even_where_the_name_would_do(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"m.canvas": '{"nodes":[{"file":"N.md"}]}', "N.md": ""})

    world.move(("N.md", "b/N.md"))

    assert world.text("m.canvas") == '{"nodes":[{"file":"b/N.md"}]}'


def test_a_bases_links_follow(tmp_path: Path) -> None:
    raw = (
        'filters:\n  and:\n    - file.hasLink("a/N")\n    - \'link("a/N.md", "x") == this\'\n    - up == "[[a/N|n]]"\n'
    )
    world = relinking.make(tmp_path, {"q.base": raw, "a/N.md": ""})

    world.move(("a/N.md", "b/N.md"))

    assert world.text("q.base") == raw.replace("a/N", "b/N")


def test_a_link_that_no_longer_path_can_tell_apart_but_still_leads_right_is_left_alone(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"B": "", "C.md": "# H", "N.md": "[t](B) text"})

    draft = world.move(("B", "a/B"), ("C.md", "a/B.md"))

    assert (draft.notices, draft.rewritten) == ((), ())
    assert world.meanings()["N.md"] == [("B", "a/B")]


def test_a_rewritten_link_to_nothing_at_whose_place_a_file_arrives_is_told(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"B.md": "[t](./a/C)", "d/C.md": "# H"})

    draft = world.move(("B.md", "a/B.md"), ("d/C.md", "a/C.md"))

    assert world.meanings()["a/B.md"] == [("./C", "a/C.md")]
    assert any("led nowhere" in notice for notice in draft.notices)


def test_files_in_strange_encodings_are_left_alone_where_they_must_be(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"N.md": ""})
    (world.root / "latin.md").write_bytes(b"caf\xe9 [[N]]\n")
    (world.root / "wide.md").write_bytes("[[N]]".encode("utf-16"))
    world.engine.refresh()
    ascii_move, other = world.draft(("N.md", "M.md")), world.draft(("N.md", "\u00fc.md"))

    assert [(file.path, file.after) for file in ascii_move.files if file.cause == "link"] == [
        ("latin.md", b"caf\xe9 [[M]]\n")
    ]
    assert [file.path for file in other.files if file.cause == "link"] == []
    assert len(other.notices) == 2


def test_a_link_that_cant_be_written_keeps_no_other_from_following_and_takes_few_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(raw: bytes) -> Outline:
        looks.append(len(raw))
        return parse(raw)

    looks: list[int] = []
    parse = rewriting.PARSERS["note"]
    alone, together = "[[B]]\n\n" * 100, "[[B]] [[B]]\n\n"
    world = relinking.make(tmp_path, {"B.md": "", "S.md": f"{alone}{together}{alone}"})
    monkeypatch.setattr(rewriting, "PARSERS", {**rewriting.PARSERS, "note": look})

    draft = world.move(("B.md", "x`y.md"))

    # Two backticks in a paragraph would make code of what is between them.
    followed = alone.replace("B", "x`y")
    assert world.text("S.md") == f"{followed}[[x`y]] [[B]]\n\n{followed}"
    assert any("S.md, line 201: [[B]] can't be written" in notice for notice in draft.notices)
    assert len(looks) < 40


def test_of_many_links_that_cant_be_written_only_some_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[[B]] [[B]]\n\n" * 40
    world = relinking.make(tmp_path, {"B.md": "", "S.md": text})
    monkeypatch.setattr(rewriting, "_MAX_LOOKS", 10)

    draft = world.move(("B.md", "x`y.md"))

    followed = world.text("S.md").count("[[x`y]]")
    assert 0 < followed < 40
    assert any(f"{80 - followed - 5} more links" in notice for notice in draft.notices)


class Counted(Scalar):
    """A scalar that counts how often somebody asks where a scalar begins."""

    asked = 0

    def __getattribute__(self, name: str) -> object:
        if name == "start":
            Counted.asked += 1
        return super().__getattribute__(name)


def test_what_a_link_of_a_property_takes_does_not_grow_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(count: int) -> int:
        raw = b"---\nmany:\n" + b'  - "[[B]]"\n' * count + b"---\n"
        outline = rewriting.PARSERS["note"](raw)
        forms, Counted.asked = LinkForms(raw, "note", outline), 0
        containers = {forms.of(link).container for link in outline.links}
        assert (len(outline.links), containers) == (count, {"double"})
        return Counted.asked

    monkeypatch.setattr(rewriting, "Scalar", Counted)

    assert asked(800) < 2.5 * asked(400)
