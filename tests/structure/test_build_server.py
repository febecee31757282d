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
