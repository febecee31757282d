"""`knap doctor` checks every database of the state, and `--repair` mends them."""

import json
import os
import shutil
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
from knapper.changes.disk import repair, storage
from knapper.changes.disk.journal import open_journal
from knapper.changes.writer import SubmitOptions
from knapper.cli import main
from knapper.cli.commands import doctor as cli_doctor
from knapper.cli.output import format_size
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
    assert repair.back_up_daily(folder_of(vault), max_bytes=10_000_000) == []
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
        assert repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day)) == []
    backups = storage.list_backups(folder / "journal.db")
    size = sum(backup.stat().st_size for backup in folder.rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert [backup.suffix for backup in backups] == [".2026-03-07", ".2026-03-06", ".2026-03-05"]
    assert all(backup.stat().st_mode & 0o077 == 0 for backup in backups)
    with closing(sqlite3.connect(backups[0])) as copy:
        assert copy.execute("SELECT count(*) FROM changes").fetchone() == (CHANGES,)

    repair.back_up_daily(folder, max_bytes=size // 3, today=date(2026, 3, 8))
    total = sum(backup.stat().st_size for backup in folder.rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert 0 < total <= size // 3
    assert repair.back_up_daily(folder, max_bytes=10, today=date(2026, 3, 9))


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
        assert repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day)) == []

    counts = {name: len(storage.list_backups(folder / name)) for name in ("work.db", "usage.db", "checkpoints.db")}
    assert counts == {"work.db": 3, "usage.db": 3, "checkpoints.db": 0}
    for backup in storage.list_backups(folder / "work.db"):
        with closing(sqlite3.connect(backup)) as copy:
            assert copy.execute("SELECT (SELECT count(*) FROM runs), count(*) FROM paused").fetchone() == (1, 0)


def test_backups_of_a_database_that_is_gone_go_after_as_many_days(vault: Path) -> None:
    folder = folder_of(vault)
    for day in range(1, 4):
        _ = repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day))
    (folder / "proposals.db").unlink()
    counts: list[int] = []
    for day in range(4, 8):
        _ = repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, day))
        counts.append(len([one for one in storage.list_backups(folder / "proposals.db") if one.suffix < ".2026-04"]))

    assert counts == [2, 1, 0, 0]


def test_a_large_database_of_runs_takes_no_room_from_the_journals_backup(vault: Path) -> None:
    folder = folder_of(vault)
    forget_backups(vault)
    make_others(folder, runs_bytes=2_000_000)
    settle(folder / "journal.db")
    room = 2_000_000 + (folder / "journal.db").stat().st_size

    problems = [repair.back_up_daily(folder, max_bytes=room, today=date(2026, 3, day)) for day in (1, 2)]

    assert [[problem.partition(":")[0] for problem in one] for one in problems] == [["work.db"], ["work.db"]]
    assert storage.list_backups(folder / "journal.db")[0].suffix == ".2026-03-02"


def make_large(folder: Path, *, turn: int, node: int, cache: int) -> Path:
    """Store turns, steps of a run and a cache, so many rows of each with 800 bytes."""
    work = open_work(folder)
    with work.database.writing() as database:
        for number in range(turn):
            session = (f"s{number}", "", "own", "", "", "", "", "", "", "", "", 0, 0)
            database.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(session))})", session)
            database.execute("INSERT INTO turns VALUES (?, 1, '', '', 'why', ?, '{}')", (f"s{number}", "m" * 800))
        database.execute("INSERT INTO runs VALUES ('r1', 'complete', '', '', 0, '{}')")
        for number in range(node):
            database.execute("INSERT INTO nodes VALUES ('r1', ?, ?, 'done', ?)", (f"n{number}", number, "n" * 800))
        for number in range(cache):
            database.execute("INSERT INTO cache (key, sources, data) VALUES (?, '', ?)", (f"k{number}", "c" * 800))
        database.execute("INSERT INTO paused VALUES ('p1', 'http', '2026-03-01', '{}', '{}', '{}')")
    work.shut()
    return folder / "work.db"


