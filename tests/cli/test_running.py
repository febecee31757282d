"""Run `knap` as a process of its own: streams, signals, terminals."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests import compiled

KNAP = [sys.executable, "-m", "knapper.cli"]
NOTES = 4_000
"""So many that an index of them can be interrupted."""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with one note."""
    (tmp_path / "Garden.md").write_text("# Garden\n\nWater the \x1b[31mtomatoes.\n", encoding="utf-8")
    return tmp_path


def knap(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **more}  # noqa: TID251  # a process of its own gets this one's environment
    return subprocess.run([*KNAP, *args], capture_output=True, text=True, encoding="utf-8", env=env, check=False)


def on_terminal(*args: str, **more: str) -> str:
    """Run a command whose streams are a terminal; gives what it printed."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm-256color", **os.environ, **more}  # noqa: TID251  # as above
    process = subprocess.Popen([*KNAP, *args], stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65_536):
            printed += piece
    except OSError:  # Linux ends a terminal so
        pass
    finally:
        os.close(ours)
        process.wait()
    return printed.decode()


def test_output_to_a_pipe_has_no_colours_and_nothing_that_a_terminal_would_obey(vault: Path) -> None:
    ended = knap("-v", str(vault), "search", "tomatoes")

    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout
    assert "Water the \ufffd[31mtomatoes." in ended.stdout


def test_a_terminal_gets_the_words_marked_unless_colours_are_off(vault: Path) -> None:
    marked = on_terminal("-v", str(vault), "search", "water")
    plain = on_terminal("-v", str(vault), "search", "water", NO_COLOR="1")
    also_plain = on_terminal("-v", str(vault), "--no-color", "search", "water")

    assert "\x1b[33m\x1b[1mWater\x1b[0m" in marked
    assert "\x1b" not in plain
    assert "\x1b" not in also_plain


def test_a_terminal_gets_a_bar_and_a_pipe_none(vault: Path, own_home: Path, code_folder: Path) -> None:
    compiled.put(code_folder, own_home / "state")  # else the first index at a terminal has it compiled beside
    bar = on_terminal("-v", str(vault), "index", "--full")
    ended = knap("-v", str(vault), "index", "--full")
    quiet = knap("-q", "-v", str(vault), "index", "--full")

    assert "embedded" in bar.partition("1 note,")[0]
    assert ended.stdout.startswith("1 note, 1 chunk in ")
    assert "\u2501" not in ended.stderr  # lines are told where it takes long
    assert quiet.stderr == ""


@pytest.mark.parametrize(("how", "stream"), [("--json", "stdout"), ("--quiet", "stderr")])
def test_an_error_that_nobody_reads_is_told_by_the_exit_code_alone(vault: Path, how: str, stream: str) -> None:
    gone, nobody = os.pipe()
    os.close(gone)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: nobody}
    command = [*KNAP, how, "-v", str(vault), "read", "none.md"]
    ended = subprocess.run(command, check=False, stdout=streams["stdout"], stderr=streams["stderr"])
    os.close(nobody)

    assert ended.returncode == 2
    assert not (ended.stdout)
    assert not (ended.stderr)


def test_who_stops_reading_ends_the_command_in_silence(vault: Path) -> None:
    with subprocess.Popen(
        [*KNAP, "-v", str(vault), "config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        complaint = process.stderr.read()

    assert process.returncode == 0
    assert complaint == ""


@pytest.mark.parametrize("how", ["--quiet", "--json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_under_the_output_is_told(vault: Path, how: str) -> None:
    command = [*KNAP, how, "-v", str(vault), "config"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert ended.returncode == 6
    assert ended.stderr.startswith(b"error: No space left on device")


@pytest.mark.parametrize("how", ["--quiet", "--json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_full_disk_under_both_streams_leaves_the_exit_code(vault: Path, how: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        command = [*KNAP, how, "-v", str(vault), "read", "none.md"]
        ended = subprocess.run(command, stdout=full, stderr=full, check=False)

    assert ended.returncode == 2


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use stays there")
def test_a_current_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; from knapper.cli import main; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    ended = subprocess.run(
        [sys.executable, "-c", f"{code}; print(main.run(['status']))"], capture_output=True, text=True, check=True
    )

    assert ended.stdout == "3\n"
    assert ended.stderr.startswith("error: the current folder isn't there any more")


def test_a_name_that_is_no_text_can_be_printed(vault: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("file names are text there")
    name = os.fsdecode(b"caf\xe9")
    (vault / name).mkdir()

    ended = knap("-v", str(vault / name), "status")

    assert ended.returncode == 0
    assert "caf\\udce9" in ended.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_watch_tells_what_it_took_in_and_ends_with_an_interrupt(vault: Path) -> None:
    with subprocess.Popen(
        [*KNAP, "-v", str(vault), "watch", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout
        assert process.stderr
        first = json.loads(process.stdout.readline())
        (vault / "New.md").write_text("A new note.\n", encoding="utf-8")
        second = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        complaint = process.stderr.read()

    assert (first["indexed"], second["indexed"]) == (1, 1)
    assert process.returncode == 0
    assert complaint == ""


def _read_so_far(state: Path) -> int:
    """Look into the index itself: a command that tells it takes as long as the rest of the indexing may."""
    for file in state.glob("vaults/*/index/index.db"):
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database, suppress(sqlite3.Error):
            return int(database.execute("SELECT COUNT(*) FROM files").fetchone()[0])
    return 0


def _interrupted_index(vault: Path, state: Path) -> tuple[subprocess.Popen[str], str, str]:
    """Interrupt an index in its midst; from the start again where all was read before that was seen."""
    for _ in range(5):
        process = subprocess.Popen(
            [*KNAP, "-v", str(vault), "index"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        while not _read_so_far(state) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        out, complaint = process.communicate()
        if _read_so_far(state) < NOTES:
            return process, out, complaint
        shutil.rmtree(state)
    pytest.fail("it was always done before it could be interrupted")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_an_interrupted_index_says_so_in_one_line_and_goes_on_later(tmp_path: Path, own_home: Path) -> None:
    for number in range(NOTES):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nText of {number}.\n", encoding="utf-8")
    process, out, complaint = _interrupted_index(tmp_path, own_home / "state")
    again = json.loads(knap("-v", str(tmp_path), "index", "--json").stdout)

    assert process.returncode in {130, -signal.SIGINT}  # Python itself says the latter if it was just running exec()
    assert out == ""
    assert complaint.strip() == "interrupted; nothing is damaged, and running the same command again continues the work"
    assert again["notes"] == NOTES
    assert 0 < again["indexed"] < NOTES


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are text there")
@pytest.mark.parametrize("option", ["--folder", "--tag", "--property"])
def test_an_argument_that_is_no_text_is_refused(option: str, vault: Path) -> None:
    ended = knap("-v", str(vault), "--json", "search", "tomatoes", option, os.fsdecode(b"\xff"))

    assert (ended.returncode, json.loads(ended.stdout)["code"]) == (2, "usage")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no shell that closes streams")
def test_closed_streams_are_no_error(vault: Path) -> None:
    command = ["sh", "-c", '"$0" -m knapper.cli -v "$1" search tomatoes >&- 2>&-', sys.executable, str(vault)]

    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no name holds a line's end there")
def test_a_name_that_holds_a_lines_end_stays_on_its_line(vault: Path) -> None:
    (vault / "two\nlines.md").write_text("carrots\n", encoding="utf-8")

    ended = knap("-v", str(vault), "search", "carrots", "--mode", "keyword")

    assert ended.stdout.splitlines()[0] == "two\ufffdlines.md:1"
