"""Give each client of a server the runs that it may see, order and answer."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Final, cast

from knapper.agents.runs import retrieving, service
from knapper.agents.runs.model import MAX_DEPTH, MAX_NODES, RunLimits, RunOrder
from knapper.app import clients, models, runs
from knapper.app.runs import OpenedRuns
from knapper.changes.writer import SubmitOptions
from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, RefusedError, SetupError
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.agents.runs.engine import AskPerson, RunEngine
    from knapper.agents.runs.model import CheckpointEvent, RunNode, RunRecord
    from knapper.agents.runs.service import RunDetails
    from knapper.app.hub import Hub
    from knapper.codemode.checkpoints import Checkpoint
    from knapper.config import Settings
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import ScriptProfile
    from knapper.tools.shapes import Answer
    from knapper.vault.access import Grants


MOST_MINUTES: Final = 1_440
MOST_TOKENS: Final = 1_000_000_000
MOST_CENTS: Final = 1_000_000
LIMIT_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "depth": (0, MAX_DEPTH),
    "nodes": (1, MAX_NODES),
    "minutes": (0.01, MOST_MINUTES),
    "tokens": (0, MOST_TOKENS),
    "cents": (0, MOST_CENTS),
}
"""The least and the most of each limit that can be said."""
_ZERO_IS_UNLIMITED: Final = frozenset({"tokens", "cents"})
"""For which 0 is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Hold what a client says of a new run; what is empty or None is as the owner configured it."""

    task: str
    strategy: str = ""
    code_mode: bool | None = None
    profile: ScriptProfile = "strict"
    fresh: bool = False
    model: str = ""
    also: tuple[str, ...] = ()
    """Other vaults to look through, by name."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """By the names of `RANGES`."""


def build_order(settings: Settings, wanted: RunRequest, grants: Grants) -> RunOrder:
    """Make an order.

    Args:
        settings: What the owner configured.
        wanted: What the client says.
        grants: The client's.

    Raises:
        RefusedError: It asks for more than it may have.
        BadInput: The task is empty.
    """
    if wanted.profile not in list_profiles(settings):
        raise RefusedError(
            f"scripts may read nothing beyond the vaults here, as the profile '{wanted.profile}' would",
            hint="leave profile out; the owner allows folders by scripts.fs_read, and hosts by scripts.net_allow",
            code="profile_refused",
        )
    run_settings = settings.runs
    return RunOrder(
        task=wanted.task,
        strategy=wanted.strategy or run_settings.strategy,
        code_mode=run_settings.code_mode if wanted.code_mode is None else wanted.code_mode,
        profile=wanted.profile,
        fresh=wanted.fresh,
        also=tuple(dict.fromkeys(wanted.also)),
        limits=resolve_limits(settings, wanted.limits, grants),
        client=grants.client,
    )


def resolve_limits(
    settings: Settings, said: Mapping[str, float], grants: Grants, before: RunLimits | None = None
) -> RunLimits:
    """Give a run's limits: a person says any, others lower ones than the owner configured.

    Args:
        settings: What the owner configured.
        said: By the names of `RANGES`.
        grants: Of who says it.
        before: Those that the run has had; None for a new one.

    Raises:
        RefusedError: It is more than the owner allows (code ``over_limit``).
    """
    owner_limits = runs.configured_limits(settings)
    base_limits = before or owner_limits
    new_limits = replace(base_limits, **_limit_fields(said))
    if grants.is_person:
        return new_limits
    for name in said:
        field_name = "seconds" if name == "minutes" else name
        if _exceeds(name, getattr(new_limits, field_name), getattr(owner_limits, field_name)):
            raise RefusedError(
                f"{name} is {said[name]:g}, which is more than the owner allows",
                hint=f"give {_format_limit(name, owner_limits)} at most, or leave it out; runs.{name} sets it",
                code="over_limit",
            )
    return _lower_limits(new_limits, owner_limits)


def list_profiles(settings: Settings) -> tuple[ScriptProfile, ...]:
    """List what scripts of runs may read here: the vaults; with the owner's folders; with the owner's hosts as well."""
    script_settings = settings.scripts
    local: tuple[ScriptProfile, ...] = ("local",) if script_settings.fs_read else ()
    extended: tuple[ScriptProfile, ...] = ("extended",) if script_settings.net_allow else ()
    return ("strict", *local, *extended)


def limit_ranges(settings: Settings, grants: Grants) -> dict[str, tuple[float, float]]:
    """Give the least and the most of each limit that a client can say."""
    owner_limits = runs.configured_limits(settings)
    ranges_by_name: dict[str, tuple[float, float]] = {}
    for name, (least, highest) in LIMIT_RANGES.items():
        owner_limit = limit_value(name, owner_limits)
        if grants.is_person or (name in _ZERO_IS_UNLIMITED and not owner_limit):
            ranges_by_name[name] = (least, highest)
        else:
            ranges_by_name[name] = (1 if name in _ZERO_IS_UNLIMITED else least, owner_limit)
    return ranges_by_name


def limit_value(name: str, given: RunLimits) -> float:
    """Give a limit by its name among `RANGES`."""
    return given.seconds / 60 if name == "minutes" else cast("int", getattr(given, name))


def _limit_fields(said: Mapping[str, float]) -> dict[str, float | int]:
    fields_by_name: dict[str, float | int] = {name: int(number) for name, number in said.items() if name != "minutes"}
    return {**fields_by_name, "seconds": said["minutes"] * 60} if "minutes" in said else fields_by_name


def _exceeds(name: str, number: float, most: float) -> bool:
    if name in _ZERO_IS_UNLIMITED:
        return bool(most) and (not number or number > most)
    return number > most


def _lower_limits(asked: RunLimits, most: RunLimits) -> RunLimits:
    """Lower what a run had before to what the owner allows by now."""
    lowered = {
        limit_field.name: getattr(most, limit_field.name)
        for limit_field in fields(RunLimits)
        if _exceeds(limit_field.name, getattr(asked, limit_field.name), getattr(most, limit_field.name))
    }
    return replace(asked, **lowered)


def _format_limit(name: str, most: RunLimits) -> str:
    return f"{limit_value(name, most):,.10g}"


def describe_options(tasks: OpenedRuns, grants: Grants, model: Callable[[], str]) -> dict[str, JSONValue]:
    """Tell what a run may be.

    Args:
        tasks: The vault's runs.
        grants: The client's.
        model: Gives the configured model's name, or raises what is missing.
    """
    settings = tasks.hub.settings
    default_limits = runs.configured_limits(settings)
    strategies: list[JSONValue] = [strategy.as_dict() for strategy in runs.configured_strategies(settings).all()]
    ranges = limit_ranges(settings, grants)
    return {
        "strategies": strategies,
        "strategy": settings.runs.strategy,
        "code_mode": settings.runs.code_mode,
        "profiles": [*list_profiles(settings)],
        "limits": {name: limit_value(name, default_limits) for name in ranges},
        "ranges": {name: {"least": least, "most": most} for name, (least, most) in ranges.items()},
        **_model_status(model),
        **_sandbox_status(tasks),
    }


def _model_status(name: Callable[[], str]) -> dict[str, JSONValue]:
    try:
        return {"model": name(), "model_hint": ""}
    except SetupError as error:
        return {"model": None, "model_hint": f"{error.message}: {error.hint}"}


def _sandbox_status(tasks: OpenedRuns) -> dict[str, JSONValue]:
    try:
        return {"sandbox_ready": tasks.is_ready(), "sandbox_hint": ""}
    except KnapError as error:
        return {"sandbox_ready": None, "sandbox_hint": f"{error.message}: {error.hint}"}


def list_questions(tasks: OpenedRuns, run_id: str) -> Sequence[CheckpointEvent]:
    """List what a run asks, as it is told while the run goes on.

    Raises:
        NotFound: There is no such run.
    """
    open_ids = {checkpoint.id for checkpoint in tasks.checkpoints.waiting(run_id)}
    node_questions = (service.make_checkpoint_event(node) for node in tasks.runs.show(run_id).nodes if node.asking)
    return [checkpoint for checkpoint in node_questions if checkpoint.id in open_ids]


def count_questions(tasks: OpenedRuns, found: Sequence[RunRecord]) -> Mapping[str, int]:
    """Count what runs of a list ask; those that ask nothing are left out."""
    asking_run_ids = {checkpoint.run for checkpoint in tasks.checkpoints.waiting()}
    counts = {run.id: len(list_questions(tasks, run.id)) for run in found if run.id in asking_run_ids}
    return {run_id: number for run_id, number in counts.items() if number}


def visible_clients(tasks: OpenedRuns, client: str) -> Sequence[str]:
    """Name those whose runs of a vault a client sees."""
    hub = tasks.hub
    if not hub.settings.client(client).grants.is_person:
        return (client,)
    vaults_by_client = tasks.store.clients().items()
    return [
        name
        for name, other_vaults in vaults_by_client
        if name == client or _can_see_client(hub, client, name, (tasks.vault, *other_vaults))
    ]


def _can_see_client(hub: Hub, person: str, other: str, vaults: Sequence[str]) -> bool:
    """Tell whether a person may see what an agent sees in these vaults that works for another client."""
    existing_vaults = [
        vault for vault in vaults if vault in hub.vaults
    ]  # of one that is gone, nobody says what is hidden
    return all(_covers_agent_view(hub, person, other, vault) for vault in existing_vaults)


def _covers_agent_view(hub: Hub, person: str, other: str, vault: str) -> bool:
    person_policy = hub.context(client=person, vault=vault).view.policy
    try:
        return clients.policy_covers(person_policy, clients.open_as_agent(hub, vault, "", (other,)).view.policy)
    except SetupError:  # by now its rules can't be joined with the agent's
        return False


ANSWER_S: Final = 600.0
"""How long a run that a person began waits for a person's answer before it goes on without."""
OpenEngine = Callable[[OpenedRuns, str, "AskPerson | None"], "RunEngine"]
"""Opens what works for runs: from a model's name, empty for the configured one, and who asks a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """Hold a run that is to be carried out, with what does it."""

    run: RunRecord
    engine: RunEngine
    replay: str = ""
    limits: RunLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRuns:
    """Hold what one client sees of a vault's runs, and does with them; any thread may use it."""

    client: str
    tasks: OpenedRuns
    open_engine: OpenEngine

    @property
    def grants(self) -> Grants:
        """Give what the client may do."""
        return self.tasks.hub.settings.client(self.client).grants

    def runs(self, limit: int, offset: int) -> tuple[Sequence[RunRecord], int]:
        """List the runs that the client sees, the last begun first; tells how many there are, too."""
        return self.tasks.runs.runs(limit=limit, offset=offset, clients=visible_clients(self.tasks, self.client))

    def show(self, run_id: str) -> RunDetails:
        """Give a run with its nodes.

        Raises:
            NotFound: There is none of that id, or the client doesn't see it (code ``no_run``).
        """
        try:
            run_view = self.tasks.runs.show(run_id)
        except (NotFound, Ambiguous):
            raise _run_not_found(run_id) from None
        if run_view.run.id != run_id or run_view.run.order.client not in visible_clients(self.tasks, self.client):
            raise _run_not_found(run_id)
        return run_view

    def node(self, run_id: str, node_id: str) -> RunNode:
        """Give a node with all that it did.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        match = next((node for node in self.show(run_id).nodes if node.id == node_id), None)
        if match is None:
            hint = "the run itself lists its nodes"
            raise NotFound(f"the run has no node '{node_id[:40]}'", hint=hint, code="no_node")
        return match

    def stale(self, run_id: str) -> Mapping[str, Sequence[str]]:
        """List the nodes whose notes have changed since, each with those notes; errors are those of `show`."""
        run = self.show(run_id).run
        return self.tasks.runs.stale(run.id, self.tasks.context(run.id))

    def begin(self, wanted: RunRequest) -> PreparedRun:
        """Keep a new run; nothing is asked or read yet.

        Raises:
            SetupError: There is no model, or no sandbox for its scripts.
            NotFound: There is no such strategy, or no vault of a name.
            RefusedError: It asks for more than the client may have.
            BadInput: The task can't be one.
        """
        settings = self.tasks.hub.settings
        order = build_order(settings, wanted, self.grants)
        models.check_model_allowed(settings, wanted.model, self.grants)
        engine = self._engine(wanted.model)
        if order.code_mode:
            self.tasks.check_sandbox()
        self.tasks.check_vaults(order.also)
        for vault in (self.tasks.vault, *order.also):
            clients.check_can_act(self.tasks.hub, vault, self.client)
        return PreparedRun(run=service.create_run(engine, order), engine=engine)

    def go_on(self, run_id: str, replay: str, limits: Mapping[str, float]) -> PreparedRun:
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
        allowed = resolve_limits(self.tasks.hub.settings, limits, self.grants, run.order.limits)
        return PreparedRun(run=run, engine=self._engine(run.model), replay=replay, limits=allowed)

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
        run_view = self.show(run_id)
        run = run_view.run
        if not run.answer:
            raise BadInput(f"the run {run.id} has no answer yet", hint="let it go on first", code="run_unanswered")
        submit_options = SubmitOptions(run=run.id, propose=True, reason=f"run {run.id}")
        context = self.tasks.hub.context(client=self.client, vault=self.tasks.vault, asked=submit_options)
        return answers.submit_several(context, service.export_requests(run, run_view.nodes, to))

    def options(self) -> dict[str, JSONValue]:
        """Tell what a run may be: strategies, ranges, and whether a model and the sandbox are there."""
        return describe_options(self.tasks, self.grants, lambda: self._engine("").name)

    def waiting(self, run_id: str) -> Sequence[Checkpoint]:
        """List what a run asks a person, and nobody has answered; the client sees the run."""
        return self.tasks.checkpoints.waiting(run_id)

    def asking(self, found: Sequence[RunRecord]) -> Mapping[str, int]:
        """Count what runs of a list ask a person, and nobody has answered; those that ask nothing are left out."""
        return count_questions(self.tasks, found)

    def questions(self, run_id: str) -> Sequence[CheckpointEvent]:
        """List the same as it is told while the run goes on; errors are those of `show`."""
        return list_questions(self.tasks, self.show(run_id).run.id)

    def answer(self, run_id: str, checkpoint: str, word: str) -> Checkpoint:
        """Answer what a run asks: ``go on``, ``skip``, notes by their paths, or where to look in one's own words.

        Raises:
            NotFound: There is no such run, or it doesn't ask that (code ``no_checkpoint``).
            RefusedError: The client is no person.
            ConflictError: It is answered already.
        """
        run = self.show(run_id).run
        question = self.tasks.checkpoints.get(checkpoint)
        if question.run != run.id:
            raise NotFound(f"there is no question '{checkpoint[:100]}'", code="no_checkpoint")
        parsed_answer = retrieving.read_answer(self.tasks.context(run.id), word.strip())
        return self.tasks.checkpoints.answer(question.id, parsed_answer, self.grants)

    def _engine(self, model: str) -> RunEngine:
        person = self._asked_elsewhere if self.grants.is_person else None
        return self.open_engine(self.tasks, model, person)

    def _asked_elsewhere(self, point: CheckpointEvent) -> Awaitable[str]:
        return self.tasks.elsewhere(point, most_s=ANSWER_S)


def _run_not_found(run_id: str) -> NotFound:
    return NotFound(f"there is no run '{run_id[:80]}'", hint="GET /runs lists them", code="no_run")


class ClientRunsRegistry:
    """Hold the rooms of a server's clients; any thread may ask for one."""

    def __init__(
        self, hub: Hub, open_engine: OpenEngine | None = None, is_leaving: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin without any.

        Args:
            hub: The vaults; it stays open, and is the caller's to close.
            open_engine: Opens what works for runs; None for what the configuration says.
            is_leaving: Tells whether the server ends.
        """
        self._hub = hub
        self._open_engine = open_engine or _open_configured_engine
        self._is_leaving = is_leaving
        self._lock = threading.Lock()
        self._vaults: dict[str, OpenedRuns] = {}

    def room(self, client: str, vault: str = "") -> ClientRuns:
        """Give a client's room in a vault.

        Args:
            client: Who asks.
            vault: The vault's name; empty for the first.

        Raises:
            NotFound: There is no such vault.
            StorageError: The runs can't be opened.
        """
        name = self._hub.open(vault).vault.name
        with self._lock:
            tasks = self._vaults.get(name)
            if tasks is None:
                tasks = self._vaults[name] = runs.open_runs(self._hub, name)
        return ClientRuns(client=client, tasks=tasks, open_engine=self._engine)

    def close(self) -> None:
        """Close all runs."""
        with self._lock:
            for tasks in self._vaults.values():
                tasks.close()
            self._vaults.clear()

    def _engine(self, tasks: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
        return replace(self._open_engine(tasks, model, person), is_leaving=self._is_leaving)


def _open_configured_engine(tasks: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
    return tasks.engine(model, person=person)
