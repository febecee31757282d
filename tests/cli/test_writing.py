"""The commands that write: exact bytes, streams, JSON, and what stands in their way."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from knapper.cli import inputs, main
from knapper.errors import BadInput

KNAP = [sys.executable, "-m", "knapper.cli"]
DOS = b"\xef\xbb\xbf# Dos\r\n\r\nOne.\r\nTwo. \t\r\nlast"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/app.json").write_text('{"trashOption": "local"}', encoding="utf-8")
    (tmp_path / "Dos.md").write_bytes(DOS)
    (tmp_path / "Garden.md").write_text("---\ntags: [x]\n---\n# Garden\n\n[[Dos]] [[Gone]]\n", encoding="utf-8")
    return tmp_path


def knap(vault: Path, *args: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*KNAP, "-v", str(vault), *args], input=given, capture_output=True, check=False)


def code(vault: Path, *args: str) -> int:
    return main.run(["-v", str(vault), "-q", *args])


def shown(vault: Path, capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    capsys.readouterr()
    main.run(["-v", str(vault), *args, "--json"])
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_a_whole_note_goes_to_a_pipe_byte_for_byte(vault: Path) -> None:
    assert knap(vault, "read", "Dos.md").stdout == DOS


def test_what_was_read_and_written_back_is_no_change(vault: Path) -> None:
    hash_ = json.loads(knap(vault, "read", "Dos.md", "--json").stdout)["hash"]

    same = knap(vault, "write", "Dos.md", "--hash", hash_, given=DOS.removeprefix(b"\xef\xbb\xbf"))
    other = knap(vault, "write", "Dos.md", "--hash", hash_, given=b"# Dos\n\nOne.\nTwo. \t\nlast\n")

    assert (same.returncode, b"nothing would change" in same.stderr) == (2, True)
    assert other.returncode == 0
    assert (vault / "Dos.md").read_bytes() == DOS + b"\r\n"


def test_what_is_no_text_is_refused(vault: Path) -> None:
    ended = knap(vault, "new", "New.md", "--text", "-", given=b"caf\xe9")

    assert (ended.returncode, (vault / "New.md").exists()) == (2, False)
    assert ended.stderr.startswith(b"error: the standard input isn't UTF-8: byte 3 is 0xe9")


def test_a_new_note_from_the_standard_input_has_its_exact_bytes(vault: Path) -> None:
    ended = knap(vault, "new", "New.md", "--text", "-", given=b"a\r\nb")

    assert (ended.returncode, (vault / "New.md").read_bytes()) == (0, b"a\r\nb")


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (["new", "New.md", "--text", "-"], "New.md"),
        (["edit", "Garden.md", "--at", "end", "-"], "Garden.md"),
        (["section", "Garden.md", "Garden", "-"], "Garden.md"),
    ],
    ids=["new", "edit", "section"],
)
def test_the_byte_order_mark_of_what_is_piped_doesnt_come_into_a_note(
    vault: Path, args: Sequence[str], path: str
) -> None:
    ended = knap(vault, *args, given=b"\xef\xbb\xbfmore\n")

    assert ended.returncode == 0
    assert b"more\n" in (vault / path).read_bytes()
    assert b"\xef\xbb\xbf" not in (vault / path).read_bytes()


def test_a_note_that_is_written_whole_has_the_bytes_that_were_given(vault: Path) -> None:
    ended = knap(vault, "write", "New.md", given=b"\xef\xbb\xbfa\n")

    assert (ended.returncode, (vault / "New.md").read_bytes()) == (0, b"\xef\xbb\xbfa\n")


@pytest.mark.parametrize(
    "args",
    [
        ["edit", "Dos.md", "One.", "1."],
        ["edit", "Dos.md", "--at", "replace:3", "1."],
        ["section", "Dos.md", "Dos", "more", "--prepend"],
        ["props", "Dos.md", "set", "status", "open"],
    ],
    ids=["edit", "position", "section", "property"],
)
def test_line_endings_stay_and_undo_gives_back_every_byte(vault: Path, args: Sequence[str]) -> None:
    assert code(vault, *args) == 0
    after = (vault / "Dos.md").read_bytes()
    assert code(vault, "undo") == 0

    assert b"\n" not in after.replace(b"\r\n", b"")
    assert after != DOS
    assert (vault / "Dos.md").read_bytes() == DOS


@pytest.mark.parametrize(
    "args",
    [
        ["edit", "Garden.md", "# Garden", "# Yard"],
        ["section", "Garden.md", "Garden", "more"],
        ["props", "Garden.md", "set", "a", "1"],
        ["props", "--folder", ".", "set", "a", "1", "--yes"],
        ["tags", "rename", "x", "y", "--yes"],
        ["move", "Dos.md", "Sub/"],
        ["rm", "Garden.md"],
        ["new", "New.md"],
        ["write", "New.md", "Garden.md"],
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_a_dry_run_of_any_command_changes_nothing(
    vault: Path, args: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault)
    before = {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()}

    answer = shown(vault, capsys, *args, "--dry-run")

    assert (answer["success"], answer["status"]) == (True, "planned")
    assert {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        (["read", "Garden.md"], ["content", "hash", "truncated", "total_chars"]),
        (["props", "Garden.md"], ["path", "properties", "hash"]),
        (["props", "Garden.md", "Dos.md"], ["results"]),
        (["tags"], ["results", "total", "limit", "offset"]),
        (["tags", "list", "x"], ["results", "total"]),
        (["links", "in", "Dos"], ["results", "links", "exists"]),
        (["links", "out", "Garden.md"], ["results", "links", "path"]),
        (["links", "broken"], ["results", "total"]),
        (["links", "orphans"], ["results", "total"]),
        (["edits"], ["results", "total"]),
        (["edits", "list", "--all"], ["results", "total"]),
        (["edits", "blocks", "Dos.md"], ["results", "total", "hash"]),
        (["log"], ["results", "total"]),
    ],
    ids=str,
)
def test_every_command_that_shows_prints_json(
    vault: Path, args: Sequence[str], keys: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = shown(vault, capsys, *args)

    assert answer["success"] is True
    assert set(keys) <= set(answer)


def test_every_step_of_a_proposal_prints_json(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = shown(vault, capsys, "edit", "Garden.md", "# Garden", "# Yard", "--propose")
    proposal = shown(vault, capsys, "edits", "show", made["proposal_id"])
    done = shown(vault, capsys, "edits", "accept", proposal["id"], "--digest", proposal["digest"])
    undone = shown(vault, capsys, "undo", done["change_id"])
    other = shown(vault, capsys, "edit", "Garden.md", "# Garden", "# Yard", "--propose")
    rejected = shown(vault, capsys, "edits", "reject", other["proposal_id"], "-m", "no")
    unsaid = shown(vault, capsys, "edits", "accept", proposal["id"])

    assert (done["status"], undone["undone"], rejected["status"]) == ("applied", [done["change_id"]], "rejected")
    assert (unsaid["success"], unsaid["code"]) == (False, "digest_needed")


def test_a_folder_gets_its_name_in_another_case(vault: Path) -> None:
    (vault / "Plans").mkdir()
    (vault / "Plans/A.md").write_bytes(b"a")
    index = code(vault, "index")
    ended = code(vault, "move", "Plans", "plans", "--yes")
    again = code(vault, "move", "plans", "plans", "--yes")

    assert (index, ended, again) == (0, 0, 2)
    assert "plans" in {path.name for path in vault.iterdir()}
    assert (vault / "plans/A.md").read_bytes() == b"a"


def test_a_dry_run_puts_no_block_into_a_note_and_resolves_none(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (vault / "Garden.md").read_bytes()
    name = shown(vault, capsys, "edit", "Garden.md", "# Garden", "# Yard", "--propose")["proposal_id"]
    drawing = shown(vault, capsys, "edits", "draw", name, "--dry-run")
    undrawn = (vault / "Garden.md").read_bytes()
    assert code(vault, "edits", "draw", name) == 0
    capsys.readouterr()
    with_block = (vault / "Garden.md").read_bytes()
    planned = [
        shown(vault, capsys, "edits", "blocks", "Garden.md", how, "all", "--dry-run")
        for how in ("--accept", "--reject")
    ]

    assert (drawing["status"], undrawn) == ("planned", before)
    assert [one["status"] for one in planned] == ["planned", "planned"]
    assert ["+# Yard" in str(one["files"]) for one in planned] == [True, False]
    assert (vault / "Garden.md").read_bytes() == with_block != before
    assert shown(vault, capsys, "edits", "show", name)["status"] == "open"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another thing there")
def test_a_read_only_file_is_told_and_left_alone(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Dos.md").chmod(0o444)

    ended = code(vault, "edit", "Dos.md", "One.", "1.")

    assert (ended, (vault / "Dos.md").read_bytes()) == (6, DOS)
    assert "Dos.md" in capsys.readouterr().err


def test_contradicting_options_are_refused(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code(vault, "edit", "Dos.md", "One.", "1.", "--yes", "--propose") == 2
    assert code(vault, "read", "Dos.md", "-s", "Dos", "-l", "1") == 2
    assert code(vault, "read", "Dos.md", "-l", "x") == 2
    assert code(vault, "rm", "Dos.md", "Garden.md", "--hash", "sha256:0") == 2
    assert code(vault, "new", "New.md", "--prop", "status") == 2
    assert code(vault, "edit", "Dos.md", "--at", "end", "a", "b") == 2
    assert (vault / "Dos.md").read_bytes() == DOS
    assert capsys.readouterr().err.count("hint:") == 6


@pytest.mark.parametrize("text", ["- [ ] weed", "---\na rule", "--  two"])
def test_text_that_begins_like_an_option_is_text(vault: Path, text: str) -> None:
    assert code(vault, "edit", "Dos.md", "last", text) == 0
    assert (vault / "Dos.md").read_bytes().endswith(text.replace("\n", "\r\n").encode())


def test_a_closed_standard_input_is_empty_text(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))

    assert code(vault, "new", "New.md", "--text", "-") == 0
    assert (vault / "New.md").read_bytes() == b""


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86_400), ("1w", 604_800)])
def test_a_time_may_be_how_long_ago(text: str, seconds: int) -> None:
    now = inputs.parse_time("2026-01-31T12:00:00+00:00")

    assert (now - inputs.parse_time(text, now=now)).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "99999999999d", "999999w", "0001-01-01", "2026-13-01"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        inputs.parse_time(text)


def test_a_reader_that_has_enough_ends_reading_in_silence(vault: Path) -> None:
    (vault / "Long.md").write_text("line\n" * 200_000, encoding="utf-8")

    with subprocess.Popen(
        [*KNAP, "-v", str(vault), "read", "Long.md"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (0, b"")


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        (["section", "Garden.md", "Garden", "x", "--body", "--append"], "--append and --body contradict"),
        (["section", "Garden.md", "Garden", "x", "--replace", "--rename"], "--replace and --rename contradict"),
        (["move", "Garden.md"], "where 'Garden.md' should go isn't said"),
        (["move", "Garden.md", ""], "the destination is empty"),
        (["rm", ".obsidian"], "no file '.obsidian'"),
    ],
)
def test_what_could_be_meant_in_two_ways_is_not_guessed(vault: Path, args: Sequence[str], cause: str) -> None:
    before = (vault / "Garden.md").read_bytes()
    ended = knap(vault, *args)

    assert (ended.returncode, (vault / "Garden.md").read_bytes()) == (2, before)
    assert cause in ended.stderr.decode()


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        (["edit", "pic.png", "--at", "end", "x"], "'pic.png' isn't text"),
        (["props", "pic.png", "set", "a", "b"], "'pic.png' isn't text"),
        (["props", "Map.canvas", "set", "a", "b"], "'Map.canvas' is no note"),
        (["props", "data.txt", "set", "a", "b"], "'data.txt' is no note"),
        (["rm", "Folder"], "'Folder' is a folder"),
        (["read", "Folder"], "'Folder' is a folder"),
    ],
)
def test_a_file_that_is_no_note_is_not_spoilt(vault: Path, args: Sequence[str], cause: str) -> None:
    (vault / "pic.png").write_bytes(b"\x89PNG\0\0")
    (vault / "Map.canvas").write_text('{"nodes":[],"edges":[]}', encoding="utf-8")
    (vault / "data.txt").write_text("1\n", encoding="utf-8")
    (vault / "Folder").mkdir()
    (vault / "Folder/in.md").write_text("x", encoding="utf-8")
    before = {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()}
    ended = knap(vault, *args)

    assert ended.returncode == 2
    assert cause in ended.stderr.decode()
    assert {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()} == before


def test_a_write_past_the_vault_of_this_folder_is_told(
    vault: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / ".obsidian").mkdir()
    monkeypatch.chdir(other)
    monkeypatch.setenv("VAULT_PATH", str(vault))

    assert main.run(["new", "Here.md", "-t", "text"]) == 0
    told = capsys.readouterr().err
    assert main.run(["read", "Here.md"]) == 0

    assert f"({vault}), not the one of this folder" in told
    assert str(other) in told
    assert capsys.readouterr().err == ""


class Endless(io.RawIOBase):
    """Give the same byte for ever, and count."""

    given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self.given > 200 * 1024 * 1024:
            raise AssertionError("all of it is read")
        self.given += len(buffer)
        buffer[:] = b"x" * len(buffer)
        return len(buffer)


def test_a_standard_input_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless()), encoding="utf-8"))

    assert main.run(["tool", "read_file", "-"]) == 2
    assert "too_large" in capsys.readouterr().out
