"""Reader processes: they answer searches beside the server, so that Python's lock doesn't hold these up.

The server brings the index up to date, and tells a reader which state it has found; the reader answers from that state
or a later one, for the client that asks and by the same code. Whatever isn't as usual, the server does by itself: an
index that isn't current, notices, errors, a reader that has died. So a reader is only ever quicker, never different.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import pickle
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from knapper.config import Vault
from knapper.errors import KnapError
from knapper.index import database
from knapper.server import workers
from knapper.server.reader_process import (
    ANSWERED,
    FAILED,
    MARKS_HEAD,
    REPLY_HEAD,
    REQUEST_HEAD,
    SEARCH_TOOLS,
    ReaderRequest,
    ReaderSetup,
)
from knapper.tools import answers

if TYPE_CHECKING:
    from knapper.app import Hub
    from knapper.index.refresh import Freshness
    from knapper.server.workers import WorkerThreads

LOG: Final = logging.getLogger("knapper.server.readers")
_MOST_BY_ITSELF: Final = 4
"""Readers that ``auto`` allows: each has 60 MB or so of its own."""
_QUICK_EMBEDDERS: Final = frozenset({"static", "none"})
"""Of which a second copy costs little, and that wait for nobody."""
_BUSY_WITHIN_S: Final = 5.0
_BUSY_SEARCHES: Final = 10
"""Searches within that time that came while others were under way: only then does another reader pay."""
_SIDE_BY_SIDE: Final = 2
IDLE_S: Final = 60.0
"""After so long without searches side by side, all readers end."""
_START_S: Final = 60.0
_AGAIN_S: Final = 60.0
"""Pause after a reader that couldn't start."""
_ANSWER_S: Final = 15.0
"""A reader that takes longer hangs, and is ended."""
_ENOUGH: Final = 2
"""Requests that keep a reader busy: the one that it answers, and the one that it takes up next."""
_MAX_PAUSE_S: Final = 0.02
"""How long a look at changes waits at most while all readers are busy."""
_QUEUE: Final = 32
"""Requests that a reader may have before the server answers by itself."""
_MAX_REQUEST_BYTES: Final = 60_000
"""What fits into a pipe at once; a longer question is rare."""
_OUTPUT: Final = 1
"""The number of a process's standard output."""
_MAX_NUMBER: Final = 1 << 31
_END_S: Final = 2.0


class ReaderGoneError(Exception):
    """A reader has died, or was ended."""


def most_readers(hub: Hub) -> int:
    """Return how many readers a server may have: by the setting, or by what pays here."""
    settings = hub.settings
    # A program that is one file can't start a second Python, and a team's database has processes of its own.
    if getattr(sys, "frozen", False) or not sys.executable or settings.index.is_shared:
        return 0
    if not all(vault.has_files for vault in hub.vault_folders):
        return 0
    if settings.server.readers != "auto":
        return int(settings.server.readers)
    processors = workers.count_processors()
    is_quick = settings.embeddings.kind in _QUICK_EMBEDDERS and settings.search.rerank.kind == "off"
    return min(processors, _MOST_BY_ITSELF) if processors > 1 and is_quick else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """What one look at a vault's changes has found."""

    freshness: Freshness
    """As for a client that sees everything."""
    uid: str
    generation: int
    """Of the index after the look."""

    @property
    def is_plain(self) -> bool:
        """Return whether all is in the index, and nothing else has to be told, whoever asks."""
        found = self.freshness
        return found.is_current and not (found.damaged or found.pending or found.notices)


class StateChecks:
    """Looks at one vault's changes for all searches that wait: one look answers for all that came before it began."""

    def __init__(
        self,
        look: Callable[[], asyncio.Future[KnownState | None]],
        pause: Callable[[], asyncio.Future[None] | None] = lambda: None,
    ) -> None:
        """Look at nothing yet.

        Args:
            look: Begins a look.
            pause: Returns what the next look may wait for, as no search could be answered before: then more of them
                share it. None where it may begin at once.
        """
        self._look = look
        self._pause = pause
        self._current: asyncio.Future[KnownState | None] | None = None
        self._next: asyncio.Future[KnownState | None] | None = None

    async def state(self) -> KnownState | None:
        """Return a state that was found after this call; None where the server has to answer by itself."""
        if self._next is None:
            pause = self._pause()
            if self._current is None and pause is None:
                return await asyncio.shield(self._begin())
            self._next = asyncio.ensure_future(self._begin_later())
        return await asyncio.shield(self._next)

    def _begin(self) -> asyncio.Future[KnownState | None]:
        look = self._current = self._look()
        look.add_done_callback(self._end)
        return look

    def _end(self, look: asyncio.Future[KnownState | None]) -> None:
        if self._current is look:
            self._current = None

    async def _begin_later(self) -> KnownState | None:
        if self._current is not None:
            _ = await asyncio.wait([self._current])
        pause = self._pause()
        if pause is not None:
            _ = await asyncio.wait([pause], timeout=_MAX_PAUSE_S)
        self._next = None
        return await self._begin()


