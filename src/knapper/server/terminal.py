"""How a command asks the server that runs, and both prove to each other that they have the same account's key.

Every command that only reads imports this, so it imports nearly nothing; `knapper.server.http.terminal` answers.

1. ``GET /terminal?nonce=…`` is answered with what the server is and which variables it wants to know, and with
   a proof over all of that, the nonce and the server's own address. So neither another program that has got the
   port nor one that passes questions on to the server can pretend to be it.
2. ``POST /terminal``, on the same connection, holds the question, with a proof over it and the server's instance.
   Until the answer is there a space comes every 50 ms, so that silence means a server that hangs.

The key lies in the state folder, for its owner alone; it never leaves either process.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import stat
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from knapper import __version__
from knapper.jsontypes import is_object, strings_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATH: Final = "/terminal"
PROOF_HEADER: Final = "x-knapper-proof"
SILENCE_S: Final = 0.25
"""How long a server may say nothing, and how long all may take until it begins to answer."""
BEAT_S: Final = 0.05
"""How often a server that works on an answer says so."""
ANSWER_S: Final = 10.0
"""How long an answer may take; whatever takes longer isn't quicker in a server."""
SAME_VARIABLES: Final = (
    *("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "TZ"),
    "KNAP_EMBEDDINGS_API_KEY",
)
"""Variables whose values aren't sent: a command and a server that answers it have the same, or it doesn't answer."""

_URL: Final = re.compile(r"http://(?P<host>127(?:\.\d{1,3}){3}|0\.0\.0\.0|localhost|\[::1?\]):(?P<port>\d{1,5})")
"""Addresses that this machine's programs alone reach, and those that stand for all of its own."""
_ANY: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - nothing is bound here
_MAX_FILE_BYTES: Final = 10_000
_MAX_HEAD_BYTES: Final = 20_000
_MAX_HELLO_BYTES: Final = 100_000
_MAX_ANSWER_BYTES: Final = 200_000_000
_PIECE_BYTES: Final = 65_536
_OTHERS_MODE: Final = 0o077
_OK: Final = b"200"


class NoAnswerError(Exception):
    """Nobody that proves to be this account's server answers in time, or the server doesn't want to."""


class TerminalQuestion(TypedDict):
    """What a command wants to know."""

    tool: str
    """``search.search_vault``: its module and function; or a tool's name, where *by_name* is set."""
    arguments: Mapping[str, object]
    by_name: bool
    """Whether the arguments are checked as those of any client, as `knap tool` does."""
    only: bool
    """Whether *by_name* concerns the chosen vault alone."""
    keeps_notices: bool
    """Whether the answer names what a person is told of the vault as it was opened, too."""
    is_quiet: bool
    options: Mapping[str, str]
    """The options that choose a configuration, by their names: ``vault``, ``config`` and ``env_file``."""
    folder: str
    """The current one."""


class TerminalReply(NamedTuple):
    """What the server said."""

    notices: tuple[str, ...]
    """What a person is told of the vault as it was opened, each once."""
    answer: dict[str, Any] | None
    """None where the command has to find its own answer, such as after an error."""


def prove(key: bytes, purpose: str, *parts: bytes) -> str:
    """Return a proof that its maker has the key: a code over parts that only the right ones fit."""
    digest = hashlib.blake2b(key=key[: hashlib.blake2b.MAX_KEY_SIZE], person=purpose.encode("ascii"))
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def prove_same(key: bytes, environment: Mapping[str, str]) -> str:
    """Return a code that only the same values of `SAME_VARIABLES` give."""
    return prove(key, "same", *(os.fsencode(environment.get(name, "\0")) for name in SAME_VARIABLES))


def ask(state_dir: str, question: TerminalQuestion, environment: Mapping[str, str]) -> TerminalReply | None:
    """Ask the server whose record lies in a state folder.

    Args:
        state_dir: The state folder.
        question: What is asked.
        environment: This process's variables.

    Returns:
        The reply; None where no such server answers soon, or it is another version's or account's, or has other
        settings.
    """
    try:
        return _ask(state_dir, question, environment)
    except (OSError, ValueError, RecursionError, NoAnswerError):
        return None


def _ask(state_dir: str, question: TerminalQuestion, environment: Mapping[str, str]) -> TerminalReply:
    record = _as_object(_read_own_file(os.path.join(state_dir, "server", "server.json")))
    url, instance = str(record.get("url")), str(record.get("instance"))
    match = _URL.fullmatch(url)
    if match is None or record.get("version") != __version__:
        raise NoAnswerError
    key = _read_own_file(os.path.join(state_dir, "server", "terminal.token")).strip()
    if not key:
        raise NoAnswerError
    host, port = _ANY.get(match["host"], match["host"]), int(match["port"])
    with TerminalExchange(host, port) as exchange:
        nonce = os.urandom(16).hex()
        hello, proof = exchange.get(f"{PATH}?nonce={nonce}")
        # A plain comparison: the nonce is new, so that nobody can try twice.
        if proof != prove(key, "server", nonce.encode(), url.encode(), hello):
            raise NoAnswerError
        facts = _as_object(hello)
        if facts.get("instance") != instance or facts.get("version") != __version__:
            raise NoAnswerError
        names = strings_in(facts.get("variables"))
        variables = {name: value for name in names if (value := environment.get(name, "")).strip()}
        body = json.dumps({**question, "variables": variables, "same": prove_same(key, environment)}).encode()
        raw = exchange.post(PATH, body, prove(key, "terminal", instance.encode(), body))
        reply = _as_object(raw)
        if reply.get("declined"):
            raise NoAnswerError
        answer = reply.get("answer")
        if answer is not None and not is_object(answer):
            raise NoAnswerError
        return TerminalReply(notices=tuple(strings_in(reply.get("notices"))), answer=answer)


def _as_object(raw: bytes) -> Mapping[str, Any]:
    value: object = json.loads(raw)
    if not is_object(value):
        raise NoAnswerError
    return value


def _read_own_file(file: str) -> bytes:
    """Return the bytes of a file that belongs to this account, and that nobody else can read or write."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(file, flags)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_FILE_BYTES:
            raise NoAnswerError
        if os.name == "posix" and (facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS_MODE):
            raise NoAnswerError
        return os.read(descriptor, _MAX_FILE_BYTES)
    finally:
        os.close(descriptor)


class TerminalExchange:
    """A connection to a server, spoken by hand: an HTTP client takes 30 ms to import, and waits for each byte anew."""

    def __init__(self, host: str, port: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Connect.

        Raises:
            OSError: Nobody answers there.
        """
        self._clock = clock
        self._begun = clock()
        self._deadline = self._begun + SILENCE_S
        self._host = f"{host}:{port}"
        self._buffer = bytearray()
        self._socket = socket.create_connection((host.strip("[]"), port), timeout=SILENCE_S)

    def get(self, path: str) -> tuple[bytes, str]:
        """Ask for something short, and return it and its proof."""
        self._send(f"GET {path} HTTP/1.1\r\nhost: {self._host}\r\n\r\n".encode("ascii"))
        head = self._read_head()
        length = int(head.get(b"content-length", b"-1"))
        if not 0 <= length <= _MAX_HELLO_BYTES:
            raise NoAnswerError
        return self._read(length), head.get(PROOF_HEADER.encode(), b"").decode("ascii")

    def post(self, path: str, body: bytes, proof: str) -> bytes:
        """Ask for something that may take longer, and return the whole answer."""
        head = (
            f"POST {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n{PROOF_HEADER}: {proof}\r\nconnection: close\r\n\r\n"
        )
        self._send(head.encode("ascii") + body)
        if self._read_head().get(b"transfer-encoding", b"").lower() != b"chunked":
            raise NoAnswerError
        pieces: list[bytes] = []
        most = _MAX_ANSWER_BYTES
        while size := int(self._read_line(), 16):
            most -= size
            if size < 0 or most < 0 or self._clock() - self._begun > ANSWER_S:
                raise NoAnswerError
            pieces.append(self._read(size))
            _ = self._read(2)
            self._deadline = self._clock() + SILENCE_S
        return b"".join(pieces)

    def _send(self, raw: bytes) -> None:
        self._limit()
        self._socket.sendall(raw)

    def _read_head(self) -> Mapping[bytes, bytes]:
        status = self._read_line().split(b" ")
        if status[1:2] != [_OK]:
            raise NoAnswerError
        lines: dict[bytes, bytes] = {}
        while line := self._read_line():
            name, _, value = line.partition(b":")
            lines[name.strip().lower()] = value.strip()
        return lines

    def _read_line(self) -> bytes:
        while (stop := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise NoAnswerError
            self._receive()
        line = bytes(self._buffer[:stop])
        del self._buffer[: stop + 2]
        return line

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        return piece

    def _receive(self) -> None:
        self._limit()
        piece = self._socket.recv(_PIECE_BYTES)
        if not piece:
            raise NoAnswerError
        self._buffer += piece

    def _limit(self) -> None:
        """Let the socket wait no longer than is left: a byte now and then is no answer."""
        left_s = self._deadline - self._clock()
        if left_s <= 0:
            raise NoAnswerError
        self._socket.settimeout(left_s)

    def __enter__(self) -> TerminalExchange:
        """Use the connection in a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._socket.close()
