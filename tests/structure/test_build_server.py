"""`.ci/run` shares its steps between two lanes: each is done once, by whichever is free, and none is lost."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash")

pytestmark = pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="it is a script of bash")


def run(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Run some lines after the functions of `.ci/run`, before anything of its own is done."""
    functions, found, _ = (ROOT / ".ci" / "run").read_text(encoding="utf-8").partition("\n# These mostly wait")
    assert found
    (folder / ".ci").mkdir()
    script = folder / ".ci" / "run"
    script.write_text("\n".join([functions, *lines]), encoding="utf-8")
    return subprocess.run(
        [str(BASH), str(script)], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )


def test_each_step_is_done_once_and_the_free_lane_takes_the_next(tmp_path: Path) -> None:
    steps = ("one", "two", "three", "four")
    long = "one() { echo one >>done; while ! [ -f last ]; do sleep 0.02; done; }"
    short = [f"{name}() {{ echo {name} >>done; }}" for name in steps[1:-1]]

    done = run(tmp_path, long, *short, "four() { echo four >>done; touch last; }", f"both {' '.join(steps)}")

    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "done").read_text("utf-8").split()) == sorted(steps)
    assert done.stdout.count(": begun, in lane ") == len(steps)


def test_a_step_that_fails_ends_it_after_the_other_lane_is_done(tmp_path: Path) -> None:
    bad, good = (
        "bad() { echo cause; while ! [ -f begun ]; do sleep 0.02; done; false; }",
        "good() { touch begun; sleep 0.2; touch end; }",
    )

    done = run(tmp_path, bad, good, "both bad good", "touch after")

    assert done.returncode != 0
    assert "== bad: FAILED with 1" in done.stderr
    assert "== good: passed" in done.stdout
    assert done.stdout.splitlines()[-3:] == ["== bad: FAILED; the last lines of it:", "== bad", "cause"]
    assert (tmp_path / "end").exists()
    assert not (tmp_path / "after").exists()


FAKE_TEST = """#!/usr/bin/env bash
echo "$*" >>asked
if [ $# = 0 ]; then first; else again; fi
"""


def run_tests(folder: Path, *, first: str, again: str = "true") -> subprocess.CompletedProcess[str]:
    """Run the step of the tests with a `scripts/test` that does *first*, and *again* when it is asked for a part."""
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "test"
    script.write_text(FAKE_TEST.replace("first;", f"{first};").replace("again;", f"{again};"), encoding="utf-8")
    script.chmod(0o755)
    return run(folder, "step test tests", 'echo "retried: $retried"')


def test_few_tests_that_fail_are_tried_again_and_named(tmp_path: Path) -> None:
    done = run_tests(tmp_path, first="echo 'FAILED tests/a.py::b - late'; echo '1 failed, 9 passed'; exit 1")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "retried: FAILED tests/a.py::b - late"
    assert (tmp_path / "asked").read_text("utf-8").splitlines() == ["", "--last-failed --last-failed-no-failures none"]


@pytest.mark.parametrize(
    ("first", "again", "calls"),
    [
        ("echo 'FAILED tests/a.py::b'; exit 1", "exit 1", 2),
        ("printf 'FAILED tests/a.py::%s\\n' a b c d; exit 1", "true", 1),
        ("echo 'FAILED tests/a.py::b'; echo 'FAIL Required test coverage of 90% not reached.'; exit 1", "true", 1),
        ("echo 'no test was found'; exit 5", "true", 1),
        ("exit 1", "true", 1),
    ],
)
def test_tests_that_fail_twice_or_that_are_many_end_it(tmp_path: Path, first: str, again: str, calls: int) -> None:
    done = run_tests(tmp_path, first=first, again=again)

    assert done.returncode != 0
    assert "retried" not in done.stdout
    assert len((tmp_path / "asked").read_text("utf-8").splitlines()) == calls


def test_tests_that_pass_are_run_once(tmp_path: Path) -> None:
    done = run_tests(tmp_path, first="echo '9 passed'")

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "retried: ")
    assert (tmp_path / "asked").read_text("utf-8") == "\n"