class _Replies(asyncio.SubprocessProtocol):
    """What comes from a reader: each reply goes to who waits for it as soon as its last byte is there."""

    def __init__(self) -> None:
        """Wait for that the reader is ready."""
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[tuple[int, bytes]] = loop.create_future()
        self.waiting = {0: self.ready}
        """Who waits for the reply to each request, by its number; 0 for that it is ready."""
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done once nothing comes any more."""
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done once the process has ended."""
        self._received = bytearray()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on the replies that are complete."""
        del fd  # nothing but the output is read
        self._received += data
        while len(self._received) >= REPLY_HEAD.size:
            number, outcome, length = REPLY_HEAD.unpack_from(self._received)
            stop = REPLY_HEAD.size + length
            if len(self._received) < stop:
                return
            reply = self.waiting.pop(number, None)
            if reply is not None and not reply.done():
                reply.set_result((outcome, bytes(self._received[REPLY_HEAD.size : stop])))
            del self._received[:stop]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Tell all who wait that the reader has died."""
        del exc
        if fd == _OUTPUT and not self.gone.done():
            self.gone.set_result(None)
            for reply in self.waiting.values():
                if not reply.done():
                    reply.set_exception(ReaderGoneError())

    def process_exited(self) -> None:
        """Tell who waits for its end."""
        self.ended.set_result(None)


