"""Trace requests, and count the modules that each runs through and the calls that cross from one into another."""

import argparse
import asyncio
import contextlib
import hashlib
import http.client
import io
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from bench import frame
from bench.frame import Goal, Report, Row
from bench.places import ROOT, Places

SUMMARY = "the modules that a request runs through, and the calls that cross into another one"
_PRODUCT = (ROOT / "src" / "knapper").resolve()
_GUESTS = {"data", "guest"}
"""Folders of the product whose code runs elsewhere."""
_NOTES = {
    "Garden.md": "---\nstatus: open\ntags: [outdoors]\n---\n# Garden\n\n## Watering\n\nEvery evening, with [[Rain]].\n"
    "\n## Tasks\n\n- [ ] weed\n",
    "Rain.md": "# Rain\n\nIt rains on the tomatoes. #weather\n",
    "Plans/Trip.md": "---\nDate: 2026-05-01\n---\n# Trip\n\nSee [[Garden#Watering]] and [[Nowhere]].\n",
    "Plans/Old.md": "# Old\n\nNobody links here.\n",
    **{f"Beds/Bed {number}.md": f"# Bed {number}\n\nTomatoes and basil. See [[Garden]].\n" for number in range(5)},
}
_WARM = 2
"""Calls of each request; the last one is traced."""
_TOKEN = "c" * 43
_WORDS = ("rains", "pours")
"""What the edits put in each other's place, in turn."""
_START_S = 60.0
_FLOW = "flow.json"
_ANSWER = "Every evening."
_AT_ONCE = "in one round"
"""Has the scout's model choose in the reply in which it looks."""
_WHOLE = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "scripted",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": _ANSWER}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
_CHUNK = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}

