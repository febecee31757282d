"""Models, their prices and what they cost over HTTP: for persons alone, and a key is never told."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.agents.chat.turn import ChatConfig
from knapper.agents.model import names, usage
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.config.sections import ModelSettings
from knapper.server.http.app import Mount
from tests.agents import scripted
from tests.agents.scripted import Model
from tests.server import apps, chats, contracts
from tests.server.apps import World

KEY = "sk-nobody-is-told-1234567890"
MODEL = ModelSettings(
    name="openai:gpt-4o-mini",
    fallbacks=("ollama:qwen3", "openai:gpt-4o-mini"),
    keys=(("openai", KEY),),
    day_tokens=100_000,
    day_cents=200,
)


def mounted(world: World, asked: list[str] | None = None) -> Mount:
    def answering(chats: VaultChats, model: str) -> ChatConfig:
        if asked is not None:
            asked.append(model)
        chat = scripted.chat(Model([["Hi."]]).open(), chats.hub.table.specs, meter=chats.meter)
        return replace(chat, name=model or "scripted")

    return chats.jobs(world.hub, world.stop, ModelOpeners(chat=answering))


def configured(world: World, model: ModelSettings = MODEL) -> Hub:
    world.hub.settings = replace(world.settings, model=model)
    return world.hub


def get(client: TestClient, path: str) -> Mapping[str, Any]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_configured_models_are_listed_once_with_their_prices_and_without_keys(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        _ = configured(world)
        with world.client(world.token("page"), mounted(world)) as client:
            shown = get(client, "/models")
            text = client.get("/models").text

    assert shown["configured"] == "openai:gpt-4o-mini"
    main, local = shown["results"]
    assert (main["name"], main["use"], main["has_key"], main["is_local"]) == ("openai:gpt-4o-mini", "main", True, False)
    assert 0 < main["price"]["input_usd"] < main["price"]["output_usd"]
    assert (local["name"], local["use"], local["has_key"], local["is_local"]) == (
        "ollama:qwen3",
        "fallback",
        True,
        True,
    )
    assert local["price"] is None
    assert KEY not in text


def test_without_a_model_the_list_is_empty(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(world.token("page"), mounted(world)) as client:
        assert get(client, "/models") == {"success": True, "configured": "", "results": []}


def test_a_model_at_an_address_of_its_own_has_no_known_price() -> None:
    own = names.parse_model_name("openai:gpt-4o-mini@http://127.0.0.1:9/v1")

    assert usage.find_price(own) is None
    assert usage.find_price(names.parse_model_name("openai:no-such-model")) is None


def test_what_a_day_and_a_conversation_took_and_what_is_left_of_the_limits(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        _ = configured(world)
        with world.client(world.token("page"), mounted(world)) as client:
            before = get(client, "/usage")
            session = client.post("/sessions", json={}).json()["session"]["id"]
            for text in ("one", "two"):
                assert client.post(f"/sessions/{session}/chat", json={"message": text}).status_code == 200
            _ = client.post("/chat", json={"message": "elsewhere"})
            after = get(client, f"/usage?session_id={session}")
            lost = client.get("/usage?session_id=nobody")

    assert before["today"]["total_tokens"] == 0
    assert before["session"] is None
    assert before["left"] == {"tokens": 100_000, "usd": 2.0}
    assert before["limits"] == {"turn_tokens": 500_000, "run_tokens": None, "day_tokens": 100_000, "day_cents": 200}
    assert (after["session"]["requests"], after["session"]["cost_usd"]) == (2, None)
    assert 0 < after["session"]["total_tokens"] < after["today"]["total_tokens"]
    assert after["left"]["tokens"] == 100_000 - after["today"]["total_tokens"]
    assert (lost.status_code, lost.json()["code"]) == (404, "no_session")


def test_where_nothing_is_limited_nothing_is_left(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(world.token("page"), mounted(world)) as client:
        shown = get(client, "/usage")

    assert (shown["limits"]["day_tokens"], shown["limits"]["day_cents"]) == (None, None)
    assert shown["left"] == {"tokens": None, "usd": None}


@pytest.mark.parametrize("path", ["/models", "/usage"])
def test_only_persons_see_models_and_their_cost(tmp_path: Path, path: str) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        program, nobody = client.get(path), client.get(path, headers={"authorization": ""})

    assert (program.status_code, program.json()["code"]) == (403, "needs_person")
    assert nobody.status_code == 401


def test_a_message_names_the_model_that_answers_it(tmp_path: Path) -> None:
    asked: list[str] = []
    with apps.world(tmp_path) as world:
        _ = configured(world)
        with world.client(world.token("page"), mounted(world, asked)) as client:
            session = client.post("/sessions", json={}).json()["session"]["id"]
            path = f"/sessions/{session}/chat"
            told = [
                client.post(path, json={"message": "hi", "model": model}).json()["model"]
                for model in ("anthropic:claude-sonnet-4-5", "openai:gpt-4o-mini", "")
            ]

    assert told == ["anthropic:claude-sonnet-4-5", "scripted", "scripted"]
    assert asked == ["anthropic:claude-sonnet-4-5", "", ""]


def test_a_program_takes_only_models_of_the_configuration(tmp_path: Path) -> None:
    asked: list[str] = []
    with apps.world(tmp_path) as world:
        _ = configured(world)
        with world.client(None, mounted(world, asked)) as client:
            other = client.post("/chat", json={"message": "hi", "model": "evil@http://evil.example/v1"})
            known = client.post("/chat", json={"message": "hi", "model": "ollama:qwen3"})

    assert (other.status_code, other.json()["code"]) == (403, "model_not_allowed")
    assert known.status_code == 200
    assert asked == ["ollama:qwen3"]


def test_both_routes_are_described(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        described = client.get("/openapi.json").json()

    assert set(described["paths"]["/models"]) == {"get"}
    assert set(described["paths"]["/usage"]) == {"get"}
    for name in contracts.references(described):
        assert name.rpartition("/")[2] in described["components"]["schemas"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world:
        _ = configured(world)
        with world.client(world.token("page"), mounted(world)) as client:
            contract = contracts.of_app(client.app, world.token("page"), {"/models", "/usage"}, {})
            found = contracts.broken_words(contract, mode)

    assert found == []
