"""What commands say while somebody else is just filling the index."""

import json
import threading
import time
from collections.abc import Callable, Generator
from functools import partialmethod
from pathlib import Path

import pytest

from knapper import extras
from knapper.cli import main, output
from knapper.cli.commands import index
from knapper.index import refresh, watch
from knapper.index.engine import Engine
from knapper.index.status import clear_watch_failure, record_watch_failure
from knapper.system import private


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault that was never indexed, and give its index a folder."""
    (tmp_path / "Garden.md").write_text("# Garden\n\n#home\n", encoding="utf-8")
    main.run(["-v", str(tmp_path), "-q", "status"])
    return tmp_path


@pytest.fixture
def folder(vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Tell where the vault's index is."""
    del vault
    capsys.readouterr()
    return next((own_home / "state" / "vaults").glob("*/index"))


@pytest.fixture
def filling(folder: Path) -> Generator[None]:
    """Hold the turn to write, as another process does."""
    with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0) as mine:
        assert mine
        yield


@pytest.mark.usefixtures("filling")
@pytest.mark.parametrize("command", [["search", "garden"], ["find"], ["ask", "garden"], ["status"], ["doctor"]])
def test_an_index_that_is_being_filled_is_to_be_waited_for(
    command: list[str], vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), *command])
    shown = capsys.readouterr()

    said = shown.out + shown.err
    assert "it is being filled right now" in said
    assert "run `knap index`" not in said


def test_the_status_says_whether_the_index_is_being_filled(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0):
        main.run(["-v", str(vault), "status", "--json"])
        while_filled = json.loads(capsys.readouterr().out)
    main.run(["-v", str(vault), "status", "--json"])
    afterwards = json.loads(capsys.readouterr().out)

    assert (while_filled["index_incomplete"], while_filled["indexing"]) == (True, True)
    assert (afterwards["index_incomplete"], afterwards["indexing"]) == (True, False)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_status_and_doctor_tell_of_a_watch_that_fails(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str], *, is_indexed: bool
) -> None:
    if is_indexed:
        main.run(["-v", str(vault), "-q", "index"])
    record_watch_failure(folder, RuntimeError())
    main.run(["-v", str(vault), "status"])
    failing = capsys.readouterr().out
    main.run(["-v", str(vault), "doctor"])
    checked = capsys.readouterr().out
    clear_watch_failure(folder)
    main.run(["-v", str(vault), "status"])
    afterwards = capsys.readouterr().out

    assert "note    the watch has failed since 20" in failing
    assert "(RuntimeError) and is tried again by itself" in failing
    assert "a server or `knap watch` can't follow the vault since 20" in checked
    assert "the watch" not in afterwards


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["status", "doctor"])
def test_an_index_that_nobody_fills_is_to_be_filled(
    command: str, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), command])

    assert "run `knap index`" in capsys.readouterr().out


