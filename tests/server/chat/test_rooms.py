"""Several vaults, several processes' worth of clients, limits: what each chat goes by."""

import contextlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from starlette.testclient import TestClient

from knapper.app import Hub
from knapper.app.open_clients import OpenClients
from knapper.config import ClientSettings, Settings, Vault
from knapper.config.sections import ModelSettings
from knapper.vault import access
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.server import apps, chats
from tests.server.apps import World


@contextlib.contextmanager
def asking(settings: Settings, model: Model) -> Generator[TestClient]:
    with Hub(settings) as hub:
        world = World(hub=hub, settings=settings, root=settings.vault.path)
        with world.client(None, chats.mounted(hub, world.stop, model.open)) as client:
            yield client


def test_each_vault_has_its_own_sessions_and_its_own_notes(tmp_path: Path) -> None:
    first = apps.settings(tmp_path)
    other = Vault(name="work", path=worlds.fill(tmp_path / "work", {"Plan.md": "# Plan\n\nBuild it.\n"}).resolve())
    model = Model([["Hi."], [Call("read_file", {"path": "Plan.md"})], ["Build it."]])
    with asking(replace(first, vaults=(first.vault, other)), model) as client:
        here = client.post("/chat", json={"message": "hello"}).json()
        there = client.post("/chat", json={"message": "the plan?", "vault": "work"}).json()
        listed = [client.get(f"/sessions?vault={name}").json()["results"] for name in ("v", "work")]
        wrong = client.get(f"/sessions/{there['session_id']}")
        right = client.get(f"/sessions/{there['session_id']}?vault=work")

    assert [one["success"] for one in there["tools"]] == [True]
    assert [[one["id"] for one in rows] for rows in listed] == [[here["session_id"]], [there["session_id"]]]
    assert (wrong.status_code, right.status_code) == (404, 200)


def test_what_the_owner_hides_from_the_agent_is_refused_as_the_active_file_even_of_a_person(tmp_path: Path) -> None:
    agent = ClientSettings(grants=access.default_grants("agent"), hidden=("Private/",))
    with apps.world(tmp_path, agent) as world:
        mount = chats.mounted(world.hub, world.stop, Model([["Hi."]]).open)
        with world.client(world.token("page"), mount) as page:
            found = page.post("/chat", json={"message": "hi", "active_file": "Private/Diary.md"})

    assert (found.status_code, found.json()["code"]) == (403, "note_hidden")


def test_a_limit_of_the_day_holds_for_all_clients_together(tmp_path: Path) -> None:
    settings = replace(apps.settings(tmp_path), model=ModelSettings(day_tokens=60))
    with asking(settings, Model([["Hi."]])) as client:
        found = [client.post("/chat", json={"message": "hello " * 10}) for _ in range(3)]
    with Hub(settings) as hub:
        world = World(hub=hub, settings=settings, root=settings.vault.path)
        with world.client(world.token("page"), chats.mounted(hub, world.stop, Model([["Hi."]]).open)) as page:
            others = page.post("/chat", json={"message": "hello"})

    assert (found[-1].status_code, found[-1].json()["code"]) == (403, "budget_spent")
    assert "model.day_tokens" in found[-1].json()["hint"]
    assert (others.status_code, others.json()["code"]) == (403, "budget_spent")


def test_a_session_that_another_process_answers_in_is_busy(tmp_path: Path) -> None:
    with asking(apps.settings(tmp_path), Model([["Hi."]])) as client:
        session = client.post("/chat", json={"message": "hello"}).json()["session_id"]
        (lock,) = tmp_path.rglob(f"{session}.lock")
        with FileLock(lock):
            found = [
                client.post("/chat", json={"message": "again"}),
                client.post(f"/sessions/{session}/clear"),
                client.delete(f"/sessions/{session}"),
            ]
            events = client.post("/chat/stream", json={"message": "again"}).text
        after = client.post("/chat", json={"message": "again"})

    assert {(one.status_code, one.json()["code"]) for one in found} == {(409, "session_busy")}
    assert '"code":"session_busy"' in events
    assert after.status_code == 200


@pytest.mark.parametrize("name", ["a/b", "A", "a", "..", "con"])
def test_clients_with_odd_names_have_sessions_of_their_own(tmp_path: Path, name: str) -> None:
    odd = ClientSettings(grants=access.default_grants(name, "named"))
    settings = replace(apps.settings(tmp_path), clients=(odd,))
    with Hub(settings) as hub, contextlib.closing(OpenClients(hub)) as opened:
        own, api = opened.chats(name), opened.chats("http")
        session = own.conversations.route("")

        assert own.store.list()[1] == 1
        assert api.store.list()[1] == 0
        assert own.store.get(session.id).kind == "none"
        assert own.store.folder.parent == api.store.folder.parent


def test_the_open_note_may_be_named_as_in_obsidian(tmp_path: Path) -> None:
    notes = {
        **apps.NOTES,
        "Deep/Down/Leaf.md": "---\naliases: [Foliage]\n---\n# The leaf\n",
        "A/Twin.md": "1\n",
        "B/Twin.md": "2\n",
        "Private/Diary.md": "---\naliases: [Mine]\n---\nsecret\n",
    }
    agent = ClientSettings(grants=access.default_grants("agent"), hidden=("Private/",))
    with apps.world(tmp_path, agent, notes=notes) as world:
        mount = chats.mounted(world.hub, world.stop, Model([["Hi."]]).open)
        with world.client(None, mount) as client:
            by_path = client.post("/chat", json={"message": "hi", "active_file": "Deep/Down/Leaf.md"}).json()
            names = ("Leaf", "leaf.md", "Down/Leaf", "Foliage", "the leaf", "[[Leaf|that]]", "deep/down/leaf.md")
            by_name = [client.post("/chat", json={"message": "hi", "active_file": name}).json() for name in names]
            own = client.post("/sessions", json={"active_file": "Foliage"}).json()["session"]
            twin = client.post("/chat", json={"message": "hi", "active_file": "Twin"})
            twin_session = client.post("/sessions", json={"active_file": "Twin"})
            hidden, missing = (
                client.post("/sessions", json={"active_file": name}).json()["session"] for name in ("Mine", "Nobody")
            )
            session = client.get(f"/sessions/{by_path['session_id']}").json()

    assert {told["session_id"] for told in by_name} == {by_path["session_id"]}
    open_notes = {message["active_file"] for message in session["messages"] if message["role"] == "user"}
    assert open_notes == {"Deep/Down/Leaf.md"}
    assert own["active_file"] == "Deep/Down/Leaf.md"
    assert [one.json()["code"] for one in (twin, twin_session)] == ["ambiguous_name"] * 2
    assert twin.json()["candidates"] == ["A/Twin.md", "B/Twin.md"]
    assert (hidden["active_file"], missing["active_file"]) == ("Mine", "Nobody")
