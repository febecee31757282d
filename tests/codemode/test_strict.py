"""Read frames and JSON from where nobody can be trusted."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.codemode.sandbox import frames, pool
from knapper.codemode.sandbox.frames import BrokenFrame, Letter
from knapper.codemode.sandbox.pool import UntrustedJSONError
from knapper.jsontypes import JSONValue

VALUES: st.SearchStrategy[JSONValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def source(data: bytes, step: int = 7) -> Callable[[int], bytes]:
    left = bytearray(data)

    def receive(length: int) -> bytes:
        part = bytes(left[: min(length, step)])
        del left[: len(part)]
        return part

    return receive


@given(st.sampled_from(["J", "A", "R", "C", "O", "D", "T"]), st.binary(max_size=200))
def test_a_frame_is_read_as_it_was_written(letter: Letter, content: bytes) -> None:
    assert frames.read(source(frames.pack(letter, content)), 200) == (letter, content)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_frame_an_end_or_broken(data: bytes) -> None:
    try:
        frame = frames.read(source(data), 40)
    except BrokenFrame:
        return

    assert frame is None or len(frame[1]) <= 40


def test_a_frame_that_is_too_large_is_refused_before_it_is_read() -> None:
    asked: list[int] = []

    def receive(length: int) -> bytes:
        asked.append(length)
        return (b"D" + (10**9).to_bytes(4, "little"))[:length]

    with pytest.raises(BrokenFrame):
        _ = frames.read(receive, 1_000)

    assert asked == [5]


def test_a_job_is_read_as_it_was_written() -> None:
    assert frames.unpack_job(frames.pack_job(1.5, 1 << 29, (10, 20), "é".encode())) == (1.5, 1 << 29, 10, 20, "é")


@given(VALUES)
def test_json_is_read_as_it_was_written(value: JSONValue) -> None:
    assert pool.read_untrusted_json(json.dumps(value).encode()) == value
    assert pool.read_untrusted_json(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b'"\\ud800"',
        b'{"\\udfff": 1}',
        b"[" * 100_000,
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"9" * 2_000,
    ],
    ids=range(12),
)
def test_what_isnt_strict_is_refused(content: bytes) -> None:
    with pytest.raises(UntrustedJSONError):
        _ = pool.read_untrusted_json(content)


def test_brackets_in_a_text_are_no_depth() -> None:
    assert pool.read_untrusted_json(json.dumps("[" * 1_000).encode()) == "[" * 1_000
    assert pool.read_untrusted_json(json.dumps([[1]] * 100).encode()) == [[1]] * 100


@pytest.mark.parametrize(
    "content",
    [
        b"1",
        b"{}",
        b'{"method": "a"}',
        b'{"method": 1, "arguments": {}}',
        b'{"method": "a", "arguments": []}',
        b'{"method": "a", "arguments": {}, "more": 1}',
        b'{"method": "a", "arguments": {"x": 99999999999999999999}}',
    ],
)
def test_what_isnt_a_call_is_refused(content: bytes) -> None:
    with pytest.raises(UntrustedJSONError):
        _ = pool.read_untrusted_call(content)


@given(VALUES)
def test_the_depth_of_what_is_taken_is_limited(value: JSONValue) -> None:
    for _ in range(pool.MAX_DEPTH + 1):
        value = [value]

    with pytest.raises(UntrustedJSONError, match="deeply"):
        _ = pool.read_untrusted_json(json.dumps(value).encode())
