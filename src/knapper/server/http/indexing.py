"""Serve refreshes of the index: start or join one, follow its progress, and cancel it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from knapper.agents.events import BackgroundJobs, BaseEvent, Error, FinalEventSpec
from knapper.errors import KnapError, NotFound, RefusedError
from knapper.index.documents import Filter
from knapper.index.refresh import RefreshPhase
from knapper.server import security
from knapper.server.http import background, binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.background import JobSet
from knapper.server.http.binding import VAULT_PARAMETER, Parameter
from knapper.server.http.openapi import BOOLEAN, STRING

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from knapper.agents.events import BackgroundJob, JobEventSink
    from knapper.app import Hub
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import StopSignal, WorkerThreads


IndexState = Literal["complete", "cancelled", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress(BaseEvent):
    """How far a refresh is."""

    kind: ClassVar[str] = "progress"
    phase: RefreshPhase
    """What is done now: the vault is looked through, files are read, or chunks are embedded."""
    done: int
    total: int
    """0 where it isn't known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOutcome(BaseEvent):
    """The end of a refresh."""

    kind: ClassVar[str] = "indexed"
    vault: str
    state: IndexState
    indexed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    notes: int = 0
    chunks: int = 0
    pending: int = 0
    """Chunks that aren't embedded yet."""
    problems: list[JsonValue] = field(default_factory=list[JsonValue])


class RefreshCancelled(KnapError):
    """The refresh was cancelled, or the server is stopping."""

    code = "cancelled"


class IndexService:
    """The refreshes of one server, one for each vault at a time; used from its event loop."""

    def __init__(self, hub: Hub, threads: WorkerThreads) -> None:
        """Start empty.

        Args:
            hub: The vaults; the caller closes it.
            threads: Where refreshes run; the caller closes them.
        """
        self._hub = hub
        self._threads = threads
        self._jobs: BackgroundJobs[IndexOutcome] = BackgroundJobs(
            FinalEventSpec(
                kind=IndexOutcome,
                make=lambda state, vault: IndexOutcome(
                    vault=vault, state="cancelled" if state == "cancelled" else "failed"
                ),
            )
        )
        self._ongoing = JobSet()

    def check_client(self, client: str) -> None:
        """Check that a client may know how many files the vault has, which the progress shows.

        Raises:
            RefusedError: Something is hidden from it.
        """
        settings = self._hub.settings.client(client)
        if settings.read or settings.hidden:
            raise RefusedError(
                "this client doesn't see the whole vault",
                hint="let another one ask; a search takes recent changes in by itself",
                code="not_all_visible",
            )

    def begin(self, vault: str, *, full: bool, embed: bool) -> tuple[BackgroundJob[IndexOutcome], bool]:
        """Start a refresh, or join the running one of the vault.

        Args:
            vault: Its name.
            full: Clear the index first.
            embed: Also compute the missing vectors.

        Returns:
            The job, and whether it was running already.

        Raises:
            NotFound: There is no such vault.
            StorageError: The server is stopping (code ``stopping``).
        """
        running = next((job for job in self._jobs.running() if job.subject_id == vault), None)
        if running is not None:
            return running, True

        def work(emit: JobEventSink) -> Coroutine[object, object, object]:
            return self._refresh(vault, emit, full=full, embed=embed)

        return self._ongoing.begin(self._jobs, vault, work), False

    def find(self, job_id: str) -> BackgroundJob[IndexOutcome]:
        """Return a refresh by its id.

        Raises:
            NotFound: There is none, or it ended long ago (code ``no_refresh``).
        """
        try:
            return self._jobs.find(job_id)
        except NotFound:
            hint = "start a new one"
            raise NotFound("there is no such refresh", hint=hint, code="no_refresh") from None

    def end(self) -> None:
        """Refuse new refreshes, and cancel the running ones; what they have read is kept."""
        self._ongoing.cancel_all()

    async def shut(self) -> None:
        """End all refreshes, and wait for them."""
        await self._ongoing.shut()

    async def _refresh(self, vault: str, emit: JobEventSink, *, full: bool, embed: bool) -> None:
        loop, cancelling = asyncio.get_running_loop(), threading.Event()

        def report(phase: RefreshPhase, done: int, total: int) -> None:
            if cancelling.is_set():
                raise RefreshCancelled("the refresh is cancelled")
            event: BaseEvent = IndexProgress(phase=phase, done=done, total=total)
            _ = loop.call_soon_threadsafe(emit, event)

        def work() -> IndexOutcome:
            opened = self._hub.open(vault)
            opened.engine.read_rules()  # they may have changed since the last search
            # Else another full refresh could clear the index before its vectors are computed and it is counted.
            with opened.engine.filling(stop=cancelling) if full else contextlib.nullcontext():
                outcome = opened.engine.refresh(full=full, progress=report)
                embedded = opened.engine.embed(progress=report, stop=cancelling, publishes=False) if embed else 0
                status = opened.engine.status(Filter())
            if embed:
                opened.engine.publish(progress=report, stop=cancelling)
            return IndexOutcome(
                vault=vault,
                state="complete",
                indexed=outcome.indexed,
                removed=outcome.removed,
                unchanged=outcome.unchanged,
                embedded=embedded,
                notes=status.notes,
                chunks=status.chunks,
                pending=status.pending,
                problems=[*outcome.problems],
            )

        running = asyncio.ensure_future(self._threads.run("long", work))
        try:
            emit(await asyncio.shield(running))
        except asyncio.CancelledError:
            cancelling.set()
            _ = await asyncio.wait([running])  # a batch is written as a whole
            if not running.cancelled():
                _ = running.exception()
            raise


