"""Servers that send too much, too slowly, too little, or nonsense."""

import gzip
import os
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator

import pytest

from knapper.errors import KnapError
from knapper.net import guard
from knapper.net.guard import Dialer, Guard, Limits
from knapper.net.urls import NoAnswer, NotPublic, TooLarge, WrongType
from tests.net.internet import Internet, Raw, Sent, page

LIMITS = Limits(total_s=0.5, connect_s=0.3, max_bytes=100_000)
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def drop(every_s: float, *parts: bytes, then: bytes = b"") -> Callable[[Sent, threading.Event], Iterator[bytes]]:
    """Send parts one after the other, then the last one without end."""

    def send(_sent: Sent, closing: threading.Event) -> Iterator[bytes]:
        yield from parts
        while not closing.wait(every_s):
            yield then

    return send


def packed(raw: bytes, coding: str = "gzip") -> bytes:
    return page(raw, headers={"Content-Encoding": coding})


BOMB = gzip.compress(b"\0" * 50_000_000)
ENDLESS = {
    "a head a byte at a time": drop(0.02, OK, then=b"X"),
    "a head without end": drop(0, OK, then=b"X-Y: " + b"z" * 1_000 + b"\r\n"),
    "a line without end": drop(0, b"HTTP/1.1 200 ", then=b"O" * 10_000),
    "spaces": drop(0.02, then=b" "),
    "silence": drop(9),
    "a body a byte at a time": drop(0.02, OK, b"\r\n", then=b"x"),
    "chunks a byte at a time": drop(0.02, OK, b"Transfer-Encoding: chunked\r\n\r\n", then=b"1\r\nx\r\n"),
    "a chunk's length without end": drop(0, OK, b"Transfer-Encoding: chunked\r\n\r\n", then=b"0" * 1_000),
    "chunks of nothing but remarks": drop(
        0.01, OK, b"Transfer-Encoding: chunked\r\n\r\n", then=b"1;" + b"a" * 9 + b"\r\n"
    ),
    "early hints without end": drop(0, then=b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "a slow redirect": drop(0.02, b"HTTP/1.1 302 Found\r\nLocation: /", then=b"a"),
    "a packed byte at a time": drop(0.02, OK, b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"")[:-4], then=b""),
}
HUGE = {
    "a body without end": drop(0, OK, b"\r\n", then=b"x" * 60_000),
    "chunks without end": drop(
        0, OK, b"Transfer-Encoding: chunked\r\n\r\n", then=b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    ),
    "a length that says so": drop(0.02, OK, b"Content-Length: 9999999\r\n\r\n", then=b"x"),
    "a bomb": packed(BOMB),
    "a bomb of the other kind": packed(zlib.compress(b"\0" * 50_000_000), "deflate"),
    "a bomb without a head": packed(zlib.compress(b"\0" * 50_000_000)[2:-4], "deflate"),
    "noise that doesn't pack": packed(gzip.compress(os.urandom(150_000))),
}
BROKEN = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a bare line": b"hello\n",
    "nothing at all": b"",
    "a status that is none": b"HTTP/1.1 99999 What\r\n\r\n",
    "a body that breaks off": OK + b"Content-Length: 50\r\n\r\nshort",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "a length below nothing": OK + b"Content-Length: -1\r\n\r\nabc",
    "a chunk that lies": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "packed in name only": page(b"plain text", headers={"Content-Encoding": "gzip"}),
    "packed and cut": packed(gzip.compress(b"x" * 5_000)[:-10]),
}


@pytest.mark.parametrize("raw", ENDLESS.values(), ids=ENDLESS)
def test_a_server_that_never_ends_is_left_in_time(net: Internet, raw: Raw) -> None:
    net.pages["*"] = raw
    with pytest.raises(NoAnswer):
        Guard(limits=LIMITS, dialer=net.dialer).get("http://site.example/")


@pytest.mark.parametrize("raw", HUGE.values(), ids=HUGE)
def test_what_is_too_long_is_cut_off(net: Internet, raw: Raw) -> None:
    net.pages["*"] = raw
    with pytest.raises(TooLarge, match="100,000 bytes"):
        Guard(limits=Limits(max_bytes=100_000), dialer=net.dialer).get("http://site.example/")


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_no_answer(net: Internet, raw: Raw) -> None:
    net.pages["*"] = raw
    with pytest.raises(NoAnswer):
        Guard(limits=Limits(total_s=3), dialer=net.dialer).get("http://site.example/")


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "identity, gzip", "x" * 500])
def test_a_packing_that_was_not_asked_for_is_refused(net: Internet, coding: str) -> None:
    net.pages["*"] = packed(gzip.compress(b"x"), coding)
    with pytest.raises(WrongType):
        Guard(dialer=net.dialer).get("http://site.example/")


