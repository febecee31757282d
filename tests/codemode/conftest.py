"""Share machine code between runs and sandboxes between tests, and open the vault that a test's module describes."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from knapper.codemode.sandbox import machine_code
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.tools.context import Context, ScriptLimits
from tests.tools import opened
from tests.tools.opened import Opener


@pytest.fixture(scope="session")
def code_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with machine code that later runs find again, on the disk of the tests' folders, for hard links."""
    kept = request.config.cache
    assert kept is not None
    compiled = MachineCode(folder=kept.mkdir("machine-code") / "private")
    machine_code.make_private_folder(compiled.folder)
    _ = compiled.ensure_compiled()
    top = tmp_path_factory.mktemp("machine-code")
    if top.stat().st_dev == compiled.folder.stat().st_dev:
        return compiled.folder
    here = MachineCode(folder=top / "private")
    machine_code.make_private_folder(here.folder)
    _ = shutil.copy2(compiled.file, here.file)  # with its permissions
    return here.folder


@pytest.fixture(scope="session")
def sandbox(code_folder: Path) -> Iterator[WorkerPool]:
    with WorkerPool(code_folder, ScriptLimits(timeout_s=20), workers=4) as made:
        yield made


@pytest.fixture
def vault(tmp_path: Path, request: pytest.FixtureRequest) -> Opener:
    """Open the vault of the module's ``NOTES``, of which one folder is hidden."""
    notes = cast("Mapping[str, str]", vars(request.module)["NOTES"])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - pytest doesn't tell
    return opened.vault(tmp_path, notes, hidden=("Secret/",))


@pytest.fixture
def context(vault: Opener, sandbox: WorkerPool) -> Iterator[Context]:
    """Give the vault as an agent sees it, indexed, with the sandbox."""
    with vault.open("agent") as made:
        _ = made.index.refresh()
        yield replace(made, open_sandbox=lambda: sandbox)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "code_folder" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(120))  # whoever comes first may have to compile
