import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from knapper.system import private
from tests import states

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere access lists decide, not modes")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def lax() -> object:
    """Leave to files whatever a program gives them."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """Make a state folder as earlier versions did."""
    state = tmp_path / "state"
    for name in ("vaults/v-1/index/index.db", "vaults/v-1/journal.db", "taint.db", "server/api.token"):
        file = state / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("words of a note")
    return state


def test_folders_above_a_new_one_are_private_too(tmp_path: Path) -> None:
    private.make_folder(tmp_path / "state" / "vaults" / "v")

    assert [mode(tmp_path / name) for name in ("state", "state/vaults", "state/vaults/v")] == [0o700] * 3


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private.make_folder(tmp_path)

    assert mode(tmp_path) == 0o755


def test_a_database_and_the_files_beside_it_are_private(tmp_path: Path) -> None:
    database = private.connect(tmp_path / "a.db", timeout_s=1)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE t (x)")
    modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    database.close()

    assert modes == {"a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}


def test_a_rollback_journal_is_private(tmp_path: Path) -> None:
    database = private.connect(tmp_path / "a.db", timeout_s=1)
    database.execute("CREATE TABLE t (x)")
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO t VALUES (1)")
    modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    database.close()

    assert modes == {"a.db": 0o600, "a.db-journal": 0o600}


def test_a_folder_that_is_missing_is_told_by_sqlite(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        private.connect(tmp_path / "none" / "a.db", timeout_s=1)


def test_opening_a_database_again_keeps_the_locks_of_another_connection(tmp_path: Path) -> None:
    first = private.connect(tmp_path / "a.db", timeout_s=0)
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN EXCLUSIVE")
    private.tighten(tmp_path, thorough=True)
    second = private.connect(tmp_path / "a.db", timeout_s=0)
    try:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("BEGIN EXCLUSIVE")
    finally:
        first.close()
        second.close()


def test_locks_copies_and_texts_are_private(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"text")
    os.utime(source, ns=(5_000_000_000, 7_000_000_000))
    with private.file_lock(tmp_path / "a.lock"):
        locked = mode(tmp_path / "a.lock")
    with source.open("rb") as opened:
        private.copy_file(opened.fileno(), tmp_path / "copy")
    private.write_text(tmp_path / "note.json", "{}")
    private.touch(tmp_path / "beat")

    assert [locked, *(mode(tmp_path / name) for name in ("copy", "note.json", "beat"))] == [0o600] * 4
    assert (tmp_path / "copy").read_bytes() == b"text"
    assert (tmp_path / "copy").stat().st_mtime_ns == 7_000_000_000


def test_a_text_that_cannot_be_written_leaves_the_old_one_alone(tmp_path: Path) -> None:
    private.write_text(tmp_path / "a", "old")
    with pytest.raises(UnicodeEncodeError):
        private.write_text(tmp_path / "a", "\udc80")

    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_lock_may_be_released_by_another_thread(tmp_path: Path) -> None:
    lock = private.file_lock(tmp_path / "a.lock")
    lock.acquire()
    other = threading.Thread(target=lock.release)
    other.start()
    other.join()

    assert not lock.is_locked


def test_what_an_earlier_version_left_open_is_closed(loose: Path) -> None:
    assert private.find_open(loose)
    private.tighten(loose)

    assert private.find_open(loose) == []
    assert states.open_to_others(loose) == []


def test_a_look_into_closed_folders_closes_what_is_in_them(loose: Path) -> None:
    loose.chmod(0o700)
    private.tighten(loose)

    assert private.find_open(loose)
    private.tighten(loose, thorough=True)
    assert states.open_to_others(loose) == []


def test_all_that_commands_make_in_the_state_folder_is_known_as_its_own() -> None:
    assert private.STATE_NAMES == states.KNOWN_NAMES


def test_what_a_killed_program_left_in_the_state_folder_is_ours_too(loose: Path) -> None:
    for name in (private.new_name(loose / "told-variables").name, "taint.db.repaired", "taint.db.repaired-wal"):
        (loose / name).write_text("half")
    private.tighten(loose)

    assert [mode(path) for path in (loose, *loose.glob("*repaired*"), *loose.glob(".new-*"))] == [0o700, *[0o600] * 3]


def test_a_folder_with_other_things_is_left_alone_and_ours_in_it_is_closed(loose: Path) -> None:
    (loose / "photos").mkdir(mode=0o755)
    private.tighten(loose)

    assert mode(loose) == 0o777
    assert mode(loose / "photos") == 0o755
    assert mode(loose / "vaults") == 0o700
    assert mode(loose / "taint.db") == 0o600
    assert private.find_open(loose) == []


def test_nothing_is_closed_where_nothing_is_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private.tighten(tmp_path)

    assert mode(tmp_path) == 0o755


def test_a_link_in_the_state_closes_nothing_elsewhere(loose: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o644)
    (loose / "vaults" / "link").symlink_to(outside)
    (loose / "vaults" / "folder").symlink_to(tmp_path)
    private.tighten(loose, thorough=True)

    assert mode(outside) == 0o644


def test_code_that_others_could_have_written_is_not_made_to_look_private(loose: Path) -> None:
    code = loose / "sandbox" / "a.code"
    code.parent.mkdir()
    code.write_bytes(b"planted")
    private.tighten(loose, thorough=True)

    assert mode(code.parent) == 0o777
    assert mode(code) == 0o666


def test_access_lists_decide_on_windows() -> None:
    assert [private.has_modes(system) for system in ("posix", "nt")] == [True, False]


def test_a_file_may_have_a_name_of_full_length(tmp_path: Path) -> None:
    private.write_text(tmp_path / ("x" * 255), "text")

    assert (tmp_path / ("x" * 255)).read_text() == "text"
