"""Count what models cost, and hold that to the owner's limits: for a turn, for a run, for a day."""

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.usage import RunUsage, UsageLimits

from knapper.agents import events
from knapper.changes.disk.ledger import Ledger, open_ledger
from knapper.codemode.asking import Spent
from knapper.errors import RefusedError

FILE: Final = "usage.db"
VERSION: Final = 1
MAX_REQUESTS: Final = 100
"""Replies of a model in one turn, uncounted tools or not."""
_SCHEMA: Final = """
CREATE TABLE spent (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    day TEXT NOT NULL,
    run TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd TEXT
);
CREATE INDEX spent_day ON spent (day);
CREATE INDEX spent_run ON spent (run);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Say how much may be used; 0 is no limit."""

    turn_tokens: int = 0
    run_tokens: int = 0
    day_tokens: int = 0
    day_cents: int = 0
    """Of a US dollar; what a model costs is known for some models only."""


@dataclass(repr=False, kw_only=True)
class Allowance(UsageLimits):
    """Hold a turn to what was left when it began, and before each request to what others have left of the day since.

    Servers that don't tell what was used, and models without a known price, can't be held to it; that is no warning on
    the person's screen.
    """

    meter: "Meter | None" = None
    run: str = ""

    def check_before_request(self, usage: RunUsage) -> None:
        """Raise an error of pydantic-ai's where the next request would be one too many."""
        super().check_before_request(usage)
        if self.meter:
            self.meter.check_day(self.run, usage)

    def check_tokens(self, usage: RunUsage) -> None:
        """Raise one where too many tokens are used."""
        super().check_tokens(replace(usage, unmeasured_requests=0))

    def check_cost(self, usage: RunUsage, *, warn_if_cost_unavailable: bool = True) -> None:
        """Raise one where that cost too much."""
        del warn_if_cost_unavailable
        super().check_cost(usage, warn_if_cost_unavailable=False)


def of(usage: RunUsage) -> Spent:
    """Read what a run of pydantic-ai used."""
    return Spent(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost,
    )


def left(limits: UsageLimits, spent: Spent) -> UsageLimits:
    """Tell what limits leave to the rest of a turn, of which a part is done.

    Raises:
        RefusedError: Nothing (code ``budget_spent``).
    """
    requests, tokens, cost = limits.request_limit, limits.total_tokens_limit, limits.cost_limit
    rest = (
        None if requests is None else requests - spent.requests,
        None if tokens is None else tokens - spent.tokens,
        None if cost is None else cost - (spent.cost_usd or 0),
    )
    if any(one is not None and one <= 0 for one in rest):
        hint = "raise model.turn_tokens or the other limits in the configuration"
        raise RefusedError("the turn used as much as is allowed", code="budget_spent", hint=hint)
    return replace(limits, request_limit=rest[0], total_tokens_limit=rest[1], cost_limit=rest[2])


def event(spent: Spent) -> events.Usage:
    """Give the event that tells what was used."""
    return events.Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        requests=spent.requests,
        cost_usd=None if spent.cost_usd is None else float(spent.cost_usd),
    )


