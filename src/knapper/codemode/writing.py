"""Have a model write a retrieval script, mend it once, and write another one where it found too little."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal, get_args

from knapper.codemode import stubs
from knapper.codemode.asking import Ask, Data, Prompt, Spent
from knapper.jsontypes import JSONValue
from knapper.tools.sandboxes import Signature

MOST_REPLY: Final = 200_000
"""Characters of a reply that are looked at."""
_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,200}|~{3,200})[ \t]*(\w{0,20})[^`\n]*")
_PYTHON: Final = frozenset({"", "python", "py", "python3"})
_MOST_ERROR: Final = 2_000

Occasion = Literal["first", "mend", "again"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Hold a script that a model wrote; it hasn't run."""

    script: str
    usage: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Write scripts for tasks over one vault.

    ``Author(ask=ask, shape=shape).first("Who pays for the fence?")`` gives a draft.
    """

    ask: Ask
    shape: Mapping[str, JSONValue]
    """From `knapper.codemode.shape.describe`."""
    methods: tuple[str, ...] = ()
    """Of those that not every script has."""
    tools: tuple[Signature, ...] = ()
    """That scripts can call."""

    def first(self, task: str) -> Draft:
        """Write a script.

        Raises:
            KnapError: The model doesn't answer.
        """
        return self._write("first", task)

    def mend(self, task: str, script: str, error: str) -> Draft:
        """Write a script again that couldn't be used.

        Args:
            task: What it is for.
            script: As it was.
            error: What went wrong, with the line.

        Raises:
            KnapError: The model doesn't answer.
        """
        return self._write("mend", task, Data(source="script", value=script), _error(error))

    def again(self, task: str, script: str, hints: Mapping[str, JSONValue]) -> Draft:
        """Write another script where one found too little.

        Args:
            task: What it is for.
            script: The one that found too little.
            hints: What was found, and what is missing.

        Raises:
            KnapError: The model doesn't answer.
        """
        found = Data(source="what was found", value=dict(hints))
        return self._write("again", task, Data(source="script", value=script), found)

    def _write(self, occasion: Occasion, task: str, *more: Data) -> Draft:
        data = (Data(source="task", value=task), Data(source="vault", value=dict(self.shape)), *more)
        prompt = Prompt(instructions=self.instructions(), request=_text(occasion), data=data)
        reply = self.ask(prompt)
        return Draft(script=script_of(reply.text), usage=reply.usage)

    def instructions(self) -> str:
        """Give the rules with the interface that scripts have here."""
        interface = stubs.text(self.methods, self.tools)
        return f"{_text('script')}\n\n## What a script has\n\n```python\n{interface}\n```"


def texts() -> list[str]:
    """Give all that models are told for writing a script, beside what the vault holds."""
    return [_text(name) for name in ("script", *get_args(Occasion))]


def script_of(reply: str) -> str:
    """Take the script out of a reply: its longest block of Python, or all of it where no block is."""
    text = reply[:MOST_REPLY]
    blocks = [block for language, block in _blocks(text) if language in _PYTHON]
    return max(blocks, key=len).strip() if blocks else text.strip()


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of fenced blocks; one that isn't closed goes on to the end."""
    fence, language, held = "", "", list[str]()
    for line in text.split("\n"):
        if fence and line.strip() == fence:
            yield language, "\n".join(held)
            fence = ""
        elif fence:
            held.append(line)
        elif found := _FENCE.fullmatch(line):
            fence, language, held = found[1], found[2].casefold(), []
    if fence:
        yield language, "\n".join(held)


def _error(error: str) -> Data:
    return Data(source="error", value=error[:_MOST_ERROR])


def _text(name: str) -> str:
    return resources.files("knapper.codemode").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()
