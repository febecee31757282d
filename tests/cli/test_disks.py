"""A disk that is full, read-only or gone is told, and reading goes on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from knapper import config
from knapper.app.hub import Hub
from knapper.cli import main
from knapper.cli.commands import doctor
from knapper.errors import StorageError
from knapper.index import refresh
from knapper.tools.search import freshness_fields
from tests.cli import terminals
from tests.cli.terminals import Line
from tests.index import worlds

resource = pytest.importorskip("resource")
NOTES = 12
NOTHING_CAN_BE_WRITTEN = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
    " from knapper.cli import main; sys.exit(main.run(sys.argv[1:]))"
)
"""Every write to a file fails, as on a full disk."""


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = worlds.fill(tmp_path / "vault", {f"n{number}.md": f"alpha word{number}\n" for number in range(NOTES)})
    assert main.run(["-v", str(root), "rm", "n0.md", "--quiet"]) == 0
    assert main.run(["-v", str(root), "index", "--no-embed", "--quiet"]) == 0
    return root


def folder_of(root: Path) -> Path:
    return config.state_folder(config.load({"default_vault": str(root)}))


def run_on_full_disk(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", NOTHING_CAN_BE_WRITTEN, "-v", root, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow  # starts a process for each command
def test_reading_goes_on_where_the_disk_is_full(vault: Path) -> None:
    assert not list((folder_of(vault) / "index").glob("*.db-*"))
    worlds.fill(vault, {"new.md": "novel\n"})
    commands = {
        "search alpha --mode keyword": "n1.md",
        "read n1.md": "alpha word1",
        "find": "n2.md",
        "status": "complete",
        "tags list": "",
        "log": "n0.md",
        "edits list": "nothing waits",
    }

    for command, wanted in commands.items():
        done = run_on_full_disk(vault, *command.split())
        assert (done.returncode, wanted in done.stdout + done.stderr) == (0, True), (command, done.stdout, done.stderr)
    stale = run_on_full_disk(vault, "search", "novel", "--mode", "keyword")

    assert "1 changed file isn't in the index yet" in stale.stderr


def test_a_write_on_a_full_disk_fails_and_changes_nothing(vault: Path) -> None:
    done = run_on_full_disk(vault, "rm", "n1.md")

    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert (vault / "n1.md").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_reading_goes_on_where_the_state_is_read_only(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [path for path in (folder_of(vault), *folder_of(vault).rglob("*")) if path.is_dir()]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert main.run(["-v", str(vault), "search", "alpha", "--mode", "keyword"]) == 0
        assert main.run(["-v", str(vault), "log"]) == 0
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert "n1.md" in capsys.readouterr().out


def test_without_a_state_that_can_be_made_reading_uses_a_temporary_index(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "elsewhere"
    state.mkdir()
    monkeypatch.setenv("KNAP_STATE_DIR", str(state))
    make, may = Path.mkdir, os.access

    def may_outside(path: Path, mode: int) -> bool:
        return not Path(path).is_relative_to(state) and may(path, mode)

    def refuse(self: Path, mode: int = 0o777, **options: bool) -> None:
        if self.is_relative_to(state):
            raise PermissionError(30, "Read-only file system", str(self))
        make(self, mode, **options)

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(os, "access", may_outside)
    capsys.readouterr()
    code = main.run(["-v", str(vault), "search", "alpha", "--mode", "keyword"])
    shown = capsys.readouterr()

    assert (code, "n1.md" in shown.out) == (0, True)
    assert "the state can't be written (Read-only file system)" in shown.err
    assert list(state.iterdir()) == []


def test_doctor_tells_a_vault_that_can_not_be_written(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.load({"default_vault": str(vault)})
    before = doctor.check_disk(settings)
    may = os.access

    def may_elsewhere(path: Path, mode: int) -> bool:
        return Path(path) != vault and may(path, mode)

    monkeypatch.setattr(os, "access", may_elsewhere)
    result = doctor.check_disk(settings)

    assert before.state == "ok"
    assert (result.state, result.text) == ("warn", f"the vault {vault} can't be written")


def test_doctor_tells_a_vault_whose_disk_is_full(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(vault)

    def measure(path: Path) -> object:
        return usage._replace(free=1_000) if path == vault else usage._replace(free=10**12)

    monkeypatch.setattr(shutil, "disk_usage", measure)
    result = doctor.check_disk(config.load({"default_vault": str(vault)}))

    assert (result.state, "free for the vault" in result.text) == ("warn", True)


def unmount(root: Path) -> Path:
    """Leave an empty folder in the vault's place, as an unmounted disk does."""
    mounted = root.with_name("mounted")
    root.rename(mounted)
    root.mkdir()
    return mounted


def test_an_empty_folder_does_not_empty_the_index(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mounted = unmount(vault)
    capsys.readouterr()

    code = main.run(["-v", str(vault), "index", "--no-embed"])
    told = capsys.readouterr().err
    main.run(["-v", str(vault), "search", "alpha", "--mode", "keyword", "--json"])
    searched = json.loads(capsys.readouterr().out)
    with Hub(config.load({"default_vault": str(vault)})) as hub:
        engine = hub.open().engine
        with pytest.raises(StorageError, match="is empty"):
            engine.refresh_paths([vault / f"n{number}.md" for number in range(NOTES)])
        kept = len(engine.store.file_states())
    vault.rmdir()
    mounted.rename(vault)
    again = main.run(["-v", str(vault), "index", "--no-embed"])

    assert code != 0
    assert f"the vault's folder is empty, but {NOTES - 1} of its files are in the index" in told
    assert "mount its disk" in told
    assert searched["index_stale"]
    assert kept == NOTES - 1
    assert again == 0
    assert f"unchanged {NOTES - 1}" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "left"), [(True, 0), (False, NOTES - 1)])
