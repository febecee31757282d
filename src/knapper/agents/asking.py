"""Read what a model asks the person."""

from typing import cast

from knapper.agents import halves
from knapper.agents.repair import Arguments
from knapper.errors import BadInput


def read(given: Arguments) -> tuple[str, tuple[str, ...]]:
    """Give the question, and the answers to choose from; what is no text is none of them."""
    given = cast("Arguments", halves.whole(given))
    question, options = given.get("question"), given.get("options")
    rows = options if isinstance(options, list) else []
    return str(question or "").strip(), tuple(one.strip() for one in rows if isinstance(one, str) and one.strip())


def check(question: str, *, is_first: bool) -> None:
    """See that a question can be put.

    Args:
        question: What the person would be shown.
        is_first: Whether nothing is asked already.

    Raises:
        BadInput: There is nothing to answer, or something was asked just before.
    """
    if not question:
        raise BadInput("the question is empty", hint="ask the person in words, or go on without", code="no_question")
    if not is_first:
        raise BadInput(
            "a question is put to the person already", hint="ask one at a time; this one after the answer", code="asked"
        )
