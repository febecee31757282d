"""Let how long a server waits for what ends decide no test, on a machine that may be busy."""

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for what is cancelled."""
    for name in ("_CANCEL_S", "_END_S"):
        monkeypatch.setattr(f"knapper.server.http.background.{name}", 30.0)
