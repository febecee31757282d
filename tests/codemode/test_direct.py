"""Hold searches without a script to the files as they are, and the splitting of tasks to every language."""

import codecs
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from knapper.codemode import retrieval, scoring
from knapper.tools.context import Context
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Fence.md": "---\nstatus: fence\n---\n# Fence\n\nGrün. The larch fence is green.\n\n## Cost\n\nLarch is dear.\n",
    "Pond.md": "# Pond\n\nNewts live in the pond.\n",
    "Secret/Larch.md": "# Larch fence\n\nThe hidden larch fence.\n",
    "Properties.md": "---\nkind: turbine\n---\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    made = opened.vault(tmp_path, NOTES, hidden=("Secret/",))
    (made.root / "Mark.md").write_bytes(codecs.BOM_UTF8 + "# Märk\r\n\r\nThe lärch gate.\r\n".encode())
    (made.root / "Wide.md").write_text("# Wide\n\nThe basalt wall.\n", encoding="utf-16")
    return made


@pytest.fixture
def context(vault: Opener) -> Iterator[Context]:
    with vault.open("agent") as made:
        _ = made.index.refresh()
        yield made


def test_a_hit_is_cited_where_it_stands_in_the_notes_text(context: Context, vault: Opener) -> None:
    found = retrieval.search_directly([context], "larch fence green", 10_000)

    text = vault.text("Fence.md")
    own = [one for one in found.citations if one.path == "Fence.md"]
    assert own
    assert all(text[one.start : one.stop] == one.text for one in own)
    assert "The larch fence is green." in found.context
    assert found.queries == ("larch fence green",)


def test_marks_line_endings_and_wide_encodings_dont_shift_places(context: Context) -> None:
    marked = retrieval.search_directly([context], "lärch gate", 10_000).citations
    wide = retrieval.search_directly([context], "basalt wall", 10_000).citations

    assert "The lärch gate." in next(one.text for one in marked if one.path == "Mark.md")
    assert "The basalt wall." in next(one.text for one in wide if one.path == "Wide.md")


def test_a_note_that_has_changed_since_is_cited_as_it_is_now(context: Context, vault: Opener) -> None:
    (vault.root / "Pond.md").write_text("# Pond\n\nNo more newts at all, but frogs.\n", encoding="utf-8")

    found = retrieval.search_directly([context], "newts live in the pond", 10_000)

    assert "but frogs" in found.context
    assert "Newts live" not in found.context


def test_a_note_that_is_gone_isnt_cited(context: Context, vault: Opener) -> None:
    (vault.root / "Pond.md").unlink()

    assert "Pond.md" not in {one.path for one in retrieval.search_directly([context], "newts pond", 10_000).citations}


def test_what_is_hidden_is_neither_found_nor_ranked(context: Context) -> None:
    assert "hidden" not in retrieval.search_directly([context], "hidden larch fence", 10_000).context
    assert not any("Secret" in path for _, path in retrieval.rank_notes([context], "hidden larch fence"))


def test_properties_are_given_only_after_texts(context: Context) -> None:
    found = retrieval.search_directly([context], "fence status", 10_000)

    assert "status: fence" not in found.citations[0].text
    assert [one.path for one in retrieval.search_directly([context], "turbine", 10_000).citations][:1] == [
        "Properties.md"
    ]


@pytest.mark.parametrize("most", [0, 10, 60, 200, 10_000])
def test_the_context_stays_within_its_characters(context: Context, most: int) -> None:
    found = retrieval.search_broadly([context], ["larch", "newts", "gate"], most)

    assert len(found.context) <= most + 2 * len(found.citations)


def test_a_broader_search_gives_each_query_its_turn_and_each_place_once(context: Context) -> None:
    found = retrieval.search_broadly([context], ["newts", " newts ", "", "basalt", "larch"], 10_000)

    assert found.queries == ("newts", "basalt", "larch")
    assert {"Pond.md", "Wide.md", "Fence.md"} <= {one.path for one in found.citations}
    places = [(one.path, one.start, one.stop) for one in found.citations]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("query", ["", "   ", "???", '"', "-", "*"])
def test_a_query_without_a_word_finds_nothing(context: Context, query: str) -> None:
    assert retrieval.search_directly([context], query, 10_000).citations == ()


def test_the_best_note_is_ranked_first(context: Context) -> None:
    ranked = retrieval.rank_notes([context], "newts in the pond")

    assert ranked[context.vault, "Pond.md"] == 0


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("Plan the garden: which fence, and when to plant?", ("Plan the garden which fence", "and when to plant")),
        ("Compare version 3.5 with 4.0. Say what breaks!", ("Compare version 3.5 with 4.0", "Say what breaks")),
        ("- first thing here\n- second thing here", ("- first thing here", "- second thing here")),
        (
            "庭の北側に木の柵を建てる計画。費用は誰がどのように払うのか。",
            ("庭の北側に木の柵を建てる計画", "費用は誰がどのように払うのか"),
        ),
        ("One question", ("One question",)),
        ("?!", ()),
        ("", ()),
    ],
)
def test_a_task_is_split_at_its_marks(task: str, parts: tuple[str, ...]) -> None:
    assert scoring.split_aspects(task) == parts


@given(some.text(max_size=2_000))
def test_a_task_has_few_aspects_and_each_a_word(task: str) -> None:
    found = scoring.split_aspects(task)

    assert len(found) <= scoring.MAX_ASPECTS
    assert all(any(sign.isalnum() or sign == "_" for sign in part) for part in found)


def test_a_task_with_a_very_long_run_of_marks_is_split() -> None:
    assert scoring.split_aspects("Plan the garden" + ":" * 200_000 + "fence? When to plant it?")[1:] == (
        "When to plant it",
    )


def test_a_line_of_a_hundred_thousand_brackets_is_no_navigation() -> None:
    assert not scoring.is_navigation("[" * 100_000)
    assert not scoring.is_navigation("[a](" * 50_000)
