"""Calls that come side by side look at the vault once, and what is asked later is looked at anew."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

from knapper.index.engine import Engine
from knapper.index.refresh import Freshness
from knapper.tools import context, search
from knapper.tools.context import SharedRefresh
from knapper.vault.access import Policy
from tests.tools import opened

ME = Policy(client="agent")


class Counted:
    """Stands for an engine without a watcher, and counts its looks."""

    is_followed = False

    def __init__(self) -> None:
        self.looks = 0
        self.now = 0.0

    def freshen(self, *, meaning: bool = True, policy: Policy | None = None) -> Freshness:
        assert meaning
        assert policy is not None
        self.looks += 1
        return Freshness(stale=self.looks, pending=7)

    def share(self) -> SharedRefresh:
        return SharedRefresh(cast("Engine", self), lambda: self.now)


def test_calls_side_by_side_share_one_look() -> None:
    engine = Counted()
    look = engine.share()
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(look, ME, meaning=number % 2 == 0) for number in range(32)]
        found = {one.result().stale for one in asked}

    assert (engine.looks, found) == (1, {1})


def test_only_who_asks_for_vectors_hears_of_those_that_are_missing() -> None:
    look = Counted().share()

    assert [look(ME, meaning=meaning).pending for meaning in (True, False)] == [7, 0]


def test_a_look_is_good_for_a_short_while_and_for_one_policy() -> None:
    engine = Counted()
    look = engine.share()
    _ = look(ME, meaning=True)
    engine.now = context.REFRESH_VALID_S
    same = look(ME, meaning=True).stale
    engine.now += 0.1
    later = look(ME, meaning=True).stale
    other = look(Policy(client="other"), meaning=True).stale

    assert (same, later, other) == (1, 2, 3)


def test_a_context_shares_its_look_once_and_with_what_is_made_of_it(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"A.md": "first\n"})
    with vault.open() as context:
        together = replace(context, shared_refresh=SharedRefresh(context.index, lambda: 0.0))
        _ = search.search_vault(together, "first")
        (vault.root / "B.md").write_text("second\n", encoding="utf-8")
        kept = search.search_vault(together, "second", mode="keyword")
        fresh = search.search_vault(context, "second", mode="keyword")

        assert together.with_shared_refresh() is together
        assert (kept["results"], bool(fresh["results"])) == ([], True)
