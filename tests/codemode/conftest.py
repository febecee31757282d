"""Share machine code between runs, and sandboxes between tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knapper.codemode.sandbox import machine_code
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.codemode.sandbox.pool import Sandbox
from knapper.tools.sandboxes import Limits


@pytest.fixture(scope="session")
def code_folder(request: pytest.FixtureRequest) -> Path:
    """Give a folder with machine code that later runs find again."""
    kept = request.config.cache
    assert kept is not None
    folder = kept.mkdir("machine-code") / "private"
    machine_code.make_private(folder)
    _ = MachineCode(folder=folder).provide()
    return folder


@pytest.fixture(scope="session")
def sandbox(code_folder: Path) -> Iterator[Sandbox]:
    with Sandbox(code_folder, Limits(timeout_s=20), workers=4) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "code_folder" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(120))  # whoever comes first may have to compile
