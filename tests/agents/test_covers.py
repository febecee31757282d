"""Whether one policy shows all that another one shows: never said where it isn't so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.vault.access import Policy, policy_covers
from knapper.vault.paths import NotePath

PATTERNS = ("A/", "B/", "A/x.md", "*.md", "B/*.md", "x.md")
LISTS = st.lists(st.sampled_from(PATTERNS), max_size=2, unique=True).map(tuple)
HIDDEN = st.lists(st.sampled_from([*PATTERNS, "!A/x.md", "!x.md"]), max_size=3, unique=True).map(tuple)
PATHS = [NotePath(path) for path in ("x.md", "A/x.md", "A/y.md", "B/x.md", "B/C/x.md", "B/z.png", "z.png")]
POLICIES = st.builds(Policy, read=LISTS, within=LISTS, hidden=HIDDEN)


@given(wider=POLICIES, narrower=POLICIES)
def test_whoever_covers_another_sees_all_that_they_see(wider: Policy, narrower: Policy) -> None:
    seen = [path for path in PATHS if narrower.visible(path)]
    if policy_covers(wider, narrower):
        assert all(wider.visible(path) for path in seen)


@given(policy=POLICIES)
def test_a_policy_covers_itself_and_one_without_rules_covers_all(policy: Policy) -> None:
    assert policy_covers(policy, policy)
    assert policy_covers(Policy(), policy) or any(one.startswith("!") for one in policy.hidden)


@pytest.mark.parametrize(
    ("wider", "narrower", "expected"),
    [
        (Policy(hidden=("A/",)), Policy(hidden=("A/", "B/")), True),
        (Policy(hidden=("A/",)), Policy(), False),
        (Policy(hidden=("A/",)), Policy(hidden=("A/", "!A/x.md")), False),
        (Policy(read=("A/",)), Policy(read=("A/",), within=("B/",)), True),
        (Policy(read=("A/",)), Policy(read=("A/", "B/")), False),
    ],
)
def test_rules_are_compared(wider: Policy, narrower: Policy, expected: bool) -> None:
    assert policy_covers(wider, narrower) is expected
