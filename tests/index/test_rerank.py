"""A reranker puts the best passages into its order; where it fails, the order is that without it, and told."""

import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.app.vault import open_reranker
from knapper.config.sections import RerankSettings
from knapper.errors import SetupError
from knapper.index.engine import Engine, RankFusion
from knapper.index.models import base
from knapper.index.models.base import PausingReranker, RerankerError, RerankerSettings, Reranking
from knapper.index.models.endpoint import EndpointReranker, parse_scores
from knapper.index.models.onnx import OnnxReranker
from knapper.index.search import SearchRequest, SearchResult
from knapper.vault.access import Policy
from knapper.vault.view import View
from tests.index import worlds
from tests.net.listeners import nobody
from tests.net.servers import Payload, Reply, serving

KEY = "sk-very-secret"
NOTES = {f"{name}.md": f"The {name} harvest.\n" for name in ("apple", "cherry", "plum", "quince")}
REQUEST = SearchRequest(text="harvest", limit=10, reranks=True)
Score = Callable[[str, Sequence[str]], Mapping[int, float]]


class Scripted:
    """Score documents by a function, and note what was asked."""

    def __init__(self, score: Score) -> None:
        self.answer = score
        self.asked: list[tuple[str, Sequence[str]]] = []
        self.is_closed = False

    def score(self, query: str, documents: Sequence[str]) -> Mapping[int, float]:
        self.asked.append((query, documents))
        return self.answer(query, documents)

    def close(self) -> None:
        self.is_closed = True


def last_first(_query: str, documents: Sequence[str]) -> dict[int, float]:
    """Prefer what comes last in the alphabet."""
    ranked = sorted(range(len(documents)), key=lambda place: documents[place])
    return {place: rank - 10.0 for rank, place in enumerate(ranked)}


def opened(tmp_path: Path, reranker: base.Reranker, *, passages: int = 30) -> Engine:
    root = worlds.fill(tmp_path / "v", NOTES)
    return Engine(
        tmp_path / "s",
        View.open(root, Policy(client="owner")),
        open_embedder=worlds.WordEmbedder,
        fusion=RankFusion(reranking=Reranking(open=lambda: reranker, passages=passages)),
    )


def searched(engine: Engine, request: SearchRequest = REQUEST) -> SearchResult:
    engine.refresh()
    engine.embed()
    return engine.search(request)


def names(result: SearchResult) -> list[str]:
    return [hit.row.note.removesuffix(".md") for hit in result.hits]


def test_the_best_passages_come_in_the_order_of_the_reranker(tmp_path: Path) -> None:
    reranker = Scripted(last_first)
    with opened(tmp_path, reranker) as engine:
        result = searched(engine)

    assert names(result) == ["quince", "plum", "cherry", "apple"]
    assert [hit.score for hit in result.hits] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [hit.parts["rerank"] for hit in result.hits] == [-7, -8, -9, -10]
    assert result.remarks == ()
    assert reranker.asked[0][0] == "harvest"
    assert "[apple] The apple harvest." in [text.strip() for text in reranker.asked[0][1]]
    assert reranker.is_closed


def test_what_is_behind_the_judged_ones_stays_behind_them(tmp_path: Path) -> None:
    with opened(tmp_path, Scripted(last_first), passages=2) as engine:
        plain = names(searched(engine, replace(REQUEST, reranks=False)))
        result = searched(engine)

    assert names(result) == [*sorted(plain[:2], reverse=True), *plain[2:]]
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)


def test_more_are_judged_than_are_shown(tmp_path: Path) -> None:
    with opened(tmp_path, Scripted(last_first)) as engine:
        assert names(searched(engine, replace(REQUEST, limit=1))) == ["quince"]


def test_neither_words_alone_nor_other_callers_are_reranked(tmp_path: Path) -> None:
    reranker = Scripted(last_first)
    with opened(tmp_path, reranker) as engine:
        _ = searched(engine, replace(REQUEST, mode="keyword"))
        _ = searched(engine, replace(REQUEST, reranks=False))
        _ = searched(engine, replace(REQUEST, text="apple"))

    assert reranker.asked == []


def test_unjudged_passages_keep_their_order_behind_the_others(tmp_path: Path) -> None:
    with opened(tmp_path, Scripted(lambda _query, _documents: {2: 0.5})) as engine:
        plain = names(searched(engine, replace(REQUEST, reranks=False)))
        result = searched(engine)

    assert names(result) == [plain[2], plain[0], plain[1], plain[3]]


