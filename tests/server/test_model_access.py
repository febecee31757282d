"""Keys of models and trials over HTTP: for persons alone, and no key comes back, whatever goes wrong."""

import contextlib
import json
import logging
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import keyring
import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.agents.chat.turn import ChatConfig
from knapper.agents.model import names
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.config.sections import AgentSettings, ModelSettings, ScoutAgentSettings
from knapper.errors import SetupError
from tests.agents import scripted
from tests.agents.scripted import Model
from tests.agents.test_keys import Broken, Ring
from tests.server import apps, chats, contracts
from tests.server.apps import World

KEY = "sk-nobody-is-told-1234567890"
PATHS = {"/models/keys", "/models/offered", "/models/trial"}
NO_MODEL = ModelSettings()


@pytest.fixture
def ring() -> Generator[Ring]:
    before, own = keyring.get_keyring(), Ring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


@contextlib.contextmanager
def asking(
    base: Path, model: ModelSettings = NO_MODEL, *, token: str | None = "page", reply: str = "ready"
) -> Generator[tuple[World, TestClient]]:
    def answering(chats: VaultChats, name: str) -> ChatConfig:
        return replace(scripted.chat(Model([[reply]]).open(), chats.hub.table.specs, meter=chats.meter), name=name)

    with apps.world(base) as world:
        world.hub.settings = replace(world.settings, model=model)
        mount = chats.jobs(world.hub, world.stop, ModelOpeners(chat=answering))
        with world.client(world.token("page") if token else None, mount) as client:
            yield world, client


@contextlib.contextmanager
def real(base: Path, model: ModelSettings, **more: Any) -> Generator[TestClient]:  # noqa: ANN401 - other sections
    with apps.world(base) as world:
        world.hub.settings = replace(world.settings, model=model, **more)
        with world.client(world.token("page"), chats.jobs(world.hub, world.stop)) as client:
            yield client


def put(client: TestClient, provider: str, key: str | None) -> Any:  # noqa: ANN401 - any reply
    return client.put("/models/keys", json={"provider": provider, **({} if key is None else {"key": key})})