@pytest.mark.parametrize(
    ("raw", "coding"),
    [
        (gzip.compress(b"x" * 99_000), "gzip"),
        (zlib.compress(b"x" * 99_000), "deflate"),
        (zlib.compress(b"x" * 99_000)[2:-4], "Deflate"),
        (b"x" * 99_000, "identity"),
    ],
)
def test_what_was_packed_comes_out_whole(net: Internet, raw: bytes, coding: str) -> None:
    net.pages["*"] = packed(raw, coding)

    assert Guard(limits=Limits(max_bytes=99_000), dialer=net.dialer).get("http://site.example/").body == b"x" * 99_000


def test_one_span_of_time_holds_for_all_redirects(net: Internet) -> None:
    def wait_and_move(sent: Sent, closing: threading.Event) -> Iterable[bytes]:
        _ = closing.wait(0.2)
        yield f"HTTP/1.1 302 Found\r\nLocation: {sent.path}a\r\nContent-Length: 0\r\n\r\n".encode()

    net.pages["*"] = wait_and_move
    with pytest.raises(NoAnswer) as raised:
        Guard(limits=LIMITS, dialer=net.dialer).get("http://site.example/")

    assert raised.value.code == "timeout"


def test_a_name_server_that_hangs_is_left_in_time(net: Internet) -> None:
    net.names["slow.example"] = lambda: ["93.184.216.34"] if net.closing.wait(5) else []
    with pytest.raises(NoAnswer) as raised:
        Guard(limits=LIMITS, dialer=net.dialer).get("http://slow.example/")

    assert raised.value.code == "timeout"


def test_addresses_that_hang_are_left_in_time() -> None:
    def hang(_address: str, _port: int, timeout_s: float) -> socket.socket:
        time.sleep(timeout_s)
        raise TimeoutError

    dialer = Dialer(resolve=lambda _host, _port: [f"93.184.216.{n}" for n in range(100)], connect=hang)
    with pytest.raises(NoAnswer) as raised:
        Guard(limits=LIMITS, dialer=dialer).get("http://site.example/")

    assert raised.value.code == "timeout"


def test_a_server_that_hangs_in_the_handshake_is_left_in_time(net: Internet) -> None:
    ours, theirs = socket.socketpair()
    dialer = Dialer(resolve=net.resolve, connect=lambda _address, _port, _s: ours, trust=net.trust)
    with theirs, pytest.raises(NoAnswer) as raised:
        Guard(limits=LIMITS, dialer=dialer).get("https://site.example/")

    assert raised.value.code == "timeout"


def test_a_refusal_of_the_network_tells_no_address(net: Internet) -> None:
    net.dead.add("93.184.216.34")
    with pytest.raises(NoAnswer) as raised:
        Guard(dialer=net.dialer).get("http://site.example/")

    assert "93.184" not in str(raised.value.as_dict())


def test_the_systems_own_dialer_reaches_a_listed_place_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=_answer_once, args=(server,))
        thread.start()
        body = Guard().get(f"http://127.0.0.1:{port}/", allowed_hosts=[f"127.0.0.1:{port}"]).body
        thread.join()
        with pytest.raises(NotPublic):
            Guard().get(f"http://127.0.0.1:{port}/")
        with pytest.raises(NotPublic):
            Guard().get("http://127.0.0.1/")

    assert body == b"ok"


def test_a_connection_from_this_machine_to_itself_is_known() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        guard.connect_checked("127.0.0.1", server.getsockname()[1], 2) as sock,
    ):
        assert guard.is_same_machine(sock)


def test_errors_of_all_kinds_have_a_code_and_a_hint(net: Internet) -> None:
    for raw in [*BROKEN.values(), HUGE["a bomb"]]:
        net.pages["*"] = raw
        with pytest.raises(KnapError) as raised:
            Guard(dialer=net.dialer).get("http://site.example/")
        assert raised.value.hint
        assert "\n" not in raised.value.message


def _answer_once(server: socket.socket) -> None:
    sock, _ = server.accept()
    with sock:
        _ = sock.recv(10_000)
        sock.sendall(page("ok"))
