"""Let how long a server waits for what ends decide no test, on a machine that may be busy."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests import states


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for what is cancelled."""
    for name in ("_CANCEL_S", "_END_S"):
        monkeypatch.setattr(f"knapper.server.http.background.{name}", 30.0)


@pytest.fixture(autouse=True)
def state_is_private(own_home: Path, tmp_path: Path) -> Generator[None]:
    """Walk the state after each test: whatever was asked of a server, others can't read what it made."""
    yield
    for state in (own_home / "state", tmp_path / "state"):
        assert states.open_to_others(state) == []