class Meter:
    """Keep the account of one vault's state folder; threads and processes may share it."""

    def __init__(self, own: Ledger, limits: Limits, now: Callable[[], datetime]) -> None:
        """Wrap an open file; `open_meter` makes one."""
        self._ledger = own
        self._now = now
        self._lock = threading.Lock()
        self._going: list[tuple[str, weakref.ref[RunUsage]]] = []
        """What turns of this process have used that go on; what isn't written down yet."""
        self.limits = limits

    def record(self, run: str, model: str, spent: Spent) -> None:
        """Write down what a turn used; a turn without a request isn't."""
        try:
            if spent.requests or spent.tokens:
                self._write(run, model, spent)
        finally:
            with self._lock:
                self._going = [one for one in self._going if one[0] != run]

    def _write(self, run: str, model: str, spent: Spent) -> None:
        now = self._now()
        values = {
            "at": now.isoformat(timespec="seconds"),
            "day": now.date().isoformat(),
            "run": run,
            "model": model,
            "requests": spent.requests,
            "input": spent.input_tokens,
            "output": spent.output_tokens,
            "cost": None if spent.cost_usd is None else str(spent.cost_usd),
        }
        with self._ledger.writing() as database:
            database.execute(
                "INSERT INTO spent (at, day, run, model, requests, input_tokens, output_tokens, cost_usd)"
                " VALUES (:at, :day, :run, :model, :requests, :input, :output, :cost)",
                values,
            )

    def today(self) -> Spent:
        """Add up what was used today, by the clock of this place."""
        return self._sum("day = ?", self._now().date().isoformat())

    def of_run(self, run: str) -> Spent:
        """Add up what a run used."""
        return self._sum("run = ?", run)

    def allow(self, run: str) -> UsageLimits:
        """Tell how much a turn of a run may use.

        Raises:
            RefusedError: A limit is reached already (code ``budget_spent``).
        """
        left = [self.limits.turn_tokens] if self.limits.turn_tokens else []
        today = self.today() + self._on_the_way()
        if self.limits.run_tokens:
            left.append(_left("model.run_tokens", self.limits.run_tokens, self.of_run(run).tokens))
        if self.limits.day_tokens:
            left.append(_left("model.day_tokens", self.limits.day_tokens, today.tokens))
        cost = None
        if self.limits.day_cents:
            spent = today.cost_usd or Decimal()
            cost = Decimal(self.limits.day_cents) / 100 - spent
            _ = _left("model.day_cents", self.limits.day_cents, int(spent * 100))
        return Allowance(
            request_limit=MAX_REQUESTS,
            total_tokens_limit=min(left) if left else None,
            cost_limit=cost,
            meter=self if self.limits.day_tokens or self.limits.day_cents else None,
            run=run,
        )

    def check_day(self, run: str, usage: RunUsage) -> None:
        """See that the day's limits leave something for a turn's next request, with all that go on at once.

        Args:
            run: The turn's run.
            usage: What the turn counts in; it is looked at until the turn is recorded.

        Raises:
            UsageLimitExceeded: They don't.
        """
        with self._lock:
            self._going = [one for one in self._going if one[1]() is not None]
            if all(one() is not usage for _, one in self._going):
                self._going.append((run, weakref.ref(usage)))
        spent = self.today() + self._on_the_way()
        if 0 < self.limits.day_tokens <= spent.tokens:
            raise UsageLimitExceeded(f"the day's {self.limits.day_tokens} tokens are used")
        if 0 < self.limits.day_cents <= (spent.cost_usd or 0) * 100:
            raise UsageLimitExceeded(f"the day's {self.limits.day_cents} cents are used")

    def shut(self) -> None:
        """Close the file."""
        self._ledger.shut()

    def _on_the_way(self) -> Spent:
        with self._lock:
            going = [usage for _, one in self._going if (usage := one()) is not None]
        return sum(map(of, going), Spent())

    def _sum(self, where: str, value: str) -> Spent:
        with self._ledger.reading() as database:
            rows = database.execute(
                f"SELECT requests, input_tokens, output_tokens, cost_usd FROM spent WHERE {where}",  # noqa: S608 - two constants
                (value,),
            ).fetchall()
        total = Spent()
        for requests, given, made, cost in rows:
            total += Spent(
                requests=requests,
                input_tokens=given,
                output_tokens=made,
                cost_usd=None if cost is None else Decimal(cost),
            )
        return total


def open_meter(folder: Path, limits: Limits, now: Callable[[], datetime]) -> Meter:
    """Open the account in a vault's state folder, which exists.

    Args:
        folder: The folder.
        limits: What the owner allows.
        now: The local time; a day begins at its midnight.

    Raises:
        StorageError: The file can't be used.
    """
    return Meter(open_ledger(folder / FILE, _SCHEMA, VERSION), limits, now)


def _left(setting: str, allowed: int, spent: int) -> int:
    if spent >= allowed:
        raise RefusedError(
            f"the limit {setting} of {allowed:,} is reached: {spent:,} are used",
            hint=f"raise {setting} in the configuration, or go on when it no longer counts",
            code="budget_spent",
        )
    return allowed - spent
