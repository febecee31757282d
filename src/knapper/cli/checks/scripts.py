"""Check what runs scripts."""

from knapper.app.hub import SANDBOX_FOLDER
from knapper.cli.checks import places
from knapper.cli.finding import Finding
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import Settings
from knapper.errors import KnapError


def sandbox(settings: Settings) -> Finding:
    """Tell whether the sandbox is prepared, starts, and which parts of its second wall stand."""
    with WorkerPool(settings.state_dir / SANDBOX_FOLDER, workers=1) as made:
        try:
            if not made.code.is_ready():
                hint = "the first script does that, in about ten seconds"
                return Finding(name="scripts", state="ok", text="the sandbox isn't prepared yet", hint=hint)
            walls = made.warm()
        except KnapError as error:
            return places.failed("scripts", error)
    down = [f"{name}: {why}" for name, why in walls.items() if why != "on"]
    if down:
        hint = "scripts run all the same: WebAssembly is the first wall"
        text = f"the sandbox starts, but its second wall isn't whole: {'; '.join(down)}"
        return Finding(name="scripts", state="warn", text=text, hint=hint)
    return Finding(name="scripts", state="ok", text=f"the sandbox starts; second wall: {', '.join(walls) or 'none'}")
