"""Models that write halves of characters, which no UTF-8 can hold."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.agents import halves
from tests.agents.run_world import Brain, Part
from tests.server import running
from tests.server.running import done

pytestmark = pytest.mark.timeout(60)


class Torn(Brain):
    """Write half a character behind all that is said."""

    def said(self, kind: str, task: str) -> str:
        return f"{super().said(kind, task)} \ud83d"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("plain ü 😀", "plain ü 😀"),
        ("a \ud83d\ude00", "a 😀"),
        ("a \ud83d b", "a \ufffd b"),
        ("\ude00", "\ufffd"),
    ],
)
def test_halves_that_follow_each_other_are_joined_and_others_replaced(written: str, expected: str) -> None:
    assert halves.joined(written) == expected


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_a_model_writes_can_be_kept(written: str) -> None:
    kept = halves.joined(written)

    assert kept.encode().decode() == kept


@pytest.mark.parametrize("plans", [{}, {"T": [Part("Alpha?"), Part("Beta?")]}])
def test_a_run_bears_a_model_that_writes_halves_of_characters(tmp_path: Path, plans: dict[str, list[Part]]) -> None:
    with running.asking(tmp_path, Torn(plans=plans)) as (client, _):
        shown = client.get(f"/runs/{done(client)}").json()

    assert shown["state"] in {"complete", "partial"}
    assert shown["answer"].endswith("\ufffd")
