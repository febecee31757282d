"""What is hidden from a client stays hidden from its agents, and from what is shown of tasks."""

import json
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from knapper.agents.pipeline.scopes import ContextScopeConfig
from knapper.agents.pipeline.store import Preset, Presets
from knapper.agents.work_store import open_work
from knapper.config import ClientSettings
from knapper.server import credentials
from knapper.vault import access
from tests.agents import scripts
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.server import apps, chats, tasks

NARROW = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))
SECRET = {"task": "the secret garden?", "scout": True}
NOTES = {
    **apps.NOTES,
    "Rain.md": "# Rain\n\nIt rains on the tomatoes. [[Diary]]\n",
    "Private/Diary.md": "# Diary\n\nThe secret of the tomatoes. [[Behind]]\n",
    "Behind.md": "# Behind\n",
}


@contextmanager
def asking(base: Path, cast: Cast, *clients: ClientSettings) -> Generator[TestClient]:
    with (
        apps.world(base, *clients, notes=NOTES) as world,
        world.client(None, chats.mounted(world.hub, world.stop, cast.open)) as client,
    ):
        yield client


def a_client(world: apps.World, name: credentials.TokenName, cast: Cast) -> AbstractContextManager[TestClient]:
    return world.client(world.token(name), chats.mounted(world.hub, world.stop, cast.open))


def test_the_preview_shows_nothing_of_it_nor_of_what_lies_behind_it(tmp_path: Path) -> None:
    body = {"note": "Rain.md", "link_depth": 3, "texts": True}
    with asking(tmp_path, tasks.answering(), NARROW) as client:
        shown = client.post("/ask/context", json=body).json()
    with asking(tmp_path, tasks.answering()) as client:
        whole = client.post("/ask/context", json=body).json()

    assert [one["path"] for one in shown["notes"]] == ["Rain.md", "Garden.md"]
    assert {one["path"] for one in whole["notes"]} == {"Rain.md", "Garden.md", "Private/Diary.md", "Behind.md"}
    assert not [word for word in ("Private", "secret", "Behind") if word in json.dumps(shown)]


@pytest.mark.parametrize("path", ["/ask", "/ask/stream", "/ask/context"])
@pytest.mark.parametrize("place", ["note", "added"])
def test_naming_it_is_the_very_error_of_what_is_not_there(tmp_path: Path, path: str, place: str) -> None:
    def body(name: str) -> dict[str, object]:
        return {**({} if path.endswith("context") else {"task": "x"}), place: [name] if place == "added" else name}

    with asking(tmp_path, tasks.answering(), NARROW) as client:
        there = client.post(path, json=body("Private/Diary.md"))
        not_there = client.post(path, json=body("Private/Diaxx.md"))

    assert (there.status_code, there.json()["code"]) == (404, "not_found")
    assert there.text.replace("Diary", "Diaxx") == not_there.text


def test_agents_find_read_and_change_nothing_of_it(tmp_path: Path) -> None:
    looks = [
        Call("fetch_note", {"path": "Private/Diary.md"}),
        Call("search_keyword", {"query": "secret"}),
        Call("get_links_recursive", {"path": "Rain.md", "depth": 3}),
        Call("list_notes", {}),
    ]
    cast = Cast(
        {
            "scout": [looks, [scripts.select("Private/Diary.md", "Rain.md")]],
            "task": [scripts.task("x", ("Private/Diary.md", "end", "mine"), ("Private/New.md", "create", "mine"))],
        }
    )
    with apps.world(tmp_path, NARROW, notes=NOTES) as world:
        with world.client(None, chats.mounted(world.hub, world.stop, cast.open)) as client:
            heard = client.post("/ask/stream", json={"task": "x", "scout": True}).text
        files = sorted(path.name for path in (world.root / "Private").iterdir())
        diary = (world.root / "Private" / "Diary.md").read_text(encoding="utf-8")

    given = cast.prompts("scout") + cast.prompts("task")
    assert "The secret" not in heard + given
    assert [one["path"] for one in ended(heard)["pipeline"]["scout"]["selected_notes"]] == ["Rain.md"]
    assert ended(heard)["proposals"] == []
    assert (files, diary) == (["Diary.md"], NOTES["Private/Diary.md"])


def ended(heard: str) -> Any:  # noqa: ANN401 - JSON
    return json.loads(heard.strip().rpartition("data: ")[2])


