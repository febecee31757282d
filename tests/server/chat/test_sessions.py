"""Conversations that are kept: listed, read, renamed, forked, cleared, exported, deleted, and nobody else's."""

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.server import credentials
from knapper.vault import access
from tests.agents.scripted import Call, Model
from tests.server import apps, chats

VERBS: list[tuple[str, str, dict[str, str] | None]] = [
    ("GET", "", None),
    ("GET", "/trace?number=1", None),
    ("PATCH", "", {"title": "x"}),
    ("DELETE", "", None),
    ("POST", "/fork", {}),
    ("POST", "/clear", {}),
    ("POST", "/export", {}),
    ("POST", "/chat", {"message": "hi"}),
    ("POST", "/chat/stream", {"message": "hi"}),
]


def say(client: TestClient, text: str, file: str | None = None) -> str:
    told = client.post("/chat", json={"message": text, "active_file": file})
    assert told.status_code == 200, told.text
    return told.json()["session_id"]


def contents(client: TestClient, session: str, query: str = "") -> list[str]:
    return [one["content"] for one in client.get(f"/sessions/{session}{query}").json()["messages"]]


def test_sessions_are_listed_page_by_page_the_last_used_first(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        ids = [say(client, f"about {name}", name) for name in ("Rain.md", "Garden.md", "New.md")]
        _ = say(client, "more", "Rain.md")
        whole = client.get("/sessions").json()
        page = client.get("/sessions?limit=1&offset=1").json()

    assert [one["id"] for one in whole["results"]] == [ids[0], ids[2], ids[1]]
    assert whole["results"][0]["title"] == "about Rain.md"
    assert whole["results"][0]["turns"] == 2
    assert (page["total"], page["limit"], page["offset"]) == (3, 1, 1)
    assert [one["active_file"] for one in page["results"]] == ["New.md"]


def test_a_session_is_read_with_its_latest_messages_unless_told_otherwise(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["A."], ["B."], ["C."]])) as client:
        for text in ("a", "b", "c"):
            session = say(client, text)
        found = [contents(client, session, query) for query in ("", "?limit=1", "?limit=1&offset=0")]
        told = client.get(f"/sessions/{session}").json()

    assert found == [["a", "A.", "b", "B.", "c", "C."], ["c", "C."], ["a", "A."]]
    assert [one["role"] for one in told["messages"][:2]] == ["user", "assistant"]
    assert told["messages"][1]["outcome"]["state"] == "complete"
    assert (told["total"], told["session"]["id"], told["session"]["running"]) == (3, session, None)


def test_a_session_goes_on_by_its_id_whichever_file_is_open(tmp_path: Path) -> None:
    model = Model([["Hi."]])
    with chats.asking(tmp_path, model) as client:
        session = say(client, "first", "Rain.md")
        told = client.post(f"/sessions/{session}/chat", json={"message": "second", "active_file": "Garden.md"}).json()
        again = say(client, "third", "Rain.md")

    assert told["session_id"] == again == session
    assert len(model.asked[-1]) == 5


def test_a_session_is_begun_empty_renamed_and_found_by_its_title(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        made = client.post("/sessions", json={"title": "Plans", "active_file": "Rain.md"}).json()["session"]
        renamed = client.patch(f"/sessions/{made['id']}", json={"title": " New  plans "}).json()["session"]
        empty = client.patch(f"/sessions/{made['id']}", json={"title": " "})

    assert (made["title"], made["kind"], made["turns"]) == ("Plans", "own", 0)
    assert renamed["title"] == "New plans"
    assert (empty.status_code, empty.json()["code"]) == (422, "bad_arguments")


def test_a_fork_goes_on_from_a_turn_and_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["A."], ["B."], ["C."]])) as client:
        session, _ = say(client, "a"), say(client, "b")
        fork = client.post(f"/sessions/{session}/fork", json={"upto": 1}).json()["session"]
        _ = client.post(f"/sessions/{fork['id']}/chat", json={"message": "c"})
        found = contents(client, fork["id"]), contents(client, session)

    assert fork["forked_from"] == session
    assert found == (["a", "A.", "c", "C."], ["a", "A.", "b", "B."])


