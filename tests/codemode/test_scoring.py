"""Hold each part of the score to its edges, and to what has to make it grow or fall."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from knapper.codemode import scoring
from knapper.codemode.scoring import (
    UNRANKED,
    Aspect,
    NoteKey,
    RetrievedMaterial,
    Score,
    ScoreTargets,
    ScoreWeights,
    Vocabulary,
    WeightedTerm,
    inverse_document_frequency,
)
from knapper.index.store import IndexStore
from tests.tools import opened

NOTES = {
    "Fence.md": "# Fence\n\nThe larch fence stands on the northern border of the garden.\n",
    "Costs.md": "# Costs\n\nThe neighbour pays half of the larch fence.\n",
    "Pond.md": "# Pond\n\nNewts live in the pond of the garden.\n",
    "日本語.md": "# 柵\n\n庭の北側に木の柵を建てる。費用は隣人が半分払う。\n",
    **{f"Other {number}.md": f"# Other {number}\n\nThe garden of the house.\n" for number in range(12)},
}
TASK = "Who pays for the larch fence?"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vocabulary]:
    base = tmp_path_factory.mktemp("scoring")
    with opened.vault(base, NOTES).open() as context:
        _ = context.index.refresh()
        made = Vocabulary(context.index.store)
        yield made
        made.close()


def scored(
    vocabulary: Vocabulary,
    cited: Mapping[str, str],
    *,
    task: str = TASK,
    context: str | None = None,
    heard: tuple[str, ...] | None = None,
    aspects: tuple[str, ...] = (),
    ranks: Mapping[str, int] | None = None,
) -> Score:
    places: dict[NoteKey, str] = {("v", path): text for path, text in cited.items()}
    known = dict.fromkeys(cited, 0) if ranks is None else ranks
    order = {("v", path): place for path, place in known.items()}
    material = RetrievedMaterial(
        context="\n\n".join(cited.values()) if context is None else context,
        source_texts=tuple(cited.values()) if heard is None else heard,
        cited_texts=places,
        citations=len(cited),
    )
    return scoring.score_retrieval(
        material, scoring.analyze_task(task, vocabulary, lambda _: order, aspects), vocabulary
    )


def test_nothing_scores_nothing(vocabulary: Vocabulary) -> None:
    assert scored(vocabulary, {}) == Score(missing=(TASK, "Who pays for the larch fence"))


def test_a_task_without_a_word_asks_for_nothing(vocabulary: Vocabulary) -> None:
    found = scored(vocabulary, {"Costs.md": NOTES["Costs.md"]}, task="??? !!!")

    assert (found.overlap, found.coverage, found.missing) == (0, 0, ())


def test_a_note_that_says_all_overlaps_wholly_and_covers_the_aspect(vocabulary: Vocabulary) -> None:
    found = scored(vocabulary, {"A.md": "Who pays for the larch fence? The neighbour does."})

    assert found.overlap == 1
    assert found.missing == ()


def test_a_note_that_says_none_of_it_overlaps_and_covers_nothing(vocabulary: Vocabulary) -> None:
    found = scored(vocabulary, {"Zoo.md": "Newts and ponds."})

    assert (found.overlap, found.coverage) == (0, 0)


def test_rare_words_count_for_more_than_common_ones(vocabulary: Vocabulary) -> None:
    rare = scored(vocabulary, {"A.md": "Newts sleep."}, task="newts of the garden")
    common = scored(vocabulary, {"A.md": "A garden grows."}, task="newts of the garden")

    assert rare.overlap > common.overlap > 0


def test_a_word_that_the_vault_doesnt_have_is_missed_but_doesnt_outweigh_the_rest(vocabulary: Vocabulary) -> None:
    known = scored(vocabulary, {"A.md": "larch fence neighbour pays"}, task="larch fence neighbour pays")
    partly = scored(vocabulary, {"A.md": "larch fence neighbour pays"}, task="larch fence neighbour pays quaternion")

    assert known.overlap == 1
    assert partly.overlap == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("form", ["Fences", "FENCE", "fence's", "fence,"])
def test_forms_of_a_word_are_one_word(vocabulary: Vocabulary, form: str) -> None:
    assert scored(vocabulary, {"A.md": f"Some {form} here now."}, task="fence").overlap == 1


def test_a_language_without_spaces_is_scored_like_others(vocabulary: Vocabulary) -> None:
    good = scored(vocabulary, {"日本語.md": NOTES["日本語.md"]}, task="柵の費用は誰が払う")
    bad = scored(vocabulary, {"Pond.md": NOTES["Pond.md"]}, task="柵の費用は誰が払う")

    assert good.overlap > 0.3
    assert good.coverage > 0
    assert (bad.overlap, bad.coverage) == (0, 0)


def test_signs_in_a_task_are_no_operators(vocabulary: Vocabulary) -> None:
    found = scored(vocabulary, {"A.md": "the larch fence"}, task='- larch -fence "larch* OR NEAR(')

    assert found.overlap > 0


def test_a_context_that_repeats_the_task_has_found_nothing(vocabulary: Vocabulary) -> None:
    found = scored(vocabulary, {}, context=f"# {TASK}\n\n{TASK}\n" * 50, heard=("Newts live in the pond.",))

    assert (found.overlap, found.total) == (0, 0)


def test_text_that_the_vault_never_said_counts_for_nothing(vocabulary: Vocabulary) -> None:
    made_up = "The neighbour pays for the larch fence, I am sure. " * 100

    found = scored(vocabulary, {"Pond.md": NOTES["Pond.md"]}, context=made_up)

    assert found.overlap == 0
    assert found.total < 0.2


def test_an_aspect_wants_one_note_that_deals_with_it(vocabulary: Vocabulary) -> None:
    task = "neighbour pays larch fence newts pond"
    together = scored(vocabulary, {"A.md": task, "B.md": "garden house"}, task=task)
    scattered = scored(vocabulary, {"A.md": "neighbour pays", "B.md": "newts"}, task=task)
    chance = scored(vocabulary, {"A.md": "pays", "B.md": "fence"}, task=task)

    assert together.coverage > scattered.coverage > chance.coverage == 0


def test_named_aspects_are_covered_one_by_one(vocabulary: Vocabulary) -> None:
    found = scored(
        vocabulary,
        {"A.md": NOTES["Costs.md"]},
        task="Fence and pond",
        aspects=("who pays the fence", "newts in the pond"),
    )

    assert "newts in the pond" in found.missing
    assert "who pays the fence" not in found.missing


def test_a_note_that_the_search_brings_late_covers_less(vocabulary: Vocabulary) -> None:
    cited = {"Costs.md": NOTES["Costs.md"]}
    by_place = [scored(vocabulary, cited, ranks={"Costs.md": place}).coverage for place in (0, 1, 5, 50, UNRANKED)]

    assert by_place == sorted(by_place, reverse=True)
    assert by_place[0] > 2 * by_place[2]
    assert scored(vocabulary, cited, ranks={}).coverage == by_place[-1]


def test_words_far_apart_in_one_long_note_dont_cover_an_aspect_together(vocabulary: Vocabulary) -> None:
    filler = "The garden of the house. " * 200
    close = scored(vocabulary, {"A.md": f"{filler}larch newts neighbour pays"}, task="larch newts neighbour pays")
    apart = scored(
        vocabulary,
        {"A.md": f"larch {filler} newts {filler} neighbour {filler} pays"},
        task="larch newts neighbour pays",
    )

    assert close.coverage > apart.coverage


@pytest.mark.parametrize(("chars", "citations", "expected"), [(0, 0, 0.5), (1, 0, 0.75), (0, 1, 0.75), (1, 1, 1.0)])
def test_too_few_characters_or_citations_halve_what_is_covered(chars: float, citations: float, expected: float) -> None:
    assert scoring.coverage_score([1.0, 1.0], chars, citations) == expected


def test_one_note_is_half_as_diverse_as_can_be_however_long(vocabulary: Vocabulary) -> None:
    once = "Who pays for the larch fence? The neighbour does. "

    assert scored(vocabulary, {"A.md": once}).diversity == 0.5
    assert scored(vocabulary, {"A.md": once * 5_000}).diversity == 0.5


def test_notes_that_say_nothing_of_the_task_add_nothing_to_diversity(vocabulary: Vocabulary) -> None:
    notes = {"A.md": "Who pays for the larch fence? The neighbour does."}
    others = {f"{name}.md": f"{name} {name}" for name in ("newts", "ponds", "zoo", "sleep")}

    assert scored(vocabulary, notes | others).diversity == scored(vocabulary, notes).diversity


def test_copies_of_a_note_under_other_names_are_hardly_diverse(vocabulary: Vocabulary) -> None:
    text = NOTES["Fence.md"] + NOTES["Pond.md"]
    copies = scored(vocabulary, {"A.md": text, "A 1.md": text, "A 2.md": text})
    others = scored(vocabulary, {"A.md": NOTES["Fence.md"], "B.md": NOTES["Pond.md"], "C.md": NOTES["Costs.md"]})

    assert copies.diversity <= 0.5
    assert copies.diversity < others.diversity


def test_more_notes_that_differ_are_more_diverse() -> None:
    notes = [frozenset({f"{number} {part}" for part in range(5)}) for number in range(6)]

    assert [scoring.diversity_score(notes[:many], [1.0] * many) for many in range(4)] == [0, 0.5, 0.75, 0.875]
    assert scoring.diversity_score(notes[:4], [0.5] * 4) == scoring.diversity_score(notes[:2], [1.0] * 2)


def test_identical_texts_are_one_note_and_empty_ones_none() -> None:
    one, other = frozenset({"a", "b"}), frozenset({"c"})

    assert scoring.diversity_score([one, one, one], [1.0, 0.5, 0.0]) == 0.5
    assert scoring.diversity_score([one, frozenset(), other], [1.0, 1.0, 0.0]) == 0.5
    assert (
        scoring.diversity_score([one, other, one], [1.0] * 3)
        == scoring.diversity_score([one, other], [1.0] * 2)
        == 0.75
    )


WASTE = {
    "properties": "---\ntags:\n  - a\nstatus: open\n---\n",
    "properties after a rule": "words\n\n---\ntitle: A note\ntags: [x]\n---\n",
    "navigation": "[[Home]] | [[Index|all]] > [Up](../up.md)\n#tag #other/one\nhttps://example.org/a/b\n",
    "repeated": "The same line again.\n" * 10,
}


@pytest.mark.parametrize("name", WASTE)
def test_waste_is_seen(name: str) -> None:
    assert scoring.boilerplate_share(WASTE[name]) > 0.8


def test_frontmatter_alone_is_all_waste() -> None:
    assert scoring.boilerplate_share("---\nstatus: open\n---") == 1
    assert scoring.boilerplate_share("---\nstatus: open\n---\r\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\n ",
        "One line.\n---\nAnother: with a colon, and more text\nwithout end",
        "He wrote [[Ann]] a long letter about the larch fence.",
        "- a\n- a\n- a\n",
        "| a |\n|---|\n| b |\n",
        "---\n\n---\n\ntext after two rules\n",
        "# Heading\n\n| 1 | 2 |\n",
        "見出し\n\n本文はここ。\n",
    ],
)
def test_text_isnt_waste(text: str) -> None:
    assert scoring.boilerplate_share(text) == 0


def test_a_line_that_came_before_counts_from_its_second_time() -> None:
    assert scoring.boilerplate_share("A line of text.\nAnother line of text.\n") == 0
    assert scoring.boilerplate_share("A line of text.\nA  LINE of text.\n") == pytest.approx(0.5, abs=0.05)


words = some.text(alphabet="abcdefg \n-:#[]", max_size=300)
shares = some.floats(min_value=0, max_value=1)
terms = some.lists(
    some.builds(
        WeightedTerm,
        stems=some.tuples(some.sampled_from("abcdefgh")),
        weight=some.floats(min_value=0.01, max_value=10),
    ),
    max_size=8,
)
said = some.frozensets(some.sampled_from("abcdefgh"))


@given(words)
def test_waste_is_a_share_whatever_the_text(text: str) -> None:
    assert 0 <= scoring.boilerplate_share(text) <= 1


@given(shares, shares, shares, shares, shares)
def test_a_better_part_never_lowers_the_score_and_waste_never_raises_it(
    overlap: float, covered: float, diverse: float, wasted: float, more: float
) -> None:
    weights = ScoreWeights()
    usual = scoring.combine_parts(overlap, covered, diverse, wasted, weights)

    assert 0 <= usual <= 1
    assert scoring.combine_parts(max(overlap, more), covered, diverse, wasted, weights) >= usual
    assert scoring.combine_parts(overlap, max(covered, more), diverse, wasted, weights) >= usual
    assert scoring.combine_parts(overlap, covered, max(diverse, more), wasted, weights) >= usual
    assert scoring.combine_parts(overlap, covered, diverse, max(wasted, more), weights) <= usual


def test_the_weights_of_what_is_good_add_up_to_one() -> None:
    weights = ScoreWeights()

    assert weights.overlap + weights.coverage + weights.diversity == pytest.approx(1)
    assert scoring.combine_parts(1, 1, 1, 0, weights) == pytest.approx(1)


@given(terms, said, said)
def test_more_text_never_holds_fewer_of_the_words(
    wanted: list[WeightedTerm], one: frozenset[str], other: frozenset[str]
) -> None:
    assert 0 <= scoring.weight_share(wanted, one) <= scoring.weight_share(wanted, one | other) <= 1 + 1e-9


@given(terms, said, said, some.integers(min_value=0, max_value=200))
def test_more_cited_text_or_a_better_place_never_deals_less_with_an_aspect(
    wanted: list[WeightedTerm], one: frozenset[str], other: frozenset[str], place: int
) -> None:
    note = ("v", "A.md")
    aspect = Aspect(text="", terms=tuple(wanted), ranks={note: place + 1})
    better = Aspect(text="", terms=tuple(wanted), ranks={note: place})
    usual = scoring.aspect_coverage(aspect, note, [one])

    assert 0 <= usual <= 1
    assert scoring.aspect_coverage(aspect, note, [one, other]) >= usual
    assert scoring.aspect_coverage(better, note, [one]) >= usual


@given(some.lists(shares, max_size=5), shares, shares, shares)
def test_coverage_is_a_share_that_grows_with_what_is_brought(
    degrees: list[float], chars: float, citations: float, more: float
) -> None:
    usual = scoring.coverage_score(degrees, chars, citations)

    assert 0 <= usual <= 1
    assert scoring.coverage_score(degrees, max(chars, more), citations) >= usual
    assert scoring.coverage_score(degrees, chars, max(citations, more)) >= usual


@given(some.lists(some.tuples(said, shares), max_size=6))
def test_diversity_is_a_share_and_knows_no_order(notes: list[tuple[frozenset[str], float]]) -> None:
    texts, degrees = [text for text, _ in notes], [degree for _, degree in notes]
    found = scoring.diversity_score(texts, degrees)

    assert 0 <= found <= 1
    assert scoring.diversity_score(texts[::-1], degrees[::-1]) == pytest.approx(found)


@given(some.integers(min_value=0, max_value=500), some.integers(min_value=0, max_value=500))
def test_rarer_words_weigh_more_and_every_word_something(count: int, total: int) -> None:
    assert inverse_document_frequency(count, total) > 0
    assert inverse_document_frequency(count, total) >= inverse_document_frequency(count + 1, total)


@given(words)
def test_what_the_vault_said_is_all_grounded(text: str) -> None:
    found = scoring.grounded_text(text, [text], "zz").split()

    assert found == re.findall(r"\w+", text)


@given(words, words)
def test_no_word_is_grounded_that_the_vault_never_said(text: str, heard: str) -> None:
    said = set(re.findall(r"\w+", heard))

    assert set(scoring.grounded_text(text, [heard], "zz").split()) <= said


def test_what_is_cut_joined_or_set_anew_is_still_what_the_vault_said() -> None:
    note = "The larch fence stands on the northern border.\nThe neighbour pays half of it by transfer in April."
    context = f"## A.md\n{note[:60]}---{note[30:90]} ... The NEIGHBOUR  pays\thalf of it"

    found = scoring.grounded_text(context, [note], "task")

    assert "larch fence stands on the northern border" in found
    assert "NEIGHBOUR pays half of it" in found


def test_a_table_of_single_words_from_the_vault_is_grounded_but_not_the_tasks_own_words() -> None:
    heard = ["Projects/Roof.md", "open", "Projects/Shed.md", "roof", "larch"]

    assert scoring.grounded_text("- Roof: open\n- Larch roof", heard, "larch roof") == "Roof open"


def test_a_cited_note_counts_by_what_the_context_shows_of_it(vocabulary: Vocabulary) -> None:
    cited = {"A.md": NOTES["Costs.md"]}
    whole = scored(vocabulary, cited)
    nothing = scored(vocabulary, cited, context="Something else that the vault has said.")

    assert whole.coverage > 0.4
    assert (nothing.coverage, nothing.diversity) == (0, 0)


def test_a_text_is_shown_where_it_is_cut_or_set_anew() -> None:
    texts = ["# Fence\n\nThe larch fence stands on the northern border.", "Other words", ""]

    assert scoring.shown_texts(texts, "## A\nfence: the LARCH fence  stands on (the northern") == [
        "Fence\nThe larch fence stands on the northern",
        "",
        "",
    ]


def test_nothing_heard_grounds_nothing() -> None:
    assert scoring.grounded_text("some words of a script", [], "task") == ""
    assert scoring.grounded_text("", ["words"], "task") == ""


def test_least_is_what_the_thresholds_say() -> None:
    assert ScoreTargets() == ScoreTargets(context_chars=2_000, citations=2)


def test_a_vault_without_a_note_has_no_rarity(tmp_path: Path) -> None:
    store = IndexStore(tmp_path / "index.db")
    vocabulary = Vocabulary(store)

    assert {term.weight for term in vocabulary.terms("larch fence")} == {1.0}
    vocabulary.close()
    store.close()
