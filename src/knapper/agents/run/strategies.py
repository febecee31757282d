"""Find strategies: small Markdown files that say how a kind of task is split and done; the person's own win."""

import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from knapper.errors import NotFound, SetupError, StorageError
from knapper.jsontypes import JSONValue

AUTO: Final = "auto"
"""Let the model choose."""
USUAL: Final = "research"
"""What is taken where the model names none."""
BUILT_IN: Final = ("software", "research", "analysis", "planning")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PARTS: Final = re.compile(r"^##[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_MAX_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Hold one strategy."""

    name: str
    summary: str
    """When it fits, in a line."""
    prompt: str
    """How the parts are done."""
    skeleton: str = ""
    """Parts that such tasks usually have."""
    own: bool = False
    """It is the person's."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {"name": self.name, "summary": self.summary, "own": self.own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategies:
    """Find strategies by their names."""

    folder: Path | None = None
    """The person's own: ``NAME.md`` each."""

    def load(self, name: str) -> Strategy:
        """Give a strategy.

        Raises:
            NotFound: There is none of that name.
            SetupError: The person's file isn't one.
            StorageError: It can't be read.
        """
        own = self.folder / f"{name}.md" if self.folder and _NAME.fullmatch(name) else None
        if own and own.is_file():
            return parse(name, _read(own), own=True)
        if name not in BUILT_IN:
            hint = f"there are: {', '.join(self.names())}"
            raise NotFound(f"there is no strategy '{name[:40]}'", hint=hint, code="no_strategy")
        return parse(
            name, resources.files("knapper.agents.run").joinpath("strategies", f"{name}.md").read_text("utf-8")
        )

    def names(self) -> list[str]:
        """List the names, the built-in ones first."""
        own = sorted(file.stem for file in self.folder.glob("*.md")) if self.folder and self.folder.is_dir() else []
        return [*BUILT_IN, *(name for name in own if name not in BUILT_IN and _NAME.fullmatch(name))]

    def all(self) -> list[Strategy]:
        """Load all that can be used; for others `load` says why they can't."""
        found: list[Strategy] = []
        for name in self.names():
            with suppress(SetupError, StorageError):  # one broken file is no reason to begin no run at all
                found.append(self.load(name))
        return found


def parse(name: str, text: str, *, own: bool = False) -> Strategy:
    """Read a strategy's file: a title, a line that says when it fits, ``## How to work``, ``## Skeleton``.

    Raises:
        SetupError: It says nothing, or too much.
    """
    if not text.strip() or len(text) > _MAX_CHARS:
        raise SetupError(
            f"the strategy '{name}' has {len(text.strip())} characters",
            hint=f"give it at least a line, and at most {_MAX_CHARS:,} characters",
            code="strategy",
        )
    head, *rest = _PARTS.split(text)
    parts = {title.casefold(): body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    lines = [line.strip() for line in head.splitlines() if line.strip() and not line.startswith("#")]
    skeleton = parts.pop("skeleton", "")
    prompt = parts.get("how to work") or "\n\n".join(parts.values()) or "\n".join(lines[1:])
    return Strategy(name=name, summary=lines[0] if lines else name, prompt=prompt, skeleton=skeleton, own=own)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the strategy '{path}' can't be read", hint="it has to be a text in UTF-8") from error
