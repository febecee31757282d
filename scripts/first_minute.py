"""Install Knapper as a newcomer does, in a home of its own, use it, and take it away; say how long each step took.

It needs Python and a package index, and no model: a small server on this machine plays one, at a port where model
servers usually are. What it shows is checked, and the first thing that isn't right ends it with 1.
"""

import argparse
import contextlib
import http.server
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
NOTES: Final = 170
MAX_ANSWERS: Final = 3
_USUAL_PORTS: Final = (1234, 8080, 11434)
"""Of LM Studio, llama.cpp and Ollama."""
_MODEL: Final = "tiny-instruct"
_PROMPT: Final = re.compile(r"\]: $")
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LIMIT_S: Final = 1_800.0
_FACT: Final = "The fence by the pond is painted green every third May."


class FirstMinuteError(Exception):
    """Something that was to be shown isn't so."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"first-minute: {text}\n")
    sys.stdout.flush()


def check(is_so: object, what: str) -> None:
    """Raise an error unless something is so."""
    if not is_so:
        raise FirstMinuteError(what)


@dataclass
class Clock:
    """Says how long each step took, and how much of a processor its programs used, which another load changes less."""

    rows: list[tuple[str, float, float]] = field(default_factory=list)

    @contextlib.contextmanager
    def step(self, name: str) -> Generator[None]:
        """Time a step."""
        say(f"{name} …")
        start, before = time.monotonic(), _children_s()
        yield
        self.rows.append((name, time.monotonic() - start, _children_s() - before))
        say(f"{name}: {self.rows[-1][1]:.1f} s")


def _children_s() -> float:
    """Return the processor time of the programs that were started and have ended, so not that of the server."""
    times = os.times()
    return times.children_user + times.children_system


@dataclass(frozen=True)
class Question:
    """What is asked, and where its answer stands."""

    text: str
    note: str
    line: int
    words: str


class _ModelHandler(http.server.BaseHTTPRequestHandler):
    """Plays a model: searches the vault first, then answers with a citation."""

    protocol_version = "HTTP/1.1"
    question: Question

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
        """Log nothing."""
        del format, args

    def do_GET(self) -> None:
        """List the one model, as OpenAI's servers and Ollama do."""
        rows = {"models": [{"name": _MODEL}]} if self.path == "/api/tags" else {"data": [{"id": _MODEL}]}
        self._send("application/json", json.dumps(rows))

    def do_POST(self) -> None:
        """Answer a conversation."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delta = self._reply(asked)
        kind = "tool_calls" if "tool_calls" in delta else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        base = {"id": "x", "created": 1, "model": _MODEL}
        if not asked.get("stream"):
            choices = [{"index": 0, "message": delta, "finish_reason": kind}]
            self._send(
                "application/json",
                json.dumps({**base, "object": "chat.completion", "choices": choices, "usage": usage}),
            )
            return
        rows = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": kind}]},
            {"choices": [], "usage": usage},
        ]
        lines = [json.dumps({**base, "object": "chat.completion.chunk", **row}) for row in rows]
        self._send("text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]))

    def _reply(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if not asked.get("tools"):
            return {"role": "assistant", "content": "ready"}
        if not any(message["role"] == "tool" for message in asked["messages"]):
            function = {"name": "search_vault", "arguments": json.dumps({"query": self.question.words})}
            call = {"index": 0, "id": "call-1", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        cited = f"[[{self.question.note}]] (lines {self.question.line}-{self.question.line})"
        return {"role": "assistant", "content": f"{self.question.words} {cited}"}

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def play_model(question: Question) -> Generator[int]:
    """Play a model at the first usual port that is free; yield the port."""
    handler = type("_Handler", (_ModelHandler,), {"question": question})
    server = None
    for port in _USUAL_PORTS:
        with contextlib.suppress(OSError):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
            break
    if server is None:
        raise FirstMinuteError(
            f"the ports {', '.join(map(str, _USUAL_PORTS))} are all taken, so no model can be played"
        )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def fill_vault(folder: Path) -> Question:
    """Write a vault of notes with links, tags and properties; return a question that one of them answers."""
    topics = ("pond", "roof", "tea", "bees", "walks", "letters", "cellar", "music", "trains", "bread")
    for number in range(NOTES - 1):
        topic = topics[number % len(topics)]
        text = (
            f"---\ntags: [{topic}]\nstatus: {'open' if number % 3 else 'done'}\n---\n# {topic.title()} {number}\n\n"
            f"About {topic}, part {number}. See [[{topics[(number + 1) % len(topics)].title()} {number + 1}]].\n\n"
            f"## Next\n\n- [ ] look at the {topic} again\n"
        )
        file = folder / ("Журнал" if number % 4 == 0 else "Areas") / f"{topic.title()} {number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (folder / "Fence.md").write_text(f"# Fence\n\n{_FACT}\n", encoding="utf-8")
    (folder / ".obsidian").mkdir()
    return Question(text="When is the fence painted, and how?", note="Fence", line=3, words=_FACT)


def choose_question(vault: Path) -> Question:
    """Return a question about a vault that was given: the first line of text of one of its notes."""
    for file in sorted(vault.rglob("*.md")):
        rows = file.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, row in enumerate(rows, 1):
            if row.startswith("# ") and number < len(rows):
                return Question(text=f"What is {row[2:]}?", note=file.stem, line=number, words=row[2:])
    raise FirstMinuteError(f"{vault} has no note with a heading to ask about")


@dataclass(frozen=True)
class Home:
    """A home of its own, and the variables of whoever lives there."""

    folder: Path
    environment: Mapping[str, str]
    supervisor: Path
    """State of the service manager's stand-in; outside the home."""

    def run(self, command: Sequence[str | Path], *, text: str = "") -> str:
        """Run a command there and return what it prints; an error if it fails."""
        done = subprocess.run(
            [str(word) for word in command],
            env=dict(self.environment),
            cwd=self.folder,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )
        shown = f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        check(done.returncode == 0, shown)
        return done.stdout

    def files(self) -> set[str]:
        """Return all files below, by their paths."""
        return {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if not path.is_dir() or path.is_symlink()
        }