def count_rows(path: Path, *tables: str) -> list[int]:
    with closing(sqlite3.connect(path)) as database:
        return [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


@pytest.mark.parametrize(
    ("room_kb", "kept"),
    [(5_000, [200, 1, 300, 400]), (700, [200, 1, 300, 0]), (400, [200, 1, 0, 0]), (100, None)],
    ids=["whole", "without the cache", "without steps", "not at all"],
)
def test_a_large_file_of_conversations_is_backed_up_as_far_as_it_fits(
    tmp_path: Path, room_kb: int, kept: list[int] | None
) -> None:
    path = make_large(tmp_path, turn=200, node=300, cache=400)

    problems = repair.back_up_daily(tmp_path, max_bytes=room_kb * 1_000, today=date(2026, 3, 1))

    backups = storage.list_backups(path)
    assert [problem.partition(":")[0] for problem in problems] == ([] if kept else ["work.db"])
    assert [count_rows(backup, "turns", "runs", "nodes", "cache") for backup in backups] == ([kept] if kept else [])
    for backup in backups:
        assert backup.stat().st_size <= room_kb * 1_000
        assert count_rows(backup, "paused") == [0]
        assert not storage.find_damage(backup)
    assert not list(tmp_path.rglob("*.part"))


def test_what_does_not_fit_is_not_tried_again_that_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_large(tmp_path, turn=200, node=1, cache=1)
    problems = repair.back_up_daily(tmp_path, max_bytes=100_000, today=date(2026, 3, 1))

    with monkeypatch.context() as patched:
        patched.setattr(storage, "connect_to_read", None)
        again = repair.back_up_daily(tmp_path, max_bytes=100_000, today=date(2026, 3, 1))
    raised = repair.back_up_daily(tmp_path, max_bytes=5_000_000, today=date(2026, 3, 1))

    assert problems
    assert again == problems
    assert raised == []
    assert len(storage.list_backups(path)) == 1
    assert repair.find_backup_gaps(tmp_path, 5_000_000) == []


def test_a_log_that_would_not_fit_is_counted(tmp_path: Path) -> None:
    path = make_large(tmp_path, turn=200, node=1, cache=1)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM turns").fetchone()  # keeps the log
        _ = make_large_log(tmp_path)

        assert repair.back_up_daily(tmp_path, max_bytes=path.stat().st_size * 2, today=date(2026, 3, 1)) == []

    [backup] = storage.list_backups(path)
    assert count_rows(backup, "turns", "cache") == [200, 0]


def make_large_log(folder: Path) -> None:
    work = open_work(folder)
    with work.database.writing() as database:
        for number in range(2_000):
            database.execute("INSERT INTO cache (key, sources, data) VALUES (?, '', ?)", (f"l{number}", "c" * 800))
    work.shut()


def test_doctor_names_what_is_not_backed_up_and_what_to_do(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of(vault)
    size = make_large(folder, turn=3_000, node=1, cache=1).stat().st_size
    assert main.run(["-v", str(vault), "config", "set", "journal.backup_mb", "2"]) == 0
    _, untried = doctor(capsys, vault)
    _ = repair.back_up_daily(folder, max_bytes=2_000_000)
    code, checks = doctor(capsys, vault)
    wanted = checks["data"]["hint"].split("`")[1].removeprefix("knap ").split()
    assert main.run(["-v", str(vault), *wanted]) == 0
    _ = repair.back_up_daily(folder, max_bytes=int(wanted[-1]) * 1_000_000)
    _, mended = doctor(capsys, vault)

    assert code == 0
    for one in (untried, checks):
        assert one["data"]["state"] == "warn"
        assert f"work.db isn't backed up: its {format_size(size)} don't fit" in one["data"]["text"]
        assert "2.0 MB (journal.backup_mb)" in one["data"]["text"]
        assert "it has no backup" in one["data"]["text"]
    assert mended["data"]["state"] == "ok"


def test_runs_that_come_back_from_a_backup_without_steps_are_listed_and_told(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(vault)
    path = make_large(folder, turn=20, node=3_000, cache=1)
    forget_backups(vault)
    assert main.run(["-v", str(vault), "config", "set", "journal.backup_mb", "1"]) == 0
    _ = repair.back_up_daily(folder, max_bytes=1_000_000)
    _, before = doctor(capsys, vault)
    overwrite(path)

    _, repaired = doctor(capsys, vault, "--repair")

    assert "work.db is backed up without the steps of runs: its" in before["data"]["text"]
    assert before["data"]["state"] == "warn"
    assert "which has no steps of runs" in repaired["repair"]["text"]
    assert count_rows(path, "turns", "runs", "nodes") == [20, 1, 0]
    work = open_work(folder)
    work.shut()
    assert work.failures == {}


def test_a_journal_that_does_not_fit_is_told_although_it_has_an_older_backup(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(vault)
    _ = repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, 1))
    with app.open_vault(config.load({"default_vault": str(vault)})) as context:
        files.create_file(context, "Large.md", os.urandom(1_000_000).hex())
    settle(folder / "journal.db")
    assert main.run(["-v", str(vault), "config", "set", "journal.backup_mb", "1"]) == 0
    for backup in storage.list_backups(folder / "journal.db"):
        if backup.suffix != ".2026-03-01":
            backup.unlink()
    _ = repair.back_up_daily(folder, max_bytes=1_000_000)

    _, checks = doctor(capsys, vault)

    assert checks["data"]["state"] == "warn"
    assert "journal.db isn't backed up" in checks["data"]["text"]
    assert "its last backup is of 2026-03-01" in checks["data"]["text"]


def test_runs_that_are_wholly_unreadable_come_back_from_their_backup(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder_of(vault) / "work.db"
    make_others(path.parent)
    repair.back_up_daily(path.parent, max_bytes=10_000_000, today=date(2026, 3, 1))
    overwrite(path)

    _, checks = doctor(capsys, vault, "--repair")

    assert "the rest is from work.db.2026-03-01" in checks["repair"]["text"]
    assert not storage.find_damage(path)


def test_a_damaged_database_does_not_replace_its_sound_backup(vault: Path) -> None:
    folder = folder_of(vault)
    path = folder / "journal.db"
    before = storage.list_backups(path)
    damage_pages(path, "steps")

    problems = repair.back_up_daily(folder, max_bytes=10_000_000, today=date(2026, 3, 9))

    assert any(problem.startswith("journal.db") for problem in problems)
    assert storage.list_backups(path) == before
    assert not list(folder.rglob("*.part"))


def test_the_first_write_of_a_day_makes_a_backup(vault: Path) -> None:
    names = sorted(backup.name.rpartition(".")[0] for backup in folder_of(vault).rglob(f"{storage.BACKUP_FOLDER}/*"))

    assert names == ["journal.db", "proposals.db"]


def test_conversations_are_backed_up_when_they_are_opened(vault: Path) -> None:
    with Hub(config.load({"default_vault": str(vault)})) as hub, clients.open_work(hub):
        pass

    assert len(storage.list_backups(folder_of(vault) / "work.db")) == 1


@pytest.mark.parametrize("has_header", [False, True])
def test_an_emptied_journal_without_a_backup_is_told_and_kept(
    vault: Path, capsys: pytest.CaptureFixture[str], *, has_header: bool
) -> None:
    path = folder_of(vault) / "journal.db"
    settle(path)
    shutil.rmtree(path.parent / storage.BACKUP_FOLDER)
    path.unlink()
    private.create_file(path)
    if has_header:
        with closing(sqlite3.connect(path)) as database:
            database.executescript("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;")
        assert path.stat().st_size > 0
    emptied = path.read_bytes()
    main.run(["-v", str(vault), "status"])
    status = capsys.readouterr().out
    main.run(["-v", str(vault), "new", "Other.md"])
    write = capsys.readouterr().err
    code, checks = doctor(capsys, vault)
    kept = path.read_bytes()
    _, repaired = doctor(capsys, vault, "--repair")
    (aside,) = (path.parent / private.ASIDE_NAME).rglob("journal.db")
    set_aside = aside.read_bytes()
    main.run(["-v", str(vault), "new", "Other.md"])

    lost = "is empty, although it was in use: what it held is lost"
    assert lost in status
    assert "`knap doctor --repair` begins a new one" in status
    assert lost in write
    assert (code, checks["data"]["state"], lost in checks["data"]["text"]) == (1, "fail", True)
    assert (kept, set_aside) == (emptied, emptied)
    assert "it starts over" in repaired["repair"]["text"]
    assert (vault / "Other.md").is_file()


def test_a_journal_that_was_deleted_or_never_used_is_new(vault: Path, tmp_path: Path) -> None:
    path = folder_of(vault) / "journal.db"
    settle(path)
    shutil.rmtree(path.parent / storage.BACKUP_FOLDER)
    path.unlink()
    open_journal(path.parent).shut()
    settle(path)
    path.write_bytes(b"")
    open_journal(path.parent).shut()
    (tmp_path / "unused").mkdir()
    (tmp_path / "unused" / "journal.db").touch()
    open_journal(tmp_path / "unused").shut()

    assert not storage.has_trace(path)
