"""``--dry-run`` is an option of the commands that change something, and of no others."""

from pathlib import Path

import click
import pytest

from knapper.cli import main

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