def make_home(work: Path, python: str) -> Home:
    """Make an empty home, whose name has a space and letters of another script, with Cursor installed."""
    folder = work / "home Ж"
    programs = work / "programs"
    for each in (folder / ".cursor", folder / ".config" / "obsidian", programs):
        each.mkdir(parents=True)
    stand_in = ROOT / "tests" / "service" / "supervisor.py"
    (programs / "systemctl").write_text(f'#!/bin/sh\nexec "{python}" "{stand_in}" "$@"\n', encoding="utf-8")
    (programs / "systemctl").chmod(0o755)
    kept = {
        name: os.environ[name]
        for name in ("LANG", "LC_ALL", "PIP_CERT", "SSL_CERT_FILE", "TMPDIR")
        if name in os.environ
    }
    kept |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    cache = subprocess.run(
        [python, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    own_config = next(
        (
            file
            for file in (Path.home() / ".config" / "pip" / "pip.conf", Path.home() / ".pip" / "pip.conf")
            if file.is_file()
        ),
        None,
    )
    return Home(
        folder=folder,
        environment={
            **kept,
            "HOME": str(folder),
            "PATH": f"{programs}:{folder / '.local' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "PYTHON": python,
            "TERM": "xterm",
            "XDG_CONFIG_HOME": str(folder / ".config"),
            "XDG_DATA_HOME": str(folder / ".local" / "share"),
            "XDG_STATE_HOME": str(folder / ".local" / "state"),
            "XDG_CACHE_HOME": str(work / "cache"),
            "SUPERVISOR_STATE": str(work / "services"),
            **({"PIP_CACHE_DIR": cache} if cache else {}),
            **({"PIP_CONFIG_FILE": str(own_config)} if own_config else {}),
        },
        supervisor=work / "services",
    )


def answer_questions(home: Home, command: Sequence[str]) -> tuple[int, str]:
    """Run a command at a terminal and answer each question with Enter; return how many, and what it printed."""
    import fcntl  # noqa: PLC0415 - Windows has none
    import pty  # noqa: PLC0415 - the same
    import termios  # noqa: PLC0415 - the same

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=dict(home.environment),
        cwd=home.folder,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    printed, answers, seen = "", 0, 0
    stop = time.monotonic() + _LIMIT_S
    while True:
        check(time.monotonic() < stop, f"it doesn't end:\n{printed}")
        is_quiet = not select.select([ours], [], [], 0.5)[0]
        if is_quiet and _PROMPT.search(_ESCAPES.sub("", printed[seen:])):
            say(f"  it asks: {_ESCAPES.sub('', printed).splitlines()[-1].strip()} (Enter)")
            answers, seen = answers + 1, len(printed)
            os.write(ours, b"\r")
        if is_quiet:
            if process.poll() is not None:
                break
            continue
        try:
            printed += os.read(ours, 65_536).decode(errors="replace")
        except OSError:
            break
    os.close(ours)
    shown = _ESCAPES.sub("", printed).replace("\r\n", "\n")
    check(process.wait(60) == 0, f"{command[0]} ended with {process.returncode}:\n{shown}")
    return answers, shown


def call_mcp(home: Home, query: str) -> str:
    """Start what Cursor's settings name, as Cursor would, and call one tool; return its answer's text."""
    settings = json.loads((home.folder / ".cursor" / "mcp.json").read_text(encoding="utf-8"))
    entry = settings["mcpServers"]["knapper"]
    process = subprocess.Popen(
        [entry["command"], *entry["args"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**home.environment, **entry.get("env", {})},
        cwd="/",
        text=True,
        encoding="utf-8",
    )
    try:
        first = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "first-minute", "version": "1"},
        }
        _ = _request(process, 1, "initialize", first)
        _send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"name": "search_vault", "arguments": {"query": query}}
        result = _request(process, 2, "tools/call", call)
        check(not result.get("isError"), f"the tool's call failed: {result}")
        return json.dumps(result, ensure_ascii=False)
    finally:
        process.kill()
        process.communicate()


