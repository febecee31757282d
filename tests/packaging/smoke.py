"""Try an installed Knapper as its users do, with the standard library alone: ``python smoke.py KNAP VERSION [--core]``.

With ``--core`` no extra is installed: every command of the core has to work, and what needs an extra has to say which
command brings it.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

NOTE = "# Fence\n\nThe fence is green. See [[Gate]].\n"
COMMANDS: Sequence[Sequence[str]] = (
    ("index",),
    ("search", "green fence"),
    ("find", "Fence"),
    ("ask", "what colour has the fence"),
    ("read", "Fence"),
    ("info", "Fence"),
    ("links", "in", "Gate"),
    ("tags",),
    ("props", "Fence"),
    ("status",),
    ("edit", "Fence.md", "green", "red"),
    ("undo",),
    ("new", "New.md", "--text", "hello"),
    ("move", "New.md", "Old.md"),
    ("edits",),
    ("log",),
    ("history",),
    ("tools",),
    ("config",),
    ("presets",),
    ("sessions",),
    ("trust",),
    ("tool", "get_current_date"),
    ("mcp", "install", "cursor", "--dry-run"),
    ("eval", "--help"),
)
MISSING = (
    (("ask", "--model", "ollama:any", "what colour has the fence"), "models"),
    (("run", "--model", "ollama:any", "describe the fence"), "models"),
)
REQUESTS: Sequence[Mapping[str, object]] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "smoke", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "search_vault", "arguments": {"query": "green fence"}},
    },
)


LISTS = ("prompts/list", "resources/list", "resources/templates/list")


class Trial:
    """An installed program, with a vault, a state and a home of its own."""

    def __init__(self, knap: Path, folder: Path) -> None:
        self.knap = knap
        self.vault = folder / "Notizen Ж 山"
        self.vault.mkdir()
        (self.vault / "Fence.md").write_text(NOTE, encoding="utf-8")
        (self.vault / "Gate.md").write_text("# Gate\n\n#wood\n", encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KNAP_", "PYTHON", "VAULT_"))}  # noqa: TID251
        self.environment = {
            **kept,
            "HOME": str(folder),
            "USERPROFILE": str(folder),
            "KNAP_STATE_DIR": str(folder / "state"),
            "KNAP_CONFIG": str(folder / "config.toml"),
        }

    def run(self, *arguments: str, expected: int | None = 0, given: str = "") -> str:
        """Run a command, and return what it printed."""
        done = subprocess.run(
            [str(self.knap), "--vault", str(self.vault), *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        if (expected is not None and done.returncode != expected) or "Traceback" in done.stderr:
            sys.exit(f"smoke: knap {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def require(self, words: str, *arguments: str, given: str = "", expected: int | None = 0) -> None:
        """Run a command that has to print some words."""
        printed = self.run(*arguments, given=given, expected=expected)
        if words not in printed:
            sys.exit(f"smoke: knap {' '.join(arguments)} doesn't print '{words}':\n{printed}")

    def talk_over_mcp(self) -> None:
        """Have a tool called over MCP."""
        more: list[Mapping[str, object]] = [
            {"jsonrpc": "2.0", "id": 10 + number, "method": name} for number, name in enumerate(LISTS)
        ]
        review = {"name": "weekly_review", "arguments": {"days": "3"}}
        more.append({"jsonrpc": "2.0", "id": 20, "method": "prompts/get", "params": review})
        lines = "".join(f"{json.dumps(request)}\n" for request in [*REQUESTS, *more])
        printed = self.converse(lines, answers=3 + len(more))
        answers = {answer["id"]: answer for answer in map(json.loads, printed) if "id" in answer}
        failed = [answer for answer in answers.values() if "error" in answer]
        if failed:
            sys.exit(f"smoke: MCP answers {failed}")
        names = {tool["name"] for tool in answers[2]["result"]["tools"]}
        if not {"search_vault", "edit_file"} <= names or "Fence.md" not in json.dumps(answers[3]):
            sys.exit(f"smoke: MCP answers {answers}")

    def converse(self, lines: str, *, answers: int) -> list[str]:
        """Start the MCP server, send lines, and return as many lines as it answers."""
        command = [str(self.knap), "--vault", str(self.vault), "mcp"]
        with subprocess.Popen(
            command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(lines.encode())
            server.stdin.flush()
            printed = [server.stdout.readline().decode() for _ in range(answers)]
            server.stdin.close()
            server.wait(30)
        return printed

    @contextlib.contextmanager
    def serving(self) -> Generator[str]:
        """Start the HTTP server; give its address, and stop it at the end."""
        command = [str(self.knap), "--vault", str(self.vault), "serve", "--port", "0", "--json"]
        with subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as server:
            try:
                assert server.stdout is not None
                yield json.loads(server.stdout.readline())["url"]
            finally:
                server.terminate()
                server.wait(30)

    def visit(self, path: str, **body: object) -> tuple[int, str]:
        """Ask the running server, with the token that it made."""
        record = json.loads(next((Path(self.environment["KNAP_STATE_DIR"])).rglob("server.json")).read_text("utf-8"))
        file = next(Path(self.environment["KNAP_STATE_DIR"]).rglob("api.token"), None)
        token = file.read_text("utf-8").strip() if file else ""
        request = urllib.request.Request(
            record["url"].rstrip("/") + path,
            data=json.dumps(body).encode() if body else None,
            headers={
                "authorization": f"Bearer {token}",
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def try_core(trial: Trial) -> None:
    """Run what a core installation offers, and what it says of the rest."""
    for command in COMMANDS:
        trial.run(*command)
    trial.require("3", "script", "-", given="__result__ = 1 + 2\n")
    trial.run("doctor", expected=None)
    trial.run("setup", "--json", "--model", "none", "--no-service", "--no-clients")
    for command, extra in MISSING:
        trial.require(f"'{extra}'", *command, expected=3)
        trial.require("knapper[", *command, expected=3)
    with trial.serving():
        status, body = trial.visit("/health")
        page, html = trial.visit("/")
        if status != 200 or '"knapper"' not in body or page != 200 or "<html" not in html:
            sys.exit(f"smoke: the server answers {status}, {body}; {page}")
        status, body = trial.visit("/mcp", **REQUESTS[0])
        if status != 200 or "serverInfo" not in body:
            sys.exit(f"smoke: MCP over HTTP answers {status}, {body}")
        status, body = trial.visit("/chat", message="hello")
        if "knapper[" not in body and "no_model" not in body:
            sys.exit(f"smoke: a chat without models answers {status}, {body}")


def main() -> None:
    """Try the program that the arguments name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("knap", type=Path)
    parser.add_argument("version")
    parser.add_argument("--core", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="knapper smoke Ж ", ignore_cleanup_errors=True) as folder:
        trial = Trial(options.knap, Path(folder))
        trial.require(options.version, "--version")
        if options.core:
            try_core(trial)
        else:
            trial.require("Fence.md", "search", "green fence")
        trial.talk_over_mcp()
    print(f"smoke: {options.knap.name} {options.version} works ({time.monotonic() - start:.0f} s)")  # noqa: T201


if __name__ == "__main__":
    main()
