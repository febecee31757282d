"""Connections to an index are as many as threads that use it."""

import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from knapper.index.database import Database


def test_a_thread_that_has_ended_leaves_no_open_file(tmp_path: Path) -> None:
    files = Path("/proc/self/fd")
    with Database(tmp_path / "index.db") as database:

        def look() -> None:
            database.reader().execute("SELECT * FROM meta").fetchall()

        for _ in range(30):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        own = str(tmp_path / "index.db")
        opened = [one for one in files.iterdir() if str(one.resolve()).startswith(own)] if files.exists() else []
        still = database.reader().execute("SELECT count(*) FROM meta").fetchone()[0]

    assert len(opened) <= 8
    assert still


def test_threads_that_go_on_keep_their_connections(tmp_path: Path) -> None:
    with Database(tmp_path / "index.db") as database:
        both = threading.Barrier(2)
        found: list[int] = []

        def look() -> None:
            first = database.reader()
            both.wait(10)
            found.append(first.execute("SELECT 1").fetchone()[0] if database.reader() is first else 0)

        threads = [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == [1, 1]


def cache_kb(database: Database) -> int:
    return -int(database.reader().execute("PRAGMA cache_size").fetchone()[0])


def test_only_a_connection_that_writes_has_a_large_cache(tmp_path: Path) -> None:
    with Database(tmp_path / "index.db") as database:
        before = cache_kb(database)
        with database.transaction():
            during = cache_kb(database)

        assert before == cache_kb(database) < during
        assert before <= 2_000  # each of a server's threads has a connection


def test_a_write_that_fails_gives_its_cache_back(tmp_path: Path) -> None:
    with Database(tmp_path / "index.db") as database:
        before = cache_kb(database)
        with contextlib.suppress(ValueError), database.transaction():
            raise ValueError

        assert cache_kb(database) == before


def test_who_makes_the_index_at_the_same_time_is_waited_for(tmp_path: Path) -> None:
    first = sqlite3.connect(tmp_path / "index.db", isolation_level=None, check_same_thread=False)
    first.execute("CREATE TABLE begun (x)")
    first.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.2, lambda: first.execute("COMMIT"))
    end.start()
    with Database(tmp_path / "index.db") as database:
        rows = database.reader().execute("SELECT count(*) FROM files").fetchone()
    end.join()
    first.close()

    assert rows == (0,)


CLOSING = """
import sys, threading
from pathlib import Path
from knapper.index.database import Database

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000) SELECT count(*) FROM n"
database, begun, counts = Database(Path(sys.argv[1])), threading.Barrier(4), []

def count():
    connection, first = database.reader(), iter([True])

    def work():
        if next(first, False):
            begun.wait()
        return 0

    connection.set_progress_handler(work, 1000)
    counts.append(connection.execute(LONG).fetchone()[0])

threads = [threading.Thread(target=count) for _ in range(3)]
for thread in threads:
    thread.start()
begun.wait()
database.close()
for thread in threads:
    thread.join()
print(counts)
"""


def test_closing_leaves_the_queries_of_other_threads_alone(tmp_path: Path) -> None:
    # In a process of its own: what is freed in the middle of a query takes the process along.
    command = [sys.executable, "-X", "faulthandler", "-c", CLOSING, tmp_path / "index.db"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (ended.returncode, ended.stdout) == (0, "[500000, 500000, 500000]\n"), ended.stderr
