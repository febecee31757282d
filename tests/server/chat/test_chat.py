"""`POST /chat`: what comes back, which session answers, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.config import ClientSettings
from knapper.vault import access
from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.scripted import Call, Model
from tests.server import apps, chats

EDIT = Call("edit_file", {"path": "Rain.md", "old_text": "rains", "new_text": "snows"})


def test_a_message_is_answered_with_its_session_and_what_it_took(tmp_path: Path) -> None:
    model = Model([[Call("read_file", {"path": "Rain.md"})], ["It rains on the tomatoes [[Rain]]."]])
    with chats.asking(tmp_path, model) as client:
        found = client.post("/chat", json={"message": "What of rain?", "session_id": "any", "active_file": "Rain.md"})

    told = found.json()
    assert found.status_code == 200
    assert told["success"] is True
    assert told["response"].startswith("It rains")
    assert [one["path"] for one in told["citations"]] == ["Rain.md"]
    assert [one["name"] for one in told["tools"]] == ["read_file"]
    assert told["state"] == "complete"
    assert told["session_id"] != "any"
    assert {"usage", "proposals", "changes", "question", "turn_id", "model", "removed"} <= told.keys()


def test_the_active_file_alone_tells_the_session(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:

        def ask(**more: object) -> str:
            return client.post("/chat", json={"message": "hello", **more}).json()["session_id"]

        rain, garden, none = ask(active_file="Rain.md"), ask(active_file="Garden.md"), ask()
        again = [ask(active_file="rain.md", session_id=garden), ask(active_file=None), ask(active_file="")]

    assert len({rain, garden, none}) == 3
    assert again == [rain, none, none]


def test_a_session_goes_on_after_the_server_was_started_again(tmp_path: Path) -> None:
    first, second = Model([["One."]]), Model([["Two."]])
    with chats.asking(tmp_path, first) as client:
        before = client.post("/chat", json={"message": "first"}).json()["session_id"]
    with chats.asking(tmp_path, second) as client:
        after = client.post("/chat", json={"message": "second"}).json()["session_id"]

    assert before == after
    assert len(second.asked[0]) == 3


def test_what_a_model_changes_waits_for_a_person_even_if_the_client_may_apply(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        mount = chats.mounted(world.hub, world.stop, Model([[EDIT], ["Proposed."]]).open)
        with world.client(world.token("page"), mount) as page:
            told = page.post("/chat", json={"message": "make it snow"}).json()
            before = (world.root / "Rain.md").read_text(encoding="utf-8")
            (waiting,) = told["proposals"]
            done = page.post(f"/proposals/{waiting['id']}/accept", json={"digest": waiting["digest"]})
            after = (world.root / "Rain.md").read_text(encoding="utf-8")

    assert told["changes"] == []
    assert "rains" in before
    assert done.status_code == 200
    assert "snows" in after


def test_a_question_of_the_model_comes_back_and_the_next_message_answers_it(tmp_path: Path) -> None:
    asked = Call("ask_user", {"question": "Which garden?", "options": ["North", "South"]})
    model = Model([[asked], ["North it is."]])
    with chats.asking(tmp_path, model) as client:
        first = client.post("/chat", json={"message": "water the garden"}).json()
        second = client.post("/chat", json={"message": "North"}).json()

    assert (first["state"], first["question"]["question"]) == ("asked", "Which garden?")
    assert first["question"]["options"] == ["North", "South"]
    assert (second["state"], second["question"]) == ("complete", None)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "bad_arguments"),
        ({"message": None}, 422, "bad_arguments"),
        ({"message": 5}, 422, "bad_arguments"),
        ({"message": "  "}, 422, "bad_arguments"),
        ({"message": "x" * 200_001}, 422, "bad_arguments"),
        ({"message": "hi", "activeFile": "Rain.md"}, 422, "bad_arguments"),
        ({"message": "hi", "active_file": ["Rain.md"]}, 422, "bad_arguments"),
        ({"message": "hi", "active_file": "../../etc/passwd"}, 403, "outside_vault"),
        ({"message": "hi", "vault": "other"}, 404, "no_vault"),
        ([], 400, "not_an_object"),
    ],
)
def test_what_cannot_be_answered_is_refused(tmp_path: Path, body: Any, status: int, code: str) -> None:  # noqa: ANN401 - anything
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        found = client.post("/chat", json=body)
        kept = client.get("/sessions").json()["results"]

    assert (found.status_code, found.json()["code"]) == (status, code)
    assert [one for one in kept if one["turns"]] == []


def test_a_note_that_is_hidden_from_the_client_is_refused_as_if_it_were_not_there(tmp_path: Path) -> None:
    narrow = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))
    with chats.asking(tmp_path, Model([["Hi."]]), narrow) as client:
        there = client.post("/chat", json={"message": "hi", "active_file": "Private/Diary.md"})
        not_there = client.post("/chat", json={"message": "hi", "active_file": "Private/Nothing.md"})
        by_id = client.post("/sessions", json={"active_file": "Private/Diary.md"})
        total = client.get("/sessions").json()["total"]

    assert (there.status_code, there.json()["code"]) == (403, "note_hidden")
    assert there.json() == not_there.json() == by_id.json()
    assert total == 0


def test_the_agent_sees_no_more_than_the_client_that_asks_it(tmp_path: Path) -> None:
    narrow = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))
    calls = [
        Call("read_file", {"path": "Private/Diary.md"}),
        Call("search_vault", {"query": "secret tomatoes", "mode": "keyword"}),
    ]
    model = Model([[calls[0]], [calls[1]], ["No."]])
    with chats.asking(tmp_path, model, narrow) as client:
        told = client.post("/chat", json={"message": "read my diary"}).json()

    assert [one["success"] for one in told["tools"]] == [False, True]
    assert "The secret" not in str(model.asked)


def test_the_agent_of_a_client_that_only_reads_is_given_no_tools_that_write(tmp_path: Path) -> None:
    reader = ClientSettings(grants=replace(access.default_grants("http"), is_read_only=True))
    model = Model([[EDIT], ["Done."]])
    with chats.asking(tmp_path, model, reader) as client:
        told = client.post("/chat", json={"message": "make it snow"}).json()

    assert told["proposals"] == told["changes"] == []
    assert "edit_file" not in {tool.name for tool in model.infos[0].function_tools}


def test_without_a_model_the_owner_is_told_what_to_set(tmp_path: Path) -> None:
    with (
        apps.world(tmp_path) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as client,
    ):
        found = client.post("/chat", json={"message": "hi"})

    assert (found.status_code, found.json()["code"]) == (503, "no_model")
    assert "KNAP_MODEL" in found.json()["hint"]


def test_a_message_that_no_model_can_answer_leaves_no_session_behind(tmp_path: Path) -> None:
    with (
        apps.world(tmp_path) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as client,
    ):
        for path in ("/chat", "/chat/stream"):
            _ = client.post(path, json={"message": "hi"})
            _ = client.post(path, json={"message": "hi", "active_file": "Rain.md"})
        kept = client.get("/sessions").json()["results"]

    assert kept == []


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_an_empty_message_is_refused_and_begins_no_session(tmp_path: Path, path: str) -> None:
    model = Model([["Hi."]])
    with chats.asking(tmp_path, model) as client:
        found = client.post(path, json={"message": " \n"})
        kept = client.get("/sessions").json()["results"]

    assert (found.status_code, found.json()["code"]) == (422, "bad_arguments")
    assert (kept, model.asked) == ([], [])


def test_a_model_that_fails_is_an_error_with_its_session(tmp_path: Path) -> None:
    from knapper.agents.model import names, usage  # noqa: PLC0415
    from knapper.agents.model.usage import ModelTimeouts  # noqa: PLC0415

    with protocol.serving(Reply(status=401), Reply(parts=["Better."])) as server:
        wanted = [names.parse_model_name(f"tiny@{server.base_url}")]
        patience = ModelTimeouts(retries=0)
        with chats.asking(tmp_path, lambda: usage.open_model(wanted, lambda _: "", patience)) as client:
            failed = client.post("/chat", json={"message": "hi"})
            better = client.post(f"/sessions/{failed.json()['session_id']}/chat", json={"message": "again"})

    assert (failed.status_code, failed.json()["code"]) == (502, "model_key")
    assert failed.json()["success"] is False
    assert (better.status_code, better.json()["response"]) == (200, "Better.")


def test_an_unknown_session_is_not_found_and_the_model_not_asked(tmp_path: Path) -> None:
    model = Model([["Hi."]])
    with chats.asking(tmp_path, model) as client:
        found = [
            client.post(f"/sessions/{name}/{verb}", json={"message": "hi"})
            for name in ("nobody", "..%5Cx", "%00")
            for verb in ("chat", "chat/stream")
        ]

    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, "no_session")}
    assert model.asked == []


def test_without_a_token_nothing_is_answered(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]]), token="") as client:
        found = {client.post("/chat", json={"message": "hi"}).status_code, client.get("/sessions").status_code}

    assert found == {401}


def test_debug_shows_a_person_the_prompts_and_replies_of_a_turn(tmp_path: Path) -> None:
    model = Model([[Call("read_file", {"path": "Rain.md"})], ["It rains."], ["Again."], ["Quiet."]])
    with apps.world(tmp_path) as world:
        mount = chats.mounted(world.hub, world.stop, model.open)
        with world.client(world.token("page"), mount) as page:
            told = page.post("/chat", json={"message": "rain?", "debug": True}).json()
            session = told["session_id"]
            events = page.post(f"/sessions/{session}/chat/stream", json={"message": "and now?", "debug": True}).text
            plain = page.post("/chat", json={"message": "hush", "debug": False}).json()
            kept = page.get(f"/sessions/{session}").text

    (shown,) = told["debug"]
    assert (shown["phase"], shown["title"]) == ("chat", "conversation")
    for text in (
        "--- instructions",
        "--- to the model\nrain?",
        '--- model calls read_file\n{\n  "path": "Rain.md"\n}',
        "It rains on the tomatoes.",
        "--- model\nIt rains.",
    ):
        assert text in shown["text"], text
    assert "event: debug" in events
    assert "and now?" in events
    assert "debug" not in plain
    assert "--- instructions" not in kept


@pytest.mark.parametrize("path", ["/chat", "/chat/stream", "/ask", "/ask/stream"])
def test_prompts_are_shown_to_persons_alone(tmp_path: Path, path: str) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        found = client.post(path, json={"message" if "chat" in path else "task": "hi", "debug": True})
        kept = client.get("/sessions").json()["results"]

    assert (found.status_code, found.json()["code"]) == (403, "needs_person")
    assert kept == []


def test_of_a_turn_that_was_cancelled_the_prompts_are_shown_too(tmp_path: Path) -> None:
    gate = chats.Gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client("page") as page,
        chats.streaming(page, "/chat/stream", {"message": "long?", "debug": True}) as heard,
    ):
        start = next(heard)
        gate.until_waiting()
        _ = page.post(f"/chat/{start.data['turn_id']}/cancel")
        names = [one.name for one in heard]

    assert names[-1] == "done"
    assert "debug" in names
