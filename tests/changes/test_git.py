"""With the real git: commits hold what was touched, and nothing that a person staged."""

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.disk import apply, git
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.git import CommitOutcome
from knapper.changes.disk.plan import ChangeMeta, Effect, MoveToTrash, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.vault.paths import NotePath
from tests.changes.disks import opened, write

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")
A, B = NotePath("a.md"), NotePath("sub/b.md")
PERSON = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in (("NAME", "P"), ("EMAIL", "p@example.org"))
}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath + os.pathsep + str(Path(shutil.which("git") or "").parent),
        "HOME": str(tmp_path),
        **PERSON,
    }


@pytest.fixture
def root(tmp_path: Path, env: dict[str, str]) -> Path:
    """A vault in a repository, both notes committed."""
    root = tmp_path / "vault"
    write(root, A, b"a\n")
    write(root, B, b"b\n")
    run(root, env, "init", "-q", "-b", "main")
    run(root, env, "add", ".")
    run(root, env, "commit", "-q", "-m", "first")
    return root


def run(root: Path, env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, env=env, capture_output=True, check=True)
    return done.stdout.decode()


def status(root: Path, env: dict[str, str]) -> list[str]:
    return run(root, env, "status", "--porcelain").splitlines()


def change(state: State, env: dict[str, str], *effects: Effect, meta: ChangeMeta | None = None) -> CommitOutcome:
    applied = apply.apply_effects(state, list(effects), meta or ChangeMeta(client="cli"))
    return git.commit(state.root, [state.journal.show(applied.change_id)], env=env)


def edit(state: State, env: dict[str, str], text: bytes = b"new\n") -> CommitOutcome:
    return change(state, env, Write(path=A, base=hash_content(b"a\n"), content=text))


def test_a_change_is_committed_with_a_message_that_tells_it(root: Path, state: State, env: dict[str, str]) -> None:
    outcome = edit(state, env)

    assert outcome.reason == ""
    assert run(root, env, "rev-parse", "HEAD").strip() == outcome.commit
    body = run(root, env, "log", "-1", "--format=%B").splitlines()
    assert body[0] == "Edit a.md"
    assert "- edit a.md" in body
    assert "Knap-Client: cli" in body
    assert status(root, env) == []


def test_what_is_staged_or_changed_elsewhere_stays_as_it_is(root: Path, state: State, env: dict[str, str]) -> None:
    write(root, B, b"staged\n")
    write(root, "staged new.md", b"x\n")
    run(root, env, "add", ".")
    write(root, B, b"staged, then changed\n")
    write(root, "untracked.md", b"x\n")
    before = status(root, env)

    edit(state, env)

    assert status(root, env) == before == ['A  "staged new.md"', "MM sub/b.md", "?? untracked.md"]
    assert run(root, env, "show", "--format=", "--name-status", "HEAD").split() == ["M", "a.md"]


def test_what_is_staged_of_the_same_file_stays_staged(root: Path, state: State, env: dict[str, str]) -> None:
    write(root, A, b"staged\n")
    run(root, env, "add", ".")
    write(root, A, b"a\n")

    edit(state, env)

    assert run(root, env, "show", ":a.md") == "staged\n"
    assert run(root, env, "show", "HEAD:a.md") == "new\n"


