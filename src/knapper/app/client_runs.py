"""The runs that each client of a server may see, start and answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from knapper.agents.runs import executor, export, retrieving
from knapper.agents.runs.model import MAX_DEPTH, MAX_NODES, RunLimits, RunOrder
from knapper.app import models, runs
from knapper.app.runs import OpenedRuns
from knapper.changes.writer import SubmitOptions
from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, RefusedError, SetupError
from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.agents.runs.engine import AskPerson, RunEngine
    from knapper.agents.runs.model import CheckpointEvent, RunDetails, RunNode, RunRecord
    from knapper.agents.runs.store import RunStore
    from knapper.app.hub import Hub
    from knapper.codemode.checkpoints import Checkpoint
    from knapper.config import Settings
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import ScriptProfile
    from knapper.tools.shapes.write import WriteResult
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
    """A client's request for a new run; what is empty or None is taken from the configuration."""

    task: str
    strategy: str = ""
    code_mode: bool | None = None
    profile: ScriptProfile = "strict"
    fresh: bool = False
    model: str = ""
    also: tuple[str, ...] = ()
    """Other vaults to look through, by name."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    """Limits by the names of `LIMIT_RANGES`."""


def build_order(settings: Settings, request: RunRequest, grants: Grants) -> RunOrder:
    """Build the order of a run.

    Args:
        settings: What the owner configured.
        request: The client's request.
        grants: The client's rights.

    Raises:
        RefusedError: It asks for more than it may have.
        BadInput: The task is empty.
    """
    if request.profile not in list_profiles(settings):
        raise RefusedError(
            f"scripts may read nothing beyond the vaults here, as the profile '{request.profile}' would",
            hint="go without a profile; the owner allows folders by scripts.fs_read, and hosts by scripts.net_allow",
            code="profile_refused",
        )
    run_settings = settings.runs
    return RunOrder(
        task=request.task,
        strategy=request.strategy or run_settings.strategy,
        code_mode=run_settings.code_mode if request.code_mode is None else request.code_mode,
        profile=request.profile,
        fresh=request.fresh,
        also=tuple(dict.fromkeys(request.also)),
        limits=resolve_limits(settings, request.limits, grants),
        client=grants.client,
    )


def resolve_limits(
    settings: Settings, requested: Mapping[str, float], grants: Grants, previous: RunLimits | None = None
) -> RunLimits:
    """Return a run's limits: a person may set any, other clients only lower ones than configured.

    Args:
        settings: What the owner configured.
        requested: Limits by the names of `LIMIT_RANGES`.
        grants: The rights of who asks for them.
        previous: The limits that the run has had; None for a new run.

    Raises:
        RefusedError: A limit is higher than the owner allows (code ``over_limit``).
    """
    owner_limits = runs.configured_limits(settings)
    base_limits = previous or owner_limits
    wanted: dict[str, float | int] = {name: int(number) for name, number in requested.items() if name != "minutes"}
    if "minutes" in requested:
        wanted["seconds"] = requested["minutes"] * 60
    new_limits = replace(base_limits, **wanted)
    if grants.is_person:
        return new_limits
    for name in requested:
        field_name = "seconds" if name == "minutes" else name
        if _exceeds(name, getattr(new_limits, field_name), getattr(owner_limits, field_name)):
            raise RefusedError(
                f"{name} is {requested[name]:g}, which is more than the owner allows",
                hint=f"give {limit_value(name, owner_limits):,.10g} at most, or leave it out; runs.{name} sets it",
                code="over_limit",
            )
    # Lower a run's earlier limits to what the owner allows now.
    lowered = {
        limit_field.name: getattr(owner_limits, limit_field.name)
        for limit_field in fields(RunLimits)
        if _exceeds(limit_field.name, getattr(new_limits, limit_field.name), getattr(owner_limits, limit_field.name))
    }
    return replace(new_limits, **lowered)


def list_profiles(settings: Settings) -> tuple[ScriptProfile, ...]:
    """List the script profiles available here: the vaults alone, also the owner's folders, also the owner's hosts."""
    script_settings = settings.scripts
    local: tuple[ScriptProfile, ...] = ("local",) if script_settings.fs_read else ()
    extended: tuple[ScriptProfile, ...] = ("extended",) if script_settings.net_allow else ()
    return ("strict", *local, *extended)


def limit_value(name: str, limits: RunLimits) -> float:
    """Return a limit by its name among `LIMIT_RANGES`."""
    value: float = limits.seconds / 60 if name == "minutes" else getattr(limits, name)
    return value


def _exceeds(name: str, number: float, most: float) -> bool:
    if name in _ZERO_IS_UNLIMITED:
        return bool(most) and (not number or number > most)
    return number > most


def list_seen_clients(hub: Hub, client: str, vault: str, store: RunStore) -> Sequence[str]:
    """List the clients whose runs of a vault a client sees.

    Args:
        hub: Holds the vaults.
        client: Who asks.
        vault: The vault's name.
        store: The vault's runs.
    """
    if not hub.settings.client(client).grants.is_person:
        return (client,)
    names: list[str] = []
    for name, other_vaults in store.clients().items():
        # Of a vault that is gone, nobody says what is hidden.
        vaults = [one for one in (vault, *other_vaults) if one in hub.vaults]
        if name == client or all(hub.covers_agent_view(client, name, one) for one in vaults):
            names.append(name)
    return names


ANSWER_S: Final = 600.0
"""How long a run that a person began waits for a person's answer before it goes on without."""
OpenEngine = Callable[[OpenedRuns, str, "AskPerson | None"], "RunEngine"]
"""Opens what works for runs: from a model's name, empty for the configured one, and who asks a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run that is ready to start, with the engine that runs it."""

    run: RunRecord
    engine: RunEngine
    replay: str = ""
    limits: RunLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRuns:
    """A vault's runs as one client sees and manages them; safe to use from any thread."""

    client: str
    opened_runs: OpenedRuns
    open_engine: OpenEngine

    @property
    def grants(self) -> Grants:
        """Return what the client may do."""
        return self.opened_runs.hub.settings.client(self.client).grants

    def seen_clients(self) -> Sequence[str]:
        """Return the names of the clients whose runs of the vault the client sees."""
        opened = self.opened_runs
        return list_seen_clients(opened.hub, self.client, opened.vault, opened.store)

    def runs(self, limit: int, offset: int) -> tuple[Sequence[RunRecord], int]:
        """List the runs that the client sees, newest first, and their total number."""
        return self.opened_runs.store.runs(limit=limit, offset=offset, clients=self.seen_clients())

    def show(self, run_id: str) -> RunDetails:
        """Return a run with its nodes; the client that is shown them has read what went into them.

        Raises:
            NotFound: There is none of that id, or the client doesn't see it (code ``no_run``).
        """
        try:
            run_view = self.opened_runs.store.show(run_id)
        except (NotFound, Ambiguous):
            raise _run_not_found(run_id) from None
        if run_view.run.id != run_id or run_view.run.order.client not in self.seen_clients():
            raise _run_not_found(run_id)
        opened_runs = self.opened_runs
        answers.mark_if_derived(opened_runs.hub.context(client=self.client, vault=opened_runs.vault), (run_id,))
        return run_view

    def node(self, run_id: str, node_id: str) -> RunNode:
        """Return a node with everything it did.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        match = next((node for node in self.show(run_id).nodes if node.id == node_id), None)
        if match is None:
            hint = "the run itself lists its nodes"
            raise NotFound(f"the run has no node '{node_id[:40]}'", hint=hint, code="no_node")
        return match

    def stale(self, run_id: str) -> Mapping[str, Sequence[str]]:
        """List the nodes whose notes have changed since, each with those notes; raises as `show` does."""
        run_view = self.show(run_id)
        return retrieving.list_stale_nodes(self.opened_runs.context(run_view.run.id), run_view.nodes)

    def prepare_new(self, request: RunRequest) -> PreparedRun:
        """Store a new run; no model is asked and no note is read yet.

        Raises:
            SetupError: There is no model, or no sandbox for its scripts.
            NotFound: There is no such strategy, or no vault of a name.
            RefusedError: It asks for more than the client may have.
            BadInput: The task isn't usable.
        """
        settings = self.opened_runs.hub.settings
        order = build_order(settings, request, self.grants)
        models.check_model_allowed(settings, request.model, self.grants)
        engine = self._engine(request.model)
        if order.code_mode:
            self.opened_runs.check_sandbox()
        self.opened_runs.check_vaults(order.also, self.client)
        for vault in (self.opened_runs.vault, *order.also):
            self.opened_runs.hub.check_can_act(vault, self.client)
        return PreparedRun(run=executor.create_run(engine, order), engine=engine)

    def prepare_resume(self, run_id: str, replay: str, limits: Mapping[str, float]) -> PreparedRun:
        """Prepare a run that has ended to be resumed.

        Args:
            run_id: The run's.
            replay: ``stale``, a node's id, or empty.
            limits: Limits that replace those it had.

        Raises:
            NotFound: There is no such run or node.
            ConflictError: It is still running (code ``run_busy``).
            SetupError: There is no model.
            RefusedError: It asks for more than the client may have.
        """
        run = self.show(run_id).run
        if replay and replay != executor.REPLAY_STALE:
            _ = self.node(run_id, replay)
        with self.opened_runs.store.lock(run.id):
            pass  # nobody carries it out
        if run.order.code_mode:
            self.opened_runs.check_sandbox()
        allowed = resolve_limits(self.opened_runs.hub.settings, limits, self.grants, run.order.limits)
        return PreparedRun(run=run, engine=self._engine(run.model), replay=replay, limits=allowed)

    def cancel(self, run_id: str) -> bool:
        """Request a run's cancellation, whichever process runs it; return whether one does."""
        return self.opened_runs.store.cancel(self.show(run_id).run.id)

    def delete(self, run_id: str) -> None:
        """Delete a run and its questions; its notes stay.

        Raises:
            NotFound: There is no such run.
            ConflictError: It is still running (code ``run_busy``).
        """
        run = self.show(run_id).run
        self.opened_runs.delete(run.id)

    def export(self, run_id: str, to: str) -> WriteResult:
        """Propose a run's answer as a note, or with the answers of its parts as a folder, under the client's own rules.

        Raises:
            NotFound: There is no such run.
            BadInput: It has no answer yet (code ``run_unanswered``).
            KnapError: The notes can't be created.
        """
        run_view = self.show(run_id)
        run = run_view.run
        if not run.answer:
            raise BadInput(f"the run {run.id} has no answer yet", hint="let it go on first", code="run_unanswered")
        submit_options = SubmitOptions(run=run.id, propose=True, reason=f"run {run.id}")
        context = self.opened_runs.hub.context(
            client=self.client, vault=self.opened_runs.vault, submit_options=submit_options
        )
        return answers.submit_several(context, export.export_requests(run, run_view.nodes, to))

    def options(self) -> dict[str, JSONValue]:
        """Return the options of a run: strategies, ranges, and whether a model and the sandbox are available."""
        settings = self.opened_runs.hub.settings
        owner_limits = runs.configured_limits(settings)
        ranges: dict[str, JSONValue] = {}
        for name, (least, most) in LIMIT_RANGES.items():
            owner_limit, is_unlimited = limit_value(name, owner_limits), name in _ZERO_IS_UNLIMITED
            if self.grants.is_person or (is_unlimited and not owner_limit):
                ranges[name] = {"least": least, "most": most}
            else:
                ranges[name] = {"least": 1 if is_unlimited else least, "most": owner_limit}
        options: dict[str, JSONValue] = {
            "strategies": [strategy.as_dict() for strategy in runs.configured_strategies(settings).all()],
            "strategy": settings.runs.strategy,
            "code_mode": settings.runs.code_mode,
            "profiles": [*list_profiles(settings)],
            "limits": {name: limit_value(name, owner_limits) for name in ranges},
            "ranges": ranges,
        }
        try:
            options |= {"model": self._engine("").name, "model_hint": ""}
        except SetupError as error:
            options |= {"model": None, "model_hint": f"{error.message}: {error.hint}"}
        try:
            options |= {"sandbox_ready": self.opened_runs.is_ready(), "sandbox_hint": ""}
        except KnapError as error:
            options |= {"sandbox_ready": None, "sandbox_hint": f"{error.message}: {error.hint}"}
        return options

    def questions(self, run_id: str) -> Sequence[CheckpointEvent]:
        """List the unanswered questions in the form of events; raises as `show` does."""
        return self.opened_runs.questions(self.show(run_id).run.id)

    def answer(self, run_id: str, checkpoint: str, word: str) -> Checkpoint:
        """Answer a run's question: ``go on``, ``skip``, paths of notes, or a free text that says where to look.

        Raises:
            NotFound: There is no such run, or no such question in it (code ``no_checkpoint``).
            RefusedError: The client isn't a person.
            ConflictError: It is answered already.
        """
        run = self.show(run_id).run
        question = self.opened_runs.checkpoints.get(checkpoint)
        if question.run != run.id:
            raise NotFound(f"there is no question '{checkpoint[:100]}'", code="no_checkpoint")
        parsed_answer = retrieving.read_answer(self.opened_runs.context(run.id), word.strip())
        return self.opened_runs.checkpoints.answer(question.id, parsed_answer, self.grants)

    def _engine(self, model: str) -> RunEngine:
        person = partial(self.opened_runs.wait_for_answer, most_s=ANSWER_S) if self.grants.is_person else None
        return self.open_engine(self.opened_runs, model, person)


def _run_not_found(run_id: str) -> NotFound:
    return NotFound(f"there is no run '{run_id[:80]}'", hint="it may have been deleted; list the runs", code="no_run")
