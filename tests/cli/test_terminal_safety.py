"""Nothing that a terminal would obey, or that turns text around, comes out of any command: as JSON or as text."""

import io
import json
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from knapper.cli import main
from knapper.cli.main import COMMANDS
from tests.index import worlds

OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
EVIL: Final = "a\x9b31mb\u202ec\u2066d\u200fe\u061cf\x85g\x7fh"
NAME: Final = f"Evil {EVIL.replace(chr(0x7F), '')}.md"
NOTE: Final = f"""---
status: "{EVIL.replace(chr(0x7F), "").replace(chr(0x85), "").replace(chr(0x9B), "")}"
aliases: ["al\u202eias"]
tags: [gre\u202een]
---
# Heading {EVIL}

tomatoes {EVIL} in the garden, #red\u2066dish, \x1b[31mred\x1b[0m

- [ ] task {EVIL} ^block

[[Gone {EVIL}]] and [[{NAME}]]

```ai-edit
{EVIL}
```
"""
LINES: Final = """\
index
search tomatoes
search tomatoes --explain
search EVIL
find
find --fields path,title,tags,status
find EVIL
ask tomatoes
read NAME
read NAME --lines 1-99
read NAME --section EVIL
open NAME --print
open EVIL --print
open NAME --heading EVILL --print
info NAME
new EVIL/x.md --text hello
write NAME
edit NAME tomatoes EVIL
edit NAME EVILL x
section NAME EVILL Morning
props NAME
props NAME set status "xEVIL"
props NAME set EVIL done
tags list
tags rename EVIL b
links in NAME
links out NAME
links broken
links orphans
move NAME Moved/EVIL2.md
move Moved/EVIL2.md NAME
rm Rain.md -m EVIL
edits list
edits show EVIL
edits blocks NAME
log
history
history --note EVIL
history --before EVIL
undo
undo EVIL
run list
run status EVIL
agent
schedule add weekly-review --changed EVIL
schedule add weekly-review --daily --results EVIL
schedule
schedule pause EVIL
schedule edit EVIL --daily
schedule edit weekly-review --results EVIL
schedule remove weekly-review
sessions
sessions show EVIL
presets save EVIL
presets list
presets show EVIL
trust
trust EVIL
connect --name EVIL
connect --address EVIL
clients list
clients show EVIL
clients revoke EVIL
plugin status
plugin EVIL
token EVIL
tools EVIL
tool read_file '{"path": "Rain.md"}'
tool find_notes '{"EVIL": "EVIL"}'
tool EVIL
status
doctor
models
e5
config
completion EVIL
eval EVIL
script EVIL
bench EVIL
mcp install
mcp status --no-try
mcp uninstall --all --dry-run
mcp install EVIL
watch EVIL
serve EVIL
setup --vault EVIL --yes
service EVIL
chat EVIL
EVIL
"""


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {NAME: NOTE, "Rain.md": f"# Rain\n\n[[{NAME[:-3]}]]\n"}


def test_the_list_has_every_command() -> None:
    assert {row.name for row in COMMANDS} <= {line.split()[0] for line in LINES.splitlines()}


def _write_nothing(context: object, path: str) -> bool:
    del context, path
    return False


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_prints_what_a_terminal_obeys(
    own_home: Path,
    files: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    as_json: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x"), encoding="utf-8"))
    # As at a terminal: to a pipe or a file, a whole note goes byte for byte.
    monkeypatch.setattr("knapper.cli.commands.read._write_bytes", _write_nothing)
    vault = worlds.fill(own_home / "vault", files).resolve()
    leaks: list[str] = []
    for line in LINES.splitlines():
        words = [
            word.replace("EVILL", f"Heading {EVIL}").replace("EVIL", EVIL).replace("NAME", NAME)
            for word in shlex.split(line)
        ]
        _ = main.run(["--vault", str(vault), *(["--json"] if as_json else []), *words])
        printed = capsys.readouterr()
        leaks += [
            f"{line}: {found.group()!r} in {text[max(found.start() - 30, 0) : found.end() + 10]!r}"
            for text in (printed.out, printed.err)
            if (found := OBEYED.search(text.replace("\x1b[0m", "")))
        ]
    assert leaks == [], "\n".join(leaks)


def test_json_holds_the_very_text(own_home: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    vault = worlds.fill(own_home / "vault", files)
    assert main.run(["--vault", str(vault), "--json", "read", NAME]) == 0
    printed = capsys.readouterr().out

    assert not OBEYED.search(printed)
    assert json.loads(printed)["path"] == NAME
    assert EVIL in json.loads(printed)["content"]


def test_letters_that_show_nothing_are_seen_before_they_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = worlds.fill(tmp_path / "v", {"A.md": "one\n"})
    _ = main.run(["-v", str(root), "edit", "A.md", "one", "one\U000e0061\U000e007a", "--propose", "--json"])
    proposal = json.loads(capsys.readouterr().out)["proposal_id"]
    code = main.run(["-v", str(root), "edits", "show", proposal])

    assert (code, "+one\ufffd\ufffd\n" in capsys.readouterr().out) == (0, True)
