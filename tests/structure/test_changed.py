"""Hold what scripts/check --changed chooses to look at."""

import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import changed

PROJECT = """
[tool.basedpyright]
include = ["src", "tests", "hatch_build.py"]
"""
FILES = {
    "pyproject.toml": PROJECT,
    "README.md": "Words.\n",
    "src/knapper/__init__.py": "",
    "src/knapper/vault/__init__.py": "",
    "src/knapper/vault/links.py": "def resolve() -> None: ...\n",
    "src/knapper/vault/walk.py": "from knapper.vault import links\n",
    "src/knapper/vault/view.py": "import knapper.vault.walk\n",
    "src/knapper/config/__init__.py": "from knapper.config.loading import load\n",
    "src/knapper/config/loading.py": "def load() -> None: ...\n",
    "src/knapper/cli.py": "def run() -> None:\n    from knapper.config import load\n",
    "tests/test_links.py": "from knapper.vault.links import resolve\n",
    "bench/speed.py": "from knapper.vault import links\n",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("no git")
    for name, text in FILES.items():
        write(tmp_path, name, text)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    return tmp_path


def write(clone: Path, name: str, text: str) -> None:
    path = clone / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(clone: Path, *arguments: str) -> None:
    own = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.hooksPath=none"]
    subprocess.run(["git", *own, *arguments], cwd=clone, check=True, capture_output=True)


def commit(clone: Path) -> None:
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "one")


def test_nothing_changed_is_nothing_to_check(clone: Path) -> None:
    assert changed.select(clone, "HEAD") == changed.Selection()


def test_a_changed_module_is_checked_with_those_that_import_it_directly(clone: Path) -> None:
    write(clone, "src/knapper/vault/links.py", "def solve() -> None: ...\n")

    assert changed.select(clone, "HEAD") == changed.Selection(
        lint=["src/knapper/vault/links.py"],
        types=["src/knapper/vault/links.py", "src/knapper/vault/walk.py", "tests/test_links.py"],
    )


def test_what_a_package_hands_on_is_looked_for_through_it(clone: Path) -> None:
    write(clone, "src/knapper/config/loading.py", "")

    assert changed.select(clone, "HEAD").types == [
        "src/knapper/cli.py",
        "src/knapper/config/__init__.py",
        "src/knapper/config/loading.py",
    ]


def test_who_imported_a_deleted_module_is_checked_and_the_module_is_not(clone: Path) -> None:
    (clone / "src/knapper/vault/walk.py").unlink()

    assert changed.select(clone, "HEAD") == changed.Selection(types=["src/knapper/vault/view.py"])


def test_a_renamed_module_is_checked_with_those_that_know_its_old_name(clone: Path) -> None:
    git(clone, "mv", "src/knapper/vault/walk.py", "src/knapper/vault/tree.py")

    assert changed.select(clone, "HEAD") == changed.Selection(
        lint=["src/knapper/vault/tree.py"], types=["src/knapper/vault/tree.py", "src/knapper/vault/view.py"]
    )


@pytest.mark.parametrize("name", ["tests/with two  spaces.py", "tests/größe.py"])
@pytest.mark.parametrize("added", [False, True])
def test_a_new_file_of_any_name_is_found_added_or_not(clone: Path, name: str, added: bool) -> None:
    write(clone, name, "")
    if added:
        git(clone, "add", name)

    assert changed.select(clone, "HEAD") == changed.Selection(lint=[name], types=[name])


def test_a_file_that_the_type_checker_leaves_out_is_only_linted(clone: Path) -> None:
    write(clone, "bench/speed.py", "")
    write(clone, "README.md", "")

    assert changed.select(clone, "HEAD") == changed.Selection(lint=["bench/speed.py"])


@pytest.mark.parametrize("name", changed.DECIDE_FOR_ALL)
def test_what_decides_for_all_has_everything_checked(clone: Path, name: str) -> None:
    write(clone, name, PROJECT + "\n")

    assert changed.select(clone, "HEAD") == changed.Selection(all_for=name)


def test_against_a_branch_only_the_own_changes_count_committed_or_not(clone: Path) -> None:
    git(clone, "switch", "--quiet", "--create", "own")
    write(clone, "src/knapper/vault/view.py", "")
    commit(clone)
    git(clone, "switch", "--quiet", "main")
    write(clone, "src/knapper/cli.py", "")
    commit(clone)
    git(clone, "switch", "--quiet", "own")
    write(clone, "src/knapper/config/__init__.py", "")

    assert changed.select(clone, "main").lint == ["src/knapper/config/__init__.py", "src/knapper/vault/view.py"]


def test_a_file_that_is_no_python_is_imported_by_none(clone: Path) -> None:
    write(clone, "src/knapper/vault/walk.py", "import (\n")
    write(clone, "src/knapper/vault/links.py", "")

    assert changed.select(clone, "HEAD").types == [
        "src/knapper/vault/links.py",
        "src/knapper/vault/view.py",
        "src/knapper/vault/walk.py",
        "tests/test_links.py",
    ]


def test_a_base_that_is_not_there_is_named(clone: Path) -> None:
    with pytest.raises(changed.CannotTell, match="there is no commit 'nowhere'"):
        changed.select(clone, "nowhere")


def test_outside_of_a_clone_nothing_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(changed.CannotTell, match="not a git repository"):
        changed.select(tmp_path, "HEAD")
