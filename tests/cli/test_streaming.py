"""Markdown that comes in pieces is shown in whole blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.cli import output
from knapper.cli.output import MarkdownBlocks

TEXT = "# A\n\nOne\ntwo.\n\n```py\na\n\nb\n```\n\n- x\n- y\n\n~~~\n```\n\n~~~\n\nEnd"
WHOLE = ["# A\n\n", "One\ntwo.\n\n", "```py\na\n\nb\n```\n\n", "- x\n- y\n\n", "~~~\n```\n\n~~~\n\n", "End"]


def shown(pieces: list[str]) -> list[str]:
    blocks: list[str] = []
    cutter = MarkdownBlocks(blocks.append)
    for piece in pieces:
        cutter.feed(piece)
    cutter.flush()
    return blocks


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
def test_blocks_are_the_same_however_the_text_comes(size: int) -> None:
    assert shown([TEXT[at : at + size] for at in range(0, len(TEXT), size)]) == WHOLE


@given(st.lists(st.text(alphabet="a\n`~ -#")))
def test_nothing_of_the_text_is_lost(pieces: list[str]) -> None:
    assert "".join("".join(shown(pieces)).split()) == "".join("".join(pieces).split())


def test_what_a_terminal_would_obey_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    output.markdown_printer(40, colour=False)("**Bold** \x1b]0;title\x07 [a](javascript:x)\n")

    out = capsys.readouterr().out
    assert "Bold" in out
    assert "\x1b]" not in out
