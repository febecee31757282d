"""`knap doctor` checks every database of the state, and `--repair` mends them."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from knapper import app, config
from knapper.agents.work_store import open_work
from knapper.app import clients
from knapper.app.hub import Hub
from knapper.changes.disk import storage
from knapper.changes.disk.journal import open_journal
from knapper.changes.writer import SubmitOptions
from knapper.cli import main
from knapper.cli.commands import doctor as cli_doctor
from knapper.errors import StorageError
from knapper.system import private
from knapper.tools import files
from tests import states
from tests.agents import earlier_files
from tests.index import worlds

CHANGES = 60


@pytest.fixture(autouse=True)
def few_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the checks that take time and look at no database."""
    monkeypatch.setattr(cli_doctor, "CHECKS", (cli_doctor.check_vault, cli_doctor.check_state))


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with a journal of many changes and some proposals."""
    root = tmp_path / "vault"
    root.mkdir()
    (root / "A.md").write_text("alpha\n", encoding="utf-8")
    with app.open_vault(config.load({"default_vault": str(root)})) as context:
        for number in range(CHANGES):
            files.create_file(context, f"n{number}.md", f"text {number} {os.urandom(400).hex()}\n")
        proposing = replace(context, submit_options=SubmitOptions(propose=True))
        files.create_file(proposing, "P.md", "proposed\n")
    assert main.run(["-v", str(root), "index", "--no-embed", "--quiet"]) == 0
    return root


def folder_of(root: Path) -> Path:
    return config.state_folder(config.load({"default_vault": str(root)}))


def doctor(capsys: pytest.CaptureFixture[str], root: Path, *args: str) -> tuple[int, dict[str, dict[str, str]]]:
    capsys.readouterr()
    code = main.run(["-v", str(root), "doctor", "--json", *args])
    return code, {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


def settle(path: Path) -> None:
    """Take the log into the file, as closing the last connection does."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def damage_pages(path: Path, table: str, count: int = 1) -> None:
    """Overwrite pages of one table."""
    settle(path)
    with closing(sqlite3.connect(path)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        pages = [
            page
            for (page,) in database.execute(
                "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
            )
        ]
    raw = bytearray(path.read_bytes())
    middle = len(pages) // 2
    for page in pages[middle : middle + count]:
        raw[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(raw)


def forget_backups(root: Path) -> None:
    for backup in folder_of(root).rglob(f"{storage.BACKUP_FOLDER}/*"):
        backup.unlink()


def damage_blob(path: Path) -> None:
    settle(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE blobs SET content = zeroblob(20) WHERE hash = (SELECT min(hash) FROM blobs)")
        database.commit()


def damage_steps(path: Path) -> None:
    damage_pages(path, "steps")


def damage_contents(path: Path) -> None:
    damage_pages(path, "blobs")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"no database" * 500)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("journal.db", damage_steps),
        ("journal.db", damage_contents),
        ("journal.db", damage_blob),
        ("journal.db", worlds.damage),
        ("journal.db", empty),
        ("proposals.db", worlds.damage),
        ("proposals.db", overwrite),
    ],
)
def test_a_damaged_database_of_the_state_fails_and_is_repaired(
    vault: Path, capsys: pytest.CaptureFixture[str], name: str, damage: Callable[[Path], None]
) -> None:
    path = folder_of(vault) / name
    settle(path)
    damage(path)
    damaged = path.read_bytes()

    code, checks = doctor(capsys, vault)
    assert code == 1
    assert (checks["data"]["state"], name in checks["data"]["text"]) == ("fail", True)
    assert "--repair" in checks["data"]["hint"]

    code, checks = doctor(capsys, vault, "--repair")
    assert (code, checks["data"]["state"]) == (0, "ok")
    assert name in checks["repair"]["text"]
    assert [file.read_bytes() for file in folder_of(vault).rglob(f"{private.ASIDE_NAME}/*/{name}")] == [damaged]
    assert main.run(["-v", str(vault), "log"]) == 0
    assert main.run(["-v", str(vault), "rm", "A.md"]) == 0
    assert main.run(["-v", str(vault), "undo"]) == 0
    assert (vault / "A.md").exists()