def test_presets_and_defaults_do_not_name_it_and_a_save_leaves_it_as_it_is(tmp_path: Path) -> None:
    owners = Preset(
        name="Work",
        scope=ContextScopeConfig(excluded_folders=("Private", "Old")),
        added=("Private/Diary.md", "Rain.md"),
    )
    with apps.world(tmp_path, NARROW, notes=NOTES) as world:
        folder = world.hub.open("").folder
        folder.mkdir(parents=True, exist_ok=True)
        work = open_work(folder)
        kept = Presets(work)
        kept.save(owners)
        with world.client(None, chats.mounted(world.hub, world.stop, tasks.answering().open)) as client:
            listed = client.get("/presets").json()
            used = client.post("/ask/context", json={"preset": "work"})
            put = client.put("/presets/work", json={"added": ["Garden.md"], "scope": {"excluded_folders": []}})
            usual = client.get("/ask/defaults")
        after = kept.find("work")
        work.shut()

    assert [(one["added"], one["scope"]["excluded_folders"]) for one in listed["results"]] == [(["Rain.md"], ["Old"])]
    assert [one["path"] for one in used.json()["notes"]] == ["Rain.md"]
    assert put.json()["preset"]["added"] == ["Garden.md"]
    assert "Private" not in put.text + usual.text + used.text
    assert (after.added, after.scope.excluded_folders) == (("Garden.md", "Private/Diary.md"), ("Private",))


def test_a_persons_run_waits_unseen_by_other_clients(tmp_path: Path) -> None:
    with apps.world(tmp_path, NARROW, notes=NOTES) as world:
        with a_client(world, "page", tasks.asking()) as page:
            run_id = page.post("/ask", json=SECRET).json()["run_id"]
        with a_client(world, "api", tasks.asking()) as other:
            unseen = other.get("/ask/waiting").json()["results"]
            stolen = other.post("/ask", json={"run_id": run_id, "answer": "North"})
        with a_client(world, "page", tasks.asking()) as page:
            seen = page.get("/ask/waiting").json()["results"]

    assert unseen == []
    assert (stolen.status_code, stolen.json()["code"]) == (404, "no_run")
    assert [(one["run_id"], one["client"]) for one in seen] == [(run_id, "page")]


def test_a_clients_run_is_seen_by_a_person_without_the_clients_session(tmp_path: Path) -> None:
    with apps.world(tmp_path, NARROW, notes=NOTES) as world:
        with a_client(world, "api", tasks.asking()) as client:
            session = client.post("/sessions", json={}).json()["session"]["id"]
            run_id = client.post("/ask", json={**SECRET, "session_id": session}).json()["run_id"]
            own = client.get("/ask/waiting").json()["results"]
        with a_client(world, "page", tasks.asking()) as page:
            seen = page.get("/ask/waiting").json()["results"]

    assert [(one["run_id"], one["session_id"]) for one in own] == [(run_id, session)]
    assert [(one["run_id"], one["client"], one["session_id"]) for one in seen] == [(run_id, "http", "")]


def test_a_run_that_a_person_goes_on_with_sees_no_more_than_the_client_that_began_it(tmp_path: Path) -> None:
    cast = Cast(
        {"scout": [tasks.ASK, [Call("fetch_note", {"path": "Private/Diary.md"})], tasks.SELECT], "task": [tasks.ANSWER]}
    )
    with apps.world(tmp_path, NARROW, notes=NOTES) as world:
        with world.client(None, chats.mounted(world.hub, world.stop, cast.open)) as client:
            run_id = client.post("/ask", json={"task": "x", "scout": True}).json()["run_id"]
        with world.client(world.token("page"), chats.mounted(world.hub, world.stop, cast.open)) as page:
            done = page.post("/ask", json={"run_id": run_id, "answer": "North"}).json()

    assert done["state"] == "complete"
    assert "The secret" not in cast.prompts("scout") + cast.prompts("task")


def test_a_person_from_whom_something_is_hidden_sees_only_their_own_runs(tmp_path: Path) -> None:
    narrow = ClientSettings(grants=access.default_grants("page"), hidden=("Private/",))
    with apps.world(tmp_path, narrow, notes=NOTES) as world:
        with world.client(None, chats.mounted(world.hub, world.stop, tasks.asking().open)) as client:
            _ = client.post("/ask", json={"task": "x", "scout": True})
        with world.client(world.token("page"), chats.mounted(world.hub, world.stop, tasks.asking().open)) as page:
            seen = page.get("/ask/waiting").json()["results"]

    assert seen == []


@pytest.mark.parametrize("texts", [True, False])
def test_who_is_given_others_text_by_a_preview_only_proposes_from_then_on(tmp_path: Path, *, texts: bool) -> None:
    notes = {**apps.NOTES, "Clippings/Page.md": "# Page\n\nFrom a stranger.\n"}
    with apps.world(tmp_path, notes=notes) as world, a_client(world, "api", tasks.answering()) as client:
        shown = client.post("/ask/context", json={"note": "Clippings/Page.md", "texts": texts}).json()
        done = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "more"}).json()

    assert [one["foreign"] for one in shown["notes"]] == [True]
    assert done["status"] == ("proposed" if texts else "applied")


def test_who_hears_of_others_text_from_its_agents_only_proposes_from_then_on(tmp_path: Path) -> None:
    notes = {**apps.NOTES, "Clippings/Page.md": "# Page\n\nFrom a stranger.\n"}
    with apps.world(tmp_path, notes=notes) as world, a_client(world, "api", tasks.answering()) as client:
        before = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "more"}).json()
        _ = client.post("/ask", json={"task": "what?", "note": "Clippings/Page.md"})
        after = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "more"}).json()

    assert [before["status"], after["status"]] == ["applied", "proposed"]
