"""Say how runs that go on by themselves end for those who listen, where they tell no end of their own."""

from typing import Final

from knapper.agents.events import State
from knapper.agents.live import Ending, Lives
from knapper.agents.run.events import RunDone

_WATCHED_S: Final = 30.0
"""How long what was heard of another process's run is kept after its end."""


def carried_out(most: int) -> Lives[RunDone]:
    """Hold the runs that one server carries out, so many at once at most; it begins without any."""
    return Lives(Ending(kind=RunDone, make=_ended), max_running=most)


def watched(most: int) -> Lives[RunDone]:
    """Hold the runs of other processes that a server follows; they go on when it follows them no more."""
    return Lives(Ending(kind=RunDone, make=_left), kept_s=_WATCHED_S, max_running=most)


def _ended(state: State, run_id: str) -> RunDone:
    return RunDone(run_id=run_id, state="cancelled" if state == "cancelled" else "failed", answer="")


def _left(state: State, run_id: str) -> RunDone:
    del state
    return RunDone(run_id=run_id, state="running", answer="")
