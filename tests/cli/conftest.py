"""Hold the state of every command against others."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests import states


@pytest.fixture(autouse=True)
def state_is_private(own_home: Path) -> Generator[None]:
    """Walk the state after each test: whatever its commands did, others can't read what they made."""
    yield
    assert states.open_to_others(own_home / "state") == []
