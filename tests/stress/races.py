"""Apply changes to the very notes that an editor is saving, and see that it loses none of its saves."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from knapper.changes.disk import apply, files
from knapper.changes.disk.plan import ChangeMeta, Write
from knapper.changes.disk.transaction import State
from knapper.errors import ConflictError
from knapper.vault.paths import NotePath
from tests.stress import editor

PROJECT = Path(__file__).parents[2]


@dataclass(kw_only=True)
class Report:
    """What the rounds showed."""

    rounds: int
    applied: int = 0
    stale: int = 0
    caught: int = 0
    shelved: int = 0
    temps: int = 0
    lost: str = ""

    def line(self) -> str:
        """Tell it in a line."""
        return (
            f"{self.rounds} saves, {self.applied} changes applied, {self.stale} refused before,"
            f" {self.caught} taken back for a save between, {self.shelved} earlier saves kept as copies,"
            f" {self.temps} temp files left, lost saves: {self.lost or 'none'}"
        )


def run(rounds: int, *, seed: int, top: Path) -> Report:
    """Change notes as long as the editor saves.

    Args:
        rounds: Saves of the editor.
        seed: Of its moments.
        top: A folder to make for vault and state.
    """
    root, report = top / "vault", Report(rounds=rounds)
    root.mkdir(parents=True)
    for name in editor.NOTES:
        (root / name).write_bytes(editor.text(0))
    state, _ = apply.open_state(root, top / "state")
    command = [sys.executable, "-m", "tests.stress.editor", str(root), str(rounds), str(seed)]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as person:
        assert person.stdin
        person.stdin.write("begin\n")
        while person.poll() is None:
            touch(state, report)
        report.lost = person.communicate()[0] if not person.returncode else f"the editor failed: {person.returncode}"
    report.shelved = len(list(state.conflicts_folder.iterdir())) if state.conflicts_folder.exists() else 0
    report.temps = len(list(root.glob(f"{files.TEMP_PREFIX}*")))
    state.journal.shut()
    return report


def touch(state: State, report: Report) -> None:
    """Change one note or both, on top of what they hold right now."""
    names = editor.NOTES[: 1 + (report.applied + report.caught) % 2]
    try:
        effects = [touched(state.root, name) for name in names]
        apply.apply_effects(state, effects, ChangeMeta(client="stress"))
    except FileNotFoundError:
        return
    except ConflictError as error:
        if "conflicts" in error.details:
            report.stale += 1
        else:
            report.caught += 1
        return
    report.applied += 1


def touched(root: Path, name: str) -> Write:
    """Count up in the note's second line."""
    content = (root / name).read_bytes()
    lines = content.split(b"\n")
    if len(lines) > 1 and lines[1].startswith(b"touched: "):
        lines[1] = b"touched: %d" % (int(lines[1].split()[1]) + 1)
    else:
        lines.append(b"touched while empty")
    return Write(path=NotePath(name), base=files.hash_content(content), content=b"\n".join(lines))
