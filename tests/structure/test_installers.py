"""`install.sh` and `uninstall.sh`: which Python and which tool they take, with faked programs; no network.

No PowerShell can be had here, so its scripts are parsed, and held to what is known to end them on Windows.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from knapper.cli.commands import setup

ROOT = Path(__file__).parents[2]
POWERSHELL = ("install.ps1", "uninstall.ps1", "src/knapper/cli/completion/shells/knap.ps1")
TOOLS = ("bash", "basename", "cat", "dirname", "env", "grep", "head", "ln", "mkdir", "readlink", "rm", "sed", "uname")

for_bash = pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="these are for bash")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Give a folder with the few programs of a bare system, for PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(shutil.which(name) or pytest.skip(f"there is no {name}"))
    return folder


def fake(folder: Path, name: str, script: str = "") -> None:
    (folder / name).write_text(f"#!{folder / 'bash'}\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def run(script: str, programs: Path, *arguments: str, python: str = "") -> subprocess.CompletedProcess[str]:
    home = programs.parent / "home Ж"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [programs / "bash", ROOT / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(programs), "HOME": str(home), "PYTHON": python},
        stdin=subprocess.DEVNULL,
    )


@for_bash
def test_the_real_python_is_taken_and_not_a_shim(programs: Path) -> None:
    fake(programs, "python3.13", "exit 127  # a shim of a version that isn't installed")
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    notes = programs.parent / "My Notes"
    notes.mkdir()

    shown = run("install.sh", programs, "--dry-run", "--yes", "--vault", str(notes))

    assert shown.returncode == 0, shown.stderr
    assert f"install: Python: {os.path.realpath(sys.executable)}\n" in shown.stdout
    assert "-m venv" in shown.stdout
    assert f"knap setup --yes --vault {notes}\n" in shown.stdout
    assert list((programs.parent / "home Ж").iterdir()) == []


@for_bash
def test_a_python_is_taken_by_its_path_with_a_space(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my Pythons"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)

    shown = run("install.sh", programs, "--dry-run", python=str(folder / "python"))

    assert shown.returncode == 0, shown.stderr
    assert f"install: Python: {os.path.realpath(sys.executable)}\n" in shown.stdout


@for_bash
@pytest.mark.parametrize(("tool", "words"), [("uv", "uv tool install"), ("pipx", "pipx install")])
def test_a_tool_that_keeps_programs_is_used_where_it_is(programs: Path, tool: str, words: str) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, tool, f"echo {programs}")

    shown = run("install.sh", programs, "--dry-run")
    without = run("install.sh", programs, "--dry-run", "--venv")

    assert f"would run: {words}" in shown.stdout
    assert words not in without.stdout


@for_bash
@pytest.mark.parametrize(
    ("version", "is_kept"), [(f"{sys.version_info[0]} {sys.version_info[1]}", True), ("3 9", False)]
)
def test_a_fitting_environment_is_kept_and_another_made_anew(programs: Path, version: str, *, is_kept: bool) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, "other-python", f"echo {version}")
    bin_folder = programs.parent / "home Ж" / ".local/opt/knapper/bin"
    bin_folder.mkdir(parents=True)
    shutil.move(programs / "other-python", bin_folder / "python")

    shown = run("install.sh", programs, "--dry-run").stdout

    assert ("would run: rm -rf" in shown) != is_kept
    assert "--upgrade" in shown


@for_bash
def test_a_wheel_is_installed_in_the_place_of_the_folder(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    (programs.parent / "my wheel.whl").touch()

    shown = run("install.sh", programs, "--dry-run", f"--wheel={programs.parent / 'my wheel.whl'}")
    missing = run("install.sh", programs, "--dry-run", "--wheel=missing.whl")

    assert f"--upgrade {programs.parent / 'my wheel.whl'}\n" in shown.stdout
    assert (missing.returncode, "there is no" in missing.stderr) == (1, True)


@for_bash
@pytest.mark.parametrize(("tool", "place"), [("uv", "knapper"), ("pipx", "knapper")])
def test_the_extras_of_an_earlier_installation_stay(programs: Path, tool: str, place: str) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, tool, f"echo {programs.parent}/tools")
    earlier = programs.parent / "tools" / place / "bin"
    earlier.mkdir(parents=True)
    fake(programs, "earlier", '[ "$*" = "-m knapper.extras" ] && echo models,web')
    shutil.move(programs / "earlier", earlier / "python")

    shown = run("install.sh", programs, "--dry-run")

    assert " .[models,web]\n" in shown.stdout


@for_bash
def test_packages_that_cant_be_fetched_end_it_with_the_way_on(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, "uv", f'[ "$1 $2" != "tool install" ] || exit 2; echo {programs}')
    fake(programs, "knap", "echo set up")

    shown = run("install.sh", programs, "--yes")

    assert shown.returncode == 1
    assert "This needs the network once; run it again to continue" in shown.stderr
    assert "set up" not in shown.stdout


@for_bash
def test_without_a_fitting_python_the_way_to_one_is_told(programs: Path) -> None:
    fake(programs, "python3", "exit 1")

    shown = run("install.sh", programs)

    assert shown.returncode == 1
    assert "there is no Python 3.11 or newer here" in shown.stderr
    assert "PYTHON=/path/to/python" in shown.stderr


@for_bash
def test_a_python_that_cannot_make_environments_is_told_with_the_package(programs: Path) -> None:
    fake(programs, "python3", f'case "$*" in *ensurepip*) exit 1 ;; esac; exec {sys.executable} "$@"')
    fake(programs, "uv", f"echo {programs}")

    by_uv = run("install.sh", programs, "--dry-run")
    shown = run("install.sh", programs, "--dry-run", "--venv")

    assert (by_uv.returncode, shown.returncode) == (0, 1)
    assert "ensurepip is missing" in shown.stderr
    assert "sudo apt install python3-venv" in shown.stderr


@for_bash
def test_an_environment_that_was_left_unfinished_is_made_anew(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, "unfinished", f'case "$*" in *"import pip"*) exit 1 ;; esac; exec {sys.executable} "$@"')
    bin_folder = programs.parent / "home Ж" / ".local/opt/knapper/bin"
    bin_folder.mkdir(parents=True)
    shutil.move(programs / "unfinished", bin_folder / "python")

    shown = run("install.sh", programs, "--dry-run").stdout

    assert "it was left unfinished" in shown
    assert "would run: rm -rf" in shown


@for_bash
def test_uninstalling_removes_the_environment_and_its_link_alone(programs: Path) -> None:
    home = programs.parent / "home Ж"
    (home / ".local/opt/knapper/bin").mkdir(parents=True)
    (home / ".local/bin").mkdir(parents=True)
    (home / ".local/share/knapper").mkdir(parents=True)
    fake(programs, "fake-knap", f'[ "$1" = service ] || echo "{home}/.config/knapper/config.toml"')
    shutil.move(programs / "fake-knap", home / ".local/opt/knapper/bin/knap")  # a first line holds no space
    (home / ".local/bin/knap").symlink_to(home / ".local/opt/knapper/bin/knap")
    (home / ".local/bin/other").touch()
    pages = home / ".local/share/man/man1"
    pages.mkdir(parents=True)
    (pages / "knap.1").symlink_to(home / ".local/opt/knapper/share/man/man1/knap.1")
    (pages / "knap-other.1").touch()

    dry = run("uninstall.sh", programs, "--dry-run")
    unasked = run("uninstall.sh", programs)
    kept = (home / ".local/opt/knapper").exists()
    shown = run("uninstall.sh", programs, "--yes")

    assert (dry.returncode, unasked.returncode, shown.returncode, kept) == (0, 0, 0, True)
    assert "mcp uninstall --all" in dry.stdout
    assert all(f"completion uninstall {shell}\n" in dry.stdout for shell in ("bash", "zsh", "fish"))
    assert "the program stays; ./uninstall.sh --yes removes it" in unasked.stdout
    assert sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if not path.is_dir()) == [
        ".local/bin/other",
        ".local/share/man/man1/knap-other.1",
    ]
    assert (home / ".local/share/knapper").is_dir()
    assert "the settings in" in shown.stdout
    assert "a server that isn't the service still runs" in unasked.stdout  # the faked status says that one answers
    assert "still runs" not in dry.stdout


@for_bash
@pytest.mark.parametrize("script", ["install.sh", "uninstall.sh"])
def test_help_says_how(programs: Path, script: str) -> None:
    assert run(script, programs, "--help").stdout.startswith(f"Usage: ./{script}")


@for_bash
def test_an_unknown_option_of_uninstalling_is_refused(programs: Path) -> None:
    shown = run("uninstall.sh", programs, "--purge")

    assert (shown.returncode, "--help" in shown.stderr) == (2, True)


@for_bash
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--yes", "--bogus"), "'--bogus' isn't known"),
        (("~/Notes",), "'~/Notes' isn't known"),
        (("--yes", "--vault"), "--vault needs a value"),
        (("--yes=1",), "'--yes=1' isn't known"),
        (("--yes", "--vault", "/nowhere/Notes"), "there is no folder /nowhere/Notes"),
        (("--vault=~/Notse",), "home Ж/Notse"),
        (("-vNotse",), f"there is no folder {Path.cwd()}/Notse"),
    ],
)
def test_what_setup_would_refuse_is_refused_before_anything_is_installed(
    programs: Path, arguments: tuple[str, ...], why: str
) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, "uv", f"echo {programs}; : > {programs.parent}/installed")
    fake(programs, "knap", "exit 2")

    shown = run("install.sh", programs, *arguments)

    assert (shown.returncode, shown.stdout) == (2, "")
    assert f"{why}; nothing was installed; ./install.sh --help" in shown.stderr
    assert not (programs.parent / "installed").exists()


@for_bash
def test_a_configured_vault_is_named_without_its_folder(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    configure(programs)

    by_name = run("install.sh", programs, "--dry-run", "--vault", "work")
    by_folder = run("install.sh", programs, "--dry-run", "--vault", "some/work")

    assert "knap setup --vault work\n" in by_name.stdout
    assert by_folder.returncode == 2


def configure(programs: Path) -> None:
    settings = programs.parent / "home Ж" / ".config/knapper/config.toml"
    settings.parent.mkdir(parents=True)
    settings.touch()


def setup_options() -> tuple[set[str], set[str]]:
    """Give the options of `knap setup`: flags, and those that take a value."""
    flags, valued = set[str](), set[str]()
    for option in setup.command.params:
        assert isinstance(option, click.Option)
        (flags if option.is_flag or option.is_eager else valued).update((*option.opts, *option.secondary_opts))
    return flags - {"-h", "--help"}, valued


@for_bash
def test_every_option_of_setup_is_known_to_the_installer(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    flags, valued = setup_options()
    configure(programs)
    given = [*sorted(flags), *(part for name in sorted(valued) for part in (name, "--yes"))]
    joined = [f"{name}=x" if name.startswith("--") else f"{name}x" for name in sorted(valued)]

    shown = run("install.sh", programs, "--dry-run", *given, *joined)

    assert f"knap setup {' '.join([*given, *joined])}\n" in shown.stdout
    helped = run("install.sh", programs, "--help").stdout
    assert [name for name in flags | valued if name.startswith("--") and f"  {name}" not in helped] == []


def test_the_installer_for_windows_knows_the_same_options() -> None:
    text = (ROOT / "install.ps1").read_text(encoding="ascii")
    listed = {
        name: set(re.findall(r'"(-[^"]+)"', text.partition(f"${name} = @(")[2].partition(")")[0]))
        for name in ("flags", "valued")
    }
    flags, valued = setup_options()

    assert listed == {"flags": flags | {"-yq", "-qy", "-h", "--help"}, "valued": valued}
    assert text.index("\nAssert-Known ") < text.index("$python = Find-Python")


@for_bash
def test_a_relative_vault_begins_where_the_person_stands(programs: Path) -> None:
    fake(programs, "python3", f'exec {sys.executable} "$@"')
    fake(programs, "uv", f'[ "$1 $2" = "tool dir" ] && echo {programs} || true')
    fake(programs, "knap", 'echo "in $PWD: $*"')
    home = programs.parent / "home Ж"
    (home / "Notes").mkdir(parents=True)

    shown = subprocess.run(
        [programs / "bash", ROOT / "install.sh", "--vault", "Notes"],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={"PATH": str(programs), "HOME": str(home)},
        stdin=subprocess.DEVNULL,
    )

    assert f"in {home}: setup --vault Notes\n" in shown.stdout


@pytest.mark.parametrize("script", POWERSHELL)
def test_a_script_for_powershell_can_be_parsed(script: str) -> None:
    tree_sitter = pytest.importorskip("tree_sitter", reason="scripts/setup installs it")
    grammar = pytest.importorskip("tree_sitter_powershell", reason="scripts/setup installs it")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))

    assert not parser.parse((ROOT / script).read_bytes()).root_node.has_error
    assert parser.parse(b"if ($x { }").root_node.has_error


@pytest.mark.parametrize("script", POWERSHELL)
def test_windows_powershell_reads_each_letter_of_its_scripts(script: str) -> None:
    (ROOT / script).read_text(encoding="ascii")  # it takes a file without a mark for the system's code page


@pytest.mark.parametrize("script", POWERSHELL[:2])
def test_what_a_program_complains_of_does_not_end_a_script_for_windows(script: str) -> None:
    """Hold the one place that redirects an error stream: Windows PowerShell ends there, unless it is told not to."""
    text = (ROOT / script).read_text(encoding="ascii")
    function = text[text.index("function Read-Program") :].split("\n}\n")[0]

    assert text.count("2>") == function.count("2>") == 1
    assert '$ErrorActionPreference = "Continue"' in function
    assert "PositionalBinding = $false" in text  # so that `--yes` isn't taken for the first option's value


def test_the_scripts_for_windows_say_that_they_were_never_run_there() -> None:
    for script in POWERSHELL[:2]:
        assert "never run on Windows" in (ROOT / script).read_text(encoding="ascii")
    assert "never run" in (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
