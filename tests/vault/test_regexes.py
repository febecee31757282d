import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knapper.vault import matchers

CHARACTERS = st.sampled_from(
    ["a", "B", "/", ".", "\\.", "\\d", "\\W", "[ab]", "[^a]", "[a-c\\]]", "é", "-", " ", "\\/"]
)
ANCHORS = st.sampled_from(["^", "$"])
TEXTS = st.text("aAbBcé/.-1] \n", max_size=12)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda part: f"({part})") | inner.map(lambda part: f"(?:{part})")
    repeated = st.tuples(CHARACTERS | group, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}", "{1,}"]))
    joined = st.lists(inner | group, min_size=1, max_size=3)
    return group | repeated.map("".join) | joined.map("".join) | joined.map("|".join)


PATTERNS = st.recursive(CHARACTERS, grown, max_leaves=6)


@given(PATTERNS, TEXTS)
@example("(^|/)_", "a/_b")
@example("a{2,3}b", "caaab")
@example("(a|b){0}c", "c")
@example("x|", "a")
def test_an_expression_matches_what_pythons_own_matcher_does(pattern: str, text: str) -> None:
    theirs = re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None

    assert matchers.parse_regex(pattern).search(text) == theirs


@given(
    st.tuples(st.sampled_from(["^", "^.*", "(^|/)", "(?:^a|b)"]), PATTERNS, st.sampled_from(["", "$", "(/|$)"])), TEXTS
)
def test_anchors_hold_where_pythons_do(parts: tuple[str, str, str], text: str) -> None:
    before, pattern, after = parts
    theirs = re.search(f"{before}(?:{pattern}){after.replace('$', chr(92) + 'Z')}", text, re.IGNORECASE | re.DOTALL)

    assert matchers.parse_regex(f"{before}(?:{pattern}){after}").search(text) == (theirs is not None)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^Templates/", "templates/a.md", "My Templates/a.md"),
        ("\\.excalidraw\\.md$", "x/Drawing.excalidraw.md", "excalidraw.md"),
        ("(^|\\/)_", "a/_draft.md", "a_b/c.md"),
        (".*/20\\d{2}-\\d\\d/.*", "Journal/2024-05/a.md", "Journal/2024/a.md"),
        ("^(Archive|Old|Trash)\\/.*\\.md$", "Old/a.md", "Older/a.md"),
        ("^Private", "Private/two\nlines.md", "x\nPrivate"),
    ],
)
def test_expressions_that_people_write_match_what_they_mean(pattern: str, yes: str, no: str) -> None:
    regex = matchers.parse_regex(pattern)

    assert regex.search(yes)
    assert not regex.search(no)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "a*a*a*a*a*a*a*a*b", "(a{0,9}){9}b", "(.*a){12}b"])
def test_an_expression_made_to_hang_ends(pattern: str) -> None:
    regex = matchers.parse_regex(pattern)

    assert not any(regex.search("a" * 4000 + f"!{number}") for number in range(20) if "$" not in pattern)
    assert len(regex.steps) <= matchers.MAX_CACHED_STEPS


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!x)",
        "(?<=a)b",
        "(?P<n>a)",
        "(a)\\1",
        "\\bword",
        "\\p{L}",
        "a\\",
        "[a",
        "[]",
        "[z-a]",
        "(a",
        "a)",
        "*a",
        "a**",
        "{2}",
        "x" * 301,
        "a{300}",
        "((a{99}){99}){99}",
        "(" * 150 + ")" * 150,
    ],
)
def test_what_is_not_covered_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        matchers.parse_regex(pattern)


@given(st.text("ab(){}[]|*+?^$\\.,-19:d", max_size=20))
def test_no_text_breaks_the_reader(pattern: str) -> None:
    try:
        regex = matchers.parse_regex(pattern)
    except ValueError:
        return

    assert isinstance(regex.search("ab/ba.md"), bool)


def test_steps_are_forgotten_before_they_fill_the_memory() -> None:
    regex = matchers.parse_regex("x")

    for number in range(matchers.MAX_CACHED_STEPS + 10):
        regex.search(chr(0x4E00 + number % 20_000) + chr(0x10000 + number))

    assert len(regex.steps) <= matchers.MAX_CACHED_STEPS
