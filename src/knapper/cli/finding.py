"""Hold what a check found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from knapper.config import Settings

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Say how one thing stands, and what to do about it."""

    name: str
    state: State
    text: str
    hint: str = ""
    """The next step; empty where nothing is to be done."""


Check = Callable[[Settings], Finding]
