"""The one file of sessions, turns and runs: what clients see of each other, and what earlier versions kept apart."""

import datetime as dt
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from knapper.agents import work_store
from knapper.agents.pipeline.store import AgentToggles, PausedRuns, Preset, Presets
from knapper.agents.runs.model import RunLimits, RunNode, RunOrder
from knapper.agents.runs.store import RunStore
from knapper.agents.sessions.store import Exchange, FileIdentity, HistorySummary, SessionStore
from knapper.agents.work_store import WORK_FILE, WorkStore, has_any, has_sessions, migrate, open_work
from knapper.changes.disk import repair, storage
from knapper.changes.disk.storage import open_shared_database
from knapper.errors import NotFound, StorageError
from tests.agents import earlier_files
from tests.agents.earlier_files import session, turn

NOW: Final = dt.datetime(2026, 3, 14, 9, 26, 53, tzinfo=dt.UTC)
CLIENTS: Final = ("http", "Odd / name")
ALL_FILES: Final = ("sessions.db", "task_runs.db", "paused.db", "presets.db")


def sessions_of(work: WorkStore, client: str = "") -> SessionStore:
    return SessionStore(work, lambda: NOW, client)


@contextmanager
def opened(folder: Path) -> Generator[WorkStore]:
    work = open_work(folder)
    try:
        yield work
    finally:
        work.shut()


def exchange(question: str = "What?") -> Exchange:
    return Exchange(number=0, at=NOW, question=question, file="", outcome={"answer": "That."}, messages="[]")


def write_earlier_files(folder: Path, *, turns: int = 3) -> None:
    """Write what an earlier version kept: the vault's own, and that of two clients."""
    names = ("", *CLIENTS)
    for owner in names:
        own = earlier_files.folder_of(folder, owner) if owner else folder
        rows = [session(f"{owner}-note", file="A.md", kind="file"), session(f"{owner}-none", kind="none")]
        rows += [session(f"{owner}-own", updated="2026-03-13T08:00:00+00:00")]
        said = [turn(f"{owner}-{kind}", number) for kind in ("note", "own") for number in range(1, turns + 1)]
        earlier_files.write(own / "sessions.db", {"sessions": rows, "turns": said})
        switches = [("scout", 1), ("web", 0), ("task", int(not owner))]
        presets = [] if owner else [("work", "Work", '{"name": "Work"}')]
        earlier_files.write(own / "presets.db", {"presets": presets, "switches": switches})
    asked = ("p1", "http", NOW.isoformat(), '{"question": "?"}', "{}", "{}")
    earlier_files.write(folder / "paused.db", {"paused": [asked]})
    runs = [
        ("r2", "complete", "2026-03-02", "2026-03-03", 0, "{}"),
        ("r1", "complete", "2026-03-01", "2026-03-04", 1, "{}"),
    ]
    nodes = [("r1", "1", 0, "complete", "{}"), ("r1", "1.1", 1, "complete", "{}")]
    cache = [(4, "k", "[]", "older"), (9, "k", "[]", "newer")]
    earlier_files.write(folder / "task_runs.db", {"runs": runs, "nodes": nodes, "cache": cache})


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    tables = ("sessions", "turns", "runs", "nodes", "paused", "presets", "switches")
    with closing(sqlite3.connect(path)) as database:
        found = {name: database.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3").fetchall() for name in tables}
        found["cache"] = database.execute("SELECT key, sources, data FROM cache ORDER BY number").fetchall()
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    """Return what is stored once everything is migrated."""
    folder = tmp_path_factory.mktemp("whole")
    write_earlier_files(folder)
    open_work(folder).shut()
    return rows_of(folder / WORK_FILE)


def earlier_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.db*")} - {WORK_FILE}


def test_what_earlier_versions_kept_is_migrated_as_it_was(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    with opened(tmp_path) as work:
        for owner in ("", *CLIENTS):
            kept = sessions_of(work, owner)
            assert [one.id for one in kept.list()[0]] == [f"{owner}-none", f"{owner}-note", f"{owner}-own"]
            assert kept.by_file(FileIdentity(path="A.md")).id == f"{owner}-note"
            assert kept.without_file().id == f"{owner}-none"
            assert kept.get(f"{owner}-own").created == dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)
            assert [one.question for one in kept.turns(f"{owner}-own")] == ["question 1", "question 2", "question 3"]
            assert Presets(work, owner).toggles(AgentToggles()) == AgentToggles(scout=True, task=not owner)
        assert [one.name for one in Presets(work).list()] == ["Work"]
        assert [(one.id, one.client, one.at) for one in PausedRuns(work, lambda: NOW).list()] == [("p1", "http", NOW)]
        assert RunStore(work).recall("k") == [("[]", "newer"), ("[]", "older")]
        assert RunStore(work).is_to_cancel("r1")
    stored = rows_of(tmp_path / WORK_FILE)

    assert [row[0] for row in stored["runs"]] == ["r1", "r2"]
    assert [row[:4] for row in stored["nodes"]] == [("r1", "1", 0, "complete"), ("r1", "1.1", 1, "complete")]
    assert earlier_in(tmp_path) == set()


@pytest.mark.parametrize("is_long", [True, False])
def test_migrating_is_logged_where_it_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_long: bool
) -> None:
    write_earlier_files(tmp_path)
    caplog.set_level("INFO", work_store.LOG.name)
    monkeypatch.setattr(work_store, "_LONG_S", 0.05 if is_long else 60)
    find_version = storage.schema_version

    def find_slowly(database: sqlite3.Connection) -> int:
        time.sleep(0.05)
        return find_version(database)

    monkeypatch.setattr(storage, "schema_version", find_slowly)
    with opened(tmp_path) as work:
        assert sessions_of(work).list()[1] == 3
    with opened(tmp_path):
        pass

    said = [record.getMessage() for record in caplog.records if record.name == work_store.LOG.name]
    assert len(said) == int(is_long)
    if is_long:
        assert f"MB that earlier versions stored in '{tmp_path}' to 'work.db'; this is done once" in said[0]


