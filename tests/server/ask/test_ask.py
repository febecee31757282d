"""`POST /ask` and what is around it: answers, edits, questions, switches, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.agents.model import names, usage
from knapper.agents.model.usage import ModelTimeouts
from knapper.cli import main
from knapper.config import ClientSettings, ModelSettings
from knapper.vault import access
from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.scripts import Cast
from tests.server import apps, chats, tasks

TASK = {"task": "rain?", "note": "Rain.md"}


def test_a_task_is_answered_with_all_that_it_came_to(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        found = client.post("/ask", json=TASK)

    told = found.json()
    assert (found.status_code, told["success"], told["state"], told["error"]) == (200, True, "complete", None)
    assert told["answer"].startswith("It rains")
    assert [one["path"] for one in told["citations"]] == ["Rain.md"]
    assert {one["path"]: one["why"] for one in told["context"]["notes"]} == {
        "Rain.md": "the open note",
        "Garden.md": "link depth 1",
    }
    assert all(one["tokens"] > 0 for one in told["context"]["notes"])
    assert told["usage"]["phases"].keys() == {"task"}


def test_edits_wait_for_a_persons_word(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        mount = chats.mounted(world.hub, world.stop, tasks.answering(tasks.EDIT).open)
        with world.client(world.token("page"), mount) as page:
            told = page.post("/ask", json=TASK).json()
            before = (world.root / "Rain.md").read_text(encoding="utf-8")
            (waiting,) = told["proposals"]
            digest = page.get(f"/proposals/{waiting}").json()["digest"]
            done = page.post(f"/proposals/{waiting}/accept", json={"digest": digest})
            after = (world.root / "Rain.md").read_text(encoding="utf-8")

    assert told["edit_results"] == {"success": 1, "failed": 0, "failures": []}
    assert "rains" in before
    assert done.status_code == 200
    assert "It snows" in after


def test_what_waits_is_told_with_where_a_person_decides(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        world.hub.page_address = "https://notes.example/knap"
        mount = chats.mounted(world.hub, world.stop, tasks.answering(tasks.EDIT, tasks.ANSWER).open)
        with world.client(None, mount) as client:
            told = client.post("/ask", json=TASK).json()
            followed = client.get(f"/ask/{told['run_id']}/events", headers={"accept": "text/event-stream"}).text
            plain = client.post("/ask", json=TASK).json()

    (proposal,) = told["proposals"]
    (row,) = told["waiting"]
    assert row["proposal_id"] == proposal
    assert row["review_command"] == f"knap edits review {proposal}"
    assert row["review_url"] == f"https://notes.example/knap/#proposal={proposal}"
    assert "nothing has changed yet" in row["message"]
    assert row["review_url"] in row["message"]
    assert row["review_url"] in followed
    assert plain["waiting"] == []


def test_without_a_note_the_scout_looks_for_some(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        told = client.post("/ask", json={"task": "rain?"}).json()

    assert [one["path"] for one in told["pipeline"]["scout"]["selected_notes"]] == ["Rain.md"]


def test_the_preview_is_what_a_task_is_done_with(tmp_path: Path) -> None:
    block = '```ai-edit\n{"id": "x", "type": "add", "before": "", "after": "more"}\n```\n#ai_edit\n'
    notes = {**apps.NOTES, "Rain.md": f"# Rain\n\n{block}\nIt rains. [[Wide]]\n", "Wide.md": "# \u96e8\n" * 2_000}
    cast = tasks.answering()
    with (
        apps.world(tmp_path, notes=notes) as world,
        world.client(None, chats.mounted(world.hub, world.stop, cast.open)) as client,
    ):
        order = {"note": "Rain.md", "token_limit": 3_000, "added": ["Private/Diary.md"]}
        shown = client.post("/ask/context", json=order).json()
        done = client.post("/ask", json={"task": "x", **order}).json()["context"]

    assert [one["path"] for one in shown["notes"]] == ["Rain.md", "Garden.md"]
    assert [(one["path"], one["source"]) for one in shown["removed"]] == [
        ("Private/Diary.md", "manual"),
        ("Wide.md", "linked"),
    ]
    assert "an edit that waits" in cast.prompts("task")
    assert shown["tokens"] == pytest.approx(sum(one["tokens"] for one in shown["notes"]), abs=2)
    assert [{**one, "foreign": False} for one in done["notes"]] == shown["notes"]
    assert {name: done[name] for name in ("removed", "tokens", "notices")} == {
        name: shown[name] for name in ("removed", "tokens", "notices")
    }


def test_of_a_note_that_is_too_long_the_beginning_goes_in(tmp_path: Path) -> None:
    notes = {**apps.NOTES, "Rain.md": "It rains on the tomatoes.\n" * 2_000}
    with (
        apps.world(tmp_path, notes=notes) as world,
        world.client(None, chats.mounted(world.hub, world.stop, tasks.answering().open)) as client,
    ):
        order = {"note": "Rain.md", "link_depth": 0, "token_limit": 3_000, "texts": True}
        shown = client.post("/ask/context", json=order).json()

    assert (shown["cut"], len(shown["notes"]), shown["limit"]) == ("Rain.md", 1, 3_000)
    assert shown["tokens"] <= 3_000
    assert len(shown["notes"][0]["text"]) <= 12_000


def test_a_task_changes_nothing_for_later_ones(tmp_path: Path) -> None:
    cast = Cast({"scout": [tasks.SELECT], "task": [tasks.ANSWER]})
    with apps.world(tmp_path) as world:
        for token in ("api", "page"):
            mount = chats.mounted(world.hub, world.stop, cast.open)
            with world.client(world.token(token), mount) as client:
                before = client.get("/ask/defaults").json()
                order = {**TASK, "toggles": {"scout": True, "task": False}, "link_depth": 0, "rounds": 2}
                first = client.post("/ask", json=order).json()
                with chats.streaming(client, "/ask/stream", {**order, "scout": True}) as heard:
                    _ = list(heard)
                _ = client.post("/ask/context", json={"note": "Rain.md", "scout": True})
                second = client.post("/ask", json=TASK).json()
                after = client.get("/ask/defaults").json()

            assert first["pipeline"].keys() == {"token_accounting", "scout"}
            assert second["pipeline"].keys() == {"token_accounting"}
            assert second["answer"].startswith("It rains")
            assert before == after


def test_switches_are_kept_where_they_are_put_and_each_client_has_its_own(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        with world.client(None, chats.mounted(world.hub, world.stop, tasks.answering().open)) as client:
            kept = client.put("/ask/switches", json={"scout": True}).json()["switches"]
            told = client.post("/ask", json=TASK).json()
            mine = client.get("/ask/defaults").json()["switches"]
            again = client.put("/ask/switches", json=mine).json()["switches"]
        with world.client(world.token("page"), chats.mounted(world.hub, world.stop, tasks.answering().open)) as page:
            theirs = page.get("/ask/defaults").json()["switches"]

    assert kept == mine == again == {"scout": True, "web": False, "task": True}
    assert "scout" in told["pipeline"]
    assert theirs == {"scout": False, "web": False, "task": True}


def test_switches_need_one_agent_and_what_a_task_switches_on_by_itself_is_not_kept(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        kept = client.put("/ask/switches", json={"web": True}).json()["switches"]
        none = client.put("/ask/switches", json={"web": False, "task": False})
        alone = client.post("/ask", json={"task": "rain?", "web": False})
        usual = client.get("/ask/defaults").json()["switches"]

    assert kept == usual == {"scout": False, "web": True, "task": True}
    assert (none.status_code, none.json()["code"]) == (422, "no_agent")
    assert "scout" in alone.json()["pipeline"]


def test_what_was_read_can_be_sent_back(tmp_path: Path) -> None:
    preset = {
        "scope": {"link_depth": 0, "include_same_folder": True, "excluded_folders": ["Private"]},
        "rules": {"editable": "current", "can": ["add"]},
        "added": ["Garden.md"],
        "toggles": {"scout": False, "web": False, "task": True},
    }
    with chats.asking(tmp_path, tasks.answering().open) as client:
        choice = client.get("/ask/defaults").json()["choice"]
        done = client.post("/ask", json={**choice, **TASK})
        shown = [client.post("/ask/context", json={**choice, "note": "Rain.md"}).json()]
        shown += [client.post("/ask/context", json={"note": "Rain.md"}).json()]
        saved = client.put("/presets/Mine", json=choice_of_preset(preset)).json()["preset"]
        again = client.put("/presets/Mine", json=saved).json()["preset"]
        by_name = client.post("/ask/context", json={"note": "Rain.md", "preset": "Mine"}).json()
        by_shape = client.post("/ask/context", json={"note": "Rain.md", **choice_of_preset(saved)}).json()

    assert done.status_code == 200, done.text
    assert shown[0] == shown[1]
    assert saved == again == {"name": "Mine", **preset}
    assert by_name == by_shape
    assert [one["path"] for one in by_shape["notes"]] == ["Rain.md", "Garden.md"]


def choice_of_preset(preset: dict[str, Any]) -> dict[str, Any]:
    """Give a preset without its name, as a task takes it."""
    return {name: value for name, value in preset.items() if name != "name"}


def test_the_same_stands_in_an_object_or_beside_it_but_is_not_said_twice(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        inside = client.post("/ask/context", json={"note": "Rain.md", "scope": {"link_depth": 0}}).json()
        beside = client.post("/ask/context", json={"note": "Rain.md", "link_depth": 0}).json()
        both = client.post("/ask/context", json={"note": "Rain.md", "scope": {"link_depth": 0}, "link_depth": 0}).json()
        other = client.post("/ask/context", json={"note": "Rain.md", "scope": {"link_depth": 0}, "link_depth": 1})

    assert [one["path"] for one in inside["notes"]] == ["Rain.md"]
    assert inside == beside == both
    assert (other.status_code, other.json()["code"]) == (422, "bad_arguments")
    assert "said twice" in other.json()["error"]


@pytest.mark.parametrize("name", ["task_agent", "same_folder", "add"])
def test_a_thing_has_one_name(tmp_path: Path, name: str) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        found = client.post("/ask", json={**TASK, name: True})

    assert (found.status_code, found.json()["code"]) == (422, "bad_arguments")
    assert "toggles" in found.json()["hint"]
    assert "include_same_folder" in found.json()["hint"]


def test_a_question_waits_and_the_run_goes_on_with_the_answer(tmp_path: Path) -> None:
    cast = tasks.asking()
    with chats.asking(tmp_path, cast.open) as client:
        asked = client.post("/ask", json={**TASK, "scout": True}).json()
        (waits,) = client.get("/ask/waiting").json()["results"]
        done = client.post("/ask", json={"run_id": asked["run_id"], "answer": "North"}).json()
        left = client.get("/ask/waiting").json()["results"]
        again = client.post("/ask", json={"run_id": asked["run_id"], "answer": "South"})

    assert (asked["state"], asked["question"]) == (
        "asked",
        {"question": "Which garden?", "options": ["North", "South"]},
    )
    assert (waits["run_id"], waits["question"], waits["options"]) == (
        asked["run_id"],
        "Which garden?",
        ["North", "South"],
    )
    assert (waits["task"], waits["note"], waits["client"]) == ("rain?", "Rain.md", "http")
    assert (done["state"], done["run_id"], len(done["proposals"])) == ("complete", asked["run_id"], 1)
    assert "The person answers: North" in cast.prompts("scout")
    assert left == []
    assert (again.status_code, again.json()["code"]) == (404, "no_run")


def test_a_question_is_answered_after_the_server_was_started_again(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.asking().open) as client:
        session = client.post("/sessions", json={}).json()["session"]["id"]
        asked = client.post("/ask", json={**TASK, "scout": True, "session_id": session}).json()
    with chats.asking(tmp_path, tasks.answering(tasks.EDIT).open) as client:
        done = client.post("/ask", json={"run_id": asked["run_id"], "answer": "North"}).json()
        kept = client.get(f"/sessions/{session}").json()["messages"]

    assert done["state"] == "complete"
    assert [one["content"] for one in kept] == ["rain?", "Now it snows."]
    assert kept[1]["outcome"]["run_id"] == asked["run_id"]


def test_a_question_can_be_answered_again_where_the_model_failed(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.asking().open) as client:
        run_id = client.post("/ask", json={**TASK, "scout": True}).json()["run_id"]
    with protocol.serving(Reply(status=401)) as server:
        wanted = [names.parse_model_name(f"tiny@{server.base_url}")]
        patience = ModelTimeouts(retries=0)
        with chats.asking(tmp_path, lambda: usage.open_model(wanted, lambda _: "", patience)) as client:
            failed = client.post("/ask", json={"run_id": run_id, "answer": "North"})
    with chats.asking(tmp_path, tasks.answering().open) as client:
        done = client.post("/ask", json={"run_id": run_id, "answer": "North"})

    assert (failed.status_code, failed.json()["code"]) == (502, "model_key")
    assert (done.status_code, done.json()["state"]) == (200, "complete")


def test_a_session_keeps_the_turn_and_the_next_one_knows_it(tmp_path: Path) -> None:
    cast = tasks.answering(tasks.EDIT, tasks.ANSWER)
    with chats.asking(tmp_path, cast.open) as client:
        session = client.post("/sessions", json={}).json()["session"]["id"]
        for task in ("paint it white", "and now?"):
            _ = client.post("/ask", json={**TASK, "task": task, "session_id": session})
        listed = client.get("/sessions").json()["results"]

    assert [(one["id"], one["turns"]) for one in listed] == [(session, 2)]
    assert "paint it white" in cast.prompts("task")
    assert "1 could be made" in cast.prompts("task")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "bad_arguments"),
        ({"task": "  "}, 422, "bad_arguments"),
        ({"task": 5}, 422, "bad_arguments"),
        ({"task": "x" * 200_001}, 422, "bad_arguments"),
        ({**TASK, "linkDepth": 1}, 422, "bad_arguments"),
        ({**TASK, "link_depth": 4}, 422, "bad_arguments"),
        ({**TASK, "link_depth": True}, 422, "bad_arguments"),
        ({**TASK, "token_limit": 2_999}, 422, "bad_arguments"),
        ({**TASK, "scout": "yes"}, 422, "bad_arguments"),
        ({**TASK, "added": "Rain.md"}, 422, "bad_arguments"),
        ({**TASK, "added": [None]}, 422, "bad_arguments"),
        ({**TASK, "added": ["x"] * 1_001}, 422, "bad_arguments"),
        ({**TASK, "can": ["fly"]}, 422, "bad_arguments"),
        ({**TASK, "editable": "all"}, 422, "bad_arguments"),
        ({**TASK, "toggles": {"task": False}}, 422, "no_agent"),
        ({"run_id": "x"}, 422, "bad_arguments"),
        ({"run_id": "x", "answer": " "}, 422, "bad_arguments"),
        ({"task": "x", "answer": "North"}, 422, "bad_arguments"),
        ({"run_id": "nothing", "answer": "North"}, 404, "no_run"),
        ({**TASK, "preset": "Nothing"}, 404, "no_preset"),
        ({**TASK, "note": "Nothing.md"}, 404, "not_found"),
        ({**TASK, "note": "../../etc/passwd"}, 403, "outside_vault"),
        ({**TASK, "added": ["Nothing.md"]}, 404, "not_found"),
        ({**TASK, "session_id": "nobody"}, 404, "no_session"),
        ({**TASK, "vault": "other"}, 404, "no_vault"),
        ({**TASK, "model": "openai:gpt-5"}, 403, "model_not_allowed"),
        ({**TASK, "web": True, "toggles": {"task": False}}, 503, "web_off"),
        ([], 400, "not_an_object"),
    ],
)
@pytest.mark.parametrize("path", ["/ask", "/ask/stream"])
def test_what_cannot_be_done_is_refused_before_a_model_is_asked(
    tmp_path: Path,
    path: str,
    body: Any,  # noqa: ANN401 - anything
    status: int,
    code: str,
) -> None:
    cast = tasks.answering()
    with chats.asking(tmp_path, cast.open) as client:
        found = client.post(path, json=body)

    assert (found.status_code, found.json()["code"]) == (status, code)
    assert found.json()["success"] is False
    assert cast.asked == {}


def test_a_number_out_of_its_range_is_told_the_range(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        told = [client.post("/ask", json={**TASK, **wrong}).json() for wrong in ({"link_depth": 9}, {"token_limit": 9})]
        ranges = client.get("/ask/defaults").json()["ranges"]

    assert [one["hint"] for one in told] == ["give 0 to 3", "give 3,000 to 2,000,000"]
    assert (ranges["link_depth"], ranges["token_limit"]) == ([0, 3], [3_000, 2_000_000])


def test_without_a_model_the_owner_is_told_what_to_set(tmp_path: Path) -> None:
    with (
        apps.world(tmp_path) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as client,
    ):
        found = [client.post(path, json=TASK) for path in ("/ask", "/ask/stream")]
        usual = client.get("/ask/defaults").json()
        shown = client.post("/ask/context", json={"note": "Rain.md"})

    assert {(one.status_code, one.json()["code"]) for one in found} == {(503, "no_model")}
    assert "KNAP_MODEL" in found[0].json()["hint"]
    assert (usual["model"], usual["problems"]["model"]["code"]) == ("", "no_model")
    assert shown.status_code == 200


def test_a_model_that_fails_is_an_error_beside_what_there_is(tmp_path: Path) -> None:
    with protocol.serving(Reply(status=401)) as server:
        wanted = [names.parse_model_name(f"tiny@{server.base_url}")]
        patience = ModelTimeouts(retries=0)
        with chats.asking(tmp_path, lambda: usage.open_model(wanted, lambda _: "", patience)) as client:
            failed = client.post("/ask", json=TASK)

    assert (failed.status_code, failed.json()["code"]) == (502, "model_key")
    assert (failed.json()["success"], failed.json()["state"]) == (False, "failed")
    assert [one["path"] for one in failed.json()["context"]["notes"]] == ["Rain.md", "Garden.md"]


def test_the_web_is_off_unless_the_owner_allows_it(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        told = client.post("/ask", json={**TASK, "web": True}).json()
        usual = client.get("/ask/defaults").json()

    assert told["pipeline"]["web"]["problem"] == "web access is off"
    assert told["notices"] == ["the web wasn't searched: web access is off"]
    assert (usual["web"], usual["problems"]["web"]["code"]) == (False, "web_off")


def test_a_client_names_models_of_the_configuration_only_and_a_person_any(tmp_path: Path) -> None:
    with protocol.serving(Reply(parts=["{}"])) as server:
        name = f"tiny@{server.base_url}"
        with apps.world(tmp_path) as world:
            own = replace(world.hub.settings.model, name="scripted", fallbacks=(name,))
            world.hub.settings = replace(world.hub.settings, model=own)
            with world.client(None, chats.mounted(world.hub, world.stop, tasks.answering().open)) as client:
                told = [client.post("/ask", json={**TASK, "model": one}) for one in ("scripted", name, "x@http://h")]
            world.hub.settings = replace(world.hub.settings, model=ModelSettings())
            mount = chats.mounted(world.hub, world.stop, tasks.answering().open)
            with world.client(world.token("page"), mount) as page:
                theirs = page.post("/ask", json={**TASK, "model": name})

    assert [one.status_code for one in told] == [200, 200, 403]
    assert [one.json().get("model") for one in told[:2]] == ["scripted", name]
    assert theirs.json()["model"] == name
    assert len(server.asked) >= 2


def test_the_agents_of_a_client_do_no_more_than_it_may(tmp_path: Path) -> None:
    reader = ClientSettings(grants=replace(access.default_grants("http"), is_read_only=True))
    adder = ClientSettings(grants=replace(access.default_grants("http"), capabilities=frozenset({"add"})))
    told: list[dict[str, Any]] = []
    can: list[list[str]] = []
    for number, client in enumerate((reader, adder)):
        cast = tasks.answering(tasks.EDIT)
        with chats.asking(tmp_path / str(number), cast.open, client) as asks:
            told.append(asks.post("/ask", json={**TASK, "can": ["add", "delete", "create", "navigate"]}).json())
            can.append(asks.get("/ask/defaults").json()["can"])

    assert [one["proposals"] for one in told] == [[], []]
    assert [one["edit_results"]["failures"][0]["code"] for one in told] == ["capability", "capability"]
    assert can == [["navigate"], ["add"]]


def test_a_waiting_run_is_answered_from_the_command_line_and_its_session_keeps_the_turn(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = {**TASK, "scout": True}
    with apps.world(tmp_path) as world:
        with world.client(None, chats.mounted(world.hub, world.stop, tasks.asking().open)) as client:
            session = client.post("/sessions", json={}).json()["session"]["id"]
            run_id = client.post("/ask", json={**order, "session_id": session}).json()["run_id"]
        monkeypatch.setenv("VAULT_PATH", str(world.root))
        monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
        monkeypatch.setenv("KNAP_STATE_DIR", str(world.settings.state_dir))
        monkeypatch.chdir(own_home)
        with protocol.serving(Reply(parts=tasks.SELECT), Reply(parts=tasks.EDIT)) as server:
            code = main.run(["ask", "North", "--resume", run_id, "--model", f"tiny@{server.base_url}", "--json"])
        shown = json.loads(capsys.readouterr().out)
        with world.client(None, chats.mounted(world.hub, world.stop, tasks.asking().open)) as client:
            kept = client.get(f"/sessions/{session}").json()["messages"]

    assert (code, shown["state"], shown["run_id"]) == (0, "complete", run_id)
    assert [one["content"] for one in kept] == ["rain?", "Now it snows."]


def test_what_is_missing_is_told_before_a_vault_is_looked_for(tmp_path: Path) -> None:
    with chats.asking(tmp_path, tasks.answering().open) as client:
        told = client.post("/ask", json={"vault": "nowhere"})

    assert (told.status_code, told.json()["error"]) == (422, "'task' is needed")
