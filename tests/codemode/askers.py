"""Models for Code Mode that say what a test tells them to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from knapper.codemode.tasks import ModelSpend, Prompt, Reply
from knapper.errors import KnapError

COST = ModelSpend(requests=1, input_tokens=100, output_tokens=10, cost_usd=Decimal("0.01"))


@dataclass
class Scripted:
    """Say the replies in turn; the last one again and again. An error is raised."""

    replies: Sequence[str | KnapError]
    asked: list[Prompt] = field(default_factory=list[Prompt])

    def __call__(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        said = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(said, KnapError):
            raise said
        return Reply(text=said, usage=COST)

    @property
    def occasions(self) -> list[str]:
        """Name what it was asked for, in turn."""
        names = {"Write": "first", "The script couldn't": "mend", "The script ran": "again"}
        return [next(name for start, name in names.items() if one.request.startswith(start)) for one in self.asked]

    def data(self, place: int, source: str) -> object:
        """Give a value that a prompt carried."""
        return next(one.value for one in self.asked[place].data if one.source == source)


def fenced(script: str) -> str:
    return f"Here it is:\n\n```python\n{script}\n```\n"


SEARCHES = """
found = obsidian.search(QUERY, limit=5)
__result__ = {
    "context": "\\n\\n".join(f"## {r['path']}\\n{r['content'][:2000]}" for r in found),
    "citations": [{"vault": "main", "path": r["path"], "snip_start": 0, "snip_end": 2000} for r in found],
    "queries": [QUERY],
    "confidence": CONFIDENCE,
    "why": "it searched",
}
"""


def searching(query: str, confidence: float | None = 0.9) -> str:
    """Write a reply with a script that searches once."""
    return fenced(SEARCHES.replace("QUERY", repr(query)).replace("CONFIDENCE", repr(confidence)))
