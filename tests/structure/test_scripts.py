"""Hold what the developer's scripts say and refuse, and which tools they run on what."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASH = shutil.which("bash")
TOOL = """#!/usr/bin/env bash
echo "$(basename "$0")" "$@" >>"$CALLS"
! [ "$(basename "$0")" = "${FAILING:-}" ]
"""
PYTHON = f"""#!/usr/bin/env bash
case "${{2:-}}" in
  scripts.page | scripts.plugin)
    echo "$2" "${{@:3}}" >>"$CALLS"
    case "${{FAILING:-}}" in "$2") exit 1 ;; "no npm") exit 3 ;; esac
    ;;
  *) exec "{sys.executable}" "$@" ;;
esac
"""

pytestmark = pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="they are scripts of bash")


class Project:
    """A project with our scripts, whose tools only write down how they are called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder.parent / "calls"
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        tools = folder / ".venv" / "bin"
        tools.mkdir(parents=True)
        for name in ("ruff", "basedpyright", "lint-imports"):
            self._program(tools / name, TOOL)
        self._program(tools / "python", PYTHON)
        self._program(folder / "scripts" / "setup", "#!/usr/bin/env bash\n")
        self.write("pyproject.toml", '[tool.basedpyright]\ninclude = ["src", "tests"]\n')
        self.write(".gitignore", "__pycache__/\n.venv/\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        own = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.hooksPath=none"]
        for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "one"]):
            subprocess.run(["git", *own, *arguments], cwd=self.folder, check=True, capture_output=True)

    def run(self, name: str, *arguments: str, failing: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CALLS": str(self.calls), "FAILING": failing}  # noqa: TID251 - the caller's PATH
        command = [str(BASH), f"scripts/{name}", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
        )

    def called(self) -> Sequence[str]:
        return self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    if shutil.which("git") is None:
        pytest.skip("no git")
    made = Project(tmp_path / "project")
    made.commit()
    return made


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("name", ["check", "test"])
def test_help_says_how_a_script_is_called_with_examples(project: Project, name: str, option: str) -> None:
    done = project.run(name, option)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: scripts/{name} ")
    assert done.stdout.count(f"\n  scripts/{name}") >= 4
    assert project.called() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "check: '--nonsense' isn't known"),
        (["src"], "check: 'src' isn't known"),
        (["--fix", "src"], "check: 'src' is too much after --fix"),
        (["--changed", "HEAD", "src"], "check: 'src' is too much after --changed"),
        (["--changed", "--fix"], "check: '--fix' is no base to compare with"),
    ],
)
def test_what_check_does_not_know_is_refused(project: Project, arguments: Sequence[str], said: str) -> None:
    done = project.run("check", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{said}; scripts/check --help says what there is\n"
    assert project.called() == []


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--fast", "--nonsense"]], ids=" ".join)
def test_what_pytest_does_not_know_is_refused(project: Project, arguments: Sequence[str]) -> None:
    done = project.run("test", *arguments)

    assert done.returncode == 4
    assert "unrecognized arguments: --nonsense" in done.stderr
    assert done.stderr.endswith("test: pytest refused that; scripts/test --help says what there is\n")


def test_fast_leaves_no_choice_of_markers(project: Project) -> None:
    done = project.run("test", "--fast", "-m", "slow")

    assert done.returncode == 2
    assert done.stderr == "test: --fast chooses by marker itself, so it takes no -m; scripts/test --help says more\n"


def test_everything_is_checked_without_a_word(project: Project) -> None:
    done = project.run("check")

    assert done.returncode == 0
    tools = ["ruff check", "ruff format --check", "basedpyright", "lint-imports --no-logo"]
    assert project.called() == [*tools, "scripts.page check", "scripts.plugin check"]


@pytest.mark.parametrize(
    ("folder", "checked"),
    [
        ("ui/page", ["scripts.page check"]),
        ("ui/parts", ["scripts.page check", "scripts.plugin check"]),
        ("plugin/src", ["scripts.plugin check"]),
        ("src/knapper/server", ["scripts.page check"]),
    ],
)
def test_page_and_plugin_are_checked_where_what_they_are_made_of_changed(
    project: Project, folder: str, checked: Sequence[str]
) -> None:
    project.write(f"{folder}/some.ts", "1\n")
    project.commit()
    project.write(f"{folder}/some.ts", "2\n")

    done = project.run("check", "--changed")

    assert done.returncode == 0
    assert project.called() == ["lint-imports --no-logo", *checked]


def test_without_npm_page_and_plugin_are_left_out_and_the_rest_is_checked(project: Project) -> None:
    done = project.run("check", failing="no npm")

    assert done.returncode == 0
    assert done.stdout.count("left out, as Node or npm's packages can't be had here") == 2


@pytest.mark.parametrize("name", ["page", "plugin"])
def test_a_page_or_plugin_that_breaks_its_rules_is_told(project: Project, name: str) -> None:
    done = project.run("check", failing=f"scripts.{name}")

    assert (done.returncode, done.stderr) == (1, f"check: failed: {name}\n")


def test_where_nothing_changed_only_the_layers_are_checked(project: Project) -> None:
    done = project.run("check", "--changed")

    assert done.returncode == 0
    assert project.called() == ["lint-imports --no-logo"]


def test_changed_files_and_their_importers_are_checked_and_deleted_ones_left_out(project: Project) -> None:
    project.write("src/old.py", "")
    project.write("src/caller.py", "import old\n")
    project.commit()
    (project.folder / "src/old.py").unlink()
    project.write("tests/with two  spaces.py", "")

    done = project.run("check", "--changed")

    assert done.returncode == 0
    assert project.called() == [
        "ruff check -- tests/with two  spaces.py",
        "ruff format --check -- tests/with two  spaces.py",
        "basedpyright src/caller.py tests/with two  spaces.py",
        "lint-imports --no-logo",
    ]


def test_a_failure_is_told_at_the_end_and_the_others_run_all_the_same(project: Project) -> None:
    project.write("src/new.py", "")

    done = project.run("check", "--changed", failing="basedpyright")

    assert (done.returncode, done.stderr) == (1, "check: failed: basedpyright\n")
    assert project.called()[-1] == "lint-imports --no-logo"


def test_a_base_that_is_not_there_is_refused(project: Project) -> None:
    done = project.run("check", "--changed", "nowhere")

    assert (done.returncode, done.stderr) == (1, "check: there is no commit 'nowhere' to compare with\n")
    assert project.called() == []
