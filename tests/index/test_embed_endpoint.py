import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from knapper.errors import SetupError
from knapper.index.models.base import EmbedderError, EmbedderSettings, EmbedderStopped, EmbedderUnavailable
from knapper.index.models.endpoint import EndpointEmbedder
from knapper.net.client import HttpClient, HttpResponse
from tests.net.listeners import nobody
from tests.net.servers import Answerer, Payload, Reply, Server, serving

KEY = "sk-very-secret"
SETTINGS = EmbedderSettings(kind="endpoint", model="m", api_key=KEY, batch=4, timeout_s=60)


UNUSABLE: list[tuple[object, str]] = [
    (b"", "no JSON"),
    (b"<html>log in</html>", "HTML"),
    (b"\xff\xfe", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    ([], "no list of vectors"),
    ({}, "no list of vectors"),
    ({"data": 1}, "no list of vectors"),
    ({"data": [1, 2]}, "no list of vectors"),
    ({"data": []}, "0 vectors for 2 texts"),
    ({"data": [{"embedding": [1]}] * 3}, "3 vectors for 2 texts"),
    ({"data": [{}, {}]}, "lists of numbers"),
    ({"data": [{"embedding": [1, 2]}, {"embedding": [1]}]}, "lists of numbers"),
    ({"data": [{"embedding": []}, {"embedding": []}]}, "lists of numbers"),
    ({"data": [{"embedding": 1}, {"embedding": 1}]}, "lists of numbers"),
    ({"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}, "lists of numbers"),
    ({"data": [{"embedding": [1]}, {"embedding": None}]}, "lists of numbers"),
    ({"data": [{"embedding": [1]}, {"embedding": [float("nan")]}]}, "isn't finite"),
    ({"data": [{"embedding": [1]}, {"embedding": [1e300]}]}, "isn't finite"),
    ({"data": [{"embedding": [1], "index": 0}, {"embedding": [1], "index": 0}]}, "numbered"),
    ({"data": [{"embedding": [1], "index": 1}, {"embedding": [1], "index": 2}]}, "numbered"),
]


def embeddings(payload: Payload) -> Reply:
    """Answer as the protocol says, with (length, 1) for each text, last text first."""
    data = [{"index": n, "embedding": [len(text), 1]} for n, text in enumerate(payload["input"])]
    return Reply(body=json.dumps({"object": "list", "data": data[::-1], "model": payload["model"]}).encode())


def saying(body: object) -> Reply:
    return Reply(body=body if isinstance(body, bytes) else json.dumps(body).encode())


def too_long_above(characters: int) -> Answerer:
    def answer(payload: Payload) -> Reply:
        refused = sum(map(len, payload["input"])) > characters
        return Reply(status=400, body=b'{"error": {"code": "too_long"}}') if refused else embeddings(payload)

    return answer


class Asking:
    def __init__(self, server: Server, settings: EmbedderSettings) -> None:
        self.server = server
        self.waited: list[float] = []
        self.endpoint = EndpointEmbedder(replace(settings, base_url=server.url), pause=self.waited.append)

    @property
    def texts(self) -> list[list[str]]:
        return [request.json["input"] for request in self.server.requests]


@contextmanager
def asking(*replies: Reply | Answerer, settings: EmbedderSettings = SETTINGS) -> Generator[Asking]:
    with serving(*replies) as server:
        it = Asking(server, settings)
        try:
            yield it
        finally:
            it.endpoint.close()


def test_passages_are_embedded_in_batches_in_their_order() -> None:
    with asking(embeddings) as it:
        rows = it.endpoint.passages(["a" * n for n in range(1, 10)])

    assert [len(batch) for batch in it.texts] == [4, 4, 1]
    assert np.allclose(rows[:, 0] / rows[:, 1], range(1, 10))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows.dtype == np.float32
    assert it.server.requests[0].path == "/v1/embeddings"
    assert it.server.requests[0].json["model"] == "m"


def test_a_question_is_one_vector() -> None:
    with asking(embeddings) as it:
        row = it.endpoint.query("ab")

    assert row.shape == (2,)
    assert np.isclose(row[0] / row[1], 2)


def test_the_first_answer_tells_the_dimensions() -> None:
    with asking(embeddings) as it:
        it.endpoint.query("a")

        assert it.endpoint.dimensions == 2
        assert len(it.server.requests) == 1


def test_blank_texts_are_zeros_and_not_sent() -> None:
    with asking(embeddings) as it:
        rows = it.endpoint.passages(["", "a", " \n"])

        assert it.texts == [["a"]]
        assert rows.tolist()[::2] == [[0, 0], [0, 0]]
        assert it.endpoint.query("").tolist() == [0, 0]
        assert it.endpoint.passages([]).shape == (0, 2)


def test_a_model_gets_the_prefixes_that_it_wants() -> None:
    with asking(embeddings, settings=replace(SETTINGS, model="intfloat/multilingual-e5-small")) as it:
        it.endpoint.query("q")
        it.endpoint.passages(["p"])

    assert it.texts == [["query: q"], ["passage: p"]]
    assert it.endpoint.model_id == "endpoint:intfloat/multilingual-e5-small|passage: "


def test_configured_prefixes_win() -> None:
    settings = replace(SETTINGS, model="nomic-embed-text", query_prefix="", passage_prefix="doc: ")
    with asking(embeddings, settings=settings) as it:
        it.endpoint.query("q")
        it.endpoint.passages(["p"])

    assert it.texts == [["q"], ["doc: p"]]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_the_address_may_be_written_in_several_ways(path: str) -> None:
    with serving(embeddings) as server:
        endpoint = EndpointEmbedder(replace(SETTINGS, base_url=server.url + path))
        endpoint.query("a")
        endpoint.close()

    assert server.requests[0].path == "/v1/embeddings"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_passes_is_waited_out(status: int) -> None:
    with asking(Reply(status=status), Reply(status=status), embeddings) as it:
        rows = it.endpoint.passages(["a"])

    assert rows.shape == (1, 2)
    assert it.waited == [0.5, 1.0]


def test_the_server_says_how_long_to_wait() -> None:
    with asking(Reply(status=429, headers={"Retry-After": "7"}), embeddings) as it:
        it.endpoint.passages(["a"])

    assert it.waited == [7.0]


def test_a_wait_ends_when_the_program_stops() -> None:
    stop = threading.Event()

    def busy(payload: Payload) -> Reply:
        del payload
        stop.set()
        return Reply(status=429, headers={"Retry-After": "30"})

    with asking(busy) as it, pytest.raises(EmbedderStopped):
        it.endpoint.passages(["a"], stop=stop)

    assert (len(it.server.requests), it.waited) == (1, [])


def test_a_request_that_is_under_way_is_left_to_itself_when_the_program_stops() -> None:
    stop, over = threading.Event(), threading.Event()

    def hang(payload: Payload) -> Reply:
        stop.set()
        over.wait()
        return embeddings(payload)

    with asking(hang) as it:
        try:
            with pytest.raises(EmbedderStopped):
                it.endpoint.passages(["a"], stop=stop)
        finally:
            over.set()

    assert len(it.server.requests) == 1


def test_errors_are_told_as_they_are_where_a_program_may_stop() -> None:
    with asking(Reply(status=401)) as it, pytest.raises(EmbedderError, match="API key"):
        it.endpoint.passages(["a"], stop=threading.Event())


def test_nobody_waits_for_a_request_that_failed_as_nobody_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> HttpResponse:
        raise LookupError("unforeseen")

    monkeypatch.setattr(HttpClient, "post", fail)

    with asking(embeddings) as it, pytest.raises(LookupError, match="unforeseen"):
        it.endpoint.passages(["a"], stop=threading.Event())


def test_no_further_request_is_sent_once_the_program_stops() -> None:
    stop = threading.Event()

    def last(payload: Payload) -> Reply:
        stop.set()
        return embeddings(payload)

    with asking(last) as it, pytest.raises(EmbedderStopped):
        it.endpoint.passages(["a"] * 9, stop=stop)

    assert len(it.server.requests) == 1


def test_a_date_to_wait_for_may_have_passed() -> None:
    past = Reply(status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
    with asking(past, Reply(status=503, headers={"Retry-After": "soon"}), embeddings) as it:
        it.endpoint.passages(["a"])

    assert it.waited == [0.5, 1.0]


def test_a_question_does_not_wait_long() -> None:
    with (
        asking(Reply(status=429, headers={"Retry-After": "30"}), embeddings) as it,
        pytest.raises(EmbedderUnavailable, match="429"),
    ):
        it.endpoint.query("a")

    assert it.waited == []


def test_a_failure_that_stays_is_told() -> None:
    with asking(Reply(status=500)) as it, pytest.raises(EmbedderUnavailable, match="HTTP 500"):
        it.endpoint.passages(["a"])

    assert len(it.server.requests) == 5


def test_a_server_that_hangs_is_left() -> None:
    settings = replace(SETTINGS, timeout_s=0.2)
    with (
        asking(Reply(hang=True), settings=settings) as it,
        pytest.raises(EmbedderUnavailable, match=r"within 0\.2 seconds"),
    ):
        it.endpoint.passages(["a"])


def test_a_server_that_is_not_there_is_told() -> None:
    waited: list[float] = []
    with nobody() as place, pytest.raises(EmbedderUnavailable, match="can't be reached"):
        EndpointEmbedder(replace(SETTINGS, base_url=f"http://{place}"), pause=waited.append).passages(["a"])

    assert waited == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize(("body", "problem"), UNUSABLE)
def test_an_answer_that_is_no_embedding_is_told_apart(body: object, problem: str) -> None:
    with asking(saying(body)) as it, pytest.raises(EmbedderError, match=problem) as raised:
        it.endpoint.passages(["a", "b"])

    assert raised.value.code == "embedder_answer"


def test_vectors_without_numbers_are_taken_as_they_come() -> None:
    with asking(saying({"data": [{"embedding": [3, 0]}, {"embedding": [0, 2]}]})) as it:
        assert it.endpoint.passages(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_a_model_that_changes_behind_its_name_is_noticed() -> None:
    with asking(embeddings, saying({"data": [{"embedding": [1, 2, 3]}]})) as it:
        it.endpoint.query("a")

        with pytest.raises(EmbedderError, match="3 numbers, not 2 as before"):
            it.endpoint.query("a")


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [(401, "embedder_key", "api_key"), (404, "embedder_refused", "ollama"), (302, "embedder_refused", "redirects")],
)
def test_a_refusal_tells_what_to_set(status: int, code: str, hint: str) -> None:
    with asking(Reply(status=status, headers={"Location": "/v2"})) as it, pytest.raises(EmbedderError) as raised:
        it.endpoint.passages(["a"])

    assert raised.value.code == code
    assert hint in raised.value.hint
    assert len(it.server.requests) == 1


def test_a_batch_that_is_too_much_is_halved() -> None:
    with asking(too_long_above(100)) as it:
        rows = it.endpoint.passages(["a" * 60, "b" * 40, "c" * 30, "d" * 20])

    assert np.allclose(rows[:, 0] / rows[:, 1], [60, 40, 30, 20])
    assert [len(batch) for batch in it.texts] == [4, 2, 2]


def test_a_text_that_is_too_long_is_embedded_by_its_beginning() -> None:
    with asking(too_long_above(400)) as it:
        rows = it.endpoint.passages(["a" * 1500])

    assert np.isclose(rows[0, 0] / rows[0, 1], 375)


def test_a_server_that_refuses_every_text_is_told() -> None:
    with asking(too_long_above(0)) as it, pytest.raises(EmbedderError, match="HTTP 400, too_long"):
        it.endpoint.passages(["a" * 1500, "b"])


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"Incorrect key {KEY} for 'private note'", "code": "invalid_key"}},
        {"error": f"{KEY} private note"},
        {"error": {"code": f"{KEY} private note", "type": [KEY]}},
        [KEY],
        KEY,
    ],
)
def test_neither_key_nor_text_is_shown(body: object) -> None:
    with asking(Reply(status=401, body=json.dumps(body).encode())) as it, pytest.raises(EmbedderError) as raised:
        it.endpoint.passages(["private note"])

    shown = f"{raised.value!r}{raised.value.as_dict()}{it.endpoint!r}{SETTINGS!r}"
    assert KEY not in shown
    assert "private note" not in shown


def test_a_question_need_not_wait_for_the_passages_of_another_thread() -> None:
    arrived, release = threading.Event(), threading.Event()

    def slow(payload: Payload) -> Reply:
        arrived.set()
        release.wait(60)
        return embeddings(payload)

    with asking(slow, embeddings) as it:
        thread = threading.Thread(target=it.endpoint.passages, args=(["a"],))
        thread.start()
        assert arrived.wait(60)
        row = it.endpoint.query("ab")
        release.set()
        thread.join()

    assert row.shape == (2,)


def test_half_a_character_is_sent_as_a_question_mark() -> None:
    with asking(embeddings) as it:
        it.endpoint.query("a\ud800")

    assert it.texts == [["a?"]]


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        (EmbedderSettings(kind="endpoint", model="m"), "base_url"),
        (EmbedderSettings(base_url="http://x"), "embeddings.model"),
    ],
)
def test_a_missing_setting_is_named(settings: EmbedderSettings, missing: str) -> None:
    with pytest.raises(SetupError, match=missing):
        EndpointEmbedder(settings)
