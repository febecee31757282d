"""Check for what changes of notes left behind that were cut short."""

from pathlib import Path

from knapper import app
from knapper.changes.disk import apply
from knapper.cli.checks.places import failed
from knapper.cli.finding import Finding
from knapper.config import Settings
from knapper.errors import KnapError
from knapper.tools.context import Context

_NAMED = 3


def leftovers(settings: Settings) -> Finding | None:
    """Tell of temp files in the vault that the journal can't explain; None where there are none."""
    try:
        context = app.open_vault(settings)
    except KnapError:
        return None  # and another check tells
    with context:
        try:
            found = _strays(context)
        except KnapError as error:
            return failed("changes", error)
    if not found:
        return None
    names = ", ".join(f"'{path.as_posix()}'" for path in found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
    hint = "another machine, or a power cut, left them: see whether a note's text is missing, then delete them"
    return Finding(name="changes", state="warn", text=f"temp files lie in the vault: {names}", hint=hint)


def _strays(context: Context) -> list[Path]:
    state = context.writer.state
    return [path.relative_to(state.root) for path in apply.find_stray_temp_files(state)]