@dataclass(slots=True, eq=False, kw_only=True)
class _ReaderProcess:
    """A running reader, seen from the server."""

    process: asyncio.SubprocessTransport
    target: asyncio.WriteTransport
    replies: _Replies
    last: int = 0

    @property
    def under_way(self) -> int:
        """Return how many requests it has."""
        return len(self.replies.waiting)

    async def begin(self, setup: ReaderSetup) -> None:
        """Give it its setup, and wait until it is ready.

        Raises:
            ReaderGoneError: It has ended instead.
        """
        self.target.write(pickle.dumps(setup))
        _ = await self.replies.ready

    async def ask(self, content: bytes) -> tuple[int, bytes]:
        """Return the outcome of a request, and the answer or the reason.

        Raises:
            ReaderGoneError: It has died.
        """
        if self.replies.gone.done():
            raise ReaderGoneError
        self.last = number = self.last % _MAX_NUMBER + 1
        reply = self.replies.waiting[number] = asyncio.get_running_loop().create_future()
        self.target.write(REQUEST_HEAD.pack(number, len(content)) + content)
        try:
            return await reply
        finally:
            _ = self.replies.waiting.pop(number, None)

    def end(self) -> None:
        """Let it end with what it has begun; it does so when its input ends."""
        self.target.close()

    async def wait(self) -> None:
        """Wait until it has ended, and kill it if that takes too long."""
        self.end()
        _ = await asyncio.wait([self.replies.ended], timeout=_END_S)
        if not self.replies.ended.done():
            self.kill()
            _ = await asyncio.wait([self.replies.ended])
        self.process.close()
        _ = await asyncio.wait([self.replies.gone])

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class ReaderPool:
    """The readers of one server, begun when several searches are under way, and ended when none are.

    Everything here happens in the server's event loop, but for looking at changes and recording what was read.
    """

    def __init__(self, hub: Hub, threads: WorkerThreads, *, idle_s: float = IDLE_S) -> None:
        """Begin none yet.

        Args:
            hub: The server's vaults.
            threads: Look at changes.
            idle_s: How long readers stay after the last searches side by side.
        """
        self._hub = hub
        self._threads = threads
        self._idle_s = idle_s
        self._most = most_readers(hub)
        self._readers: list[_ReaderProcess] = []
        self._starting: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._checks: dict[str, StateChecks] = {}
        self._freed: asyncio.Future[None] | None = None
        """Done once a reader has little to do; None where nobody waits for that."""
        self._under_way = 0
        self._busy: list[float] = []
        self._busy_at = 0.0
        self._not_before = 0.0
        self._is_closed = False

    @property
    def count(self) -> int:
        """Return how many readers run."""
        return len(self._readers)

    @property
    def processes(self) -> tuple[int, ...]:
        """Return their process ids."""
        return tuple(reader.process.get_pid() for reader in self._readers)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Let readers begin within the block; none is left after it."""
        idling = asyncio.create_task(self._end_idle(), name="readers")
        try:
            yield
        finally:
            self._is_closed = True
            for task in filter(None, (idling, self._starting)):
                _ = task.cancel()
                _ = await asyncio.wait([task])
            await self._end_all()

    @contextlib.contextmanager
    def under_way(self, vault: str) -> Generator[None]:
        """Count a search within the block, and begin a reader where many are under way."""
        self._under_way += 1
        if self._most and self._under_way >= _SIDE_BY_SIDE:
            self._busy_at = time.monotonic()
            if len(self._readers) < self._most:
                self._busy = [at for at in self._busy if self._busy_at - at < _BUSY_WITHIN_S]
                self._busy.append(self._busy_at)
                if len(self._busy) >= _BUSY_SEARCHES:
                    self._begin_one(vault)
        try:
            yield
        finally:
            self._under_way -= 1

    async def look(self, client: str, arguments: Mapping[str, object]) -> KnownState | None:
        """Look for changes together with all other searches that wait for that.

        Returns:
            What was found; None where a search is alone, or has to look by itself.

        Raises:
            KnapError: The server has too much to do, or the index can't be used.
        """
        if not self._readers and self._under_way < _SIDE_BY_SIDE:
            return None
        try:
            vault = self._hub.name_for(client, str(arguments.get("vault") or ""))
        except KnapError:  # the search itself tells that
            return None
        if vault not in self._checks:
            self._checks[vault] = StateChecks(
                lambda: asyncio.ensure_future(self._threads.run("read", lambda: self._look(vault))), self._pause
            )
        return await self._checks[vault].state()

    async def answer(
        self, client: str, tool: str, arguments: Mapping[str, object], state: KnownState | None
    ) -> bytes | None:
        """Let a reader answer a call; return its answer as JSON, or None where the server has to answer by itself.

        Args:
            client: Who asks.
            tool: The tool's name.
            arguments: Not checked yet; the vault's name may be among them.
            state: From `look`.

        Raises:
            KnapError: The server has too much to do, or can't record what was read.
        """
        if not self._readers or tool not in SEARCH_TOOLS or state is None or not state.is_plain:
            return None
        vault = self._hub.name_for(client, str(arguments.get("vault") or ""))
        request: ReaderRequest = {
            "client": client,
            "vault": vault,
            "tool": tool,
            "arguments": arguments,
            "as_of": state.freshness.as_of,
            "uid": state.uid,
            "generation": state.generation,
        }
        content = json.dumps(request).encode()
        reply = await self._ask(content, vault) if len(content) <= _MAX_REQUEST_BYTES else None
        if reply is None:
            return None
        (length,) = MARKS_HEAD.unpack_from(reply)
        start = MARKS_HEAD.size + length
        marks: list[str] = json.loads(reply[MARKS_HEAD.size : start])

        def mark() -> None:
            context = self._hub.context(client=client, vault=vault)
            for source in marks:
                answers.mark_tainted(context, source)

        if marks:  # recorded before the client is shown foreign text
            await self._threads.run("write", mark)
        return reply[start:]

    async def _ask(self, content: bytes, vault: str) -> bytes | None:
        """Return the reply of the reader that has least to do; None where none can answer."""
        reader = min(self._readers, key=lambda each: each.under_way, default=None)
        if reader is None or reader.under_way >= _QUEUE:
            return None
        try:
            async with asyncio.timeout(_ANSWER_S):
                outcome, reply = await reader.ask(content)
        except (ReaderGoneError, TimeoutError) as error:
            self._drop(reader, error, vault)
            return None
        finally:
            if self._freed is not None and self._has_free_reader:
                self._freed.set_result(None)
                self._freed = None
        if outcome == ANSWERED:
            return reply
        level = logging.WARNING if outcome == FAILED else logging.DEBUG
        LOG.log(level, "a reader left a search to the server: %s", reply.decode())
        return None

    def _pause(self) -> asyncio.Future[None] | None:
        """Return what tells that a reader has little to do; None where one has, or there is none."""
        if self._has_free_reader:
            return None
        if self._freed is None:
            self._freed = asyncio.get_running_loop().create_future()
        return self._freed

    @property
    def _has_free_reader(self) -> bool:
        return not self._readers or any(reader.under_way < _ENOUGH for reader in self._readers)

    def _look(self, vault: str) -> KnownState | None:
        """Bring an index up to date; return its state, or None where clients have to be told of the vault itself."""
        opened = self._hub.open(vault)
        if not opened.settle():
            return None
        freshness = opened.engine.freshen()
        with opened.engine.store.database.snapshot() as connection:
            uid, generation = database.state_of(connection)
        return KnownState(freshness=freshness, uid=uid, generation=generation)

    def _begin_one(self, vault: str) -> None:
        is_due = time.monotonic() >= self._not_before and not self._is_closed
        if is_due and (self._starting is None or self._starting.done()):
            self._busy.clear()
            self._starting = asyncio.create_task(self._start(vault), name="start of a reader")

    async def _start(self, vault: str) -> None:
        """Start a reader; where that fails, the server goes on without it."""
        folders = self._hub.vault_folders
        settings = self._hub.settings
        only = len(folders) == 1 and isinstance(settings.choice, Vault)
        vault = vault if vault in self._hub.vaults else self._hub.vaults[0]  # a client may name any
        setup = ReaderSetup(settings=settings, only=only, vault=vault)
        reader: _ReaderProcess | None = None
        try:
            async with asyncio.timeout(_START_S):
                reader = await _start_process()
                await reader.begin(setup)
        except (OSError, NotImplementedError, TimeoutError, ReaderGoneError) as error:
            self._not_before = time.monotonic() + _AGAIN_S
            LOG.warning("a reader can't be started (%s); searches go on without it", type(error).__name__)
        else:
            self._add(reader, vault)
            LOG.info("%d of %d readers answer searches", len(self._readers), self._most)
            reader = None
        finally:
            if reader is not None:
                reader.kill()
                self._end(reader)

    def _add(self, reader: _ReaderProcess, vault: str) -> None:
        self._readers.append(reader)
        reader.replies.gone.add_done_callback(lambda _: self._drop(reader, ReaderGoneError(), vault))

    def _drop(self, reader: _ReaderProcess, error: Exception, vault: str) -> None:
        """Forget a reader that has died or hangs, and begin another one."""
        if reader in self._readers:
            self._readers.remove(reader)
            LOG.warning("a reader has died or hangs (%s); another one begins", type(error).__name__)
            reader.kill()
            self._end(reader)
            self._begin_one(vault)

    def _end(self, reader: _ReaderProcess) -> None:
        """Let a reader end, in a task of its own: whoever asks may be cancelled before the process has ended."""
        ending = asyncio.create_task(reader.wait(), name="end of a reader")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end_idle(self) -> None:
        while True:
            await asyncio.sleep(self._idle_s / 4)
            if self._readers and not self._under_way and time.monotonic() - self._busy_at > self._idle_s:
                LOG.info("the readers end, as searches come one after another")
                await self._end_all()

    async def _end_all(self) -> None:
        ended, self._readers = self._readers, []
        for reader in ended:
            self._end(reader)
        if self._ending:
            _ = await asyncio.wait(self._ending)


async def _start_process() -> _ReaderProcess:
    """Start a Python of its own session, so that Ctrl-C at the terminal is the server's alone."""
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(subprocess, "CREATE_NO_WINDOW", 0)
    # -P: never import a module from the current folder. Not -m, which would make the module's classes others.
    process, replies = await asyncio.get_running_loop().subprocess_exec(
        _Replies,
        sys.executable,
        "-P",
        "-c",
        "from knapper.server.reader_process import run_reader_process; run_reader_process()",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )
    target = process.get_pipe_transport(0)
    if not isinstance(target, asyncio.WriteTransport):  # it was asked for
        raise OSError
    return _ReaderProcess(process=process, target=target, replies=replies)
