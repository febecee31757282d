"""Every command about notes takes ``--dry-run``, those that only read as well."""

from pathlib import Path

import pytest

from knapper.cli import main


@pytest.mark.parametrize(
    "command",
    [
        ["read", "A.md"],
        ["links", "in", "A.md"],
        ["links", "out", "A.md"],
        ["links", "broken"],
        ["links", "orphans"],
        ["tags", "list"],
        ["edits", "list"],
        ["log"],
        ["props", "A.md"],
    ],
)
def test_a_command_that_reads_says_the_same_as_a_dry_run(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "A.md").write_text("# A\n\n#one [[B]]\n", encoding="utf-8")
    plain = main.run(["-v", str(tmp_path), *command]), capsys.readouterr().out
    dry = main.run(["-v", str(tmp_path), *command, "--dry-run"]), capsys.readouterr().out

    assert dry == plain