def test_a_cleared_session_keeps_its_id_and_forgets_what_was_said(tmp_path: Path) -> None:
    model = Model([["Hi."]])
    with chats.asking(tmp_path, model) as client:
        session = say(client, "zebras")
        cleared = client.post(f"/sessions/{session}/clear").json()["session"]
        same = say(client, "again")
        found = contents(client, session)

    assert (cleared["id"], cleared["turns"], same) == (session, 0, session)
    assert found == ["again", "Hi."]
    assert "zebras" not in str(model.asked[-1])


def test_a_deleted_session_is_gone(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        session = say(client, "hello")
        told = client.delete(f"/sessions/{session}")
        found = client.get(f"/sessions/{session}")
        other = say(client, "hello")

    assert (told.status_code, told.json()["deleted"]) == (200, session)
    assert (found.status_code, found.json()["code"]) == (404, "no_session")
    assert other != session


@pytest.mark.parametrize(("small", "status"), [("apply", "applied"), ("propose", "proposed")])
def test_an_export_is_applied_or_proposed_as_the_clients_policy_says(tmp_path: Path, small: str, status: str) -> None:
    own = ClientSettings(grants=replace(access.default_grants("http"), small=small))
    with chats.asking(tmp_path, Model([["It *rains*."]]), own) as client:
        session = say(client, "What of rain?")
        told = client.post(f"/sessions/{session}/export", json={"path": "Talks/Rain"})
        empty = client.post(f"/sessions/{client.post('/sessions').json()['session']['id']}/export")
        note = tmp_path / "vault" / "Talks" / "Rain.md"
        text = note.read_text(encoding="utf-8") if note.exists() else ""

    assert (told.status_code, told.json()["status"]) == (200, status)
    assert ("> What of rain?" in text and "It *rains*." in text) is (status == "applied")
    assert (empty.status_code, empty.json()["code"]) == (422, "session_empty")


def test_who_has_heard_what_others_wrote_from_the_model_only_proposes(tmp_path: Path) -> None:
    notes = {**apps.NOTES, "Clippings/Page.md": "# Page\n\nA stranger's words.\n"}
    model = Model([[Call("read_file", {"path": "Clippings/Page.md"})], ["Words."]])
    with apps.world(tmp_path, notes=notes) as world:
        mount = chats.mounted(world.hub, world.stop, model.open)
        with world.client(None, mount) as client:
            session = say(client, "read it")
            told = client.post(f"/sessions/{session}/export").json()
            other = client.post("/tools/create_file", json={"path": "New.md", "content": "x"}).json()

    assert told["status"] == "proposed"
    assert other["status"] == "proposed"


def test_nobody_else_reads_or_changes_a_clients_sessions(tmp_path: Path) -> None:
    token = credentials.make_token()
    named = ClientSettings(grants=access.default_grants("reader", "named"), token_hash=hash_token(token))
    with apps.world(tmp_path, named) as world:
        mount = chats.mounted(world.hub, world.stop, Model([["Hi."]]).open)
        with world.client(None, mount) as client:
            session = say(client, "mine")
            others = [{"authorization": f"Bearer {one}"} for one in (token, world.token("page"))]
            found = [
                client.request(verb, f"/sessions/{session}{path}", json=body, headers=headers)
                for headers in others
                for verb, path, body in VERBS
            ]
            listed = [client.get("/sessions", headers=headers).json()["total"] for headers in others]
            theirs = client.post("/chat", json={"message": "hi"}, headers=others[0]).json()["session_id"]
            kept = contents(client, session)

    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, "no_session")}
    assert listed == [0, 0]
    assert theirs != session
    assert kept == ["mine", "Hi."]


@pytest.mark.parametrize(("verb", "path", "body"), VERBS)
def test_an_unknown_session_is_not_found(tmp_path: Path, verb: str, path: str, body: dict[str, str] | None) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        found = [
            client.request(verb, f"/sessions/{name}{path}", json=body) for name in ("nobody", "..%5C..%5Cx", "%00")
        ]

    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, "no_session")}
    assert not list(tmp_path.rglob("*x.lock"))


