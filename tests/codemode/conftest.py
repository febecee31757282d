"""Share sandboxes between tests, and open the vault that a test's module describes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from knapper.codemode.sandbox.pool import WorkerPool
from knapper.tools.context import Context, ScriptLimits
from tests.tools import opened
from tests.tools.opened import Opener


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
