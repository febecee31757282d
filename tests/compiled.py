"""The sandbox's machine code, compiled once for all tests: that takes ten seconds of a processor each time."""

import os
import shutil
from pathlib import Path

import pytest

from knapper.codemode.sandbox import machine_code
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.system import private


def provide(cache: pytest.Cache, here: Path) -> Path:
    """Return a folder with machine code that later runs and other workers find again.

    Args:
        cache: Where it is kept.
        here: An empty folder on the disk of the tests' folders, to which it is copied where that is another disk: what
            `put` makes of it are hard links.
    """
    kept = MachineCode(folder=cache.mkdir("machine-code") / "private")
    machine_code.make_private_folder(kept.folder)
    _ = kept.ensure_compiled()
    if here.stat().st_dev == kept.folder.stat().st_dev:
        return kept.folder
    copied = MachineCode(folder=here / "private")
    machine_code.make_private_folder(copied.folder)
    _ = shutil.copy2(kept.file, copied.file)  # with its permissions
    return copied.folder


def put(code_folder: Path, state: Path) -> None:
    """Give the state folder of a test the machine code, so that its first script needn't compile any.

    Args:
        code_folder: What `provide` returned.
        state: The folder, of the user alone; made where it isn't there.
    """
    folder = state / private.SANDBOX_NAME
    machine_code.make_private_folder(folder)
    file, target = MachineCode(folder=code_folder).file, MachineCode(folder=folder).file
    if folder.stat().st_dev == file.stat().st_dev:
        os.link(file, target)
    else:  # of a test whose files lie on a disk while others' lie in memory
        _ = shutil.copy2(file, target)