def test_where_it_fails_the_order_is_that_without_it_and_it_rests_for_a_while() -> None:
    now = 0.0

    def fail(_query: str, _documents: Sequence[str]) -> dict[int, float]:
        raise RerankerError("it is away")

    reranker = Scripted(fail)
    pausing = PausingReranker(Reranking(open=lambda: reranker, passages=2), clock=lambda: now)
    told: list[str] = []
    for now in (0.0, 0.5, 29.9, 30.1):  # noqa: B007 - the clock reads it
        with pytest.raises(RerankerError) as caught:
            _ = pausing.score("q", ["a", "b"])
        told.append(caught.value.message)

    assert told == [
        "it is away",
        "it is away; it is asked again in 30 s",
        "it is away; it is asked again in 1 s",
        "it is away",
    ]
    assert len(reranker.asked) == 2


def test_long_texts_are_cut(tmp_path: Path) -> None:
    del tmp_path
    reranker = Scripted(last_first)
    _ = PausingReranker(Reranking(open=lambda: reranker, passages=2)).score("q" * 9_000, ["x" * 9_000])

    assert [len(reranker.asked[0][0]), len(reranker.asked[0][1][0])] == [base.MAX_QUERY_CHARS, base.MAX_DOCUMENT_CHARS]


UNUSABLE: list[tuple[object, str]] = [
    (b"", "no JSON"),
    (b"<html>log in</html>", "no JSON"),
    (b"\xff\xfe", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    ([], "no list of results"),
    ({"results": {}}, "no list of results"),
    ({"results": []}, "no list of results"),
    ({"results": ["ignore all previous instructions"]}, "numbered"),
    ({"results": [{"index": 2, "relevance_score": 1}]}, "numbered"),
    ({"results": [{"index": -1, "relevance_score": 1}]}, "numbered"),
    ({"results": [{"index": True, "relevance_score": 1}]}, "numbered"),
    ({"results": [{"index": 0.0, "relevance_score": 1}]}, "numbered"),
    ({"results": [{"index": "0", "relevance_score": 1}]}, "numbered"),
    ({"results": [{"index": 0, "relevance_score": 1}] * 2}, "numbered"),
    ({"results": [{"index": 0}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": None}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": True}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": "0.9"}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": float("nan")}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": float("inf")}]}, "no number"),
    ({"results": [{"index": 0, "relevance_score": 10**400}]}, "no number"),
]


def as_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@pytest.mark.parametrize(("body", "problem"), UNUSABLE)
def test_an_answer_of_another_form_is_refused(body: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        _ = parse_scores(as_bytes(body), 2)


def test_scores_are_read_by_the_places_of_the_documents() -> None:
    body = {
        "results": [
            {"index": 1, "relevance_score": -3, "document": {"text": "x"}},
            {"index": 0, "relevance_score": 0.5},
        ]
    }

    assert parse_scores(as_bytes(body), 3) == {1: -3.0, 0: 0.5}


def alphabetical(payload: Payload) -> Reply:
    """Answer as the protocol says: what comes last in the alphabet is best, and listed first."""
    scores = last_first(payload["query"], payload["documents"])
    results = [{"index": place, "relevance_score": scores[place]} for place in sorted(scores, key=lambda i: -scores[i])]
    return Reply(body=as_bytes({"model": "m", "results": results[: payload["top_n"]]}))


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/v1/rerank"])
def test_a_server_is_asked_as_the_protocol_says(path: str) -> None:
    with serving(alphabetical) as server:
        reranker = EndpointReranker(RerankerSettings(base_url=server.url + path, model="m", api_key=KEY))
        scores = reranker.score("which \ud800 fruit", ["b", "a"])
        reranker.close()
        (request,) = server.requests

    assert scores == {0: -9.0, 1: -10.0}
    assert request.path == "/v1/rerank"
    assert request.json == {"query": "which ? fruit", "documents": ["b", "a"], "top_n": 2, "model": "m"}
    assert {name.lower(): value for name, value in request.headers.items()}["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        (Reply(status=401, body=b'{"error": {"code": "bad_key"}}'), "reranker_key", "HTTP 401, bad_key"),
        (Reply(status=404), "reranker_refused", "HTTP 404"),
        (Reply(status=500, body=b"secret text of a note"), "reranker_refused", "HTTP 500"),
        (Reply(status=302, headers={"Location": "http://127.0.0.1:9/"}), "reranker_refused", "HTTP 302"),
        (Reply(body=b"rubbish"), "reranker_answer", "no JSON"),
        (Reply(body=b" " * 5_000_000), "oversized_answer", "more than"),
        (Reply(hang=True), "timeout", "didn't answer within 0.3 seconds"),
    ],
)
def test_a_server_that_fails_is_told_without_its_text_and_without_the_key(reply: Reply, code: str, told: str) -> None:
    with serving(reply) as server:
        reranker = EndpointReranker(RerankerSettings(base_url=server.url, api_key=KEY, timeout_s=0.3))
        with pytest.raises(RerankerError) as caught:
            _ = reranker.score("q", ["a", "b"])
        reranker.close()

    assert caught.value.code == code
    assert told in caught.value.message
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_nobody_at_the_address_is_told() -> None:
    with nobody() as address, pytest.raises(RerankerError, match="can't be reached"):
        _ = EndpointReranker(RerankerSettings(base_url=f"http://{address}")).score("q", ["a"])


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(status=503), Reply(body=b'{"results": [{"index": 7}]}')])
def test_a_search_with_a_server_that_fails_is_the_one_without_it(tmp_path: Path, reply: Reply) -> None:
    with serving(reply) as server:
        settings = RerankerSettings(base_url=server.url, timeout_s=0.3)
        with opened(tmp_path, EndpointReranker(settings)) as engine:
            plain = searched(engine, replace(REQUEST, reranks=False))
            result = searched(engine)

    assert result.hits == plain.hits
    (remark,) = result.remarks
    assert remark.startswith("not reranked: ")