def _send(process: "subprocess.Popen[str]", message: Mapping[str, object]) -> None:
    check(process.stdin, "there is no pipe")
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def _request(
    process: "subprocess.Popen[str]", number: int, method: str, params: Mapping[str, object]
) -> dict[str, Any]:
    _send(process, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    for line in process.stdout or ():
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            check("result" in message, f"{method} failed: {message}")
            return message["result"]
    raise FirstMinuteError(f"the MCP server ended before it answered {method}")


def build_wheel(python: str, folder: Path) -> Path:
    """Build a wheel, as a release does."""
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"the wheel can't be built:\n{done.stderr}")
    return next(folder.glob("*.whl"))


def check_left(before: set[str], home: Home, shown: str) -> list[str]:
    """Return what is left after uninstalling; an error if the uninstaller didn't name it."""
    left = sorted(home.files() - before)
    gone = sorted(before - home.files())
    check(not gone, f"uninstalling removed what wasn't ours: {gone}")
    named = re.search(
        r"what stays: your notes; the settings in (.+), and prompts beside them; the index and the journal in (.+)$",
        shown,
        re.MULTILINE,
    )
    check(named, f"it doesn't name what stays:\n{shown}")
    places = [Path(named[1]), Path(named[1]).with_name("prompts"), Path(named[2])] if named else []
    check(
        "beside the settings of MCP clients stay copies" in shown,
        f"it doesn't name the copies of the MCP clients' settings:\n{shown}",
    )
    unnamed = [
        name
        for name in left
        if not any((home.folder / name).is_relative_to(place) for place in places)
        and not name.startswith(".cursor/mcp.json")
        and not name.endswith(".obsidian/community-plugins.json")
    ]
    check(not unnamed, f"it left what it didn't name: {unnamed}")
    return left


