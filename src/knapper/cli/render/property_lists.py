"""Show properties."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

import click

from knapper.cli.output import plain


def text(found: Sequence[Mapping[str, object]]) -> str:
    """Give each a line; where there are several notes, below the note's path.

    Args:
        found: Answers with ``path`` and ``properties``.
    """
    if len(found) == 1:
        return "\n".join(_rows(found[0])) or "no properties"
    parts = [
        "\n".join([click.style(plain(str(one["path"])), fg="green"), *(f"  {row}" for row in _rows(one))])
        for one in found
    ]
    return "\n".join(parts)


def _rows(one: Mapping[str, object]) -> list[str]:
    values = cast("Mapping[str, object]", one["properties"])
    return [f"{click.style(plain(name), bold=True)}: {plain(_shown(value))}" for name, value in values.items()]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