def test_a_key_goes_into_the_keyring_and_is_never_told(
    tmp_path: Path, ring: Ring, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with asking(tmp_path) as (_, client):
        kept = put(client, "openai", f" {KEY}\n")
        listed = client.get("/models/keys")
        removed = put(client, "openai", None)
        again = client.get("/models/keys").json()

    assert kept.json() == {"success": True, "provider": "openai", "place": "keyring"}
    assert ring.held == {}
    rows = {row["provider"]: row["place"] for row in listed.json()["results"]}
    assert rows == {"openai": "keyring", "anthropic": "none", "fireworks": "none", "openrouter": "none"}
    assert listed.json()["has_keyring"] is True
    assert removed.json()["place"] == "none"
    assert {row["place"] for row in again["results"]} == {"none"}
    assert KEY not in kept.text + listed.text + removed.text + caplog.text


def test_a_key_of_the_settings_is_said_to_be_there_and_a_server_has_a_row_of_its_own(
    tmp_path: Path, ring: Ring
) -> None:
    model = ModelSettings(
        name="tiny", base_url="http://127.0.0.1:9/v1", keys=(("anthropic", KEY),), fallbacks=("ollama:qwen3",)
    )
    with asking(tmp_path, model) as (_, client):
        _ = put(client, "http://127.0.0.1:9/v1/", KEY)
        answer = client.get("/models/keys")

    rows = {row["provider"]: row["place"] for row in answer.json()["results"]}
    assert (rows["anthropic"], rows["http://127.0.0.1:9/v1"], len(rows)) == ("settings", "keyring", 5)
    assert ring.held == {("knapper", "http://127.0.0.1:9/v1"): KEY}
    assert KEY not in answer.text


@pytest.mark.parametrize(
    ("provider", "key", "code"),
    [
        (KEY, "openai", "bad_provider"),
        ("nobody", KEY, "bad_provider"),
        ("ftp://host", KEY, "bad_provider"),
        ("http://a b/v1", KEY, "bad_provider"),
        ("openai", f"{KEY} {KEY}", "bad_key"),
        ("openai", f"{KEY}\u202e", "bad_key"),
        ("openai", f"{KEY}\n{KEY}", "bad_key"),
        ("openai", KEY * 100, "bad_arguments"),
        (KEY * 100, "", "bad_arguments"),
    ],
)
def test_what_is_no_key_is_refused_and_not_quoted(
    tmp_path: Path, ring: Ring, provider: str, key: str, code: str
) -> None:
    with asking(tmp_path) as (_, client):
        refused = put(client, provider, key)

    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert ring.held == {}
    assert KEY not in refused.text


@pytest.mark.parametrize("broken", [Broken(), None], ids=["broken", "switched off"])
def test_without_a_keyring_the_next_step_is_told(tmp_path: Path, ring: Ring, broken: Broken | None) -> None:
    del ring  # which is put back as it was
    if broken is not None:
        keyring.set_keyring(broken)
    else:
        from keyring.backends import null  # noqa: PLC0415 - the one that keeps nothing

        keyring.set_keyring(null.Keyring())
    with asking(tmp_path) as (_, client):
        refused = put(client, "openai", KEY)
        listed = client.get("/models/keys").json()

    assert (refused.status_code, refused.json()["code"]) == (403, "no_keyring")
    assert "environment variable" in refused.json()["hint"]
    assert KEY not in refused.text
    assert listed["has_keyring"] is (broken is None)


def test_a_keyring_that_keeps_nothing_is_no_keyring() -> None:
    with pytest.raises(SetupError, match="can't be used"):
        names.store_key("openai", KEY)  # the tests' own keyring is switched off


def test_a_model_is_tried_with_a_question_that_is_counted(tmp_path: Path) -> None:
    with asking(tmp_path, ModelSettings(name="openai:gpt-4o-mini")) as (_, client):
        trial = client.post("/models/trial", json={}).json()
        today = client.get("/usage").json()["today"]

    assert (trial["model"], trial["text"], trial["problem"]) == ("openai:gpt-4o-mini", "ready", None)
    assert trial["seconds"] >= 0
    assert trial["spent"]["requests"] == today["requests"] == 1
    assert 0 < trial["spent"]["total_tokens"] == today["total_tokens"]


def test_a_hostile_answer_is_one_short_line_of_text(tmp_path: Path) -> None:
    reply = "\x1b[2J<img src=x onerror=alert(1)>\n\u202edrow\u202c " + "x" * 1_000
    with asking(tmp_path, ModelSettings(name="ollama:qwen3"), reply=reply) as (_, client):
        trial = client.post("/models/trial", json={}).json()

    assert len(trial["text"]) <= 40
    assert trial["text"].isprintable()


@pytest.mark.parametrize(
    ("model", "named", "code"),
    [
        (ModelSettings(), "", "no_model"),
        (ModelSettings(), "nonsense", "model_name"),
        (ModelSettings(), "openai:gpt-4o-mini", "model_key"),
        (ModelSettings(), "tiny@http://127.0.0.1:9/v1", "unreachable"),
    ],
)
def test_a_model_that_does_not_answer_is_told_by_kind(
    tmp_path: Path, model: ModelSettings, named: str, code: str
) -> None:
    with real(tmp_path, replace(model, retries=0)) as client:
        answer = client.post("/models/trial", json={"model": named})

    assert answer.status_code == 200
    assert answer.json()["problem"]["code"] == code
    assert answer.json()["problem"]["hint"]
    assert answer.json()["spent"]["requests"] == 0


@pytest.mark.parametrize("path", ["/chat", "/ask", "/runs"])
def test_a_model_that_a_request_names_wrongly_is_its_mistake_and_no_lack(tmp_path: Path, path: str) -> None:
    body = {"message" if path == "/chat" else "task": "hi", "model": "nonsense"}
    with real(tmp_path, ModelSettings(name="ollama:qwen3")) as client:
        named = client.post(path, json=body)
    with real(tmp_path, ModelSettings(name="nonsense")) as client:
        configured = client.post(path, json={**body, "model": ""})

    assert (named.status_code, named.json()["code"]) == (422, "model_name")
    assert (configured.status_code, configured.json()["code"]) == (503, "model_name")


@pytest.mark.parametrize("path", ["/chat", "/ask", "/runs", "/models/trial"])
def test_a_model_of_blanks_is_refused_as_other_empty_texts_are(tmp_path: Path, path: str) -> None:
    body = {"/chat": {"message": "hi"}, "/models/trial": {}}.get(path, {"task": "hi"})
    with real(tmp_path, ModelSettings(name="ollama:qwen3")) as client:
        reply = client.post(path, json={**body, "model": " \t"})

    assert (reply.status_code, reply.json()["code"]) == (422, "bad_arguments")
    assert reply.json()["error"] == "'model' is empty"


def test_a_model_of_the_configuration_that_cant_be_read_is_no_mistake_of_a_request(tmp_path: Path) -> None:
    section = AgentSettings(scout=ScoutAgentSettings(model="nonsense"))
    with real(tmp_path, ModelSettings(name="ollama:qwen3"), agents=section) as client:
        told = client.post("/ask", json={"task": "hi", "model": "ollama:llama3"})

    assert (told.status_code, told.json()["code"]) == (503, "model_name")


def test_a_limit_of_the_day_holds_for_trials_too(tmp_path: Path) -> None:
    with asking(tmp_path, ModelSettings(name="openai:gpt-4o-mini", day_tokens=1)) as (_, client):
        problems = [client.post("/models/trial", json={}).json()["problem"] for _ in range(2)]

    assert problems[0] is None
    assert problems[1]["code"] == "budget_spent"


def test_a_provider_is_asked_what_it_offers_and_says_why_it_does_not(tmp_path: Path) -> None:
    with real(tmp_path, ModelSettings(ollama_url="http://127.0.0.1:9")) as client:
        keyless = client.get("/models/offered?provider=openai").json()
        stopped = client.get("/models/offered?provider=ollama").json()
        unknown = client.get("/models/offered?provider=http%3A%2F%2F127.0.0.1%3A9")

    assert (keyless["state"], keyless["models"]) == ("no_key", [])
    assert (stopped["state"], "127.0.0.1" in stopped["text"]) == ("unreachable", True)
    assert (unknown.status_code, unknown.json()["code"]) == (422, "bad_arguments")


def test_every_route_of_the_settings_takes_the_vault_that_the_page_sends(tmp_path: Path, ring: Ring) -> None:
    del ring
    with asking(tmp_path, ModelSettings(ollama_url="http://127.0.0.1:9")) as (_, client):
        answers = [
            client.get("/models/keys?vault=v"),
            client.put("/models/keys", json={"provider": "openai", "key": KEY, "vault": "v"}),
            client.get("/models/offered?provider=ollama&vault=v"),
            client.post("/models/trial", json={"vault": "v"}),
            client.get("/models?vault=v"),
            client.get("/chat/none/events?vault=v"),
            client.post("/chat/none/cancel", json={"vault": "v"}),
            client.get("/ask/none/events?vault=v"),
            client.post("/ask/none/cancel", json={"vault": "v"}),
        ]

    assert [each.status_code for each in answers] == [200] * 5 + [404] * 4


def test_trials_do_not_use_up_the_limit_of_one_run_together(tmp_path: Path) -> None:
    with asking(tmp_path, ModelSettings(name="openai:gpt-4o-mini", run_tokens=1)) as (_, client):
        problems = [client.post("/models/trial", json={}).json()["problem"] for _ in range(2)]

    assert problems == [None, None]


def test_a_program_neither_sees_nor_keeps_keys_nor_tries_models(tmp_path: Path, ring: Ring) -> None:
    with asking(tmp_path, token=None) as (_, client):
        refused = [client.get("/models/keys"), put(client, "openai", KEY), client.post("/models/trial", json={})]
        refused.append(client.get("/models/offered?provider=openai"))

    assert {(each.status_code, each.json()["code"]) for each in refused} == {(403, "needs_person")}
    assert ring.held == {}
    assert all(KEY not in each.text for each in refused)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, ring: Ring, mode: GenerationMode) -> None:
    del ring
    with asking(tmp_path) as (world, client):
        contract = contracts.of_app(client.app, world.token("page"), PATHS)
        found = contracts.broken_words(contract, mode)
        text = json.dumps(client.get("/models/keys").json())

    assert found == []
    assert KEY not in text
