"""Open an empty vault, what is written to it, and what waits for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knapper.changes.disk.transaction import State
from knapper.changes.proposals import store as proposals_store
from knapper.changes.proposals.store import Proposals
from tests.changes.disks import opened
from tests.changes.waiting import Clock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "vault"


@pytest.fixture
def state(root: Path) -> Iterator[State]:
    own = opened(root)
    yield own
    own.journal.shut()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(state: State, clock: Clock) -> Iterator[Proposals]:
    own = proposals_store.open_proposals(state.folder, clock=clock)
    yield own
    own.shut()
