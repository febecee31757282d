"""``--dry-run`` is an option of the commands that change something, and of no others."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from knapper.cli import main
from knapper.cli.output import ExitCode

READING = [
    ["read", "A.md"],
    ["info", "A.md"],
    ["find"],
    ["search", "one"],
    ["status"],
    ["links", "in", "A.md"],
    ["links", "out", "A.md"],
    ["links", "broken"],
    ["links", "orphans"],
    ["tags", "list"],
    ["edits", "list"],
    ["edits", "show", "1"],
    ["log"],
]

WRITING = {
    *("edit", "move", "new", "props", "rm", "section", "tags rename", "undo", "write"),
    *("edits accept", "edits blocks", "edits draw", "edits reject", "edits review"),
    *("mcp install", "mcp uninstall", "plugin install", "plugin uninstall", "service install"),
}
"""All that change a note, a proposal or a file of another program."""


def with_dry_run(command: click.Command, words: tuple[str, ...], context: click.Context) -> Iterator[str]:
    """Yield the commands that have the option, from one downwards."""
    if any("--dry-run" in parameter.opts for parameter in command.params):
        yield " ".join(words)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from with_dry_run(inner, (*words, name), click.Context(inner, parent=context, info_name=name))


def test_of_all_commands_those_that_change_something_have_a_dry_run_and_no_others() -> None:
    assert set(with_dry_run(main.knap, (), click.Context(main.knap))) == WRITING


@pytest.mark.parametrize("command", READING)
def test_a_command_that_only_reads_has_no_dry_run(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "A.md").write_text("# A\n\n#one [[B]]\n", encoding="utf-8")
    code = main.run(["-v", str(tmp_path), *command, "--dry-run"])
    said = capsys.readouterr()

    assert code == click.UsageError.exit_code
    assert "--dry-run" in said.err
    assert said.out == ""


def test_the_help_of_a_command_that_only_reads_does_not_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    for command in READING:
        group = command[:2] if command[0] in {"links", "tags", "edits"} else command[:1]
        _ = main.run([*group, "--help"])

        assert "--dry-run" not in capsys.readouterr().out


def test_an_undo_that_would_fail_says_so_in_json_as_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "A.md"
    note.write_text("one\n", encoding="utf-8")
    vault = ["-v", str(tmp_path)]
    assert main.run([*vault, "edit", "A.md", "one", "two"]) == 0
    note.write_text("by an editor\n", encoding="utf-8")

    capsys.readouterr()
    code = main.run([*vault, "undo", "--dry-run", "--json"])
    answer = json.loads(capsys.readouterr().out)
    real_code = main.run([*vault, "undo", "--json"])
    real = json.loads(capsys.readouterr().out)

    assert (code, real_code) == (ExitCode.CONFLICT, ExitCode.CONFLICT)
    assert (answer["success"], answer["code"]) == (real["success"], real["code"]) == (False, "conflict")
    assert answer["error"] == "undoing would fail: 'A.md' has changed"
    assert (answer["status"], [row["path"] for row in answer["left"]]) == ("planned", ["A.md"])
    assert answer["hint"] == real["hint"] == "undo what came later first, in the program that made it"
