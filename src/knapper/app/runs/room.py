"""Give one client of a server what it sees of a vault's runs, and does with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from knapper.agents.runs import retrieving, service
from knapper.app import acting, model_choice
from knapper.app.runs import options, orders, questions, sight
from knapper.app.runs.opening import TaskRuns
from knapper.changes.writer import SubmitOptions
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.agents.runs.engine import AskPerson, RunEngine
    from knapper.agents.runs.model import CheckpointEvent, RunLimits, RunNode, RunRecord
    from knapper.agents.runs.service import RunDetails
    from knapper.app.runs.orders import Wanted
    from knapper.codemode.checkpoints import Checkpoint
    from knapper.jsontypes import JSONValue
    from knapper.tools.shapes import Answer
    from knapper.vault.access import Grants


ANSWER_S: Final = 600.0
"""How long a run that a person began waits for a person's answer before it goes on without."""
OpenEngine = Callable[[TaskRuns, str, "AskPerson | None"], "RunEngine"]
"""Opens what works for runs: from a model's name, empty for the configured one, and who asks a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """Hold a run that is to be carried out, with what does it."""

    run: RunRecord
    engine: RunEngine
    replay: str = ""
    limits: RunLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRoom:
    """Hold what one client sees of a vault's runs, and does with them; any thread may use it."""

    client: str
    tasks: TaskRuns
    open_engine: OpenEngine

    @property
    def grants(self) -> Grants:
        """Give what the client may do."""
        return self.tasks.hub.settings.client(self.client).grants

    def runs(self, limit: int, offset: int) -> tuple[Sequence[RunRecord], int]:
        """List the runs that the client sees, the last begun first; tells how many there are, too."""
        return self.tasks.runs.runs(limit=limit, offset=offset, clients=sight.clients(self.tasks, self.client))

    def show(self, run_id: str) -> RunDetails:
        """Give a run with its nodes.

        Raises:
            NotFound: There is none of that id, or the client doesn't see it (code ``no_run``).
        """
        try:
            found = self.tasks.runs.show(run_id)
        except (NotFound, Ambiguous):
            raise _no_run(run_id) from None
        if found.run.id != run_id or found.run.order.client not in sight.clients(self.tasks, self.client):
            raise _no_run(run_id)
        return found

    def node(self, run_id: str, node_id: str) -> RunNode:
        """Give a node with all that it did.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        found = next((node for node in self.show(run_id).nodes if node.id == node_id), None)
        if found is None:
            hint = "the run itself lists its nodes"
            raise NotFound(f"the run has no node '{node_id[:40]}'", hint=hint, code="no_node")
        return found

    def stale(self, run_id: str) -> Mapping[str, Sequence[str]]:
        """List the nodes whose notes have changed since, each with those notes; errors are those of `show`."""
        run = self.show(run_id).run
        return self.tasks.runs.stale(run.id, self.tasks.context(run.id))

    def begin(self, wanted: Wanted) -> Going:
        """Keep a new run; nothing is asked or read yet.

        Raises:
            SetupError: There is no model, or no sandbox for its scripts.
            NotFound: There is no such strategy, or no vault of a name.
            RefusedError: It asks for more than the client may have.
            BadInput: The task can't be one.
        """
        settings = self.tasks.hub.settings
        order = orders.order(settings, wanted, self.grants)
        model_choice.check(settings, wanted.model, self.grants)
        engine = self._engine(wanted.model)
        if order.code_mode:
            self.tasks.check_sandbox()
        self.tasks.check_vaults(order.also)
        for vault in (self.tasks.vault, *order.also):
            acting.check(self.tasks.hub, vault, self.client)
        return Going(run=service.create_run(engine, order), engine=engine)

    def go_on(self, run_id: str, replay: str, limits: Mapping[str, float]) -> Going:
        """Make a run that has ended ready to go on.

        Args:
            run_id: The run's.
            replay: ``stale``, a node's id, or empty.
            limits: What it may take beyond what it had.

        Raises:
            NotFound: There is no such run or node.
            ConflictError: It goes on (code ``run_busy``).
            SetupError: There is no model.
            RefusedError: It asks for more than the client may have.
        """
        run = self.show(run_id).run
        if replay and replay != service.REPLAY_STALE:
            _ = self.node(run_id, replay)
        self.tasks.runs.check_idle(run.id)
        if run.order.code_mode:
            self.tasks.check_sandbox()
        allowed = orders.limits(self.tasks.hub.settings, limits, self.grants, run.order.limits)
        return Going(run=run, engine=self._engine(run.model), replay=replay, limits=allowed)

    def cancel(self, run_id: str) -> bool:
        """Ask for a run's end, whichever process carries it out; tells whether one does. Errors are those of `show`."""
        return self.tasks.runs.cancel(self.show(run_id).run.id)

    def delete(self, run_id: str) -> None:
        """Forget a run with what it asked; what it wrote stays.

        Raises:
            NotFound: There is no such run.
            ConflictError: It goes on (code ``run_busy``).
        """
        run = self.show(run_id).run
        self.tasks.delete(run.id)

    def export(self, run_id: str, to: str) -> Answer:
        """Propose a run's answer as a note, or with its parts' in a folder, by the client's own rules.

        Raises:
            NotFound: There is no such run.
            BadInput: It has no answer yet (code ``run_unanswered``).
            KnapError: The notes can't be made.
        """
        found = self.show(run_id)
        run = found.run
        if not run.answer:
            raise BadInput(f"the run {run.id} has no answer yet", hint="let it go on first", code="run_unanswered")
        asked = SubmitOptions(run=run.id, propose=True, reason=f"run {run.id}")
        context = self.tasks.hub.context(client=self.client, vault=self.tasks.vault, asked=asked)
        return answers.submit_several(context, service.export_requests(run, found.nodes, to))

    def options(self) -> dict[str, JSONValue]:
        """Tell what a run may be: strategies, ranges, and whether a model and the sandbox are there."""
        return options.shown(self.tasks, self.grants, lambda: self._engine("").name)

    def waiting(self, run_id: str) -> Sequence[Checkpoint]:
        """List what a run asks a person, and nobody has answered; the client sees the run."""
        return self.tasks.checkpoints.waiting(run_id)

    def asking(self, found: Sequence[RunRecord]) -> Mapping[str, int]:
        """Count what runs of a list ask a person, and nobody has answered; those that ask nothing are left out."""
        return questions.counted(self.tasks, found)

    def questions(self, run_id: str) -> Sequence[CheckpointEvent]:
        """List the same as it is told while the run goes on; errors are those of `show`."""
        return questions.of(self.tasks, self.show(run_id).run.id)

    def answer(self, run_id: str, checkpoint: str, word: str) -> Checkpoint:
        """Answer what a run asks: ``go on``, ``skip``, notes by their paths, or where to look in one's own words.

        Raises:
            NotFound: There is no such run, or it doesn't ask that (code ``no_checkpoint``).
            RefusedError: The client is no person.
            ConflictError: It is answered already.
        """
        run = self.show(run_id).run
        asked = self.tasks.checkpoints.get(checkpoint)
        if asked.run != run.id:
            raise NotFound(f"there is no question '{checkpoint[:100]}'", code="no_checkpoint")
        said = retrieving.read_answer(self.tasks.context(run.id), word.strip())
        return self.tasks.checkpoints.answer(asked.id, said, self.grants)

    def _engine(self, model: str) -> RunEngine:
        person = self._asked_elsewhere if self.grants.is_person else None
        return self.open_engine(self.tasks, model, person)

    def _asked_elsewhere(self, point: CheckpointEvent) -> Awaitable[str]:
        return self.tasks.elsewhere(point, most_s=ANSWER_S)


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"there is no run '{run_id[:80]}'", hint="GET /runs lists them", code="no_run")
