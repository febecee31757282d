"""The first calls of a server, which load what models need, come all at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.index import worlds
from tests.server import apps, servers

PATHS = ("/sessions", "/runs", "/runs/options", "/ask/defaults", "/proposals", "/presets")


@pytest.mark.timeout(60)
def test_first_calls_that_come_at_once_are_all_answered(tmp_path: Path, own_home: Path) -> None:
    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    with (
        servers.serving(vault, home=own_home) as server,
        server.client(timeout_s=50) as client,
        ThreadPoolExecutor(len(PATHS)) as pool,
    ):

        def status(path: str) -> int:
            return client.get(path).status_code

        found = dict(zip(PATHS, pool.map(status, PATHS), strict=True))
        server.stop()

    assert found == dict.fromkeys(PATHS, 200)
    assert not [line for line in server.printed if "ERROR" in line]