def test_what_else_is_in_a_clients_folder_stays(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    own = earlier_files.folder_of(tmp_path, "http")
    for name in ("chat_history", "sessions/x.lock", "backups/sessions.db.2026-03-01"):
        (own / name).parent.mkdir(exist_ok=True)
        (own / name).write_bytes(b"mine")
    open_work(tmp_path).shut()

    assert {str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()} == {
        str(Path(name)) for name in ("chat_history", "sessions/x.lock", "backups/sessions.db.2026-03-01")
    }


def test_without_earlier_files_nothing_is_made_but_the_file(tmp_path: Path) -> None:
    assert not has_any(tmp_path, "runs")
    open_work(tmp_path).shut()

    assert {path.name for path in tmp_path.glob("*.db*")} == {WORK_FILE}
    assert not has_any(tmp_path, "runs")
    assert not has_sessions(tmp_path, "http")


def test_what_is_stored_is_told_without_opening_it(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    before = has_any(tmp_path, "runs"), has_any(tmp_path, "paused"), has_sessions(tmp_path, "http")
    with opened(tmp_path) as work:
        _ = sessions_of(work, "mcp").begin()

        assert before == (True, True, True)
        assert has_any(tmp_path, "paused")
        assert (has_sessions(tmp_path, "mcp"), has_sessions(tmp_path, "nobody")) == (True, False)
        assert (work.has_sessions("mcp"), work.has_sessions("nobody")) == (True, False)


def test_an_empty_file_that_a_killed_opening_left_goes(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").touch()
    with opened(tmp_path) as work:
        assert sessions_of(work).list() == ([], 0)

    assert earlier_in(tmp_path) == set()


KILLED: Final = """
import os, sys
from pathlib import Path
from knapper.agents.work_store import open_work

calls_left = int(sys.argv[2])

def count(frame, event, argument):
    global calls_left
    calls_left -= event == "c_call"
    if not calls_left:
        os._exit(9)

sys.setprofile(count)
work = open_work(Path(sys.argv[1]))
sys.setprofile(None)
work.shut()
print(-calls_left)
"""


def killed_at(folder: Path, call: int) -> subprocess.CompletedProcess[str]:
    """Open the file in a process that ends at a call of the system or of SQLite, as kill -9 ends it."""
    command = [sys.executable, "-c", KILLED, str(folder), str(call)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_anywhere_nothing_is_lost_or_there_twice(
    tmp_path: Path, whole: dict[str, list[tuple[object, ...]]]
) -> None:
    write_earlier_files(tmp_path / "first")
    calls = int(killed_at(tmp_path / "first", -1).stdout)
    rng = random.Random(33)
    killed = 0
    for number in range(20):
        folder = tmp_path / str(number)
        write_earlier_files(folder)
        # The last calls remove the files: between the commit and the end of that.
        first = calls - rng.randrange(1, 40) if number % 2 else rng.randrange(1, calls)
        for call in (first, rng.randrange(1, calls // 4)):
            killed += killed_at(folder, call).returncode == 9
        open_work(folder).shut()

        assert rows_of(folder / WORK_FILE) == whole
        assert earlier_in(folder) == set()
    assert killed > 20, killed


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_processes_at_once_migrate_it_once(tmp_path: Path, whole: dict[str, list[tuple[object, ...]]]) -> None:
    write_earlier_files(tmp_path)
    command = [sys.executable, "-c", KILLED, str(tmp_path), "-1"]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    codes = [process.wait(60) for process in processes]

    assert codes == [0] * 4
    assert rows_of(tmp_path / WORK_FILE) == whole
    assert earlier_in(tmp_path) == set()


def refuse(path: Path, *, missing_ok: bool) -> None:
    del missing_ok
    raise PermissionError(str(path))


def test_a_deleted_session_stays_deleted_where_the_system_does_not_let_go_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_earlier_files(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with opened(tmp_path) as work:
            sessions_of(work, "http").delete("http-own")
    assert (tmp_path / "sessions.db").exists()
    with opened(tmp_path) as work:
        assert not sessions_of(work, "http").has("http-own")
        assert sessions_of(work, "http").list()[1] == 2

    assert earlier_in(tmp_path) == set()


def test_an_earlier_version_does_not_open_what_is_being_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_earlier_files(tmp_path)
    monkeypatch.setattr(Path, "unlink", refuse)
    open_work(tmp_path).shut()

    for name in ALL_FILES:
        with pytest.raises(StorageError, match="newer version"):
            _ = open_shared_database(tmp_path / name, "", 1)


@pytest.mark.parametrize("name", ALL_FILES)
def test_a_damaged_file_is_told_and_kept_and_the_rest_is_there(tmp_path: Path, name: str) -> None:
    uses: dict[str, Callable[[WorkStore], object]] = {
        "sessions.db": lambda work: sessions_of(work).get("-own"),
        "task_runs.db": lambda work: RunStore(work).is_to_cancel("r1"),
        "paused.db": lambda work: PausedRuns(work, lambda: NOW).find("p1"),
        "presets.db": lambda work: Presets(work).find("work"),
    }
    write_earlier_files(tmp_path)
    content = (tmp_path / name).read_bytes()
    _ = (tmp_path / name).write_bytes(b"no database" * 1_000)
    for _ in range(2):
        with opened(tmp_path) as work:
            for other, use in uses.items():
                if other != name:
                    _ = use(work)
            assert sessions_of(work, "http").get("http-own").turns == 3
            with pytest.raises(StorageError, match=name) as told:
                _ = uses[name](work)
        assert told.value.code == "damaged"
        assert earlier_in(tmp_path) == {name}
    _ = (tmp_path / name).write_bytes(content)
    with opened(tmp_path) as work:
        _ = uses[name](work)

    assert earlier_in(tmp_path) == set()


def test_what_a_repair_saves_is_migrated(tmp_path: Path) -> None:
    write_earlier_files(tmp_path, turns=400)
    path = tmp_path / "sessions.db"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    _ = path.write_bytes(content)
    with opened(tmp_path) as work, pytest.raises(StorageError):
        _ = sessions_of(work)
    assert repair.repair(path).rows
    with opened(tmp_path) as work:
        assert sessions_of(work).list()[1] == 3

    assert not path.exists()


def test_a_file_of_a_newer_version_is_not_migrated(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    with closing(sqlite3.connect(tmp_path / "task_runs.db")) as database:
        database.execute("PRAGMA user_version = 2")
    with opened(tmp_path) as work:
        assert sessions_of(work).list()[1] == 3
        with pytest.raises(StorageError, match=r"task_runs\.db' was made by a newer version"):
            _ = RunStore(work)

    assert earlier_in(tmp_path) == {"task_runs.db"}


def test_a_file_that_an_earlier_version_has_open_is_migrated_after_its_end(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    used = open_shared_database(tmp_path / "sessions.db", "", 1)
    with opened(tmp_path) as work:
        assert RunStore(work).is_to_cancel("r1")
        with pytest.raises(StorageError, match="an earlier version is still using"):
            _ = sessions_of(work)
    with used.writing() as database:
        database.execute("INSERT INTO turns SELECT session, 9, at, file, '', messages, outcome FROM turns LIMIT 1")
    used.shut()
    with opened(tmp_path) as work:
        assert sessions_of(work).last("-note") == 9

    assert earlier_in(tmp_path) == set()


def test_what_an_earlier_version_had_open_is_migrated_while_the_new_file_stays_open(tmp_path: Path) -> None:
    write_earlier_files(tmp_path)
    with closing(sqlite3.connect(tmp_path / "presets.db", isolation_level=None)) as other:
        _ = other.execute("SELECT * FROM presets").fetchall()
        work = open_work(tmp_path)
        with pytest.raises(StorageError, match="still using"):
            _ = Presets(work)
    try:
        assert [preset.name for preset in Presets(work).list()] == ["Work"]
    finally:
        work.shut()
    assert earlier_in(tmp_path) == set()


def test_sessions_of_an_earlier_version_that_was_used_in_between_come_beside_the_others(tmp_path: Path) -> None:
    with opened(tmp_path) as work:
        first, default = sessions_of(work).by_file(FileIdentity(path="A.md")), sessions_of(work).without_file()
    write_earlier_files(tmp_path)
    with opened(tmp_path) as work:
        kept = sessions_of(work)

        assert kept.by_file(FileIdentity(path="A.md")).id == first.id
        assert kept.without_file().id == default.id
        assert (kept.get("-note").kind, kept.get("-note").file, kept.get("-none").kind) == ("own", "A.md", "own")
        assert kept.list()[1] == 5


def test_a_copy_of_a_clients_folder_is_not_migrated(tmp_path: Path) -> None:
    for owner in ("http", "mcp"):
        path = earlier_files.folder_of(tmp_path, owner) / "sessions.db"
        earlier_files.write(path, {"sessions": [session("s1")], "turns": [turn("s1")]})
    with opened(tmp_path) as work:
        refused: list[str] = []
        for owner in ("http", "mcp"):
            try:
                assert sessions_of(work, owner).get("s1").turns == 1
            except StorageError as error:
                refused.append(error.message)

    assert len(refused) == 1
    assert refused[0].endswith("has entries that are in 'work.db' already")
    assert earlier_in(tmp_path) == {"sessions.db"}


def test_on_a_full_disk_earlier_files_are_read_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(storage.SharedDatabase):
        @contextmanager
        def writing(self) -> Generator[sqlite3.Connection]:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise storage.storage_error(error, "'work.db'") from error
            yield  # pragma: no cover

    write_earlier_files(tmp_path)
    monkeypatch.setattr(storage, "SharedDatabase", Full)
    with opened(tmp_path) as work:
        assert sessions_of(work, "http").get("http-own").turns == 3
        assert RunStore(work).recall("k")
        with pytest.raises(StorageError):
            _ = sessions_of(work).begin()

    assert {path.name for path in tmp_path.glob("*.db")} == {*ALL_FILES, WORK_FILE}


def test_earlier_files_for_which_there_is_no_space_are_read_and_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_limited(path: Path, schema: str | tuple[str, ...], version: int) -> storage.SharedDatabase:
        database = open_shared_database(path, schema, version)
        with database.reading() as limited:
            limited.execute("PRAGMA max_page_count = 30").fetchone()
        return database

    write_earlier_files(tmp_path, turns=400)
    monkeypatch.setattr(storage, "open_shared_database", open_limited)
    with opened(tmp_path) as work:
        assert sessions_of(work).get("-own").turns == 400
        assert sessions_of(work, "http").get("http-own").turns == 400
    with pytest.raises(StorageError, match="can't be migrated, so it is only read"):  # as doctor tells
        migrate(tmp_path)
    assert {path.name for path in tmp_path.glob("*.db")} == {*ALL_FILES, WORK_FILE}

    monkeypatch.undo()
    with opened(tmp_path) as work:
        assert sessions_of(work, "http").get("http-own").turns == 400
    assert earlier_in(tmp_path) == set()


def test_a_disk_without_space_for_earlier_files_is_not_filled_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell_little(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=300_000)

    write_earlier_files(tmp_path, turns=400)
    monkeypatch.setattr(shutil, "disk_usage", tell_little)
    with opened(tmp_path) as work:
        assert sessions_of(work, "http").get("http-own").turns == 400
    with pytest.raises(StorageError, match="has no space for migrating"):  # as doctor tells
        migrate(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.glob(f"{WORK_FILE}*")) < 300_000
    assert {path.name for path in tmp_path.glob("*.db")} == {*ALL_FILES, WORK_FILE}


def test_a_client_sees_nothing_of_the_sessions_of_another(tmp_path: Path) -> None:
    with opened(tmp_path) as work:
        theirs = sessions_of(work, "mcp")
        note = theirs.by_file(FileIdentity(path="A.md", hash="sha256:1", node="1:2:3"))
        default = theirs.without_file()
        _ = theirs.append(note.id, 0, exchange("secret"))
        for other in (sessions_of(work, "http"), sessions_of(work)):
            acts: list[Callable[[str], object]] = [
                *(other.get, other.turns, other.history, other.fork, other.clear, other.delete),
                partial(other.append, after=1, exchange=exchange()),
                partial(other.rename, name="mine"),
            ]
            for act in acts:
                with pytest.raises(NotFound) as told:
                    _ = act(note.id)
                assert told.value.code == "no_session"
            other.sum_up(note.id, HistorySummary(messages='["mine"]', upto=1))
            assert (other.has(note.id), other.last(note.id)) == (False, 0)
            assert (other.list(), other.list(query="secret")) == (([], 0), ([], 0))
            assert other.latest_turns(until=None, limit=9) == []
            assert other.latest_turns(until=None, work=note.id, limit=9) == []
            same = FileIdentity(path="B.md", hash="sha256:1", node="1:2:3")
            renamed = other.by_file(same, ["A.md"], lambda _: True)
            assert renamed.id != note.id
            assert other.without_file().id != default.id
            assert other.prune(max_days=0.0001, max_bytes=1) == 1

        assert theirs.history(note.id)[0] == HistorySummary()
        assert [one.question for one in theirs.turns(note.id)] == ["secret"]
        assert theirs.list()[1] == 2


def test_switches_are_each_clients_own_and_presets_the_vaults(tmp_path: Path) -> None:
    with opened(tmp_path) as work:
        Presets(work, "http").set_toggles(AgentToggles(scout=True))
        Presets(work).set_toggles(AgentToggles(web=True))

        assert Presets(work, "http").toggles(AgentToggles()) == AgentToggles(scout=True)
        assert Presets(work, "mcp").toggles(AgentToggles()) == AgentToggles()
        assert Presets(work).toggles(AgentToggles()) == AgentToggles(web=True)


@pytest.mark.parametrize(("text", "names"), [("{}", ["Plan", "Plan (2)"]), ("same", ["Plan"])])
def test_a_preset_that_an_earlier_version_saved_in_between_is_kept_beside_the_newer(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    with opened(tmp_path) as work:
        Presets(work).save(Preset(name="Plan", toggles=AgentToggles(scout=True)))
        with work.database.reading() as database:
            stored = str(database.execute("SELECT said FROM presets").fetchone()[0])
    said = stored if text == "same" else text
    earlier_files.write(tmp_path / "presets.db", {"presets": [("plan", "Plan", said)], "switches": []})

    with opened(tmp_path) as work:
        presets = Presets(work)

        assert [one.name for one in presets.list()] == names
        assert presets.find("plan").toggles == AgentToggles(scout=True)
        assert presets.find(names[-1].lower()).toggles.scout is (text == "same")


def test_a_chat_and_a_run_write_at_once(tmp_path: Path) -> None:
    def chat() -> None:
        with opened(tmp_path) as work:
            kept = sessions_of(work, "http")
            began = kept.begin()
            for number in range(40):
                _ = kept.append(began.id, number, exchange())

    def run() -> None:
        with opened(tmp_path) as work:
            runs = RunStore(work)
            root = RunNode(id="1", task="x")
            record = runs.begin(RunOrder(task="x", limits=RunLimits()), "test:model", root)
            for number in range(40):
                runs.put(record.id, RunNode(id=f"1.{number}", task="x"))
                runs.remember("k", str(number), "{}")

    threads = [threading.Thread(target=work) for work in (chat, run, chat, run)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    stored = rows_of(tmp_path / WORK_FILE)
    assert (len(stored["sessions"]), len(stored["turns"]), len(stored["runs"]), len(stored["nodes"])) == (2, 80, 2, 82)
    assert len(stored["cache"]) == 40
