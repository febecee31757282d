"""Start every test with none of the caller's settings."""

from pathlib import Path

import pytest

from knapper.config.settings import SETTINGS


@pytest.fixture(autouse=True)
def no_variables(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del own_home
    for setting in SETTINGS:
        for name in setting.env:
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config_file(own_home: Path) -> Path:
    """Name the configuration file that is read when none is named; it isn't there yet."""
    return own_home / "config.toml"
