"""Runs over HTTP: what is begun, shown, gone on with, exported and forgotten, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.codemode.sandbox import machine_code
from knapper.config.sections import ScriptSettings
from tests.agents.run_world import Brain, Part
from tests.server import apps, chats, running
from tests.server.running import PLAN, begun, done, heard

pytestmark = pytest.mark.timeout(60)


def test_a_run_is_begun_at_once_and_shown_with_its_nodes_when_it_has_ended(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, answers={"Alpha grows?": "Tall. [[Alpha]] (lines 3-3)"})
    with running.asking(tmp_path, brain) as (client, _):
        made = client.post("/runs", json={"task": "T", "strategy": "research", "depth": 2})
        run_id = made.json()["id"]
        end = heard(client, run_id)[-1]
        shown = client.get(f"/runs/{run_id}").json()
        node = client.get(f"/runs/{run_id}/nodes/1").json()
        listed = client.get("/runs").json()

    assert (made.status_code, made.json()["is_live"], made.json()["client"]) == (202, True, "http")
    assert (end.name, end.data["state"], end.data["answer"]) == ("run_done", "complete", "join of T.")
    assert (shown["state"], shown["answer"], shown["node_count"]) == ("complete", "join of T.", 3)
    assert (shown["is_live"], shown["checkpoints"], shown["limits"]["depth"]) == (False, [], 2)
    assert [one["id"] for one in shown["nodes"]] == ["root", "1", "2"]
    assert node["success"] is True
    assert [one["path"] for one in node["citations"]] == ["Alpha.md"]
    assert node["retrieval"]["sources"]
    assert ([one["id"] for one in listed["results"]], listed["total"]) == ([run_id], 1)


def test_the_notes_that_a_run_used_are_listed_by_what_they_were_to_it(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, answers={"Alpha grows?": "Tall. [[Alpha]] (lines 3-3)"})
    with running.asking(tmp_path, brain) as (client, _):
        run_id = done(client)
        told = client.get(f"/runs/{run_id}/notes").json()
        missing = client.get("/runs/nowhere/notes")

    uses = [(one["path"], one["use"]) for one in told["notes"]]
    assert (told["id"], uses[0]) == (run_id, ("Alpha.md", "cited"))
    assert ("Beta.md", "found") in uses
    assert len({path for path, _ in uses}) == len(uses)
    assert {one["vault"] for one in told["notes"]} == {""}
    assert told["notes"][0]["nodes"] == ["1"]
    assert missing.status_code == 404


def test_runs_are_listed_a_page_at_a_time_the_last_first(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain()) as (client, _):
        ids = [done(client, name) for name in ("one", "two", "three")]
        page = client.get("/runs?limit=1&offset=1").json()

    assert [one["task"] for one in page["results"]] == ["two"]
    assert (page["total"], page["limit"], page["offset"]) == (3, 1, 1)
    assert len(set(ids)) == 3


def test_two_runs_go_on_side_by_side(tmp_path: Path) -> None:
    gate = running.Gate(task="slow")
    with running.asking(tmp_path, Brain(before=gate)) as (client, _):
        slow = begun(client, "slow")
        assert gate.reached.wait(30)
        quick = done(client, "quick")
        states = {one["task"]: one["state"] for one in client.get("/runs").json()["results"]}
        gate.opened.set()
        end = heard(client, slow)[-1]

    assert states == {"slow": "running", "quick": "complete"}
    assert (end.data["state"], end.data["run_id"]) == ("complete", slow)
    assert quick != slow


def test_no_more_runs_go_on_at_once_than_the_server_bears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knapper.server.http.runs.MOST_RUNS", 1)
    gate = running.Gate(task="slow")
    with running.asking(tmp_path, Brain(before=gate)) as (client, _):
        slow = begun(client, "slow")
        assert gate.reached.wait(30)
        refused = client.post("/runs", json={"task": "T"})
        gate.opened.set()
        _ = heard(client, slow)
        again = client.post("/runs", json={"task": "T"})

    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_runs")
    assert again.status_code == 202


def test_a_run_that_goes_on_pays_for_nothing_twice(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN, answers={"Beta stays?": " "})
    with running.asking(tmp_path, brain) as (client, _):
        run_id = done(client)
        first = client.get(f"/runs/{run_id}").json()["state"]
        brain.asked.clear()
        brain.answers["Beta stays?"] = "Small."
        went_on = client.post(f"/runs/{run_id}/resume", json={"tokens": 500_000})
        end = heard(client, run_id)[-1]

    assert first == "partial"
    assert (went_on.status_code, went_on.json()["id"]) == (202, run_id)
    assert end.data["state"] == "complete"
    assert brain.asked == [("answer", "Beta stays?"), ("join", "T")]


def test_what_read_notes_that_have_changed_is_told_and_done_again(tmp_path: Path) -> None:
    brain = Brain(plans={"T": [Part("Alpha tall?"), Part("Beta small?")]})
    with running.asking(tmp_path, brain) as (client, world):
        run_id = done(client)
        before = client.get(f"/runs/{run_id}/stale").json()
        (world.root / "Beta.md").write_text("# Beta\n\nBeta has grown.\n", encoding="utf-8")
        after = client.get(f"/runs/{run_id}/stale").json()
        brain.asked.clear()
        _ = client.post(f"/runs/{run_id}/resume", json={"replay": "stale"})
        _ = heard(client, run_id)

    assert before["stale"] == {}
    assert after["stale"] == {"2": ["Beta.md"]}
    assert ("answer", "Beta small?") in brain.asked
    assert ("answer", "Alpha tall?") not in brain.asked


def test_a_node_is_done_again_with_all_below_it(tmp_path: Path) -> None:
    brain = Brain(plans=PLAN)
    with running.asking(tmp_path, brain) as (client, _):
        run_id = done(client)
        brain.asked.clear()
        unknown = client.post(f"/runs/{run_id}/resume", json={"replay": "9"})
        _ = client.post(f"/runs/{run_id}/resume", json={"replay": "2"})
        _ = heard(client, run_id)

    assert (unknown.status_code, unknown.json()["code"]) == (404, "no_node")
    assert ("answer", "Beta stays?") in brain.asked
    assert ("answer", "Alpha grows?") not in brain.asked


def test_an_answer_becomes_a_proposal_of_one_note_or_of_a_folder(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(plans=PLAN), who="page") as (client, world):
        run_id = done(client)
        note = client.post(f"/runs/{run_id}/export", json={"to": "Runs/Answer.md"}).json()
        folder = client.post(f"/runs/{run_id}/export", json={"to": "Runs/T"}).json()
        outside = client.post(f"/runs/{run_id}/export", json={"to": "../Answer.md"})
        waiting = client.get(f"/proposals/{note['proposal_id']}")
        written = (world.root / "Runs").exists()

    assert (note["status"], folder["status"], waiting.status_code, written) == ("proposed", "proposed", 200, False)
    assert {one["path"] for one in folder["files"]} >= {"Runs/T/Answer.md", "Runs/T/1 Alpha grows.md"}
    assert outside.status_code in {403, 422}


def test_a_run_without_an_answer_is_not_exported(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(answers={"T": " "})) as (client, _):
        run_id = done(client)
        found = client.post(f"/runs/{run_id}/export", json={"to": "A.md"})

    assert (found.status_code, found.json()["code"]) == (422, "run_unanswered")


def test_a_run_that_is_forgotten_is_gone_and_one_that_goes_on_is_not_forgotten(tmp_path: Path) -> None:
    gate = running.Gate(task="slow")
    with running.asking(tmp_path, Brain(before=gate)) as (client, _):
        slow, quick = begun(client, "slow"), done(client, "quick")
        assert gate.reached.wait(30)
        busy = [client.delete(f"/runs/{slow}"), client.post(f"/runs/{slow}/resume")]
        gone = client.delete(f"/runs/{quick}")
        after = client.get(f"/runs/{quick}")
        gate.opened.set()
        _ = heard(client, slow)

    assert {(one.status_code, one.json()["code"]) for one in busy} == {(409, "run_busy")}
    assert gone.json() == {"success": True, "deleted": quick}
    assert (after.status_code, after.json()["code"]) == (404, "no_run")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "bad_arguments"),
        ({"task": None}, 422, "bad_arguments"),
        ({"task": ["T"]}, 422, "bad_arguments"),
        ({"task": "  "}, 422, "bad_arguments"),
        ({"task": "x" * 50_001}, 422, "bad_arguments"),
        ({"task": "T", "Strategy": "x"}, 422, "bad_arguments"),
        ({"task": "T", "strategy": "../../etc/passwd"}, 404, "no_strategy"),
        ({"task": "T", "code_mode": "yes"}, 422, "bad_arguments"),
        ({"task": "T", "profile": "root"}, 422, "bad_arguments"),
        ({"task": "T", "nodes": 0}, 422, "bad_arguments"),
        ({"task": "T", "depth": -1}, 422, "bad_arguments"),
        ({"task": "T", "depth": True}, 422, "bad_arguments"),
        ({"task": "T", "minutes": "20"}, 422, "bad_arguments"),
        ({"task": "T", "minutes": 0}, 422, "bad_arguments"),
        ({"task": "T", "tokens": 1.5}, 422, "bad_arguments"),
        ({"task": "T", "tokens": 10**30}, 422, "bad_arguments"),
        ({"task": "T", "vault": "other"}, 404, "no_vault"),
        ({"task": "T", "model": "x@http://127.0.0.1:9/v1"}, 403, "model_not_allowed"),
        ({"task": "T", "profile": "local"}, 403, "profile_refused"),
        ({"task": "T", "profile": "extended"}, 403, "profile_refused"),
        ([], 400, "not_an_object"),
    ],
)
def test_what_can_not_be_run_is_refused_and_nothing_is_asked(
    tmp_path: Path,
    body: Any,  # noqa: ANN401 - anything
    status: int,
    code: str,
) -> None:
    brain = Brain()
    with running.asking(tmp_path, brain) as (client, _):
        found = client.post("/runs", json=body)
        total = client.get("/runs").json()["total"]

    assert (found.status_code, found.json()["code"]) == (status, code)
    assert (total, brain.asked) == (0, [])


@pytest.mark.parametrize("name", ["nobody", "r", "%00", "..%5Cx", "'", "%25"])
def test_an_unknown_run_is_not_found_whatever_is_asked_of_it(tmp_path: Path, name: str) -> None:
    with running.asking(tmp_path, Brain(), who="page") as (client, _):
        _ = done(client), done(client)
        found = [client.request(verb, path.format(name), json=body) for verb, path, body in of_a_run()]

    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, "no_run")}


def of_a_run() -> list[tuple[str, str, dict[str, str] | None]]:
    """List all that can be asked of a run."""
    return [
        ("GET", "/runs/{}", None),
        ("GET", "/runs/{}/nodes/root", None),
        ("GET", "/runs/{}/events", None),
        ("GET", "/runs/{}/notes", None),
        ("GET", "/runs/{}/stale", None),
        ("POST", "/runs/{}/resume", {}),
        ("POST", "/runs/{}/cancel", {}),
        ("POST", "/runs/{}/export", {"to": "A.md"}),
        ("POST", "/runs/{}/checkpoints/x", {"answer": "go on"}),
        ("DELETE", "/runs/{}", None),
    ]


def test_a_few_first_characters_of_an_id_are_not_enough(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain()) as (client, _):
        run_id = done(client)
        found = client.get(f"/runs/{run_id[:-1]}")

    assert (found.status_code, found.json()["code"]) == (404, "no_run")


def test_without_a_model_the_owner_is_told_what_to_set_and_runs_can_be_looked_at(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain()) as (client, _):
        run_id = done(client)
    with (
        apps.world(tmp_path, notes=running.NOTES) as world,
        world.client(None, chats.jobs(world.hub, world.stop)) as bare,
    ):
        begin = bare.post("/runs", json={"task": "T", "code_mode": False})
        options = bare.get("/runs/options").json()
        shown = [bare.get(f"/runs/{run_id}"), bare.get(f"/runs/{run_id}/stale"), bare.get(f"/runs/{run_id}/events")]

    assert (begin.status_code, begin.json()["code"]) == (503, "no_model")
    assert "KNAP_MODEL" in begin.json()["hint"]
    assert options["model"] is None
    assert "KNAP_MODEL" in options["model_hint"]
    assert {one.status_code for one in shown} == {200}


def test_without_a_sandbox_scripts_are_refused_and_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "STAMP_FILE", "nothing.stamp")
    with running.asking(tmp_path, Brain()) as (client, _):
        refused = client.post("/runs", json={"task": "T", "code_mode": True})
        options = client.get("/runs/options").json()
        end = heard(client, begun(client, code_mode=False))[-1]

    assert (refused.status_code, refused.json()["code"]) == (503, "no_sandbox")
    assert options["sandbox_ready"] is None
    assert "interpreter" in options["sandbox_hint"]
    assert end.data["state"] == "complete"


def test_options_say_what_a_run_may_be(tmp_path: Path) -> None:
    found = replace(running.settings(tmp_path), scripts=ScriptSettings(fs_read=(str(tmp_path),)))
    with running.asking(tmp_path, Brain(), found=found) as (client, _):
        told = client.get("/runs/options").json()
        local = client.post("/runs", json={"task": "T", "profile": "local"})

    assert {"software", "research", "analysis", "planning"} == {one["name"] for one in told["strategies"]}
    assert (told["strategy"], told["code_mode"], told["model"]) == ("auto", False, "scripted")
    assert told["profiles"] == ["strict", "local"]
    assert told["limits"] == {"depth": 3, "nodes": 50, "minutes": 20, "tokens": 1_000_000, "cents": 0}
    assert told["ranges"]["nodes"] == {"least": 1, "most": 50}
    assert local.status_code == 202