def test_what_a_damaged_page_leaves_is_saved_without_a_backup_and_no_change_is_kept_by_half(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_backups(vault)
    path = folder_of(vault) / "journal.db"
    damage_pages(path, "steps")

    _, checks = doctor(capsys, vault, "--repair")
    journal = open_journal(folder_of(vault))
    changes = journal.select("1")
    pruned = journal.pruned("1")
    journal.shut()

    assert 0 < len(changes) < CHANGES
    assert len(changes) + len(pruned) == CHANGES
    assert all(change.steps for change in changes)
    assert "some of it is lost" in checks["repair"]["text"]


def test_a_backup_fills_up_what_a_damaged_page_held(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forget_backups(vault)
    assert storage.back_up_daily(folder_of(vault), max_bytes=10_000_000) == []
    damage_pages(folder_of(vault) / "journal.db", "steps", count=2)

    _, checks = doctor(capsys, vault, "--repair")
    journal = open_journal(folder_of(vault))
    changes, pruned = journal.select("1"), journal.pruned("1")
    journal.shut()

    assert (len(changes), pruned) == (CHANGES, [])
    assert all(change.steps for change in changes)
    assert "the rest is from journal.db." in checks["repair"]["text"]


def test_of_changes_that_are_lost_no_step_is_kept(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forget_backups(vault)
    path = folder_of(vault) / "journal.db"
    damage_pages(path, "changes")

    code, _ = doctor(capsys, vault, "--repair")
    with closing(sqlite3.connect(path)) as database:
        kept, total = (
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("changes", "steps")
        )
        orphans = database.execute("PRAGMA foreign_key_check").fetchall()

    assert code == 0
    assert kept < CHANGES
    assert (total > 0) is (kept > 0)
    assert orphans == []
    assert main.run(["-v", str(vault), "log"]) == 0


def test_a_damaged_journal_is_not_blamed_on_the_disk(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settle(folder_of(vault) / "journal.db")
    worlds.damage(folder_of(vault) / "journal.db")
    capsys.readouterr()

    code = main.run(["-v", str(vault), "undo"])
    told = capsys.readouterr().err

    assert code != 0
    assert "damaged" in told
    assert "doctor --repair" in told
    assert "free space" not in told


@pytest.mark.parametrize("name", ["journal.db", "proposals.db"])
def test_what_is_damaged_comes_with_the_way_to_its_repair(
    vault: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = folder_of(vault) / name
    settle(path)
    overwrite(path)

    _, checks = doctor(capsys, vault)
    hint = checks["data"]["hint"]

    assert [check for check in checks.values() if "`knap doctor`" in check["hint"]] == []
    assert "stop servers and watchers, then run `knap doctor --repair`" in hint
    assert storage.list_backups(path)[0].name in hint
    assert str(path.parent / private.ASIDE_NAME) in hint
    assert checks["changes"]["hint"].startswith("stop servers and watchers, then run `knap doctor --repair`")


def test_an_empty_journal_is_not_taken_for_a_new_one(vault: Path) -> None:
    path = folder_of(vault) / "journal.db"
    settle(path)
    path.write_bytes(b"")

    with pytest.raises(StorageError, match="is empty, although it was in use"):
        open_journal(folder_of(vault))
    assert path.read_bytes() == b""


def test_a_journal_that_is_just_being_made_is_no_emptied_one(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def list_while_another_makes_it(path: Path) -> list[Path]:
        found = list_backups(path)
        path.write_bytes(content)
        return found

    path = folder_of(vault) / "journal.db"
    settle(path)
    list_backups, content = storage.list_backups, path.read_bytes()
    path.write_bytes(b"")
    monkeypatch.setattr(storage, "list_backups", list_while_another_makes_it)

    storage.check_emptied(path)
    assert path.read_bytes() == content


def test_a_file_of_an_earlier_version_that_cannot_be_migrated_is_told(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder_of(vault) / "sessions.db"
    rows = {"sessions": [earlier_files.session("s1")]}
    earlier_files.write(path, rows)
    assert doctor(capsys, vault)[1]["data"]["state"] == "ok"
    earlier_files.write(path, rows)
    path.chmod(0o600)
    code, checks = doctor(capsys, vault)

    assert (code, checks["data"]["state"]) == (1, "fail")
    assert checks["data"]["text"].endswith("has entries that are in 'work.db' already")
    path.unlink()
    assert doctor(capsys, vault)[1]["data"]["state"] == "ok"


def test_a_damaged_index_is_built_anew_by_a_repair(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(folder_of(vault) / "index" / "index.db")) as index:
        index.execute("UPDATE chunks SET text = 'other' WHERE id = (SELECT min(id) FROM chunks)")
        index.commit()

    _, checks = doctor(capsys, vault, "--repair")

    assert "the index was rebuilt" in checks["repair"]["text"]
    assert checks["index"]["state"] != "fail"


@pytest.mark.skipif(os.name != "posix", reason="elsewhere access lists decide, not modes")
def test_the_state_is_closed_to_others_after_a_repair_too(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = config.load({"default_vault": str(vault)}).state_dir
    settle(state / "taint.db")
    worlds.damage(state / "taint.db")
    doctor(capsys, vault, "--repair")
    assert states.open_to_others(state) == []
    for path in (state, *state.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

    assert main.run(["-v", str(vault), "search", "text"]) == 0
    assert (state / private.ASIDE_NAME).is_dir()
    assert states.open_to_others(state) == []


def test_nothing_is_repaired_while_a_server_runs(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worlds.damage(folder_of(vault) / "proposals.db")
    private.touch(folder_of(vault) / "index" / "watch.beat")

    code, checks = doctor(capsys, vault, "--repair")

    assert code == 1
    assert "is running" in checks["repair"]["text"]
    assert not list(folder_of(vault).rglob(private.ASIDE_NAME))


def test_backups_are_daily_whole_private_and_bounded(vault: Path) -> None:
    folder = folder_of(vault)
    forget_backups(vault)
    for day in range(1, 8):
        assert storage.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day)) == []
    backups = storage.list_backups(folder / "journal.db")
    size = sum(backup.stat().st_size for backup in folder.rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert [backup.suffix for backup in backups] == [".2026-03-07", ".2026-03-06", ".2026-03-05"]
    assert all(backup.stat().st_mode & 0o077 == 0 for backup in backups)
    with closing(sqlite3.connect(backups[0])) as copy:
        assert copy.execute("SELECT count(*) FROM changes").fetchone() == (CHANGES,)

    storage.back_up_daily(folder, max_bytes=size // 3, today=date(2026, 3, 8))
    total = sum(backup.stat().st_size for backup in folder.rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert 0 < total <= size // 3
    assert storage.back_up_daily(folder, max_bytes=10, today=date(2026, 3, 9))


def make_others(folder: Path, *, runs_bytes: int = 1) -> None:
    for name in ("usage.db", "checkpoints.db"):
        with closing(private.connect(folder / name, timeout_s=1)) as database:
            database.execute("CREATE TABLE rows (content BLOB)")
            database.execute("INSERT INTO rows VALUES (zeroblob(1))")
    work = open_work(folder)
    with work.database.writing() as database:
        database.execute("INSERT INTO runs VALUES ('r1', 'complete', '', '', 0, zeroblob(?))", (runs_bytes,))
        database.execute("INSERT INTO paused VALUES ('p1', 'http', '2026-03-01', '{}', '{}', '{}')")
    work.shut()


def test_runs_and_usage_are_backed_up_and_questions_are_not(vault: Path) -> None:
    folder = folder_of(vault)
    make_others(folder)
    for day in range(1, 8):
        assert storage.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day)) == []

    counts = {name: len(storage.list_backups(folder / name)) for name in ("work.db", "usage.db", "checkpoints.db")}
    assert counts == {"work.db": 3, "usage.db": 3, "checkpoints.db": 0}
    for backup in storage.list_backups(folder / "work.db"):
        with closing(sqlite3.connect(backup)) as copy:
            assert copy.execute("SELECT (SELECT count(*) FROM runs), count(*) FROM paused").fetchone() == (1, 0)


def test_backups_of_a_database_that_is_gone_go_after_as_many_days(vault: Path) -> None:
    folder = folder_of(vault)
    for day in range(1, 4):
        _ = storage.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day))
    (folder / "proposals.db").unlink()
    counts: list[int] = []
    for day in range(4, 8):
        _ = storage.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day))
        counts.append(len([one for one in storage.list_backups(folder / "proposals.db") if one.suffix < ".2026-04"]))

    assert counts == [2, 1, 0, 0]


def test_a_large_database_of_runs_takes_no_room_from_the_journals_backup(vault: Path) -> None:
    folder = folder_of(vault)
    forget_backups(vault)
    make_others(folder, runs_bytes=2_000_000)
    settle(folder / "journal.db")
    room = 2_000_000 + (folder / "journal.db").stat().st_size

    problems = [storage.back_up_daily(folder, max_bytes=room, today=date(2026, 3, day)) for day in (1, 2)]

    assert [[problem.partition(":")[0] for problem in one] for one in problems] == [["work.db"], ["work.db"]]
    assert storage.list_backups(folder / "journal.db")[0].suffix == ".2026-03-02"


def test_runs_that_are_wholly_unreadable_come_back_from_their_backup(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder_of(vault) / "work.db"
    make_others(path.parent)
    storage.back_up_daily(path.parent, max_bytes=10_000_000, today=date(2026, 3, 1))
    overwrite(path)

    _, checks = doctor(capsys, vault, "--repair")

    assert "the rest is from work.db.2026-03-01" in checks["repair"]["text"]
    assert not storage.find_damage(path)


def test_a_damaged_database_does_not_replace_its_sound_backup(vault: Path) -> None:
    folder = folder_of(vault)
    path = folder / "journal.db"
    before = storage.list_backups(path)
    damage_pages(path, "steps")

    problems = storage.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, 9))

    assert any(problem.startswith("journal.db") for problem in problems)
    assert storage.list_backups(path) == before
    assert not list(folder.rglob("*.part"))


def test_the_first_write_of_a_day_makes_a_backup(vault: Path) -> None:
    names = sorted(backup.name.rpartition(".")[0] for backup in folder_of(vault).rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert names == ["journal.db", "proposals.db"]


def test_conversations_are_backed_up_when_they_are_opened(vault: Path) -> None:
    with Hub(config.load({"default_vault": str(vault)})) as hub:
        clients.open_work(hub).shut()

    assert len(storage.list_backups(folder_of(vault) / "work.db")) == 1