Calls = Sequence[tuple[str, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Flow:
    """What one request came to."""

    modules: Mapping[str, Sequence[str]]
    """In the order in which they were first entered, each with the functions that ran in it."""
    crossings: int
    """Calls from one module straight into another one."""


@dataclass(slots=True)
class Tracer:
    """Follows the product's frames in all threads that begin after it, while it is on."""

    file: Path
    """Where the flow is kept: servers end their process by themselves."""
    on: bool = False
    modules: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    """The functions that ran, by module."""
    crossings: int = 0
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, entered: FrameType, event: str, _: object) -> None:
        """Count a call; bodies of modules, which only run when they are imported, don't count."""
        if not self.on or event != "call" or entered.f_code.co_name == "<module>":
            return
        if module := self._module(entered):
            self.modules.setdefault(module, {}).setdefault(entered.f_code.co_qualname)
            caller = self._module(entered.f_back) if entered.f_back else ""
            self.crossings += caller not in {"", module}

    def _module(self, entered: FrameType) -> str:
        file = entered.f_code.co_filename
        if file not in self._names:
            self._names[file] = _module_name(Path(file))
        return self._names[file]

    @contextlib.contextmanager
    def tracing(self) -> Generator[None]:
        """Trace what happens meanwhile, and forget what was traced before."""
        self.modules, self.crossings, self.on = {}, 0, True
        try:
            yield
        finally:
            self.on = False

    def save(self) -> None:
        """Keep what was traced last."""
        self.file.write_text(
            json.dumps([{module: list(names) for module, names in self.modules.items()}, self.crossings]),
            encoding="utf-8",
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list each flow's modules, in order of first entry")
    parser.add_argument("--modules", action="store_true", help="the same, each with the functions that ran in it")
    parser.add_argument("--only", choices=tuple(_FLOWS), help="one flow alone")


def run(places: Places, options: argparse.Namespace) -> Report:
    flows = {name: measure(places, name) for name in _FLOWS if options.only in {None, name}}
    rows = [
        row
        for name, flow in flows.items()
        for row in (
            Row(what=f"{name}: modules", values=[len(flow.modules)], goal=Goal(limit=GOALS[name] + 1)),
            Row(what=f"{name}: calls into another module", values=[flow.crossings]),
        )
    ]
    about = (
        f"Requests over a vault of {len(_NOTES)} notes, each in a process of its own, traced by `sys.setprofile` in "
        "all threads: the first call of a command, which imports what it needs, and the second one of a server. A chat "
        "turn and a run of one part are commands, which read the configuration and open the vault, too; the turn of an "
        "open chat, the round of an open scout (one call of its model, with the tools called) and the node of an open "
        "run are what is done for each where all is open. A call counts where a function of one module calls straight "
        "into another one."
    )
    lists = [f"{name}: {', '.join(flow.modules)}" for name, flow in flows.items() if options.list]
    functions = [
        f"{name}: {module}: {', '.join(names)}"
        for name, flow in flows.items()
        if options.modules
        for module, names in flow.modules.items()
    ]
    return Report(title="Flows", about=about, rows=rows, remarks=[*lists, *functions])


def search(folder: Path, tracer: Tracer) -> None:
    """Search on the command line, once."""
    del folder
    _begin(tracer)
    with tracer.tracing(), contextlib.redirect_stdout(io.StringIO()):
        _knap("search", "tomatoes")
    tracer.save()


def edit(folder: Path, tracer: Tracer) -> None:
    """Edit a note over MCP's pipes."""
    del folder
    requests, asked = os.pipe()
    answered, answers = os.pipe()
    sys.stdin, sys.stdout = os.fdopen(requests, encoding="utf-8"), os.fdopen(answers, "w", encoding="utf-8")
    with os.fdopen(asked, "wb", buffering=0) as ask, os.fdopen(answered, "rb") as answer:

        def talk(method: str, params: Mapping[str, object], number: int) -> dict[str, Any]:
            ask.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
            while True:
                told = json.loads(answer.readline())
                if told.get("id") == number:
                    return told["result"]

        def client() -> None:
            hello = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }
            _ = talk("initialize", hello, 1)
            ask.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            for number in range(_WARM):
                with tracer.tracing():
                    result = talk("tools/call", {"name": "edit_file", "arguments": _edit(number)}, 2 + number)
                _check(result["structuredContent"], "applied")
            tracer.save()

        _begin(tracer)
        _beside(client, ask.close, "mcp", "--no-watch")


def accept(folder: Path, tracer: Tracer) -> None:
    """Accept a proposed edit over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ask(method: str, path: str, token: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_START_S)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            return json.loads(connection.getresponse().read())

    def client() -> None:
        _until_open(port)
        _ = ask("GET", "/health", "")  # the port is taken before the tokens are made
        person = (folder / "state" / "server" / "page.token").read_text(encoding="ascii").strip()
        for number in range(_WARM):
            proposal = ask("POST", "/tools/edit_file", _TOKEN, _edit(number))["proposal_id"]
            digest = ask("GET", f"/proposals/{proposal}", person)["digest"]
            with tracer.tracing():
                answer = ask("POST", f"/proposals/{proposal}/accept", person, {"digest": digest})
            _check(answer, "applied")
        tracer.save()

    _begin(tracer)
    _beside(client, lambda: signal.raise_signal(signal.SIGINT), "serve", "--port", str(port), "--no-watch")


def scout(folder: Path, tracer: Tracer) -> None:
    """Have the scout look for notes, with a model that says what a script has."""
    _begin(tracer)
    with _model() as address:
        _configure(folder, f'[model]\nname = "scripted@{address}"\n')
        _call(folder, tracer, "scout_vault", {"task": "plan the watering"})


def chat(folder: Path, tracer: Tracer) -> None:
    """Answer a question on the command line, with a model that searches once."""
    _talk(folder, tracer, "ask", "when do I water?")


def run_part(folder: Path, tracer: Tracer) -> None:
    """Carry out a run of one part on the command line, which a search finds the notes for."""
    _talk(folder, tracer, "run", "when do I water?", "--depth", "0", "--no-code-mode", "--fresh")


def turn(folder: Path, tracer: Tracer) -> None:
    """Answer a message in an open session, as a server does, with a model that searches once."""
    _begin(tracer)
    with _model() as address:
        _configure(folder, f'[model]\nname = "scripted@{address}"\n')
        from knapper import app, config  # noqa: PLC0415 - as in `_call`
        from knapper.agents.chat.turn import Message  # noqa: PLC0415 - the same
        from knapper.app import chats  # noqa: PLC0415 - the same

        settings = config.load({"default_vault": "v"}, config_file=str(folder / "config.toml"))
        with app.open_hub(settings) as hub, chats.open_chats(hub) as opened, asyncio.Runner() as runner:
            chat, session = opened.chat(), opened.store.begin()
            message = Message(text="when do I water?")
            for _ in range(_WARM):
                with tracer.tracing():
                    done = runner.run(opened.conversations.reply(chat, session.id, message, lambda _: None))
                if done.answer != _ANSWER:
                    sys.exit(f"bench: the turn failed: {done}")
    tracer.save()


def node(folder: Path, tracer: Tracer) -> None:
    """Carry out a run of one node where runs are open, as a server does."""
    _begin(tracer)
    with _model() as address:
        _configure(folder, f'[model]\nname = "scripted@{address}"\n')
        from knapper import app, config  # noqa: PLC0415 - as in `_call`
        from knapper.agents.runs import executor  # noqa: PLC0415 - the same
        from knapper.agents.runs.model import RunLimits, RunOrder  # noqa: PLC0415 - the same
        from knapper.app import runs  # noqa: PLC0415 - the same

        settings = config.load({"default_vault": "v"}, config_file=str(folder / "config.toml"))
        order = RunOrder(task="when do I water?", code_mode=False, fresh=True, limits=RunLimits(depth=0))
        with app.open_hub(settings) as hub, runs.open_runs(hub) as opened, asyncio.Runner() as runner:
            engine = opened.engine()
            for _ in range(_WARM):
                with tracer.tracing():
                    run = executor.create_run(engine, order)
                    ended = runner.run(executor.carry_out_run(engine, run.id, lambda _: None))
                if ended.state != "complete":
                    sys.exit(f"bench: the run failed: {ended}")
    tracer.save()


def scout_round(folder: Path, tracer: Tracer) -> None:
    """Have the scout of an open task ask its model once, and carry out its calls, as a server does."""
    _begin(tracer)
    with _model() as address:
        _configure(folder, f'[model]\nname = "scripted@{address}"\n')
        from knapper import app, config  # noqa: PLC0415 - as in `_call`
        from knapper.agents.pipeline.scout import ScoutRun, ScoutTask  # noqa: PLC0415 - the same
        from knapper.app import pipelines  # noqa: PLC0415 - the same

        settings = config.load({"default_vault": "v"}, config_file=str(folder / "config.toml"))
        with app.open_hub(settings) as hub, pipelines.open_pipelines(hub) as opened, asyncio.Runner() as runner:
            agents = opened.answering().agents
            for number in range(_WARM):
                task = ScoutTask(task=f"plan the watering, {_AT_ONCE}")
                with tracer.tracing():
                    work = ScoutRun(agents.make_scout(), opened.chats.conversations.context_of(f"scout{number}"), task)
                    found = runner.run(work.run(lambda _: None))
                if (found.rounds, len(found.selected_notes)) != (1, len(_ScriptedModel.CHOSEN)):
                    sys.exit(f"bench: the scout failed: {found}")
    tracer.save()


def script(folder: Path, tracer: Tracer) -> None:
    """Run a script in the sandbox; only this process is traced."""
    _begin(tracer)
    _call(folder, tracer, "run_script", {"code": "__result__ = obsidian.list_notes()", "timeout_s": 60})


_FLOWS: Mapping[str, Callable[[Path, Tracer], None]] = {
    "search": search,
    "MCP edit": edit,
    "HTTP accept": accept,
    "scout run": scout,
    "script": script,
    "chat turn": chat,
    "run of one part": run_part,
    "turn of an open chat": turn,
    "round of an open scout": scout_round,
    "node of an open run": node,
}
GOALS = {
    "search": 58,
    "MCP edit": 56,
    "HTTP accept": 48,
    "scout run": 60,
    "script": 16,
    "chat turn": 50,
    "run of one part": 50,
    "turn of an open chat": 49,
    "round of an open scout": 49,
    "node of an open run": 49,
}
"""The most that each may run through."""


def prepare(folder: Path) -> None:
    """Make a vault and its index."""
    for path, text in _NOTES.items():
        note = folder / "vault" / path
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(text, encoding="utf-8")
    _configure(folder)
    _enter(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        _knap("index", "--quiet")


def trace(name: str, folder: Path) -> None:
    """Trace one flow."""
    _enter(folder)
    _FLOWS[name](folder, Tracer(folder / _FLOW))


def measure(places: Places, name: str) -> Flow:
    """Trace one flow, in a process of its own."""
    frame.say(name)
    with TemporaryDirectory(dir=places.cache, ignore_cleanup_errors=True) as base:
        folder = Path(base)
        frame.in_child(prepare, folder)  # in another process, so that nothing that it imports is there already
        process = multiprocessing.get_context("spawn").Process(target=trace, args=(name, folder))
        process.start()
        process.join()
        if not (folder / _FLOW).exists():
            sys.exit(f"bench: {name} failed; its process ended with {process.exitcode}")
        modules, crossings = json.loads((folder / _FLOW).read_text(encoding="utf-8"))
    return Flow(modules, crossings)


def _enter(folder: Path) -> None:
    """Have this process, which is a child of its own, know nobody's settings but the folder's."""
    mine = {"KNAP_CONFIG": str(folder / "config.toml"), "HOME": str(folder)}
    os.environ.update(mine)  # noqa: TID251 - `knap` reads it in this process


def _configure(folder: Path, more: str = "") -> None:
    token_hash = f"sha256:{hashlib.sha256(_TOKEN.encode()).hexdigest()}"
    text = (
        f"state_dir = '{folder / 'state'}'\n[vaults.v]\npath = '{folder / 'vault'}'\n"
        f'[clients.careful]\nkind = "http"\nsmall = "propose"\ntoken_hash = "{token_hash}"\n{more}'
    )
    (folder / "config.toml").write_text(text, encoding="utf-8")


def _begin(tracer: Tracer) -> None:
    """Trace this thread, and those that begin from now on."""
    sys.setprofile(tracer)
    threading.setprofile(tracer)


def _knap(*arguments: str) -> None:
    """Run `knap` in this process, as its own script does."""
    (program,) = entry_points(group="console_scripts", name="knap")
    sys.argv = ["knap", *arguments]
    with contextlib.suppress(SystemExit):
        program.load()()


def _beside(client: Callable[[], None], end: Callable[[], None], *arguments: str) -> None:
    """Run a server in this thread, and its client in another one; the server ends with it, whatever happens."""

    def talk() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(end)
            client()

    threading.Thread(target=talk).start()
    _knap(*arguments)


def _talk(folder: Path, tracer: Tracer, *command: str) -> None:
    """Run a command that a model answers; the second one is traced."""
    _begin(tracer)
    with _model() as address:
        _configure(folder, f'[model]\nname = "scripted@{address}"\n')
        for _ in range(_WARM):
            output = io.StringIO()
            with tracer.tracing(), contextlib.redirect_stdout(output):
                _knap(*command)
            if _ANSWER not in output.getvalue():
                sys.exit(f"bench: {command} failed: {output.getvalue()}")
    tracer.save()


def _call(folder: Path, tracer: Tracer, name: str, arguments: Mapping[str, object]) -> None:
    """Call a tool of the table, in this process."""
    from knapper import app, config  # noqa: PLC0415 - a command that is traced finds nothing imported

    settings = config.load({"default_vault": "v"}, config_file=str(folder / "config.toml"))
    with app.open_hub(settings) as hub:
        for _ in range(_WARM):
            with tracer.tracing():
                answer = hub.table.answer(name, dict(arguments), lambda vault: hub.context(client="mcp", vault=vault))
            if not answer["success"]:
                sys.exit(f"bench: {name} failed: {answer}")
    tracer.save()


def _edit(number: int) -> dict[str, object]:
    old, new = _WORDS if number % 2 == 0 else reversed(_WORDS)
    return {"path": "Rain.md", "old_text": old, "new_text": new}


def _check(answer: Mapping[str, object], status: str) -> None:
    if answer.get("status") != status:
        raise RuntimeError(f"expected {status}: {answer}")  # shown by the thread that it ends


def _until_open(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise RuntimeError("the server doesn't answer")


def _module_name(file: Path) -> str:
    """Name a module of the product; empty for any other file."""
    if not file.is_relative_to(_PRODUCT):
        return ""
    parts = file.relative_to(_PRODUCT).with_suffix("").parts
    return "" if _GUESTS & set(parts) else ".".join(parts).removesuffix(".__init__")


class _ScriptedModel(BaseHTTPRequestHandler):
    """Searches once, then answers; a scout chooses."""

    CHOSEN = ("Garden.md", "Rain.md")
    LOOK: Calls = (("search_keyword", {"query": "tomatoes"}),)
    CHOOSE: Calls = (("update_selection", {"selected_paths": list(CHOSEN), "reasoning": "both", "confidence": "done"}),)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        del format, args

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tools = {tool["function"]["name"] for tool in request.get("tools", ())}
        last = request["messages"][-1]
        is_second = last["role"] == "tool"
        if "update_selection" in tools and _AT_ONCE in str(last["content"]):
            lines = _call_chunks((*self.LOOK, *self.CHOOSE))
        elif "update_selection" in tools:
            lines = _call_chunks(self.CHOOSE if is_second else self.LOOK)
        elif is_second or "search_vault" not in tools:
            lines = _text_chunks(_ANSWER)
        else:
            lines = _call_chunks((("search_vault", {"query": "watering"}),))
        if request.get("stream"):
            kind, body = "text/event-stream", "".join(f"data: {line}\n\n" for line in lines).encode()
        else:
            kind, body = "application/json", json.dumps(_WHOLE).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _call_chunks(calls: Calls) -> Iterator[str]:
    """Write calls of tools as OpenAI's protocol streams them."""
    for number, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        delta = {"tool_calls": [{"index": number, "id": f"c{number}", "type": "function", "function": function}]}
        yield _chunk(delta, None)
    yield from _end_chunks("tool_calls")


def _text_chunks(text: str) -> Iterator[str]:
    yield _chunk({"role": "assistant", "content": text}, None)
    yield from _end_chunks("stop")


def _end_chunks(reason: str) -> Iterator[str]:
    yield _chunk({}, reason)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield json.dumps({**_CHUNK, "choices": [], "usage": usage})
    yield "[DONE]"


def _chunk(delta: Mapping[str, object], reason: str | None) -> str:
    return json.dumps({**_CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


@contextlib.contextmanager
def _model() -> Generator[str]:
    """Serve the scripted model; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _ScriptedModel)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