def show(home: Home, vault: Path, question: Question, wheel: Path, clock: Clock) -> None:
    """Install, use and remove Knapper; each result is checked."""
    registry = {"vaults": {"0123456789abcdef": {"path": str(vault), "ts": 1, "open": True}}}
    (home.folder / ".config" / "obsidian" / "obsidian.json").write_text(json.dumps(registry), encoding="utf-8")
    notes_before = _read_notes(vault)
    before = home.files()
    knap = home.folder / ".local" / "bin" / "knap"
    with play_model(question) as port:
        say(f"a model is played at port {port}; the service manager is a stand-in that really starts the server")
        start = time.monotonic()
        with clock.step("one command: ./install.sh"):
            answers, printed = answer_questions(home, [str(ROOT / "install.sh"), "--venv", f"--wheel={wheel}"])
        for line in printed.splitlines():
            if line.lstrip().startswith(("✓", "✗", "-")):
                say(f"  {line.strip()}")
        check(answers <= MAX_ANSWERS, f"it asked {answers} questions, more than {MAX_ANSWERS}")
        check("✗" not in printed, f"a step failed:\n{printed}")
        with clock.step("an answer from one's own notes"):
            answer = home.run([knap, "ask", question.text, "--quiet"])
        check(f"[[{question.note}" in answer, f"the answer cites no note: {answer}")
        say(f"  {answer.strip()}")
        with clock.step("the running server"):
            state = json.loads(home.run([knap, "service", "status", "--json"]))
            check(state.get("url"), f"the server doesn't answer: {state}")
            with urllib.request.urlopen(f"{state['url']}/health", timeout=10) as reply:  # noqa: S310 - our own, on loopback
                health = json.loads(reply.read())
        check(health.get("product") == "knapper", f"another program answers there: {health}")
        with clock.step("an MCP client's first tool call"):
            found = call_mcp(home, question.words)
        check(question.note in found, f"the tool doesn't find the note: {found[:500]}")
        say(f"all of it, with {answers} answers: {time.monotonic() - start:.1f} s")
        with clock.step("uninstall.sh"):
            shown = home.run([ROOT / "uninstall.sh", "--yes"])
    check(not _answers(state["url"]), "the server still runs")
    left = check_left(before, home, shown)
    check("knapper" not in (home.folder / ".cursor" / "mcp.json").read_text(encoding="utf-8"), "a client still has it")
    check(_read_notes(vault) == notes_before, "a note was changed")
    say(f"  {len(left)} files are left, all named: settings, index and journal, and a copy of the MCP client's")


def _read_notes(vault: Path) -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in vault.rglob("*.md")}


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2):  # noqa: S310 - as above
        return True
    return False


@contextlib.contextmanager
def _working_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="knapper-first-minute-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    """Run it; return 1 if something isn't as it should be."""
    parser = argparse.ArgumentParser(prog="scripts/first-minute", description=__doc__)
    parser.add_argument("--vault", type=Path, help="a vault in place of the generated one; its notes aren't changed")
    parser.add_argument("--wheel", type=Path, help="a wheel in place of one that is built now")
    parser.add_argument("--python", default=sys.executable, help="the Python to install with")
    own = parser.parse_args(arguments)
    if not sys.platform.startswith("linux"):
        say("left out: the stand-in for the service manager is one of Linux's")
        return 0
    clock = Clock()
    with _working_folder() as work:
        home = make_home(work, own.python)
        vault = own.vault.absolute() if own.vault else home.folder / "Мои заметки"
        question = choose_question(vault) if own.vault else fill_vault(vault)
        try:
            with clock.step("building the wheel, which a release has done"):
                wheel = own.wheel.absolute() if own.wheel else build_wheel(own.python, work)
            show(home, vault, question, wheel, clock)
        except FirstMinuteError as error:
            say(f"failed: {error}")
            for log in sorted(home.supervisor.glob("log")):
                say(log.read_text(encoding="utf-8", errors="replace"))
            return 1
        finally:
            stop_service(home)
    say("     time   processor  step")
    for name, seconds, work in clock.rows:
        say(f"{seconds:7.1f} s {work:9.1f} s  {name}")
    say(f"the load over the last minute is {os.getloadavg()[0]:.1f}, with {os.cpu_count()} processors")
    return 0


def stop_service(home: Home) -> None:
    """Stop the server, should it still run."""
    command = [sys.executable, str(ROOT / "tests" / "service" / "supervisor.py"), "--user", "stop", "knapper.service"]
    subprocess.run(command, env=dict(home.environment), check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