def test_moved_new_and_trashed_files_are_committed(root: Path, state: State, env: dict[str, str]) -> None:
    write(root, ".gitignore", b".trash/\n")
    outcome = change(
        state,
        env,
        Rename(source=NotePath("sub"), target=NotePath("moved [x]")),
        Write(path=NotePath("Neu ü.md"), content=b"n\n"),
        MoveToTrash(path=A),
        meta=ChangeMeta(client="agent", run="r1", reason="Tidy up"),
    )

    assert outcome.reason == ""
    listed = run(root, env, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert listed == ["Neu ü.md", "moved [x]/b.md"]
    assert run(root, env, "log", "-1", "--format=%s").strip() == "Tidy up"
    assert status(root, env) == ["?? .gitignore"]


def test_a_vault_below_the_repositorys_top_is_committed(tmp_path: Path, root: Path, env: dict[str, str]) -> None:
    state, _ = apply.open_state(root / "sub", tmp_path / "state 2")

    outcome = change(state, env, Write(path=NotePath("b.md"), base=hash_content(b"b\n"), content=b"new\n"))

    assert outcome.reason == ""
    assert run(root, env, "show", "HEAD:sub/b.md") == "new\n"
    assert status(root, env) == []


def test_a_run_is_one_commit(root: Path, state: State, env: dict[str, str]) -> None:
    meta = ChangeMeta(client="agent", run="r1")
    first = apply.apply_effects(state, [Write(path=A, base=hash_content(b"a\n"), content=b"1\n")], meta)
    second = apply.apply_effects(state, [Write(path=B, base=hash_content(b"b\n"), content=b"2\n")], meta)

    git.commit(state.root, [state.journal.show(one.change_id) for one in (first, second)], env=env)

    assert run(root, env, "log", "--format=%s").splitlines() == ["Change 2 files", "first"]
    assert run(root, env, "log", "-1", "--format=%B").count("Knap-Change:") == 2


def test_no_hook_runs(root: Path, state: State, env: dict[str, str]) -> None:
    for name in ("pre-commit", "post-commit", "commit-msg", "reference-transaction", "post-index-change"):
        hook = root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{root.parent}/{name} ran'\n", encoding="utf-8")
        hook.chmod(0o755)

    outcome = edit(state, env)

    assert outcome.commit
    assert not list(root.parent.glob("* ran"))


def test_an_ignored_file_isnt_committed(root: Path, state: State, env: dict[str, str]) -> None:
    write(root, ".gitignore", b"private/\n")

    outcome = change(state, env, Write(path=NotePath("private/n.md"), content=b"x"))

    assert outcome.commit == ""
    assert "nothing to commit" in outcome.reason


def test_a_detached_head_is_skipped(root: Path, state: State, env: dict[str, str]) -> None:
    run(root, env, "checkout", "-q", "--detach")

    assert edit(state, env) == CommitOutcome(commit="", reason="git's HEAD is detached: no branch is checked out")


def test_a_repository_without_a_commit_is_skipped(root: Path, state: State, env: dict[str, str]) -> None:
    run(root, env, "checkout", "-q", "--orphan", "empty")

    assert edit(state, env).reason == "the git repository has no commit yet"


def test_a_merge_under_way_is_skipped(root: Path, state: State, env: dict[str, str]) -> None:
    run(root, env, "checkout", "-q", "-b", "side")
    run(root, env, "commit", "-q", "--allow-empty", "-m", "side")
    run(root, env, "checkout", "-q", "main")
    run(root, env, "merge", "-q", "--no-ff", "--no-commit", "side")

    assert edit(state, env).reason == "a merge is under way in the git repository"


def test_a_vault_without_a_repository_is_skipped(tmp_path: Path, env: dict[str, str]) -> None:
    state = opened(tmp_path / "plain")
    write(state.root, A, b"a\n")

    assert edit(state, env).reason == "the vault isn't in a git repository"


def test_a_missing_git_is_said(state: State, tmp_path: Path) -> None:
    assert edit(state, {"PATH": str(tmp_path)}).reason == "git isn't installed"


def test_a_person_without_a_name_is_said(state: State, env: dict[str, str]) -> None:
    nameless = {name: value for name, value in env.items() if name not in PERSON} | {
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.useConfigOnly", "GIT_CONFIG_VALUE_0": "true"
    }  # fmt: skip

    outcome = edit(state, nameless)

    assert outcome.commit == ""
    assert outcome.reason


def test_an_index_that_stays_locked_gets_no_commit_and_no_staged_reversal(
    root: Path, state: State, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "_INDEX_WAIT_S", 0.1)
    head = run(root, env, "rev-parse", "HEAD")
    (root / ".git/index.lock").write_bytes(b"")

    outcome = edit(state, env)
    still_locked = (root / ".git/index.lock").exists()
    (root / ".git/index.lock").unlink()

    assert outcome.commit == ""
    assert "index" in outcome.reason
    assert still_locked
    assert run(root, env, "rev-parse", "HEAD") == head
    assert status(root, env) == [" M a.md"]


def test_an_index_that_is_locked_for_a_moment_is_waited_for(root: Path, state: State, env: dict[str, str]) -> None:
    lock = root / ".git/index.lock"
    lock.write_bytes(b"")
    release = threading.Timer(0.3, lock.unlink)
    release.start()

    outcome = edit(state, env)
    release.join()

    assert (outcome.reason, status(root, env), lock.exists()) == ("", [], False)
    assert outcome.commit


def test_a_branch_that_another_program_moves_meanwhile_leaves_no_lock(
    root: Path, state: State, env: dict[str, str]
) -> None:
    (root / ".git/refs/heads/main.lock").write_bytes(b"")

    outcome = edit(state, env)

    assert outcome.commit == ""
    assert not (root / ".git/index.lock").exists()
    assert status(root, env) == [" M a.md"]


def test_another_repositorys_settings_in_the_environment_dont_lead_astray(
    root: Path, state: State, env: dict[str, str], tmp_path: Path
) -> None:
    outcome = edit(state, {**env, "GIT_DIR": str(tmp_path / "elsewhere"), "GIT_INDEX_FILE": str(tmp_path / "index")})

    assert outcome.commit == run(root, env, "rev-parse", "HEAD").strip()


def test_a_long_reason_is_cut_and_many_files_are_counted(state: State) -> None:
    effects = [Write(path=NotePath(f"{number}.md"), content=b"x") for number in range(30)]
    applied = apply.apply_effects(state, effects, ChangeMeta(client="cli", reason="because " * 20))

    lines = git.commit_message([state.journal.show(applied.change_id)]).splitlines()

    assert len(lines[0]) <= git.SUBJECT_LENGTH
    assert "- and 10 more" in lines


def test_a_name_that_reads_as_a_pattern_commits_no_other_file(root: Path, state: State, env: dict[str, str]) -> None:
    write(root, A, b"changed by hand\n")

    outcome = change(state, env, Write(path=NotePath("[a].md"), content=b"new\n"))

    assert outcome.reason == ""
    assert run(root, env, "show", "--format=", "--name-status", "HEAD").split() == ["A", "[a].md"]
    assert status(root, env) == [" M a.md"]


def test_what_somebody_commits_meanwhile_stays_the_last_commit(
    root: Path, state: State, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real_run: Any = subprocess.run
    theirs = ["theirs"]

    def run_and_meet(command: list[str], **options: Any) -> Any:  # noqa: ANN401 - as the function has them
        if "commit-tree" in command and theirs:
            run(root, env, "commit", "-q", "--allow-empty", "-m", theirs.pop())
        return real_run(command, **options)

    monkeypatch.setattr(subprocess, "run", run_and_meet)
    outcome = edit(state, env)

    assert outcome.commit == ""
    assert outcome.reason
    assert run(root, env, "log", "--format=%s").splitlines() == ["theirs", "first"]
    assert status(root, env) == [" M a.md"]
