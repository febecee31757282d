import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import click
import pytest

from knapper.cli import commands, main
from knapper.cli.main import COMMANDS, CommandEntry

HEAVY = (
    "numpy",
    "tokenizers",
    "rich",
    "yaml",
    "pyromark",
    "httpx2",
    "sqlite3",
    "platformdirs",
    "rapidfuzz",
    "watchfiles",
)


def load(row: CommandEntry) -> click.Command:
    found = import_module(row.module).command
    assert isinstance(found, click.Command)
    return found


def _groups() -> Iterator[tuple[str, ...]]:
    waiting = [((row.name,), load(row)) for row in COMMANDS]
    while waiting:
        words, found = waiting.pop()
        if isinstance(found, click.Group):
            yield words
            waiting += [((*words, name), one) for name, one in found.commands.items()]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["--help"])
    shown = capsys.readouterr().out

    assert code == 0
    assert [row.name for row in COMMANDS if f"\n  {row.name} " not in shown] == []
    assert [row.summary for row in COMMANDS if row.summary not in shown] == []


def test_the_table_holds_every_command_module() -> None:
    folder = Path(commands.__path__[0])

    assert {f"knapper.cli.commands.{file.stem}" for file in folder.glob("[!_]*.py")} == {row.module for row in COMMANDS}


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_a_command_says_what_the_table_says(row: CommandEntry) -> None:
    found = load(row)

    assert found.name == row.name
    assert (found.help or "").split("\n\n")[0].replace("\n", " ") == row.summary


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_a_command_has_help_with_examples_and_takes_the_shared_options(
    row: CommandEntry, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run([row.name, "--help"])
    shown = capsys.readouterr().out

    assert code == 0
    assert "Examples:\n    knap " in shown
    assert [
        name for name in ("--vault", "--config", "--env-file", "--json", "--quiet", "--no-color") if name not in shown
    ] == []


@pytest.mark.parametrize("words", sorted(_groups()), ids=" ".join)
def test_a_list_of_subcommands_says_whole_sentences(
    words: Sequence[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code = main.run([*words, "--help"])
    listed = capsys.readouterr().out.partition("\nCommands:\n")[2].partition("\n\n")[0]

    assert code == 0
    assert [line for line in listed.splitlines() if line.endswith("...")] == []
    assert listed


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_option_is_explained(row: CommandEntry) -> None:
    every = [param for param in load(row).params if isinstance(param, click.Option)]

    assert [param.name for param in every if not param.help] == []


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from knapper.cli import main; main.run(['--help']); print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = {name.partition(".")[0] for name in ended.stderr.split()}
    ours = {name for name in ended.stderr.split() if name.startswith("knapper.")}

    assert "Usage: knap" in ended.stdout
    assert loaded.intersection(HEAVY) == set()
    assert {name for name in ours if not name.startswith(("knapper.cli", "knapper.errors"))} == set()
    assert {name for name in ours if name.startswith("knapper.cli.commands")} == set()


@pytest.mark.parametrize("command", ["search", "status", "ask"])
def test_a_command_leaves_out_what_only_others_need(command: str) -> None:
    code = (
        f"import sys; from knapper.cli import main; main.run(['{command}', '-h']); print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = {name.partition(".")[0] for name in ended.stderr.split()}

    assert loaded.intersection({"rich", "httpx2", "watchfiles", "fastembed", "dotenv"}) == set()


def test_help_with_a_command_asks_for_no_model() -> None:
    names = [row.name for row in COMMANDS]
    code = (
        "import sys; from knapper.cli import main\n"
        f"for name in {names}: main.run([name, '--help']); "
        "'pydantic_ai' in sys.modules and sys.exit(f'{name} has imported what models need')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8")

    assert ended.stderr == ""
    assert ended.stdout.count("Usage: ") == len(names)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("knap 0")
