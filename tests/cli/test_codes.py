import re
from pathlib import Path

import pytest

from knapper import errors
from knapper.cli import main, output
from knapper.cli.output import ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "exit-codes.md"


def test_the_documentation_lists_every_code() -> None:
    listed = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.M)]

    assert listed == [code.value for code in ExitCode]


def test_the_help_of_the_program_lists_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Exit codes:\n")[2]

    assert [int(code) for code in re.findall(r"^ +(\d+)  \S", listed, re.M)] == [code.value for code in ExitCode]
    assert set(output.MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("name", output.SPECIAL)
def test_the_help_of_a_command_says_what_its_codes_mean(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # once, however often it is asked for
        assert main.run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out

    assert shown.count("Exit codes:") == 2
    for code, text in output.SPECIAL[name].items():
        assert re.search(rf"^ +{int(code)}  {re.escape(text)}$", shown, re.M)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadInput("x"), 2),
        (errors.NotFound("x"), 2),
        (errors.Ambiguous("x"), 2),
        (errors.SetupError("x"), 3),
        (errors.RefusedError("x"), 4),
        (errors.ConflictError("x"), 5),
        (errors.StorageError("x"), 6),
    ],
)
def test_the_class_of_an_error_gives_the_code(error: errors.KnapError, code: int) -> None:
    assert output.exit_code(error) == code


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_is_told_in_one_line(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_ctx: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main.knap, "invoke", interrupt)

    code = main.run(["status", *(["--json"] if as_json else [])])
    shown = capsys.readouterr()

    assert code == 130
    assert "nothing is damaged" in (shown.out if as_json else shown.err)
    assert (shown.err if as_json else shown.out) == ""


def test_without_arguments_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 0
    assert "Usage: knap" in capsys.readouterr().out
