"""Mistakes that sandboxes of other systems make; each test bears the name of one."""

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from knapper.codemode.sandbox.pool import WorkerPool
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptLimits
from tests.codemode.attacks import ATTACKS

ESCAPES = {
    "pathlib": ("pathlib_read", "pathlib_write", "pathlib_os"),
    "..": ("parent_folder", "list_outside", "write_outside"),
    "absolute paths": ("absolute_path",),
    "__globals__": ("builtins_through_globals", "true_import_through_globals", "eval_through_globals"),
}
"""How scripts got out elsewhere: names of the attacks that try it, each of which is judged by its effects."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_script_does_not_run_in_the_process_of_its_host(code_folder: Path) -> None:
    """Whoever kills what runs a script is still there."""
    with WorkerPool(code_folder, workers=1) as made:
        _ = made.warm()
        worker = made.idle[0].pid

        def kill(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
            os.kill(worker, signal.SIGKILL)
            return None

        outcome = made.run("obsidian.read_note('A')\nwhile True: pass", kill)

        assert worker != os.getpid()
        assert outcome.kind == "crash"
        assert made.run("__result__ = 1", kill).result == 1


@pytest.mark.parametrize("way", ESCAPES)
def test_the_ways_out_of_other_sandboxes_are_among_the_attacks(way: str) -> None:
    assert set(ESCAPES[way]) <= {one.name.partition("-")[2] for one in ATTACKS}


def test_a_script_that_ran_out_of_time_does_not_go_on(code_folder: Path) -> None:
    """One that swallows what would end it is ended all the same."""
    calls: list[float] = []

    def note(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        calls.append(time.monotonic())
        return None

    greedy = "while True:\n    try:\n        obsidian.read_note('A')\n    except BaseException:\n        pass\n"
    with WorkerPool(code_folder, ScriptLimits(timeout_s=2, calls=10**9), workers=1) as made:
        outcome = made.run(greedy, note)
        seen = len(calls)
        time.sleep(0.3)

        assert outcome.kind == "timeout"
        assert len(calls) == seen > 0


@pytest.mark.parametrize(
    "script",
    [
        "import json\n__result__ = json.loads('[1, 4]')",
        "import json as j\n\ndef load(text):\n    return j.loads(text)\n\n__result__ = load('[1, 4]')",
        "squares = [n * n for n in (1, 2)]\n__result__ = [one for one in squares]",
        "base = 1\n__result__ = [n * base for n in (1, 4)]",
        "step = 3\n\ndef after(n):\n    return n + step\n\n__result__ = [1, after(1)]",
        "def up(n):\n    return n if n > 3 else up(n + 1)\n\n__result__ = [1, up(1)]",
        "class Pair:\n    first = 1\n\n    def both(self):\n        return [self.first, self.first + 3]\n\n"
        "__result__ = Pair().both()",
    ],
    ids=["import", "import in a function", "comprehension", "its names", "a function's names", "recursion", "class"],
)
def test_imports_comprehensions_functions_and_classes_work_in_scripts(sandbox: WorkerPool, script: str) -> None:
    outcome = sandbox.run(script, lambda _method, _given: None)

    assert (outcome.error, outcome.result) == ("", [1, 4])
