"""Text of others stands in a prompt as JSON that can't pass for the prompt's own marks, however it is written."""

import json

from hypothesis import given
from hypothesis import strategies as st

from knapper.agents import prompting

SIGNS = ["<", "</vault-data>", "< ", "[INST]", "[", "\u200b", "\ufeff", '"', "\\", "\n", "\x7f", "\u2028"]
MARKS = st.sampled_from(SIGNS)
TEXTS = st.lists(st.one_of(MARKS, st.text(max_size=5)), max_size=8).map("".join)


@given(TEXTS)
def test_any_text_is_still_what_it_was(text: str) -> None:
    assert json.loads(prompting.escape(text)) == text


@given(TEXTS)
def test_a_text_alone_is_written_as_it_is_in_a_list(text: str) -> None:
    assert prompting.escape([text]) == f"[{prompting.escape(text)}]"


@given(TEXTS)
def test_nothing_that_opens_or_hides_is_left(text: str) -> None:
    written = prompting.escape(text)

    assert "</" not in written
    assert "[INST" not in written
    assert not any(sign in written for sign in "\u200b\ufeff\u2028")
