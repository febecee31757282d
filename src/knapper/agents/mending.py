"""Let a model mend the citations of its answer, once."""

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import citations, defusing, failures, passages, untrusted
from knapper.agents.citations import Checked, Failure
from knapper.agents.halves import Whole
from knapper.agents.passages import Place
from knapper.errors import KnapError
from knapper.tools.context import Context

_AROUND: Final = 3
_MOST_LINES: Final = 60
_MOST_CHARS: Final = 2_000
_LEAST_KEPT: Final = 0.5
"""An answer that shrinks below this share of the old one wasn't mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mender:
    """Hold what mends answers."""

    model: Model
    """Wrote the answer."""
    prompt: str
    """Asks for a better one."""
    usage: RunUsage
    """What it costs is added here."""
    limits: UsageLimits | None = None
    """What that may come to with all that it holds already; None for no limit."""


async def mend(checked: Checked, context: Context, mender: Mender) -> Checked:
    """Ask for an answer with the failing citations mended, and check that.

    Args:
        checked: The answer, some citations of which don't hold.
        context: The vault, as the agent sees it.
        mender: What mends it; where it may not or can't, the answer stays.

    Returns:
        The better one of the two answers.
    """
    agent = Agent(Whole(mender.model), instructions=mender.prompt, retries=0)
    asked = await asyncio.to_thread(_asked, checked, context)
    try:
        said = await agent.run(asked, usage=mender.usage, usage_limits=mender.limits)
    except failures.CAUGHT:
        return checked
    mended = defusing.defused(said.output.strip())[0]
    if len(mended) < _LEAST_KEPT * len(citations.without(checked.answer, checked.failures)):
        return checked
    again = await asyncio.to_thread(citations.check, context, mended)
    return again if len(again.failures) < len(checked.failures) else checked


def settled(checked: Checked) -> Checked:
    """Take out what still doesn't hold; it stays reported, and what is left can't be an image from elsewhere."""
    return replace(checked, answer=defusing.defused(citations.without(checked.answer, checked.failures))[0])


def _asked(checked: Checked, context: Context) -> str:
    mark = untrusted.new_mark()
    failing = "\n\n".join(_told(one, context, mark) for one in checked.failures)
    return f"Your answer:\n\n{checked.answer}\n\nThese citations don't hold:\n\n{failing}"


def _told(failure: Failure, context: Context, mark: str) -> str:
    hint = f" ({failure.hint})" if failure.hint else ""
    said = untrusted.plain(f"- {failure.written}: {failure.reason}{hint}")
    shown = _passage(failure, context)
    return f"{said}\n{untrusted.enclose('passage', untrusted.escape(shown), mark)}" if shown else said


def _passage(failure: Failure, context: Context) -> str:
    """Show what stands where the citation points to, or in the note where the lines are wrong."""
    cited = failure.cited
    places = (
        Place(target=cited.target, headings=cited.headings, block=cited.block, first=cited.first, last=cited.last),
        Place(target=cited.target, headings=cited.headings),
        Place(target=cited.target),
    )
    for place in places:
        try:
            found = passages.find(context, place)
        except KnapError:
            continue
        return passages.numbered(found, around=_AROUND, most=_MOST_LINES)[:_MOST_CHARS]
    return ""
