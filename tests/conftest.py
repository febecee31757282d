"""Keep every test away from the person's own settings and state."""

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("knapper", deadline=None, print_blob=True)
hypothesis.settings.load_profile("knapper")

SLOW_TIMEOUT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty home, outside its tmp_path, and none of the caller's settings."""
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "VAULT_PATH", "KNAP_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KNAP_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("KNAP_CONFIG", str(home / "config.toml"))
    return home
