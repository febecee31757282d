"""Each provider's API, as its documentation shows it, on loopback."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from ddgs.engines import ENGINES

from knapper.errors import KnapError, SetupError
from knapper.net.client import Unreachable
from knapper.net.search import Brave, DuckDuckGo, ModelSearch, ProviderAccount, SearchProvider, Serper, Tavily, WebHit
from knapper.net.urls import SearchFailed
from tests.net.servers import Reply, serving

KEY = "tvly-very-secret"
ROWS = [("First <3", "https://a.example/1", "What  it\nsays"), ("Second", "https://b.example/2", "")]


def model_search(account: ProviderAccount) -> ModelSearch:
    return ModelSearch(account, model="gpt-x")


def _responses(rows: list[tuple[str, str, str]]) -> dict[str, list[Any]]:
    lines: list[str] = []
    notes: list[dict[str, object]] = []
    for title, url, snippet in rows:
        start = sum(len(line) + 1 for line in lines) + len("- ")
        notes.append({"type": "url_citation", "title": title, "url": f"{url}?utm_source=openai", "start_index": start})
        lines.append(f"- {snippet.replace(chr(10), ' ')} ([a.example]({url}))")
    content = [{"type": "output_text", "text": "\n".join(lines), "annotations": notes}]
    sources = [{"type": "url", "url": url} for _, url, _ in rows]
    call = {"type": "web_search_call", "action": {"type": "search", "sources": sources}}
    return {"output": [{"type": "reasoning"}, call, {"type": "message", "content": content}]}


@dataclass(frozen=True)
class Kind:
    make: Callable[[ProviderAccount], SearchProvider]
    answer: Callable[[list[tuple[str, str, str]]], Any]
    path: str
    key: tuple[str, str]


KINDS: Mapping[str, Kind] = {
    "tavily": Kind(
        Tavily,
        lambda rows: {"results": [{"title": t, "url": u, "content": s, "score": 0.9} for t, u, s in rows]},
        "/search",
        ("Authorization", f"Bearer {KEY}"),
    ),
    "brave": Kind(
        Brave,
        lambda rows: {
            "web": {"results": [{"title": t.replace("<", "&lt;"), "url": u, "description": s} for t, u, s in rows]}
        },
        "/web/search?q=knots+%26+ropes&count=8&text_decorations=false",
        ("X-Subscription-Token", KEY),
    ),
    "serper": Kind(
        Serper,
        lambda rows: {"organic": [{"title": t, "link": u, "snippet": s, "position": 1} for t, u, s in rows]},
        "/search",
        ("X-API-KEY", KEY),
    ),
    "model": Kind(model_search, _responses, "/responses", ("Authorization", f"Bearer {KEY}")),
}
each = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def search(kind: Kind, *replies: Reply, count: int = 8, pauses: list[float] | None = None) -> tuple[Any, Any]:
    with serving(*replies) as server:
        heard = pauses if pauses is not None else []
        account = ProviderAccount(provider="x", base_url=server.url, api_key=KEY, timeout_s=60, pause=heard.append)
        provider = kind.make(account)
        try:
            return provider.search("knots & ropes", count), server.requests
        finally:
            provider.close()


def reply(value: object, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status=status, body=json.dumps(value).encode(), headers=named)


@each
def test_hits_are_read_and_the_key_stands_where_it_belongs(kind: Kind) -> None:
    hits, requests = search(kind, reply(kind.answer(ROWS)))

    assert [(hit.title, hit.url) for hit in hits] == [(title, url) for title, url, _ in ROWS]
    assert hits[0].snippet == "What it says"
    assert requests[0].path == kind.path
    name, value = kind.key
    assert requests[0].headers[name] == value
    assert sum(KEY in text for text in requests[0].headers.values()) == 1
    assert KEY not in requests[0].path


@each
def test_half_of_a_character_becomes_a_question_mark(kind: Kind) -> None:
    hits, _ = search(kind, reply(kind.answer([("Sun \ud83d", "https://a.example/1", "\ud83d rain")])))

    assert hits[0].title.encode() in {b"Sun ?", b"a.example"}
    assert hits[0].snippet.encode() == b"? rain"


@each
def test_no_more_hits_than_asked_for(kind: Kind) -> None:
    rows = [(f"t{n}", f"https://a.example/{n}", "s") for n in range(9)]

    assert len(search(kind, reply(kind.answer(rows)), count=3)[0]) == 3


@each
def test_addresses_that_are_not_of_the_web_or_come_twice_are_left_out(kind: Kind) -> None:
    rows = [
        ("a", "javascript:alert(1)", ""),
        ("b", "https://a.example/", ""),
        ("c", "https://a.example/", ""),
        ("d", "", ""),
        ("e", "https://a.example/\ud800", ""),
    ]

    assert [hit.url for hit in search(kind, reply(kind.answer(rows)))[0]] == ["https://a.example/"]


@each
def test_no_hits_are_no_error(kind: Kind) -> None:
    assert search(kind, reply(kind.answer([])))[0] == []


@each
@pytest.mark.parametrize(
    "value", [[], {}, None, 5, "x", {"results": "x"}, {"web": []}, {"organic": [1, None]}, {"output": [{"content": 3}]}]
)
def test_an_answer_of_another_shape_holds_no_hits(kind: Kind, value: object) -> None:
    assert search(kind, reply(value))[0] == []


@each
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_provider_is_asked_again_and_not_for_ever(kind: Kind, status: int) -> None:
    pauses: list[float] = []

    hits, requests = search(kind, reply({}, status), reply(kind.answer(ROWS)), pauses=pauses)
    assert (len(hits), len(requests), pauses) == (2, 2, [0.5])

    pauses.clear()
    with pytest.raises(SearchFailed) as raised:
        search(kind, reply({}, status, Retry_After="3"), reply({}, status, Retry_After="99999"), pauses=pauses)
    assert (raised.value.code, pauses) == ("search_busy", [3.0, 5.0])


@each
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b"{}", "search_key"),
        (403, b"{}", "search_key"),
        (402, b"{}", "search_failed"),
        (404, b"<html>", "search_failed"),
        (302, b"", "search_failed"),
        (200, b"<html>captcha", "search_failed"),
        (200, b"[" * 100_000, "search_failed"),
    ],
)
def test_what_goes_wrong_is_said_without_secrets(kind: Kind, status: int, body: bytes, code: str) -> None:
    with pytest.raises(SetupError) as raised:
        search(kind, Reply(status=status, body=body, headers={"Location": "http://10.0.0.1/"}))

    assert raised.value.code == code
    assert raised.value.hint
    assert not any(word in str(raised.value.as_dict()) for word in (KEY, "knots", "captcha", "10.0.0.1"))


@each
def test_a_provider_that_cannot_be_reached_is_tried_again(kind: Kind) -> None:
    pauses: list[float] = []
    account = ProviderAccount(provider="x", base_url="http://127.0.0.1:9", api_key=KEY, pause=pauses.append)
    provider = kind.make(account)
    with pytest.raises(Unreachable):
        provider.search("x", 3)
    provider.close()

    assert len(pauses) == 2


@pytest.mark.parametrize("make", [Tavily, Brave, Serper, model_search])
def test_without_a_key_nothing_is_asked(make: Callable[[ProviderAccount], SearchProvider]) -> None:
    with pytest.raises(SetupError) as raised:
        make(ProviderAccount(provider="x", base_url="", api_key=" "))

    assert raised.value.code == "search_key"


def test_a_model_of_ones_own_needs_no_key_but_a_name() -> None:
    account = ProviderAccount(provider="x", base_url="http://127.0.0.1:9", api_key="")
    ModelSearch(account, model="m").close()
    with pytest.raises(SetupError):
        ModelSearch(account, model="")


def test_a_model_is_made_to_search_and_to_keep_nothing() -> None:
    _, requests = search(KINDS["model"], reply(_responses(ROWS)))

    sent = requests[0].json
    assert (sent["model"], sent["tools"], sent["store"]) == ("gpt-x", [{"type": "web_search"}], False)
    assert sent["input"] == "knots & ropes"


def test_sources_that_a_model_did_not_cite_come_last() -> None:
    answer = _responses(ROWS[:1])
    answer["output"][1]["action"]["sources"].append({"type": "url", "url": "https://c.example/x"})

    assert [hit.url for hit in search(KINDS["model"], reply(answer))[0]] == [
        "https://a.example/1",
        "https://c.example/x",
    ]


DUCK = """<html><body>{}</body></html>"""
DUCK_HIT = (
    '<div class="result__body links_main"><h2><a href="https://a.example/knots">Knots and ropes</a></h2>'
    '<a href="https://a.example/knots">How knots are tied with ropes</a></div>'
)


def duck(monkeypatch: pytest.MonkeyPatch, answer: Reply, timeout_s: float = 60) -> list[WebHit]:
    with serving(answer) as server:
        monkeypatch.setattr(ENGINES["text"]["duckduckgo"], "search_url", server.url)
        return DuckDuckGo(timeout_s=timeout_s).search("knots & ropes", 5)


def test_duckduckgo_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    hits = duck(monkeypatch, Reply(body=DUCK.format(DUCK_HIT).encode()))

    assert [(hit.title, hit.url) for hit in hits] == [("Knots and ropes", "https://a.example/knots")]
    assert "ropes" in hits[0].snippet


@pytest.mark.parametrize(
    "answer", [Reply(body=DUCK.format("").encode()), Reply(status=429), Reply(status=202, body=b"<html>captcha</html>")]
)
def test_duckduckgos_blocks_look_like_no_results(monkeypatch: pytest.MonkeyPatch, answer: Reply) -> None:
    assert duck(monkeypatch, answer) == []
    assert "blocked" in DuckDuckGo.caveat


def test_duckduckgo_out_of_reach_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENGINES["text"]["duckduckgo"], "search_url", "http://127.0.0.1:9/")
    with pytest.raises(SearchFailed) as raised:
        DuckDuckGo(timeout_s=60).search("knots", 5)

    assert "127.0.0.1" not in str(raised.value.as_dict())


def test_duckduckgo_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KnapError) as raised:
        duck(monkeypatch, Reply(body=b"<html>", hang=True), timeout_s=1)

    assert raised.value.code in {"timeout", "search_failed"}


def test_duckduckgo_that_the_library_gave_up_waiting_for_is_not_said_to_know_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(*_: object, **__: object) -> None:
        time.sleep(2.5)  # the library waits twice for as long as it is told, and then says that there are no results

    monkeypatch.setattr(ENGINES["text"]["duckduckgo"], "search", slow)
    with pytest.raises(SearchFailed) as raised:
        DuckDuckGo(timeout_s=1).search("knots", 5)

    assert raised.value.code == "timeout"
