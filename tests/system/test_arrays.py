"""Numpy is imported by one module, late and without threads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from knapper.system import arrays


def told_after_import(**environment: str) -> tuple[str, str]:
    """Import numpy in a process of its own; gives its threads, and what is left in the environment."""
    program = (
        "import os, threading\nfrom pathlib import Path\nfrom knapper.system.arrays import np\n"
        "rows = np.ones((512, 512), np.float32)\nrows @ rows\n"
        "print(len(os.listdir('/proc/self/task')), os.environ.get('OPENBLAS_NUM_THREADS', 'nothing'))\n"
    )
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}  # noqa: TID251
    done = subprocess.run(
        [sys.executable, "-c", program], env={**own, **environment}, capture_output=True, text=True, check=True
    )
    threads, left = done.stdout.split()
    return threads, left


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists a process's threads as files")
def test_numpy_starts_no_threads_and_nothing_of_that_is_left_in_the_environment() -> None:
    assert told_after_import() == ("1", "nothing")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists a process's threads as files")
def test_as_many_threads_are_started_as_somebody_asks_for() -> None:
    assert told_after_import(OPENBLAS_NUM_THREADS="2")[1] == "2"


def test_threads_that_need_it_at_once_all_get_the_whole_of_it() -> None:
    program = (
        "import threading\nfrom importlib import import_module\nfrom knapper.system.arrays import np\nwrong = []\n"
        "def load(how):\n    try:\n        how()\n    except Exception as error:\n        wrong.append(repr(error))\n"
        "ways = [lambda: np.linalg.norm(np.ones(3)), lambda: import_module('knapper.index.models.static')] * 3\n"
        "threads = [threading.Thread(target=load, args=(way,)) for way in ways]\n"
        "for each in threads:\n    each.start()\nfor each in threads:\n    each.join()\nprint(wrong)"
    )
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


def test_only_this_module_imports_numpy() -> None:
    # Not even for types: who imports a part of it while another thread imports the whole may see half of it.
    sources = Path(arrays.__file__).parents[1]
    importing = {
        file.relative_to(sources).as_posix()
        for file in sources.rglob("*.py")
        if re.search(
            r"^(import numpy|from numpy)|^ +(import numpy|from numpy(?!\.typing))",
            file.read_text("utf-8"),
            re.MULTILINE,
        )
    }

    assert importing == {"system/arrays.py"}


def test_scored_ids_are_a_mapping_best_first() -> None:
    given = {7: 0.5, 3: 0.25}
    scored = arrays.ScoredIds.of(given)

    assert scored == given
    assert list(scored.items()) == [(7, 0.5), (3, 0.25)]
    assert (list(scored), len(scored), scored[3], 9 in scored) == ([7, 3], 2, 0.25, False)
    assert arrays.ScoredIds.of(scored) is scored
    assert len(arrays.ScoredIds.of({})) == 0