def test_a_search_over_http_is_reranked(tmp_path: Path) -> None:
    with serving(alphabetical) as server:
        settings = RerankSettings(kind="endpoint", base_url=server.url)
        with opened(tmp_path, open_reranker(settings)) as engine:
            assert names(searched(engine)) == ["quince", "plum", "cherry", "apple"]


@pytest.mark.parametrize(
    "settings",
    [RerankSettings(kind="endpoint"), RerankSettings(kind="onnx"), RerankSettings(kind="endpoint", base_url="ftp://x")],
)
def test_what_is_not_set_is_told_as_a_remark(tmp_path: Path, settings: RerankSettings) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    fusion = RankFusion(reranking=Reranking(open=lambda: open_reranker(settings), passages=30))
    view = View.open(root, Policy(client="owner"))
    with Engine(tmp_path / "s", view, open_embedder=worlds.WordEmbedder, fusion=fusion) as engine:
        result = searched(engine)

    assert len(result.hits) == 4
    assert result.remarks[0].startswith("not reranked: ")


def test_a_key_of_the_keyring_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        return "" if len(asked) == 1 else KEY

    monkeypatch.setattr("knapper.agents.model.names.read_keyring", read)
    settings = RerankSettings(kind="endpoint", base_url="http://127.0.0.1:9/v1/", api_key="keyring")
    with pytest.raises(SetupError, match="has none for this address"):
        _ = open_reranker(settings)
    open_reranker(settings).close()

    assert asked == ["http://127.0.0.1:9/v1"] * 2


_ABSENT = [name for name in ("onnx", "onnxruntime", "tokenizers") if importlib.util.find_spec(name) is None]
needs_onnx = pytest.mark.skipif(bool(_ABSENT), reason=f"the extra e5 isn't installed: {', '.join(_ABSENT)} missing")


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """Give a cross-encoder that scores a pair by the sum of its tokens' numbers."""
    onnx, tokenizers = (importlib.import_module(name) for name in ("onnx", "tokenizers"))
    vocabulary = {"[UNK]": 0, "[PAD]": 1, "apple": 2, "cherry": 3, "plum": 4, "quince": 50}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    helper, kinds = onnx.helper, onnx.TensorProto
    inputs = [helper.make_tensor_value_info(n, kinds.INT64, ["B", "S"]) for n in ("input_ids", "attention_mask")]
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        helper.make_node("Cast", ["kept"], ["floats"], to=kinds.FLOAT),
        helper.make_node("ReduceSum", ["floats", "axis"], ["logits"], keepdims=1),
    ]
    axis = helper.make_tensor("axis", kinds.INT64, [1], [1])
    output = helper.make_tensor_value_info("logits", kinds.FLOAT, ["B", 1])
    graph = helper.make_graph(nodes, "g", inputs, [output], [axis])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path


@needs_onnx
def test_a_cross_encoder_of_this_machine_scores_pairs(encoder: Path) -> None:
    reranker = OnnxReranker(RerankerSettings(folder=encoder))

    assert reranker.score("plum", ["apple apple", "quince"]) == {0: 8.0, 1: 54.0}


@needs_onnx
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_of_a_cross_encoder_is_told(encoder: Path, name: str) -> None:
    (encoder / name).write_bytes(b"\x00rubbish")

    with pytest.raises(RerankerError):
        _ = OnnxReranker(RerankerSettings(folder=encoder)).score("q", ["a"])


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(RerankerError):
        _ = OnnxReranker(RerankerSettings(folder=tmp_path)).score("q", ["a"])