@pytest.mark.parametrize("query", ["?limit=-1", "?limit=x", "?limit=501", "?limit=1&limit=2", "?page=2", "?offset=1.5"])
def test_a_page_that_cannot_be_is_refused(tmp_path: Path, query: str) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        found = client.get(f"/sessions{query}")

    assert (found.status_code, found.json()["code"]) == (422, "bad_arguments")


def test_a_renamed_note_keeps_its_session(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        before = say(client, "about rain", "Rain.md")
        (tmp_path / "vault" / "Rain.md").rename(tmp_path / "vault" / "Weather.md")
        after = say(client, "still about rain", "Weather.md")

    assert before == after


def test_a_session_keeps_what_was_done_on_the_way_to_an_answer_in_its_order(tmp_path: Path) -> None:
    model = Model(
        [["I look.", Call("read_file", {"path": "Rain.md"})], [Call("read_file", {"path": "No.md"})], ["Ok."]]
    )
    with chats.asking(tmp_path, model) as client:
        session = say(client, "read")
        brief = client.get(f"/sessions/{session}").json()["messages"][1]["outcome"]["trace"]
        whole = client.get(f"/sessions/{session}/trace?number=1").json()

    assert [(row["kind"], row.get("name"), row.get("success")) for row in brief] == [
        ("text", None, None),
        ("call", "read_file", True),
        ("call", "read_file", False),
    ]
    assert all("answer" not in row and "arguments" not in row for row in brief)
    said, read, failed = whole["trace"]
    assert said == {"kind": "text", "text": "I look."}
    assert (read["arguments"], read["answer"]["content"]) == ({"path": "Rain.md"}, apps.NOTES["Rain.md"])
    assert (failed["arguments"], failed["answer"]["code"]) == ({"path": "No.md"}, "not_found")


def test_what_is_too_long_is_kept_as_a_beginning_that_says_so(tmp_path: Path) -> None:
    long = "x" * 50_000
    model = Model([[Call("write_file", {"path": "Long.md", "content": long})], ["Ok."]])
    with chats.asking(tmp_path, model) as client:
        session = say(client, "write")
        (entry,) = client.get(f"/sessions/{session}/trace?number=1").json()["trace"]

    assert entry["cut"] == ["arguments", "answer"] or entry["cut"] == ["arguments"]
    assert entry["arguments"].startswith('{\n  "path": "Long.md"')
    assert len(entry["arguments"]) == 6_000


@pytest.mark.parametrize("number", ["0", "2", "x"])
def test_a_turn_that_is_not_there_was_done_nothing_in(tmp_path: Path, number: str) -> None:
    with chats.asking(tmp_path, Model([["Hi."]])) as client:
        session = say(client, "hello")
        answered = client.get(f"/sessions/{session}/trace?number=1")
        refused = client.get(f"/sessions/{session}/trace?number={number}")

    assert answered.json() == {"success": True, "number": 1, "trace": []}
    assert refused.status_code in {404, 422}
    assert refused.json()["code"] in {"no_turn", "bad_arguments"}


def test_sessions_are_found_by_what_was_said_in_them(tmp_path: Path) -> None:
    with chats.asking(tmp_path, Model([["The barrel holds 100%."], ["Only rain_water."], ["No."]])) as client:
        ids = [say(client, f"about {name}", name) for name in ("Rain.md", "Garden.md", "New.md")]
        _ = client.patch(f"/sessions/{ids[2]}", json={"title": "The very last"})

        def found(query: str) -> list[int]:
            answer = client.get("/sessions", params={"query": query}).json()
            assert answer["total"] == len(answer["results"])
            return [ids.index(one["id"]) for one in answer["results"]]

        assert found("BARREL") == [0]
        assert found("garden.md") == [1]
        assert found("very last") == [2]
        assert found("%") == [0]
        assert found("_") == [1]
        assert found("'; DROP TABLE sessions; --") == []
        assert len(found(" ")) == 3
        _ = client.post(f"/sessions/{ids[0]}/clear")
        assert found("barrel") == []
