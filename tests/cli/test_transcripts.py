"""Replay the transcripts: Markdown files that make a few files, run commands, and show what these print.

A fence ``file PATH`` holds a file, ``~`` being a home folder of its own; one ``console`` holds commands after ``$`` and
what they print, the error stream included; ``< PATH`` at a command's end gives it a file as its standard input. In what
is printed ``<any>`` stands for anything on that line, ``<id>`` for a word that commands below it have as ``$ID``,
``<lines>`` for any lines, two spaces for two or more, and ``[exit N]`` is the exit code where it isn't 0.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from knapper.cli import main
from knapper.cli.output import ProgressLines
from knapper.cli.render import indexing
from knapper.config.settings import SETTINGS

FOLDER = Path(__file__).with_name("transcripts")
FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>file|console)(?: (?P<path>[^\n]+))?\n(?P<body>.*?)^(?P=fence)$", re.M | re.S
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    words: str
    expected: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    path: str
    text: str


def steps(text: str) -> Iterator[Command | Given]:
    for found in FENCE.finditer(text):
        if found["kind"] == "file":
            yield Given(path=found["path"], text=found["body"])
            continue
        first = text.count("\n", 0, found.start("body")) + 1
        parts = re.split(r"^\$ knap (.*)\n", found["body"], flags=re.M)
        for words, expected in zip(parts[1::2], parts[2::2], strict=True):
            yield Command(words=words, expected=expected, line=first)


def run(words: str, home: Path) -> str:
    """Run a command as a shell would; gives what it printed."""
    printed = io.StringIO()
    args = [str(home / word[2:]) if word.startswith("~/") else word for word in shlex.split(words)]
    given = b""
    if "<" in args[:-1]:
        given = Path(args[-1]).read_bytes()
        args = args[:-2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main.run(args)
    text = printed.getvalue().replace(str(home), "~")
    return f"{text}[exit {code}]\n" if code else text


def fits(expected: str, printed: str) -> re.Match[str] | None:
    expected, printed = (re.sub(r"(?<=\S) {2,}", "  ", text) for text in (expected, printed))
    wild = {"<any>": ".*", "<lines>\n": "(?:.*\n)*"}
    parts = re.split(r"(<any>|<id>|<lines>\n)", expected)
    pattern = ""
    for part in parts:
        word = "(?P=id)" if "(?P<id>" in pattern else r"(?P<id>[^\s`]+)"
        pattern += word if part == "<id>" else wild.get(part, re.escape(part))
    return re.fullmatch(pattern, printed)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.md")), ids=lambda file: file.stem)
def test_commands_print_what_the_transcript_shows(file: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {name for setting in SETTINGS for name in setting.env} - {"KNAP_STATE_DIR"}:
        monkeypatch.delenv(name, raising=False)
    home = own_home.resolve()
    monkeypatch.chdir(home)
    monkeypatch.setattr(
        indexing, "ProgressLines", lambda: ProgressLines(every_s=1_000)
    )  # none is due, however slow the machine is
    text = file.read_text(encoding="utf-8")
    replayed, known = 0, ""
    for step in steps(text):
        if isinstance(step, Given):
            path = home / step.path.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
            continue
        printed = run(step.words.replace("$ID", known), home)
        replayed += 1
        found = fits(step.expected.replace("$ID", known), printed)

        assert found, f"{file.name}:{step.line}: knap {step.words}\n{printed}"
        known = found.groupdict().get("id") or known
    assert replayed == len(re.findall(r"^\$ ", text, re.M))


def test_a_transcript_that_does_not_fit_is_noticed() -> None:
    assert fits("a <any> c\n<lines>\nz\n", "a b c\nd\ne\nz\n")
    assert fits("a <id> c <id>\n", "a b c b\n")
    assert not fits("a <id> c <id>\n", "a b c d\n")
    assert not fits("a <any> c\n", "a b\nc\n")
    assert not fits("a\n", "a\nb\n")
