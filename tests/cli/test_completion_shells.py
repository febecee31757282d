"""Completions in real shells at a terminal: what Tab inserts is the note's name again, and nothing of it is run."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from knapper import config
from knapper.cli import main
from knapper.cli.commands import completion
from tests.index import worlds

SHELLS = ("bash", "zsh", "fish")
LIMIT_S = 100.0
HOSTILE = (
    "aa $(touch pwned).md",
    "bb `touch pwned`.md",
    "cc ; touch pwned #.md",
    "dd \"q\" 's' \\ back.md",
    "ee !! & | < * ? [x] {a,b} ~ $HOME %self =ls.md",
    "ff' ; touch pwned '.md",
    'gg" ; touch pwned ".md',
    "hh Заметка 日本 é.md",
    "ii\ntouch pwned\n.md",
    "-jj; touch pwned.md",
    "kk \\$(touch pwned).md",
)
STEERING = ("mm bi\u202edi.md", "nn \x1b[31mred.md", "oo \x9b31m.md")
FORBIDDEN = ("\u202e", "\x1b[31mred", "\x9b31m")
"""What must not come to the terminal from a name; shells send escape sequences of their own."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="these shells have no terminal there"),
]


class Typed:
    """A shell at a terminal of its own, with a `knap` that completes as ours does and writes down how it is called."""

    def __init__(self, shell: str, home: Path) -> None:
        if not shutil.which(shell):
            pytest.skip(f"there is no {shell} here")
        self._shell, self._home = shell, home
        self.calls = home / "calls"
        self.folder = home / "work"
        self.folder.mkdir()
        (self.folder / ".hushlogin").touch()
        programs = home / "programs"
        programs.mkdir()
        code = (
            "import json, sys; args = sys.argv[1:]\n"
            "if args[:1] == ['__complete']:\n    from knapper.cli.__main__ import main; main()\n"
            f"open({str(self.calls)!r}, 'a').write(json.dumps(args) + chr(10))\n"
        )
        (home / "knap.py").write_text(code, encoding="utf-8")
        (programs / "knap").write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{home / "knap.py"}" "$@"\n', encoding="utf-8"
        )
        (programs / "knap").chmod(0o755)
        self.environment = {
            **config.environment_variables(),
            "PATH": f"{programs}:{os.defpath}:/usr/bin:/bin",
            "TERM": "xterm",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HISTFILE": "/dev/null",
        }

    def type(self, lines: Sequence[str]) -> tuple[list[list[str]], str]:
        """Type lines; return how `knap` was called, and all that the terminal was sent."""
        pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self._command(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.environment,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # it then reads keys as at a person's terminal
        )
        os.close(theirs)
        printed = b""
        try:
            for number, text in enumerate(["", *lines], 1):  # the first shows that the shell is ready
                _ = os.write(ours, f"{text or 'knap ready'}\r".encode())
                printed += self._wait(ours, number)
            _ = os.write(ours, b"exit\r")
        finally:
            process.kill()
            process.wait(30)
            os.close(ours)
        calls = [json.loads(row) for row in self.calls.read_text(encoding="utf-8").splitlines()]
        return calls[1:], printed.decode(errors="replace")

    def _command(self) -> list[str]:
        script = self._home / "script"
        if self._shell == "fish":
            return ["fish", "--no-config", "--init-command", f"source {script}"]
        script.write_text(completion.read_script("bash" if self._shell == "bash" else "zsh"), encoding="utf-8")
        if self._shell == "bash":
            return ["bash", "--noprofile", "--rcfile", str(script), "-i"]
        (self._home / ".zshrc").write_text(f"unsetopt beep list_beep\n. {script}\n", encoding="utf-8")
        self.environment["ZDOTDIR"] = str(self._home)
        return ["zsh", "-i"]

    def _wait(self, terminal: int, calls: int) -> bytes:
        printed = b""
        stop = time.monotonic() + LIMIT_S
        while not self.calls.exists() or self.calls.read_text(encoding="utf-8").count("\n") < calls:
            if select.select([terminal], [], [], 0.05)[0]:
                printed += os.read(terminal, 65_536)
            assert time.monotonic() < stop, printed.decode(errors="replace")
        time.sleep(0.2)  # until the shell shows its prompt, so that the terminal reads keys again
        while select.select([terminal], [], [], 0.05)[0]:
            printed += os.read(terminal, 65_536)
        return printed


@pytest.fixture
def typed(request: pytest.FixtureRequest, own_home: Path) -> Typed:
    typed = Typed(request.param, own_home)
    if request.param == "fish":
        (own_home / "script").write_text(completion.read_script("fish"), encoding="utf-8")
    folder = worlds.fill(
        own_home / "Notes", dict.fromkeys([*HOSTILE, *STEERING, "Plain.md", "Areas/Deep note.md"], "#tag\n")
    )
    assert main.run(["--vault", str(folder), "index", "--no-embed", "-q"]) == 0
    (own_home / "config.toml").write_text(f'[vaults.notes]\npath = "{folder.as_posix()}"\n', encoding="utf-8")
    return typed


@pytest.mark.parametrize("typed", SHELLS, indirect=True)
def test_tab_completes_commands_notes_folders_and_tags(typed: Typed) -> None:
    calls, _ = typed.type(
        [
            "knap sear\t x --mod\tkey\t",
            "knap read Pl\t",
            "knap read Ar\tDe\t",
            "knap read Dee\t",
            "knap search x --tag ta\t",
        ]
    )

    assert calls == [
        ["search", "x", "--mode", "keyword"],
        ["read", "Plain.md"],
        ["read", "Areas/Deep note.md"],
        ["read", "Deep note.md"],
        ["search", "x", "--tag", "tag"],
    ]


@pytest.mark.parametrize("typed", SHELLS, indirect=True)
@pytest.mark.parametrize("quote", ["", "'", '"'], ids=["bare", "single", "double"])
def test_a_hostile_name_is_inserted_as_it_is_and_runs_nothing(typed: Typed, quote: str) -> None:
    names = [name for name in HOSTILE if not (name.startswith("ii") and "fish" in typed._command()[0])]  # pyright: ignore[reportPrivateUsage]
    starts = [name[:2] if name[0] != "-" else "./-jj" for name in names]

    calls, printed = typed.type([f"knap read {quote}{start}\t" for start in starts])

    assert [call[1].removeprefix("./") for call in calls] == names
    assert {tuple(call[2:]) for call in calls} == {()}
    assert not list(typed.folder.glob("pwned*"))
    assert [text for text in FORBIDDEN if text in printed] == []


@pytest.mark.parametrize("typed", SHELLS, indirect=True)
def test_what_steers_a_terminal_never_comes_to_it(typed: Typed) -> None:
    _, printed = typed.type([f"knap read {name[:2]}\t" for name in STEERING] + ["knap read \t\t\t\x15knap done"])

    assert [text for text in FORBIDDEN if text in printed] == []
