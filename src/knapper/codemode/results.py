"""Read what a script has put into `__result__`: nothing about it is known."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

MOST_CITATIONS: Final = 200
MOST_CONTEXT: Final = 200_000
"""Characters."""
_MOST_QUERIES: Final = 50
_MOST_QUERY: Final = 500
_MOST_SIGNALS: Final = 20
_MOST_NAME: Final = 100
_MOST_WHY: Final = 2_000
_SHAPE: Final = (
    "set __result__ = {'context': str, 'citations': [{'vault', 'path'}], 'confidence': 0.0 to 1.0, 'why': str}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Hold a citation as a script has written it."""

    path: str
    vault: str = ""
    start: int | None = None
    """In characters of the note's text; None for its beginning, and for its end in ``stop``."""
    stop: int | None = None
    quote: str = ""
    """What the script says stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Hold a result that can be used."""

    context: str
    citations: tuple[Written, ...] = ()
    queries: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    """The script's own counts."""
    confidence: float | None = None
    """From 0 to 1; None where the script doesn't say."""
    why: str = ""
    remarks: tuple[str, ...] = ()
    """What couldn't be taken as it was."""


def read(result: JSONValue) -> Found:
    """Read a result; what is wrong beside the context is left out, and said.

    Raises:
        BadInput: It is no dictionary, or has no text as its context.
    """
    if not isinstance(result, dict):
        said = "is missing" if result is None else f"is a {type(result).__name__}, not a dictionary"
        raise BadInput(f"__result__ {said}", hint=_SHAPE, code="bad_result")
    context = result.get("context")
    if not isinstance(context, str):
        raise BadInput("__result__ has no text 'context'", hint=_SHAPE, code="bad_result")
    remarks: list[str] = []
    if len(context) > MOST_CONTEXT:
        remarks.append(f"the context was cut to {MOST_CONTEXT:,} of {len(context):,} characters")
    return Found(
        context=context[:MOST_CONTEXT],
        citations=_citations(result.get("citations"), remarks),
        queries=_queries(result.get("queries"), remarks),
        signals=_signals(result.get("signals"), remarks),
        confidence=_confidence(result.get("confidence"), remarks),
        why=_why(result.get("why"), remarks),
        remarks=tuple(remarks),
    )


def _citations(given: JSONValue, remarks: list[str]) -> tuple[Written, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        remarks.append("'citations' isn't a list, and was left out")
        return ()
    if len(given) > MOST_CITATIONS:
        remarks.append(f"the first {MOST_CITATIONS} of {len(given):,} citations are looked at")
    read = [_citation(one) for one in given[:MOST_CITATIONS]]
    strange = sum(one is None for one in read)
    if strange:
        remarks.append(f"{strange} citations name no path, and were left out")
    return tuple(dict.fromkeys(one for one in read if one is not None))


def _citation(given: JSONValue) -> Written | None:
    if isinstance(given, str):
        return Written(path=given) if given.strip() else None
    path = given.get("path") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not isinstance(path, str) or not path.strip():
        return None
    vault = given.get("vault")
    quotes = (given.get(name) for name in ("quote", "text", "snippet"))
    return Written(
        path=path,
        vault=vault if isinstance(vault, str) else "",
        start=_place(given.get("snip_start")),
        stop=_place(given.get("snip_end")),
        quote=next((quote for quote in quotes if isinstance(quote, str) and quote.strip()), ""),
    )


def _place(given: JSONValue) -> int | None:
    if isinstance(given, float) and math.isfinite(given):
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _queries(given: JSONValue, remarks: list[str]) -> tuple[str, ...]:
    queries = [one[:_MOST_QUERY] for one in given if isinstance(one, str)] if isinstance(given, list) else []
    if given is not None and (not isinstance(given, list) or len(queries) < len(given)):
        remarks.append("'queries' isn't a list of texts; what isn't one was left out")
    return tuple(queries[:_MOST_QUERIES])


def _signals(given: JSONValue, remarks: list[str]) -> dict[str, float]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        remarks.append("'signals' isn't a dictionary, and was left out")
        return {}
    known = ((name[:_MOST_NAME], _number(value)) for name, value in given.items())
    return dict([(name, value) for name, value in known if value is not None][:_MOST_SIGNALS])


def _confidence(given: JSONValue, remarks: list[str]) -> float | None:
    if given is None:
        return None
    number = _number(given)
    if number is None:
        remarks.append("'confidence' isn't a number, and was left out")
        return None
    if not 0 <= number <= 1:
        remarks.append(f"'confidence' is {number:g}, and was brought to between 0 and 1")
    return min(max(number, 0.0), 1.0)


def _number(given: JSONValue) -> float | None:
    """Give a number that can be counted with; one with thousands of digits can't."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _why(given: JSONValue, remarks: list[str]) -> str:
    if given is None or isinstance(given, str):
        return (given or "")[:_MOST_WHY]
    remarks.append("'why' isn't a text, and was left out")
    return ""
