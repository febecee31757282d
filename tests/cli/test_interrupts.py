"""Ctrl-C while modules are imported ends the program in a line, without a traceback."""

import subprocess
import sys
from pathlib import Path

import click
import pytest

from knapper.cli import main, start
from knapper.cli.output import ExitCode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C can't be sent to a process alone there")

INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Interrupting())
sys.argv = ["knap", *ARGS]
from knapper.cli.__main__ import main
main()
"""


def interrupted(module: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the program, and interrupt it when it imports a module."""
    code = INTERRUPTING.replace("MODULE", repr(module)).replace("ARGS", repr(args))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "module",
    ["click", "knapper.cli.options", "knapper.cli.commands.serve", "knapper.server.lifecycle", "starlette.routing"],
)
def test_an_interrupted_import_is_told_in_a_line(tmp_path: Path, own_home: Path, module: str) -> None:
    del own_home
    ended = interrupted(module, "--vault", str(tmp_path), "serve", "--port", "0")

    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "interrupted")


@pytest.mark.timeout(60)
def test_a_program_is_told_in_json(tmp_path: Path, own_home: Path) -> None:
    del own_home
    ended = interrupted("knapper.cli.options", "--vault", str(tmp_path), "status", "--json")

    assert (ended.returncode, ended.stderr) == (130, "")
    assert '"code": "interrupted"' in ended.stdout


def test_an_interrupt_that_comes_out_as_another_error_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrapped(*_: object) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(main, "_invoke", wrapped)
    code = main.run(["status"])

    assert code == ExitCode.INTERRUPTED == start.EXIT_CODE
    assert capsys.readouterr().err.strip().startswith("interrupted")


def test_any_other_error_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> int:
        raise RuntimeError("else")

    monkeypatch.setattr(main, "_invoke", failing)

    with pytest.raises(RuntimeError, match="else"):
        main.run(["status"])


def test_an_interrupt_after_a_change_says_that_it_was_made(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def changing(*_: object) -> int:
        interrupt = KeyboardInterrupt()
        interrupt.add_note("change 1m8 was made: `knap undo 1m8` takes it back")
        raise click.Abort from interrupt

    monkeypatch.setattr(main, "_invoke", changing)
    code = main.run(["edit"])

    assert code == ExitCode.INTERRUPTED
    complaint = capsys.readouterr().err.strip()
    assert complaint == "interrupted; nothing is damaged, and change 1m8 was made: `knap undo 1m8` takes it back"