def test_a_person_is_asked_before_an_empty_folder_empties_the_index(
    vault: Path, monkeypatch: pytest.MonkeyPatch, *, answer: bool, left: int
) -> None:
    unmount(vault)
    questions: list[str] = []

    def confirm(question: str) -> bool:
        questions.append(question)
        return answer

    monkeypatch.setattr("knapper.cli.output.can_ask", lambda: True)
    monkeypatch.setattr("knapper.cli.output.confirm", confirm)
    main.run(["-v", str(vault), "index", "--no-embed"])
    with Hub(config.load({"default_vault": str(vault)})) as hub:
        files = len(hub.open().engine.store.file_states())

    assert [question.endswith("Remove all of them from the index?") for question in questions] == [True]
    assert files == left


def test_a_disk_that_is_not_mounted_is_told_by_searches_status_and_doctor(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unmount(vault)
    told: dict[str, str] = {}
    for command in (["search", "note"], ["find"], ["status"], ["doctor"]):
        main.run(["-v", str(vault), *command])
        captured = capsys.readouterr()
        told[command[0]] = captured.out + captured.err

    question = "the vault's folder is empty, so answers are of what was indexed last: is its disk mounted?"
    assert [question in told[name] for name in ("search", "find", "status")] == [True] * 3
    assert "but the vault's folder is empty" in told["doctor"]
    assert "mount its disk; if you deleted the notes, `knap index --full` empties the index too" in told["doctor"]
    assert not any("changed file" in text for text in told.values())


def test_an_index_of_an_empty_folder_is_emptied_where_that_is_asked_for(vault: Path) -> None:
    unmount(vault)

    assert main.run(["-v", str(vault), "index", "--full", "--no-embed"]) == 0
    with Hub(config.load({"default_vault": str(vault)})) as hub:
        assert hub.open().engine.store.file_states() == {}


def test_a_save_with_the_same_size_and_time_is_found(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    for note in ("a.md", "b.md"):
        os.utime(root / note, (1_700_000_000, 1_700_000_000))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        before = engine.refresh()
        (root / "a.md").write_text("gamma\n", encoding="utf-8")
        (root / "new").write_text("dawn\n", encoding="utf-8")
        (root / "new").replace(root / "b.md")
        for note in ("a.md", "b.md"):
            os.utime(root / note, (1_700_000_000, 1_700_000_000))
        engine.freshen()
        texts = engine.store.database.reader().execute("SELECT text FROM chunks ORDER BY text").fetchall()
        after = engine.refresh()

    assert (before.indexed, before.unchanged) == (0, 2)
    assert texts == [("dawn",), ("gamma",)]
    assert (after.indexed, after.unchanged) == (0, 2)


def _change_nothing_but_the_mode(root: Path) -> None:
    for file in root.iterdir():
        file.chmod(0o640)


@pytest.fixture
def settled(tmp_path: Path) -> Path:
    """Make more files than a search indexes itself, saved long ago."""
    root = worlds.fill(tmp_path / "v", {f"{number}.md": "alpha\n" for number in range(210)} | {"a.png": "x"})
    for file in root.iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return root


def test_many_files_that_only_their_hash_can_tell_are_compared_by_a_search(
    settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.index.engine._SCAN_BUDGET_S", 60)
    with worlds.engine(settled, tmp_path / "s") as engine:
        engine.refresh()
        _change_nothing_but_the_mode(settled)
        (settled / "7.md").write_text("omega\n", encoding="utf-8")
        os.utime(settled / "7.md", (1_700_000_000, 1_700_000_000))
        freshness = engine.freshen()
        after = engine.refresh()

    assert freshness.is_current
    assert (after.indexed, after.unchanged) == (0, 211)
    with worlds.engine(settled, tmp_path / "s") as engine:
        plan = refresh.compare_files(engine.store.file_states(), engine.view.list_files())
    assert not plan.is_due


def test_files_that_could_not_be_compared_in_time_are_told(
    settled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worlds.engine(settled, tmp_path / "s") as engine:
        engine.refresh()
        _change_nothing_but_the_mode(settled)
        monkeypatch.setattr("knapper.index.engine._SCAN_BUDGET_S", -1)
        late = engine.freshen()
        monkeypatch.setattr("knapper.index.engine._SCAN_BUDGET_S", 60)
        in_time = engine.freshen()

    assert (late.unchecked, in_time.is_current) == (True, True)
    (note,) = freshness_fields(late).get("notes", [])
    assert "not every file could be checked" in note
    assert "`knap index`" in note


@pytest.mark.slow  # starts a process
def test_the_question_about_an_empty_folder_shows_what_can_be_answered(vault: Path) -> None:
    unmount(vault)
    ended = terminals.run(["-v", str(vault), "index"], [Line(after="from the index?", text="n\n")])

    assert "from the index? [y/N]: n" in ended.printed
    assert ended.code == 6
