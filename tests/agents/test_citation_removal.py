"""What is left of a sentence whose citation was dropped is still a sentence."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.agents import citations
from knapper.agents.citations import CitationFailure

BAD = "[[Projects/Nowhere#Roof]] (lines 3-5)"
GOOD = "[[Garden#Fence]] (lines 8-16)"


@dataclass(frozen=True, slots=True)
class Dropped:
    answer: str

    @property
    def text(self) -> str:
        failures = [
            CitationFailure(parsed=one, written="", code="no_note", reason="")
            for one in citations.find_citations(self.answer)
            if "Nowhere" in one.place.target
        ]
        return citations.remove_citations(self.answer, failures)


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("It is green {g} and {b}. I proposed it.", "It is green {g}. I proposed it."),
        ("It is green {b} and {g}. I proposed it.", "It is green {g}. I proposed it."),
        ("It is green {b} and {b}. I proposed it.", "It is green. I proposed it."),
        ("It is green {g}, {b}, and {b}.", "It is green {g}."),
        ("It is green {g}, {b} and {g}.", "It is green {g} and {g}."),
        ("It is green {b}, {g}.", "It is green {g}."),
        ("It is green ({b}).", "It is green."),
        ("It is green (see {b}), they say.", "It is green, they say."),
        ("It is green ({g}; {b}).", "It is green ({g})."),
        ("It is green {b} and tall {g}.", "It is green and tall {g}."),
        ("It is green. {b} Red. {g}", "It is green. Red. {g}"),
        ("It is green. {b}", "It is green."),
        ("According to {b}, it is green.", "According to Nowhere, it is green."),
        ("Laut {b} ist er grün.", "Laut Nowhere ist er grün."),
        ("As said in {b} and {g}, it is green.", "As said in {g}, it is green."),
        ("Green. {b} says that it is red.", "Green. Nowhere says that it is red."),
        ("- {b} says that it is red.\n- {g}", "- Nowhere says that it is red.\n- {g}"),
        ("Sources:\n\n- {g}\n- {b}\n- {g}\n", "Sources:\n\n- {g}\n- {g}\n"),
        ("Green.\n\nSource: {b}.\n\nEnd.", "Green.\n\n\nEnd."),
        ("{b}", ""),
        ("Grün und {b}.", "Grün."),
        ("[[Projects/Nowhere]] is a note.", "Nowhere is a note."),
    ],
)
def test_the_sentence_around_a_dropped_citation_is_still_one(answer: str, left: str) -> None:
    def filled(text: str) -> str:
        return text.format(b=BAD, g=GOOD)

    assert Dropped(filled(answer)).text == filled(left)


@given(
    st.lists(
        st.sampled_from(
            [BAD, GOOD, " and ", ", ", ".", "\n", "\n- ", "(", ")", " in ", "water", " Ü", "see ", "!", " "]
        ),
        max_size=12,
    )
)
def test_only_bad_citations_go_and_no_other_word_or_citation(parts: list[str]) -> None:
    answer = "".join(parts)
    bad = [one for one in citations.find_citations(answer) if "Nowhere" in one.place.target]
    left = Dropped(answer).text

    places = [one.place for one in citations.find_citations(left)]
    assert not any("Nowhere" in place.target and place.first for place in places)
    assert left.count("Garden#Fence") == answer.count("Garden#Fence")
    assert left.count("water") == answer.count("water")
    assert left == answer or bad


def test_a_hostile_answer_is_cleared_in_time() -> None:
    """With work by the square of the length this would take minutes, and the limit of all tests is 10 s."""
    answer = f"x{' ' * 100_000}({'a ' * 100_000}, {BAD}{' and' * 100_000}{' ' * 100_000}x"

    assert "Nowhere#" not in Dropped(answer).text
