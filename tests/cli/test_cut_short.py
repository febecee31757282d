"""A change that a kill cut short is finished or taken back by whoever opens the vault next, and that is said."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knapper import config
from knapper.app.hub import Hub
from knapper.changes.disk import files, storage
from knapper.cli import main
from knapper.system import private

NOTES = 60
KILL_AT = 40
"""The exchange of names before which the process is killed."""
DYING_WRITER = f"""
import os, signal, sys
from knapper.changes.disk import apply, files
from knapper.changes.disk.files import Files, hash_content
from knapper.changes.disk.plan import ChangeMeta, Write
from knapper.vault.paths import NotePath
from pathlib import Path

class Disk(Files):
    swaps = 0
    def swap(self, temp, target):
        Disk.swaps += 1
        if Disk.swaps == {KILL_AT}:
            os.kill(os.getpid(), signal.SIGKILL)
        super().swap(temp, target)

root, folder = Path(sys.argv[1]), Path(sys.argv[2])
state, _ = apply.open_state(root, folder, files=Disk())
base = hash_content(b"before word\\n")
effects = [Write(path=NotePath(f"n{{n}}.md"), base=base, content=b"after word\\n") for n in range({NOTES})]
apply.apply_effects(state, effects, ChangeMeta(client="test"))
"""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault of which a part was changed when the writer was killed."""
    root = tmp_path / "vault"
    root.mkdir()
    for number in range(NOTES):
        (root / f"n{number}.md").write_text("before word\n", encoding="utf-8")
    assert main.run(["-v", str(root), "index", "--no-embed", "--quiet"]) == 0
    dead = subprocess.run([sys.executable, "-c", DYING_WRITER, root, state_folder(root)], check=False)
    assert dead.returncode == -signal.SIGKILL
    assert len(changed(root)) == KILL_AT - 1
    return root


def state_folder(root: Path) -> Path:
    return config.state_folder(config.load({"default_vault": str(root)}))


def changed(root: Path) -> list[Path]:
    return [note for note in root.glob("n*.md") if note.read_text(encoding="utf-8") == "after word\n"]


def leftovers(root: Path) -> list[Path]:
    return list(root.glob(f"{files.TEMP_PREFIX}*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "word", "--mode", "keyword"],
        ["status"],
        ["index", "--no-embed"],
        ["find"],
        ["read", "n1.md"],
        ["log"],
        ["tags"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_reading_command_takes_back_what_was_cut_short_and_says_so(
    vault: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code = main.run(["-v", str(vault), *arguments])
    told = capsys.readouterr().err

    assert code == 0
    assert (changed(vault), leftovers(vault)) == ([], [])
    assert f"a change of {NOTES} files that was cut short was taken back" in told
    main.run(["-v", str(vault), *arguments])
    assert "cut short" not in capsys.readouterr().err
    assert not private.is_marked(state_folder(vault))


def test_a_program_is_told_in_the_answer(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main.run(["-v", str(vault), "search", "word", "--mode", "keyword", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert any("cut short was taken back" in note for note in answer["notes"])
    assert changed(vault) == []


def test_a_server_that_starts_takes_it_back_before_it_reads_the_vault(
    vault: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with Hub(config.load({"default_vault": str(vault)})) as hub:
        engine = hub.open().engine
        outcome = engine.refresh()

        assert (changed(vault), leftovers(vault)) == ([], [])
    assert outcome.indexed == 0
    assert "cut short was taken back" in caplog.text


def test_a_server_that_runs_takes_back_what_another_process_left(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    for number in range(NOTES):
        (root / f"n{number}.md").write_text("before word\n", encoding="utf-8")
    with Hub(config.load({"default_vault": str(root)})) as hub:
        with hub.context(client="cli") as context:
            assert context.freshen(meaning=False).notices == ()
            _ = context.writer
        subprocess.run([sys.executable, "-c", DYING_WRITER, root, state_folder(root)], check=False)
        assert changed(root)
        with hub.context(client="cli") as context:
            notices = context.freshen(meaning=False).notices
        with hub.context(client="cli") as context:
            later = context.freshen(meaning=False).notices

    assert changed(root) == []
    assert any("cut short was taken back" in notice for notice in notices)
    assert later == ()


def test_a_vault_that_can_not_be_written_is_told_to_stand_half_changed(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(files.Files, "swap", refuse)
        code = main.run(["-v", str(vault), "search", "word", "--mode", "keyword", "--quiet"])
        told = capsys.readouterr().err
        main.run(["-v", str(vault), "search", "word", "--mode", "keyword", "--json"])
        answer = json.loads(capsys.readouterr().out)
        still = len(changed(vault))
    main.run(["-v", str(vault), "status"])

    assert code == 0
    assert "the vault stands half changed" in told
    assert any("the vault stands half changed" in note for note in answer["notes"])
    assert still == KILL_AT - 1
    assert changed(vault) == []


def test_reading_beside_a_writer_that_is_at_work_changes_and_says_nothing(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    with storage.hold_write_lock(state_folder(vault), timeout_s=0):
        main.run(["-v", str(vault), "search", "word", "--mode", "keyword"])

    assert "cut short" not in capsys.readouterr().err
    assert len(changed(vault)) == KILL_AT - 1
    assert private.is_marked(state_folder(vault))


def test_reading_an_untouched_vault_imports_nothing_that_writes(vault: Path) -> None:
    main.run(["-v", str(vault), "status"])
    script = (
        "import sys; from knapper.cli import main; main.run(sys.argv[1:]);"
        " print([name for name in sys.modules if name in ('knapper.changes.disk.journal', 'filelock')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script, "-v", vault, "read", "n1.md"], capture_output=True, text=True, check=True
    )

    assert shown.stdout.splitlines()[-1] == "[]"


def test_a_marker_without_a_change_is_removed(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "status"])
    private.place_marker(state_folder(vault))
    capsys.readouterr()
    main.run(["-v", str(vault), "status"])

    assert "cut short" not in capsys.readouterr().err
    assert not private.is_marked(state_folder(vault))
