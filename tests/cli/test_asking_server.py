"""Commands that only read ask the server that runs, and print what they would have found themselves."""

import itertools
import json
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from knapper.app import tables
from knapper.server import terminal
from tests.cli import asking
from tests.cli.asking import Shell
from tests.parity.examples import CALLS, NOTES

LINES: Final = """\
search tomatoes
search tomatoes --json --explain
search "watering -rain" --folder Plans --tag outdoors --since 2020-01-01 -n 3 --per-note 1
search nothinglikeit
search '"it rains"' --json
find --tag outdoors --field status
find --property status --json
find --folder Nowhere
links in Rain
links in Nowhere --json
links out Plans/Trip.md
links broken
links orphans --json
tags
tags list out --json
info Garden.md
info Garden.md --json
log
log Nowhere
log --since 2h --json
read Garden.md
read Garden.md --section "## Watering"
read Garden.md --lines 2-4 --numbers
read Garden.md --json
read Crlf.md
read Latin.md
read Gone.md
read Gone.md --json
info Gone.md
links out Gone.md --json
search "  " --json
search tomatoes -n 0
"""
DECLINED: Final = (
    "read Garden.md --lines",
    "find --folder Nowhere",
    "read Gone.md",
    "info Gone.md",
    "links out Gone.md",
    'search "  "',
)
"""Errors, which the command meets again itself; and lines, for which there is no tool."""
WITHOUT_SERVER: Final = ("search tomatoes -n 0",)
"""What is refused before anybody is asked."""


SILENCE_S: Final = terminal.SILENCE_S
PATIENCE_S: Final = 20.0
"""What a server of the tests' own process has in place of that, however busy the machine is."""


