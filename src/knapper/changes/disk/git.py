"""Git commits of the files that changes touched, and nothing else, if the vault is in a git repository.

A commit is built in an index of its own, so that what a person has staged stays staged; no hook runs. Where a commit
could surprise (a merge in progress, a detached HEAD), there is none, and the outcome says why.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from knapper.changes.disk.journal import Change
from knapper.changes.disk.plan import FileResult

TIMEOUT_S = 60.0
SUBJECT_LENGTH = 72
MAX_LISTED = 20

_GIT_VARIABLES = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
_OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
_PATHSPEC_COMMANDS = frozenset({"add", "ls-files"})
"""Commands that take a path such as ``a [b].md`` for a pattern."""
_ABSENT = ("000000", "0" * 40)
_INDEX_WAIT_S = 2.0
"""How long to wait for another git command, such as an editor's `git status`."""
_INDEX_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOutcome:
    """Outcome of a commit."""

    commit: str
    """Its id; empty if there is none."""
    reason: str
    """Why there is none, or what to know about the one there is; empty if all went well."""


class _NoCommitError(Exception):
    """Reason why there is no commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Git:
    program: str
    at: Path
    env: Mapping[str, str]

    def run(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
        """Run a command; if it fails, git's message is the reason for no commit."""
        process = self.try_run(*arguments, stdin=stdin, index=index)
        if process.returncode:
            lines = process.stderr.decode(errors="replace").strip().splitlines() or [f"git {arguments[0]} failed"]
            raise _NoCommitError(lines[0].removeprefix("fatal: "))
        return process.stdout

    def try_run(
        self, *arguments: str, stdin: bytes = b"", index: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command that may fail."""
        fixed = ["-c", f"core.hooksPath={os.devnull}", "-c", "core.quotePath=false"]
        if arguments[0] in _PATHSPEC_COMMANDS:
            fixed.append("--literal-pathspecs")
        env = {**self.env, **({"GIT_INDEX_FILE": str(index)} if index else {})}
        try:
            return subprocess.run(  # noqa: S603 (git with constant commands; paths go through standard input)
                [self.program, *fixed, *arguments],
                cwd=self.at,
                env=env,
                input=stdin,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _NoCommitError(f"git can't be run: {error}") from error

    def line(self, *arguments: str) -> str:
        """Run a command that prints one line."""
        return os.fsdecode(self.run(*arguments)).rstrip("\n")


def commit(root: Path, changes: Sequence[Change], *, env: Mapping[str, str]) -> CommitOutcome:
    """Commit the files that some changes touched, as they are on disk now.

    Args:
        root: The vault's real folder.
        changes: Of one run, or a single one; oldest first.
        env: The process's environment, in which git finds its program and the person's settings.
    """
    try:
        # Variables that a surrounding git command sets would lead to another repository or index.
        repository, prefix = _open_repository(
            root, {name: value for name, value in env.items() if name not in _GIT_VARIABLES}
        )
        results = [one for change in changes for one in change.files]
        touched = {prefix + path for one in results for path in (one.before_path, one.after_path) if path}
        return _commit(repository, sorted(touched), commit_message(changes))
    except _NoCommitError as error:
        return CommitOutcome(commit="", reason=str(error))


def commit_message(changes: Sequence[Change]) -> str:
    """Return a commit's message: what and why in a line, the files, and by whom.

    ``Edit Ideas/Trees.md`` with ``Knap-Change: 0gpx4k2e9-7h2mq9xw`` at its end.
    """
    files = [one for change in changes for one in change.files]
    reasons = dict.fromkeys(change.reason for change in changes if change.reason)
    if len(reasons) == 1:
        subject = next(iter(reasons)).split("\n")[0]
    elif len(files) == 1:
        description = _describe_result(files[0])
        subject = description[0].upper() + description[1:]
    else:
        subject = f"Change {len(files)} files"
    if len(subject) > SUBJECT_LENGTH:
        subject = subject[: SUBJECT_LENGTH - 1].rstrip() + "…"
    listed = [f"- {_describe_result(one)}" for one in files[:MAX_LISTED]]
    more = [f"- and {len(files) - MAX_LISTED} more"] if len(files) > MAX_LISTED else []
    trailers = [f"Knap-Change: {change.id}" for change in changes]
    trailers += [f"Knap-Client: {client}" for client in dict.fromkeys(change.client for change in changes)]
    trailers += [f"Knap-Run: {run}" for run in dict.fromkeys(change.run for change in changes) if run]
    return "\n".join([subject, "", *listed, *more, "", *trailers, ""])


def _open_repository(root: Path, env: Mapping[str, str]) -> tuple[_Git, str]:
    program = shutil.which("git", path=env.get("PATH"))
    if program is None:
        raise _NoCommitError("git isn't installed")
    git = _Git(program=program, at=root, env=env)
    if git.try_run("rev-parse", "--is-inside-work-tree").stdout.strip() != b"true":
        raise _NoCommitError("the vault isn't in a git repository")
    top = Path(git.line("rev-parse", "--show-toplevel"))
    prefix = git.line("rev-parse", "--show-prefix")
    return _Git(program=program, at=top, env=env), prefix


def _commit(git: _Git, touched: Sequence[str], text: str) -> CommitOutcome:
    head = git.try_run("symbolic-ref", "-q", "HEAD")
    if head.returncode:
        raise _NoCommitError("git's HEAD is detached: no branch is checked out")
    tip = git.try_run("rev-parse", "-q", "--verify", "HEAD^{commit}")
    if tip.returncode:
        raise _NoCommitError("the git repository has no commit yet")
    places = git.run("rev-parse", *(word for name in _OPERATIONS for word in ("--git-path", name)))
    for name, place in zip(_OPERATIONS, os.fsdecode(places).splitlines(), strict=True):
        if (git.at / place).exists():
            raise _NoCommitError(f"{_OPERATIONS[name]} is under way in the git repository")
    branch, parent = os.fsdecode(head.stdout).strip(), os.fsdecode(tip.stdout).strip()
    # An index of its own keeps what the person has staged out of the commit.
    with tempfile.TemporaryDirectory() as folder:
        # the last commit's tree, with the touched files as they are on disk
        index = Path(folder) / "index"
        git.run("read-tree", "HEAD", index=index)
        # No paths mean all of them: a command line can't take many.
        few_paths = touched if len(touched) <= MAX_LISTED else ()
        tracked = _split_nul(git.run("ls-files", "-z", "--", *few_paths, index=index))
        tracked_folders = {path[:place] for path in tracked for place, sign in enumerate(path) if sign == "/"}
        candidates = [path for path in touched if path not in tracked and path not in tracked_folders]
        ignored = _split_nul(git.try_run("check-ignore", "-z", "--stdin", stdin=_join_nul(candidates)).stdout)
        tracked_touched = [path for path in touched if path not in candidates]
        new = [path for path in candidates if path not in ignored and os.path.lexists(git.at / path)]
        if tracked_touched or new:
            input_paths = _join_nul([*tracked_touched, *new])
            git.run("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=input_paths, index=index)
        tree = os.fsdecode(git.run("write-tree", index=index)).strip()
    if tree == git.line("rev-parse", f"{parent}^{{tree}}"):
        raise _NoCommitError("git has nothing to commit: the files are as in the last commit, or ignored")
    commit_id = os.fsdecode(git.run("commit-tree", tree, "-p", parent, "-F", "-", stdin=text.encode())).strip()
    # As git does it: the index is locked and written before the branch moves, and takes its name after. Otherwise an
    # index that another program holds would show the commit's opposite as staged.
    with _hold_index(git) as lock:
        has_changed = _update_index(git, parent, commit_id, lock)
        # The old value is given, so that git refuses if somebody else has committed meanwhile.
        git.run("update-ref", "-m", "commit: by knap", branch, commit_id, parent)
        if has_changed:
            lock.replace(lock.with_suffix(""))
        else:
            lock.unlink()
    return CommitOutcome(commit=commit_id, reason="")


@contextlib.contextmanager
def _hold_index(git: _Git) -> Generator[Path]:
    """Take the lock of the person's index; the block renames the lock's file to the index, or deletes it."""
    lock = git.at / f"{git.line('rev-parse', '--git-path', 'index')}.lock"
    deadline = time.monotonic() + _INDEX_WAIT_S
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            break
        except FileExistsError as error:
            if time.monotonic() > deadline:
                raise _NoCommitError(f"another git command holds the index ('{lock.name}' exists)") from error
            time.sleep(_INDEX_POLL_S)
        except OSError as error:
            raise _NoCommitError(f"git's index can't be locked: {error.strerror}") from error
    try:
        yield lock
    except BaseException:
        lock.unlink(missing_ok=True)
        raise


def _update_index(git: _Git, old: str, new: str, target: Path) -> bool:
    """Write to *target* the person's index, updated where it had the last commit's texts; return whether it differs."""
    changed = _parse_differences(git.run("diff-tree", "-r", "--no-renames", "--raw", "-z", old, new))
    staged = _parse_entries(git.run("ls-files", "-s", "-z"))
    lines = [
        f"{mode} {name}\t{path}"
        for path, (before, (mode, name)) in changed.items()
        if staged.get(path, [_ABSENT]) == [before]
    ]
    if not lines:
        return False
    with tempfile.TemporaryDirectory() as folder:
        # Beside the lock, git would take a lock of its own on it.
        copy = Path(folder) / "index"
        try:
            shutil.copyfile(target.with_suffix(""), copy)
            git.run("update-index", "-z", "--index-info", stdin=_join_nul(lines), index=copy)
            shutil.copyfile(copy, target)
        except OSError as error:
            raise _NoCommitError(f"git's index can't be written: {error.strerror}") from error
    return True


def _parse_differences(raw: bytes) -> dict[str, tuple[tuple[str, str], tuple[str, str]]]:
    """Read ``:100644 100755 OLD NEW M``, each with the path after it; return both modes and names by path."""
    words = _split_nul(raw)
    differences: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {}
    for facts, path in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, old_name, new_name, _ = facts.removeprefix(":").split(" ")
        differences[path] = ((old_mode, old_name), (new_mode, new_name))
    return differences


def _parse_entries(raw: bytes) -> dict[str, list[tuple[str, str]]]:
    """Read ``100644 NAME STAGE`` and the path after it; return modes and names by path, several for a conflict."""
    entries: dict[str, list[tuple[str, str]]] = {}
    for entry in _split_nul(raw):
        facts, _, path = entry.partition("\t")
        mode, name, stage = facts.split(" ")
        entries.setdefault(path, []).append((mode if stage == "0" else "conflict", name))
    return entries


def _split_nul(raw: bytes) -> list[str]:
    return [os.fsdecode(word) for word in raw.split(b"\0") if word]


def _join_nul(words: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _describe_result(result: FileResult) -> str:
    if result.before_path is None:
        return f"create {result.after_path}"
    if result.after_path is None:
        return f"remove {result.before_path}"
    if result.before_path != result.after_path:
        return f"move {result.before_path} to {result.after_path}"
    return f"edit {result.after_path}"
