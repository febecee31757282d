"""What runs in a reader process: it answers the server's searches, and changes nothing."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn, TypedDict

from knapper.app import Hub
from knapper.errors import KnapError
from knapper.index import database
from knapper.index.refresh import Freshness
from knapper.index.search import SearchRequest
from knapper.server import security
from knapper.tools import table
from knapper.tools.context import SharedRefresh
from knapper.tools.registry import ToolTable

if TYPE_CHECKING:
    from knapper.changes.writer import Writer
    from knapper.config import Settings
    from knapper.index.engine import Engine
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context
    from knapper.vault.access import Policy

SEARCH_TOOLS: Final = frozenset({"search_vault", "search_keyword", "search_semantic"})
"""What a reader answers: it takes milliseconds, and nothing but the index."""
REQUEST_HEAD: Final = struct.Struct("<II")
"""The number of a request, and its length."""
REPLY_HEAD: Final = struct.Struct("<IBI")
"""The number of the request, the outcome, and the length."""
MARKS_HEAD: Final = struct.Struct("<I")
"""How long the list of foreign notes before an answer is."""
READY: Final = 0
ANSWERED: Final = 1
DECLINED: Final = 2
"""The server has to answer, with the code of the error as the reason."""
FAILED: Final = 3
"""A mistake of ours, with the error's type as the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSetup:
    """What a reader is told at its start, by a pipe that nobody else has."""

    settings: Settings
    only: bool
    """Whether the hub has the chosen vault alone."""
    vault: str
    """The one that is asked most, opened at once."""


class ReaderRequest(TypedDict):
    """A search, for whom it is, and what the server knows of the index."""

    client: str
    vault: str
    tool: str
    arguments: Mapping[str, object]
    as_of: str
    """As in `knapper.index.refresh.Freshness`: the server has just found the index current."""
    uid: str
    generation: int
    """The state of the index then; a reader answers from this one or a later one."""


class _DeclinedError(Exception):
    """The server has to answer by itself."""


class KnownFreshness(SharedRefresh):
    """What was found when the index was brought up to date for several searches."""

    def __init__(self, index: Engine, freshness: Freshness) -> None:
        """Return *freshness* for whoever asks."""
        super().__init__(index)
        self._freshness = freshness

    def __call__(self, policy: Policy, *, meaning: bool) -> Freshness:
        """Return it, without looking again."""
        del policy
        return self._freshness if meaning else replace(self._freshness, pending=0)


class SearchReader:
    """Answers searches by the vaults' indexes, by the same code and the same rules as the server."""

    def __init__(self, hub: Hub) -> None:
        """Answer by the vaults of *hub*, which only reads."""
        self._hub = hub
        self._table = ToolTable([row for row in table.TOOLS if row.name in SEARCH_TOOLS], hub.vaults)

    def warm(self, vault: str) -> None:
        """Load what a search needs."""
        _ = self._hub.open(vault).engine.search(SearchRequest(text="warm", limit=1))

    def answer(self, request: ReaderRequest) -> bytes:
        """Return the answer as JSON, behind the list of foreign notes whose text it shows.

        Raises:
            KnapError: The tool fails, or the client may not open the vault.
            _DeclinedError: The index isn't the one that the server knows.
        """
        marks: list[str] = []

        def open_vault(vault: str) -> Context:
            opened = self._hub.open(self._hub.name_for(request["client"], vault))
            uid, generation = database.state_of(reading.enter_context(opened.engine.store.database.snapshot()))
            if uid != request["uid"] or generation < request["generation"]:
                raise _DeclinedError("the index is another one here")
            is_person = self._hub.settings.client(request["client"]).grants.is_person
            return replace(
                opened.context(request["client"]),
                shared_refresh=KnownFreshness(opened.engine, Freshness(as_of=request["as_of"])),
                open_writer=_decline_writing,
                mark_foreign=_do_nothing if is_person else marks.append,
            )

        with contextlib.ExitStack() as reading:  # the search reads the state that was compared
            answer = self._table.call(request["tool"], request["arguments"], open_vault)
        head: list[JSONValue] = [*dict.fromkeys(marks)]
        marked = security.render_json(head)
        return MARKS_HEAD.pack(len(marked)) + marked + security.render_json(answer)


def _decline_writing() -> Writer:
    raise _DeclinedError("a reader doesn't write")


def _do_nothing(source: str) -> None:
    del source


def serve_requests(reader: SearchReader, source: BinaryIO, target: BinaryIO) -> None:
    """Answer one request after another, until the server closes the pipe or has gone."""
    while True:
        head = source.read(REQUEST_HEAD.size)
        if len(head) < REQUEST_HEAD.size:
            return
        number, length = REQUEST_HEAD.unpack(head)
        raw = source.read(length)
        if len(raw) < length:
            return
        outcome, content = attempt(lambda raw=raw: reader.answer(json.loads(raw)))
        _send(target, number, outcome, content)


def attempt(answer: Callable[[], bytes]) -> tuple[int, bytes]:
    """Return the outcome with the answer, or with why there is none: then the server answers by itself."""
    try:
        return ANSWERED, answer()
    except KnapError as error:
        return DECLINED, error.code.encode()
    except _DeclinedError as error:
        return DECLINED, str(error).encode()
    except Exception as error:  # noqa: BLE001 - the server warns of it; without its message, which may hold a note's text
        return FAILED, type(error).__name__.encode()


def _send(target: BinaryIO, number: int, outcome: int, content: bytes) -> None:
    _ = target.write(REPLY_HEAD.pack(number, outcome, len(content)) + content)
    target.flush()


def run_reader_process() -> NoReturn:
    """Read a `ReaderSetup` from standard input, say that it is ready, and answer requests until the input ends."""
    # Whatever a library prints must not get among the replies.
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=1 << 16)
    sys.stdout = sys.stderr
    source = sys.stdin.buffer
    setup: ReaderSetup = pickle.load(source)  # noqa: S301 - written by the process that started this one
    with Hub(setup.settings, only=setup.only, reads_only=True) as hub:
        reader = SearchReader(hub)
        reader.warm(setup.vault)
        _send(target, 0, READY, b"")
        try:
            serve_requests(reader, source, target)
        except BrokenPipeError:  # the server has gone
            os._exit(0)
    sys.exit(0)