@pytest.fixture
def shell(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Shell:
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    made = Shell(home=own_home, vault=tmp_path / "Notes", capsys=capsysbinary)
    for name, text in NOTES.items():
        made.write(name, text)
    (made.vault / "Crlf.md").write_bytes(b"\xef\xbb\xbf# Other\r\n\r\nlines\r\n")
    (made.vault / "Latin.md").write_bytes("# Älter\n".encode("latin-1"))
    configure(made)
    monkeypatch.chdir(own_home)
    assert made.run("index")[0] == 0
    asking.watch_asking(made, monkeypatch)
    monkeypatch.setattr(terminal, "SILENCE_S", PATIENCE_S)
    return made


def configure(shell: Shell, more: str = "") -> None:
    text = f"[vaults.Notes]\npath = '{shell.vault}'\n{more}"
    (shell.home / "config.toml").write_text(text, encoding="utf-8")


def test_every_reading_command_prints_the_same_with_a_server(shell: Shell) -> None:
    alone = {line: shell.run(*shlex.split(line)) for line in LINES.splitlines()}
    with asking.serving():
        for line, expected in alone.items():
            assert shell.run(*shlex.split(line)) == expected, line
            if not line.startswith(WITHOUT_SERVER):
                assert shell.is_answered != line.startswith(DECLINED), line
            assert shell.run(*shlex.split(line), "--no-server") == expected
            assert not shell.replies


def test_every_tool_that_only_reads_the_vault_is_answered_alike(shell: Shell) -> None:
    rows = {row.name: row for row in tables.build_table().specs}
    reading = [
        (name, {**arguments}) for name, arguments in CALLS if rows[name].effect == "read" and not rows[name].open_world
    ]
    answered: set[str] = set()
    with asking.serving():
        for name, arguments in reading:
            words = ("tool", name, json.dumps({key: value for key, value in arguments.items() if key != "vault"}))
            alone = shell.run(*words, "--no-server")
            answer = shell.run(*words)
            if shell.is_answered:
                answered.add(name)
            if name == "get_current_date":  # it tells the second
                assert json.loads(answer[1]).keys() == json.loads(alone[1]).keys()
            else:
                assert answer == alone, name
    assert answered >= {row.name for row in tables.table.TOOLS if row.effect == "read" and not row.open_world} - {
        "show_proposal"  # of which there is none: an error
    }


def test_a_tool_that_writes_is_never_carried_out_by_the_server(shell: Shell) -> None:
    with asking.serving() as served:
        code, out, _ = shell.run("tool", "create_file", '{"path": "Made.md", "content": "x"}')
        named = [
            terminal.ask(str(shell.state), question(shell, name, by_name=True), asking.process_variables())
            for name in WRITERS
        ]
        direct = [
            terminal.ask(str(shell.state), question(shell, name), asking.process_variables()) for name in FUNCTIONS
        ]
        assert served.url

    assert (code, json.loads(out)["status"]) == (0, "applied")
    assert named == [None] * len(WRITERS)
    assert direct == [None] * len(FUNCTIONS)
    assert sorted(path.name for path in shell.vault.glob("Made*")) == ["Made.md"]


WRITERS: Final = ("create_file", "delete_file", "call_tool", "run_script", "web_search", "fetch_page", "no_such_tool")
FUNCTIONS: Final = ("files.create_file", "web.fetch_page", "files.edit_section", "context.Context", "os.system", "")


def question(shell: Shell, tool: str, *, by_name: bool = False) -> terminal.TerminalQuestion:
    arguments: dict[str, Any] = {"path": "MadeToo.md", "content": "x"}
    return {
        "tool": tool,
        "arguments": arguments,
        "by_name": by_name,
        "only": False,
        "keeps_notices": False,
        "is_quiet": False,
        "options": {"vault": "", "config": "", "env_file": ""},
        "folder": str(shell.home),
    }


def test_a_note_that_was_saved_just_now_is_found(shell: Shell) -> None:
    with asking.serving():
        for number in range(20):
            shell.write(f"New/{number}.md", f"The wombat{number} digs.\n")
            assert f"{number}.md" in shell.run("search", f"wombat{number}")[1]
            assert shell.is_answered


def test_the_terminals_own_rights_count(shell: Shell) -> None:
    configure(shell, "[clients.cli]\nhidden = ['Plans/']\n[clients.other]\nkind = 'http'\nhidden = ['Rain.md']\n")
    with asking.serving():
        mine = shell.run("find", "--json")
        assert shell.is_answered
        others = shell.run("tool", "list_notes", "{}", "--client", "other")
        assert not shell.replies

    assert "Plans" not in mine[1]
    assert "Rain.md" in mine[1]
    assert "Rain.md" not in others[1]


def test_a_vault_that_is_not_there_is_told_by_tool_calls_too(shell: Shell) -> None:
    file = shell.home / "config.toml"
    with asking.serving():
        file.write_text("default_vault = 'typo'\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        code, out, _ = shell.run("tool", "list_notes", "{}")
        assert not shell.is_answered

    assert code == 3
    assert json.loads(out)["error"] == f"there is no vault and no folder 'typo', which {file}:1 names"


@pytest.mark.parametrize("changed", ["hidden = ['Plans/']\n", "[clients.cli]\nhidden = ['Plans/']\n"])
def test_settings_that_changed_since_the_server_began_count_at_once(shell: Shell, changed: str) -> None:
    with asking.serving():
        assert "Trip.md" in shell.run("find")[1]
        configure(shell, changed)
        hidden = shell.run("find")

    assert "Trip.md" not in hidden[1]
    assert not shell.is_answered


@pytest.mark.parametrize(
    ("name", "value"),
    [("KNAP_FUSION", "rrf"), ("TZ", "Asia/Tokyo"), ("KNAP_EMBEDDINGS_API_KEY", "another"), ("KNAP_USE_SERVER", "no")],
)
def test_another_environment_is_answered_in_process(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with asking.serving():
        monkeypatch.setenv(name, value)
        # the server is this same process, and would have the same variables
        monkeypatch.setattr(asking.terminal_routes.files, "environment_variables", lambda: dict[str, str]())
        code, out, _ = shell.run("search", "tomatoes")

    assert (code, "Rain.md" in out) == (0, True)
    assert not shell.is_answered


def test_an_environment_with_an_unusable_setting_is_refused_as_without_a_server(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking.serving():
        monkeypatch.setenv("API_PORT", "none")
        with_server = shell.run("search", "tomatoes")
        without = shell.run("search", "tomatoes", "--no-server")

    assert with_server == without
    assert with_server[0] == 3


def test_a_folder_that_the_server_does_not_hold_is_answered_in_process(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "Else").mkdir()
    (tmp_path / "Else" / "Fox.md").write_text("A fox.\n", encoding="utf-8")
    with asking.serving():
        out = shell.run("--vault", str(tmp_path / "Else"), "search", "fox")[1]

    assert "Fox.md" in out
    assert not shell.is_answered


def test_a_relative_vault_starts_at_the_commands_folder(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with asking.serving():
        monkeypatch.chdir(shell.vault / "Plans")
        out = shell.run("--vault", "..", "search", "tomatoes")[1]

    assert "Rain.md" in out
    assert shell.is_answered


def test_the_configuration_can_keep_commands_from_asking(shell: Shell) -> None:
    configure(shell, "[server]\nanswers_commands = 'no'\n")
    with asking.serving():
        assert shell.run("search", "tomatoes")[0] == 0
    assert not shell.is_answered


def test_another_version_is_not_asked(shell: Shell) -> None:
    with asking.serving(version="0.0.0"):
        assert shell.run("search", "tomatoes")[0] == 0
    assert shell.replies == [None]


def test_the_record_of_a_killed_server_is_passed_over(shell: Shell) -> None:
    with asking.serving() as served:
        pass
    asking.addresses.write_record(shell.state, served.record)

    assert shell.run("search", "tomatoes")[0] == 0
    assert shell.replies == [None]


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
@pytest.mark.parametrize("name", ["terminal.token", "server.json"])
def test_files_that_others_can_write_are_not_believed(shell: Shell, name: str) -> None:
    with asking.serving():
        (shell.state / "server" / name).chmod(0o622)
        shell.run("search", "tomatoes")
        assert shell.replies == [None]
        (shell.state / "server" / name).chmod(0o600)
        shell.run("search", "tomatoes")
        assert shell.is_answered


def test_a_key_that_is_a_link_or_gone_is_not_used(shell: Shell, tmp_path: Path) -> None:
    with asking.serving():
        key = shell.state / "server" / "terminal.token"
        moved = key.rename(tmp_path / "key")
        shell.run("search", "tomatoes")
        assert shell.replies == [None]
        key.symlink_to(moved)
        shell.run("search", "tomatoes")
        assert shell.replies == [None]


def silent(connection: socket.socket) -> None:
    connection.recv(1)
    time.sleep(1)


def closing(connection: socket.socket) -> None:
    connection.recv(10_000)


def rubbish(connection: socket.socket) -> None:
    connection.recv(10_000)
    connection.sendall(b"\x00\xff\r\n" * 4_000)


def endless_head(connection: socket.socket) -> None:
    connection.recv(10_000)
    while True:
        connection.sendall(b"x" * 10_000)


def slow_bytes(connection: socket.socket) -> None:
    connection.recv(10_000)
    for byte in b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def other_server(connection: socket.socket) -> None:
    connection.recv(10_000)
    connection.sendall(asking.hello(b'{"instance": "an instance", "version": "0.1.0", "variables": ["HOME"]}', "00"))
    connection.recv(10_000)


@pytest.mark.parametrize("behave", [silent, closing, rubbish, endless_head, slow_bytes, other_server])
def test_what_only_has_the_port_hears_neither_key_nor_question(
    shell: Shell, behave: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "SILENCE_S", SILENCE_S)
    alone = shell.run("search", "tomatoes", "--no-server")
    with asking.pretending(shell.state, behave) as pretender:
        answer = shell.run("search", "tomatoes")
        key = (shell.state / "server" / "terminal.token").read_bytes().strip()

    assert answer == alone
    assert shell.replies == [None]
    assert pretender.connections >= 1
    assert key not in pretender.heard
    assert b"tomatoes" not in pretender.heard


def test_what_passes_questions_on_to_the_server_gets_none(shell: Shell) -> None:
    with asking.serving() as served:
        host, port = served.url.removeprefix("http://").split(":")

        def relay(connection: socket.socket) -> None:
            with socket.create_connection((host, int(port)), timeout=5) as real:
                real.sendall(connection.recv(10_000))
                connection.sendall(real.recv(10_000))
                connection.recv(10_000)

        with asking.pretending(shell.state, relay, instance=served.record.instance) as pretender:
            code, out, _ = shell.run("search", "tomatoes")

    assert (code, "Rain.md" in out) == (0, True)
    assert shell.replies == [None]
    assert b"tomatoes" not in pretender.heard


HEAD: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 500 No\r\n\r\n",
        HEAD + b"1\r\n \r\n",
        HEAD + b"zz\r\n",
        HEAD + b"-5\r\nabc",
        HEAD + b"2\r\n{}\r\n0\r\n\r\n",
        HEAD + b"2\r\n[]\r\n0\r\n\r\n",
        HEAD + b'd\r\n{"answer": 5}\r\n0\r\n\r\n',
        HEAD + b"fffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
def test_a_server_that_breaks_off_or_answers_rubbish_does_not_hurt(shell: Shell, answer: bytes) -> None:
    alone = shell.run("search", "tomatoes", "--no-server")

    def behave(connection: socket.socket) -> None:
        connection.sendall(asking.honest_hello(shell.state, pretender.port, connection.recv(10_000)))
        connection.recv(100_000)
        connection.sendall(answer)

    with asking.pretending(shell.state, behave) as pretender:
        assert shell.run("search", "tomatoes") == alone

    assert not shell.is_answered
    assert b"tomatoes" in pretender.heard  # it had the key, and was asked


def test_a_server_that_only_shows_signs_of_life_is_left(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "ANSWER_S", 0.3)
    ended = threading.Event()

    def behave(connection: socket.socket) -> None:
        connection.sendall(asking.honest_hello(shell.state, pretender.port, connection.recv(10_000)))
        connection.recv(100_000)
        connection.sendall(HEAD)
        while not ended.wait(0.02):
            connection.sendall(b"1\r\n \r\n")

    with asking.pretending(shell.state, behave) as pretender:
        code = shell.run("search", "tomatoes")[0]
        ended.set()

    assert code == 0
    assert shell.replies == [None]


def test_nobody_waits_longer_than_300_ms_for_silence() -> None:
    assert terminal.SILENCE_S <= 0.3
    assert terminal.BEAT_S < terminal.SILENCE_S / 2


def test_a_byte_now_and_then_prolongs_nothing() -> None:
    ticks = itertools.count(0, 0.1)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        terminal.TerminalExchange(*listener.getsockname(), clock=lambda: next(ticks)) as exchange,
        listener.accept()[0] as connection,
    ):
        connection.sendall(b"HTTP/1.1 200 OK\r\na")

        with pytest.raises(terminal.NoAnswerError):
            _ = exchange.get("/")

    assert next(ticks) < 2 * SILENCE_S


def test_a_command_that_is_answered_imports_nearly_nothing(shell: Shell) -> None:
    program = (
        "import sys; from knapper.cli import main; from knapper.server import terminal;"
        f"terminal.SILENCE_S = {PATIENCE_S}; code = main.run(sys.argv[1:]);"
        "print(code, *sorted(sys.modules), file=sys.stderr)"
    )
    heavy = {"numpy", "pydantic", "httpx2", "http.client", "asyncio", "sqlite3", "pathlib", "tomllib", "difflib"}
    with asking.serving():
        for line in ("search tomatoes", "read Rain.md", "find", "links in Rain", "tool list_tags", "log", "tags"):
            ran = subprocess.run(
                [sys.executable, "-c", program, *line.split(), "--quiet"],
                capture_output=True,
                text=True,
                check=True,
                env=asking.process_variables(),
                cwd=shell.home,
            )
            code, *modules = ran.stderr.split()
            own = {each for each in modules if each.startswith("knapper.")}

            assert code == "0", line
            assert heavy.isdisjoint(modules), line
            assert not {each for each in own if each.startswith(("knapper.app", "knapper.changes", "knapper.vault"))}
            assert len(own) <= 26, (line, own)
