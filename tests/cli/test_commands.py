import io
import json
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from knapper.cli import main, output
from knapper.cli.commands import watch
from knapper.cli.output import ProgressLines
from knapper.cli.render.indexing import show_bars
from knapper.errors import ConflictError
from knapper.index.models.base import EmbedderUnavailable


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with two notes, one of them broken."""
    (tmp_path / "Garden.md").write_text("# Garden\n\nWater the tomatoes.\n", encoding="utf-8")
    (tmp_path / "Broken.md").write_text("---\ntitle: [open\n---\nKept anyway.\n", encoding="utf-8")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    code = main.run([*args, "--json"])
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    return json.loads(shown.out)


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (["index"], {"indexed", "removed", "unchanged", "embedded", "notes", "chunks", "pending", "problems"}),
        (["search", "tomatoes"], {"results", "index_stale", "index_incomplete", "pending"}),
        (["ask", "tomatoes"], {"results", "index_stale", "index_incomplete", "pending"}),
        (["status"], {"notes", "chunks", "embedded", "pending", "model", "skipped"}),
        (["doctor"], {"checks"}),
        (["config"], {"settings", "config_file"}),
        (["config", "path"], {"path", "exists"}),
        (["tools", "read_file"], {"name", "parameters", "returns"}),
        (["bench", "agent", "--list"], {"results", "total"}),
    ],
    ids=["index", "search", "ask", "status", "doctor", "config", "config path", "tools", "bench"],
)
def test_every_command_prints_json(
    command: list[str], keys: set[str], vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printed(capsys, "-v", str(vault), *command)

    assert shown["success"] is True
    assert keys <= set(shown)


def test_results_as_json_have_the_documented_fields(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "-q", "index"])
    capsys.readouterr()

    best = printed(capsys, "-v", str(vault), "search", "tomatoes", "--explain")["results"][0]

    assert (best["source"], best["heading"], best["start_line"], best["end_line"]) == ("Garden.md", "# Garden", 1, 3)
    assert "Water the tomatoes." in best["content"]
    assert best["hash"].startswith("sha256:")
    assert set(best["explain"]) >= {"keyword"}


def test_explained_results_show_where_the_score_comes_from(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "search", "tomatoes", "--explain"])

    assert "  score " in capsys.readouterr().out


def test_settings_as_json_hold_no_secret(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIREWORKS_API_KEY", "hush")

    shown = printed(capsys, "config")["settings"]

    assert shown["model.api_key"] == {"value": "(set)", "source": "FIREWORKS_API_KEY", "doc": "The key for the model."}


def test_without_embedding_the_summary_says_what_waits(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "index", "--no-embed"])
    summary = capsys.readouterr().out
    main.run(["-v", str(vault), "index"])
    later = capsys.readouterr().out

    assert "embedded 0 chunks" in summary
    assert "found by words only until embedded: `knap index`" in summary
    assert "found by words only" not in later


def test_many_problems_are_cut_short(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(7):
        (vault / f"{number}.md").write_text("---\ntitle: [open\n---\n", encoding="utf-8")

    main.run(["-v", str(vault), "index"])
    lines = capsys.readouterr().out.splitlines()

    assert "8 problems:" in lines
    assert lines[-1] == "  and 3 more: `knap status` lists them"


def test_status_before_the_first_index_says_what_to_do(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-v", str(vault), "status"])

    assert "incomplete: run `knap index`" in capsys.readouterr().out


def test_quiet_leaves_out_all_but_the_result(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["-q", "-v", str(vault), "ask", "tomatoes"])
    found = capsys.readouterr()
    code = main.run(["-q", "-v", str(vault), "search", "zzz", "--mode", "keyword"])
    missed = capsys.readouterr()

    assert found.out.startswith("1. Garden.md:1-3  # Garden\n   Water the tomatoes.\n")
    assert found.err == ""
    assert (code, missed.out, missed.err) == (1, "", "")


def test_a_long_passage_is_cut_at_a_word(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Long.md").write_text("needle " + "straw " * 230, encoding="utf-8")

    main.run(["-v", str(vault), "ask", "needle", "-n", "1"])
    shown = capsys.readouterr().out

    assert shown.rstrip().endswith("straw …")
    assert len(shown) < 800


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_watch_tells_what_it_took_in(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdout", told)

    def edit_until_told() -> None:
        for number in range(1_000):
            (vault / "New.md").write_text("---\na: [\n---\n" + "text " * number, encoding="utf-8")
            time.sleep(0.1)
            if told.getvalue().count("took in") >= 2:
                break
        signal.raise_signal(signal.SIGINT)

    editor = threading.Thread(target=edit_until_told)
    editor.start()
    code = main.run(["-v", str(vault), "watch"])
    editor.join()
    lines = told.getvalue().splitlines()

    assert code == 0
    assert re.fullmatch(r"\d\d:\d\d:\d\d  took in [23], removed 0", lines[0])
    assert re.fullmatch(r"\d\d:\d\d:\d\d  took in 1, removed 0", lines[1])
    assert signal.getsignal(signal.SIGINT) == before


def test_watching_goes_on_when_the_embedding_server_is_back() -> None:
    stop, told, tries = (
        threading.Event(),
        list[str](),
        iter([EmbedderUnavailable("it is away"), ConflictError("it is busy")]),
    )

    def work() -> None:
        for error in tries:
            raise error
        stop.set()

    watch.retry_while_blocked(work, stop, told.append, pause_s=0)

    assert told == ["it is away", "it is busy"]


def test_lines_of_progress_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines(every_s=0)
    lines("read", 3, 10)
    lines("scan", 3, 0)
    ProgressLines(every_s=1_000)("embed", 1, 2)

    assert capsys.readouterr().err == "read 3 of 10 files\nlooked at 3 files\n"


def test_a_bar_takes_any_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with show_bars(colour=False) as bar:
        bar("scan", 1, 0)
        bar("read", 1, 2)
        bar("read", 2, 2)

    assert "\x1b[3" not in capsys.readouterr().err


def test_a_bar_begins_with_its_own_total(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_bars(colour=True) as bar:
        bar("read", 0, 7)

    shown = capsys.readouterr().err
    assert "0/7" in shown
    assert "/100" not in shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (999, "999 B"), (1_200, "1.2 kB"), (3_400_000, "3.4 MB"), (5e9, "5.0 GB")]
)
def test_sizes_have_units(number: float, shown: str) -> None:
    assert output.format_size(number) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.421, "0.42 s"), (12.34, "12.3 s"), (200.9, "3 min 20 s")])
def test_durations_have_units(seconds: float, shown: str) -> None:
    assert output.format_duration(seconds) == shown


def test_counts_agree_with_their_noun() -> None:
    assert (output.pluralize(1, "note"), output.pluralize(0, "note")) == ("1 note", "0 notes")