def test_changes_that_are_being_taken_in_are_to_be_waited_for(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), "-q", "index"])
    (vault / "New.md").write_text("# New\n", encoding="utf-8")
    capsys.readouterr()

    with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0):
        main.run(["-v", str(vault), "search", "garden", "--json"])
    notes = json.loads(capsys.readouterr().out)["notes"]

    assert notes == ["1 changed file isn't in the index yet: being indexed right now; ask again later"]


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_state_without_the_latest_changes_says_so(
    command: str, folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), "-q", "index"])
    main.run(["-v", str(vault), command])
    before = capsys.readouterr().out
    for number in range(3):
        (vault / f"New {number}.md").write_text("# New\n", encoding="utf-8")

    main.run(["-v", str(vault), command])
    after = capsys.readouterr().out
    with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0):
        main.run(["-v", str(vault), command])
    while_filled = capsys.readouterr().out

    assert "changed file" not in before
    assert "3 changed files" in after
    assert "`knap watch`" in after
    # Nothing was indexed by looking.
    assert "3 changed files" in while_filled
    assert "again later" in while_filled
    assert "`knap watch`" not in while_filled


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_state_says_where_there_was_no_time_to_check_every_file(
    command: str, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(300):
        (vault / f"{number}.md").touch()
    main.run(["-v", str(vault), "-q", "index"])
    capsys.readouterr()
    monkeypatch.setattr("knapper.index.engine._SCAN_BUDGET_S", -1)

    main.run(["-v", str(vault), command])
    shown = capsys.readouterr().out
    main.run(["-v", str(vault), "status", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert "not every file could be checked for changes in the time of a search" in shown
    assert (answer["stale"], answer["unchecked"], len(answer["remarks"])) == (0, True, 1)


def test_indexing_says_that_it_waits_for_another_process(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = threading.Event()

    def hold() -> None:
        with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0):
            held.set()
            time.sleep(0.5)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    code = main.run(["-v", str(vault), "index"])
    other.join()

    assert (code, capsys.readouterr().err) == (0, "another process is writing the index; waiting for it\n")


@pytest.mark.parametrize(
    "command",
    [
        ["move", "Garden.md", "Yard.md"],
        ["section", "Garden.md", "Garden", "Yard", "--rename"],
        ["tags", "rename", "home", "house", "--yes"],
    ],
    ids=["move", "heading", "tag"],
)
def test_what_makes_links_follow_says_that_it_waits_for_another_process(
    command: list[str], folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = threading.Event()

    def hold() -> None:
        with private.acquire_process_lock(folder, refresh.WRITE_LOCK_FILE, wait_s=0):
            held.set()
            time.sleep(1)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    code = main.run(["-v", str(vault), *command])
    other.join()

    assert (code, capsys.readouterr().err) == (0, "another process is writing the index; waiting for it\n")


def test_a_move_in_a_vault_that_was_never_indexed_shows_how_far_that_is(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output.ProgressLines.__init__, "__kwdefaults__", {"every_s": 0.0})
    code = main.run(["-v", str(vault), "move", "Garden.md", "Yard.md"])

    assert (code, folder.is_dir()) == (0, True)
    assert "read 1 of 1 files\n" in capsys.readouterr().err


def test_a_large_vault_names_the_extra_for_many_vectors(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there: set[str] = set()
    monkeypatch.setattr(extras, "is_installed", there.__contains__)
    said: list[bool] = []
    for most in (10**6, 1):
        monkeypatch.setattr(index, "_MANY_CHUNKS", most)
        assert main.run(["-v", str(vault), "index"]) == 0
        said.append("knapper[vectors" in capsys.readouterr().err)
    there.add("vectors")
    assert main.run(["-v", str(vault), "index"]) == 0
    said.append("knapper[vectors" in capsys.readouterr().err)

    assert said == [False, True, False]


@pytest.mark.parametrize("options", [["--full"], ["--full", "--no-embed"]])
def test_nobody_clears_the_index_before_it_is_counted(
    options: list[str], folder: Path, vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cleared: list[bool] = []

    def clear_first(step: Callable[..., object]) -> Callable[..., object]:
        def run(self: Engine, *given: object, **named: object) -> object:
            # A second `knap index --full` that has been waiting for the lock.
            with private.acquire_process_lock(folder, refresh.DERIVING_LOCK_FILE, wait_s=0) as is_acquired:
                cleared.append(is_acquired)
                if is_acquired:
                    self.store.clear()
            return step(self, *given, **named)

        return run

    monkeypatch.setattr(Engine, "embed", clear_first(Engine.embed))
    monkeypatch.setattr(Engine, "status", clear_first(Engine.status))
    code = main.run(["-v", str(vault), "index", *options, "--json"])

    assert (code, json.loads(capsys.readouterr().out)["notes"]) == (0, 1)
    assert cleared
    assert not any(cleared)


@pytest.mark.parametrize("options", [[], ["--full"]])
def test_indexing_reads_what_changed_while_another_process_computes_vectors(
    options: list[str],
    folder: Path,
    vault: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(index, "_EMBED_WAIT_S", 0.1)
    monkeypatch.setattr(Engine, "filling", partialmethod(Engine.filling, wait_s=0.1))
    (vault / "Shed.md").write_text("spades\n")
    with private.acquire_process_lock(folder, refresh.DERIVING_LOCK_FILE, wait_s=0):
        code = main.run(["-v", str(vault), "index", *options])
        shown = capsys.readouterr().out
        main.run(["-v", str(vault), "search", "spades", "--json"])
        answer = json.loads(capsys.readouterr().out)
        main.run(["-v", str(vault), "status"])
        status = capsys.readouterr().out

    assert (code, "read 2, removed 0" in shown) == (0, True)
    assert "2 chunks found by words only until embedded: another process is at it" in shown
    assert answer["pending"] == 2
    assert "being done: 2" in " ".join(answer["notes"])
    assert "0 embedded, 2 waiting, being computed right now" in status
    assert "it is being written" not in status


def test_vectors_that_an_embedding_server_does_not_give_are_not_told_to_be_computed(
    folder: Path, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), "-q", "index", "--no-embed"])
    record_watch_failure(folder, RuntimeError())
    # A server that follows the vault, and tries again to embed.
    watch.write_heartbeat(folder)
    with private.acquire_process_lock(folder, refresh.DERIVING_LOCK_FILE, wait_s=0):
        capsys.readouterr()
        main.run(["-v", str(vault), "status"])
    status = capsys.readouterr().out

    assert "1 waiting\n" in status
    assert "the watch has failed since" in status