_FULL: Final = Parameter(name="full", doc="Delete the index and rebuild it; only a person may.", kind="flag")
_EMBED: Final = Parameter(
    name="embed", doc="Also compute the missing vectors for search by meaning; so it is if left out.", kind="flag"
)
_BEGIN_PARAMETERS: Final = (_FULL, _EMBED, VAULT_PARAMETER)
_BEGUN_CONTENT: Final = openapi.json_content(
    {
        "job_id": STRING,
        "vault": STRING,
        "joined": {"type": "boolean", "description": "Whether it was running already, perhaps not in full."},
    }
)
_EVENTS_CONTENT: Final = background.events_content(
    "IndexEvent",
    "`start` comes first, with job_id and vault; then `progress`, with the phase (`scan`, `read`, `embed`, "
    "`publish`), `done` and `total`, and `error`; `indexed` comes last, with what was done.",
    background.start_schema("job_id", "vault"),
    IndexProgress | Error | IndexOutcome,
)
_CANCELLED_CONTENT: Final = openapi.json_content({"job_id": STRING, "cancelled": BOOLEAN, "ended": BOOLEAN})
_ACCEPTED_STATUS: Final = 202
_TAG: Final = "index"


def mount_index(hub: Hub, threads: WorkerThreads, stop: StopSignal) -> Mount:
    """Create the mount for ``/index``.

    Args:
        hub: The vaults; the caller closes it.
        threads: Where refreshes run; the caller closes them.
        stop: Set when the server stops; refreshes are cancelled then.
    """
    service = IndexService(hub, threads)

    async def begin(request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Bring the index up to date.

        Replies at once; follow it at /index/{job_id}/events. While one is running in a vault, the next joins it. Only
        for clients that see the whole vault.
        """
        client = security.client_of(request.scope)
        service.check_client(client)
        is_full = args.flag("full") is True
        if is_full:
            security.check_person(hub.settings, request.scope, "build the index anew")
        vault = hub.name_for(client, args.text("vault"))
        job, has_joined = service.begin(vault, full=is_full, embed=args.flag("embed") is not False)
        return {"job_id": job.id, "vault": job.subject_id, "joined": has_joined}

    async def tell(request: Request, args: RequestArguments) -> Response:
        """Tell how far a refresh is.

        As a stream, after `Last-Event-ID` or from the beginning; or as JSON.
        """
        job = _find_job(hub, service, request)
        return await background.events_reply(job, {"job_id": job.id, "vault": job.subject_id}, request, args)

    async def cancel(request: Request, args: RequestArguments) -> dict[str, JSONValue]:
        """Cancel a refresh; what was read is kept."""
        del args
        job = _find_job(hub, service, request)
        cancelled, _ = await background.cancel_job(job)
        return {"job_id": job.id, "cancelled": cancelled, "ended": job.has_ended}

    path, event_parameters = "/index/{job_id}", (*background.EVENT_PARAMETERS, *binding.ANY_VAULT)
    specs = (
        replace(
            openapi.bind_route("POST", "/index", _TAG, begin, _BEGIN_PARAMETERS, _BEGUN_CONTENT),
            status=_ACCEPTED_STATUS,
        ),
        openapi.bind_route("GET", f"{path}/events", _TAG, tell, event_parameters, _EVENTS_CONTENT),
        openapi.bind_route("POST", f"{path}/cancel", _TAG, cancel, binding.ANY_VAULT, _CANCELLED_CONTENT),
    )
    return Mount(
        routes=[*map(openapi.make_route, specs)], lifespan=background.job_lifespan(stop, service.end, service.shut)
    )


def _find_job(hub: Hub, service: IndexService, request: Request) -> BackgroundJob[IndexOutcome]:
    """Return the refresh of the path, of a vault that the client may open and sees the whole of."""
    client = security.client_of(request.scope)
    service.check_client(client)
    job = service.find(request.path_params["job_id"])
    _ = hub.name_for(client, job.subject_id)
    return job
