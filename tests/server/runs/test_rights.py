"""Whose runs are whose, what a run sees of what is hidden from its client, and how much it may take."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.runs import executor
from knapper.agents.runs.model import RunOrder
from knapper.app import Hub
from knapper.app.runs import open_runs
from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.config.sections import ModelSettings, RunSettings
from knapper.vault import access
from tests.agents.run_world import Brain
from tests.server import running
from tests.server.running import begun, done, heard
from tests.server.runs.test_runs import of_a_run

pytestmark = pytest.mark.timeout(60)
KEY = "k" * 43
READER = ClientSettings(grants=access.default_grants("reader", "named"), token_hash=hash_token(KEY))
NARROW = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))


def test_a_program_sees_its_own_runs_only_and_is_told_nothing_of_others(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(), READER) as (client, world):
        mine = done(client)
        other = world.as_(client, KEY)
        total = other("GET", "/runs").json()["total"]
        found = [other(verb, path.format(mine), json=body) for verb, path, body in of_a_run()]
        kept = client.get(f"/runs/{mine}").json()["state"]

    assert (total, kept) == (0, "complete")
    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, "no_run")}


def test_a_person_sees_the_runs_of_all_and_those_of_the_terminal(tmp_path: Path) -> None:
    settings = running.settings(tmp_path, READER)
    with Hub(settings) as hub, open_runs(hub) as tasks:
        engine = tasks.engine_of(Brain().open(), "scripted")
        typed = executor.create_run(engine, RunOrder(task="typed", code_mode=False))
        _ = asyncio.run(executor.carry_out_run(engine, typed.id, lambda _: None))
    with running.asking(tmp_path, Brain(), found=settings) as (client, world):
        program = done(client, "program")
        page = world.as_(client, world.tokens["page"])
        listed = page("GET", "/runs").json()["results"]
        shown = page("GET", f"/runs/{typed.id}").json()
        gone = page("DELETE", f"/runs/{program}")
        own = client.get("/runs").json()["total"]

    assert {(one["task"], one["client"]) for one in listed} == {("typed", "cli"), ("program", "http")}
    assert shown["answer"] == "answer of typed."
    assert (gone.status_code, own) == (200, 0)


@pytest.mark.parametrize(("hidden", "expected"), [((), 1), (("Private/",), 0)])
def test_a_person_from_whom_something_is_hidden_sees_no_run_that_may_have_read_it(
    tmp_path: Path, hidden: tuple[str, ...], expected: int
) -> None:
    page = ClientSettings(grants=access.default_grants("page"), hidden=hidden)
    with running.asking(tmp_path, Brain(), page) as (client, world):
        _ = done(client)
        found = world.as_(client, world.tokens["page"])("GET", "/runs").json()["total"]

    assert found == expected


def test_a_client_whose_rules_can_not_be_joined_any_more_hides_its_runs_and_nobody_elses(tmp_path: Path) -> None:
    agent = ClientSettings(grants=access.default_grants("agent"), read=("Alpha.md", "Beta.md"))
    with running.asking(tmp_path, Brain(), agent) as (client, world):
        _ = done(client, "program")
        page = world.as_(client, world.tokens["page"])
        theirs = page("POST", "/runs", json={"task": "person"}).json()["id"]
        while page("GET", f"/runs/{theirs}").json()["is_live"]:
            time.sleep(0.02)
    vault = replace(world.settings.vault, read=("*.md",))
    torn = replace(
        world.settings,
        choice=vault,
        clients=(agent, ClientSettings(grants=access.default_grants("http"), read=("Beta.md",))),
    )
    with running.asking(tmp_path, Brain(), found=torn) as (client, world):
        listed = world.as_(client, world.tokens["page"])("GET", "/runs")
        refused = client.post("/runs", json={"task": "T"})

    assert [one["task"] for one in listed.json()["results"]] == ["person"]
    assert (refused.status_code, refused.json()["code"]) == (503, "config_invalid")


def test_a_run_sees_no_more_than_the_client_that_began_it(tmp_path: Path) -> None:
    brain = Brain()
    with running.asking(tmp_path, brain, NARROW) as (client, world):
        mine = done(client, "The secret of alpha?")
        hidden = str(client.get(f"/runs/{mine}/nodes/root").json()) + str(brain.prompts)
        page = world.as_(client, world.tokens["page"])
        theirs = page("POST", "/runs", json={"task": "The secret of alpha?"}).json()["id"]
        _ = [one for one in heard(client, mine) if one.name == "run_done"]
        while page("GET", f"/runs/{theirs}").json()["is_live"]:
            time.sleep(0.02)
        seen = str(page("GET", f"/runs/{theirs}/nodes/root").json()["retrieval"]["sources"])

    assert "Private/Diary" not in hidden
    assert "The secret of alpha.\n" not in hidden
    assert "Private/Diary.md" in seen


def test_a_person_who_goes_on_with_a_programs_run_lets_it_see_no_more(tmp_path: Path) -> None:
    brain = Brain()
    with running.asking(tmp_path, brain, NARROW) as (client, world):
        mine = done(client, "The secret of alpha?")
        brain.prompts.clear()
        page = world.as_(client, world.tokens["page"])
        again = page("POST", f"/runs/{mine}/resume", json={"replay": "root"})
        _ = heard(client, mine)

    assert again.status_code == 202
    assert brain.prompts
    assert "Diary" not in str(brain.prompts)


def test_a_limit_may_be_lowered_by_all_and_raised_by_a_person_only(tmp_path: Path) -> None:
    found = running.settings(tmp_path, section=RunSettings(code_mode=False, nodes=10, tokens=100_000))
    with running.asking(tmp_path, Brain(), found=found) as (client, world):
        page = world.as_(client, world.tokens["page"])
        lower = client.post("/runs", json={"task": "T", "nodes": 2, "minutes": 0.5, "tokens": 50_000, "cents": 3})
        higher = [
            client.post("/runs", json={"task": "T", **more})
            for more in ({"nodes": 11}, {"tokens": 100_001}, {"tokens": 0}, {"minutes": 21}, {"depth": 4})
        ]
        person = page("POST", "/runs", json={"task": "T", "nodes": 100, "tokens": 0})
        _ = heard(client, lower.json()["id"])
        raised = client.post(f"/runs/{lower.json()['id']}/resume", json={"tokens": 100_001})
        within = client.post(f"/runs/{lower.json()['id']}/resume", json={"tokens": 100_000})

    limits = lower.json()["limits"]
    assert (limits["nodes"], limits["seconds"], limits["tokens"], limits["cents"]) == (2, 30, 50_000, 3)
    assert {(one.status_code, one.json()["code"]) for one in [*higher, raised]} == {(403, "over_limit")}
    assert (person.status_code, person.json()["limits"]["nodes"]) == (202, 100)
    assert within.status_code == 202


def test_what_the_owner_lowers_holds_for_a_programs_run_that_goes_on(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(answers={"T": " "})) as (client, _):
        run_id = done(client)
    lowered = running.settings(tmp_path, section=RunSettings(code_mode=False, nodes=5, minutes=1))
    with running.asking(tmp_path, Brain(), found=lowered) as (client, _):
        _ = client.post(f"/runs/{run_id}/resume")
        _ = heard(client, run_id)
        limits = client.get(f"/runs/{run_id}").json()["limits"]

    assert (limits["nodes"], limits["seconds"]) == (5, 60)


def test_a_program_may_name_the_models_of_the_configuration_only(tmp_path: Path) -> None:
    found = replace(running.settings(tmp_path), model=ModelSettings(name="ollama:qwen3", fallbacks=("ollama:small",)))
    with running.asking(tmp_path, Brain(), found=found) as (client, world):
        page = world.as_(client, world.tokens["page"])
        named = [client.post("/runs", json={"task": "T", "model": name}) for name in ("ollama:small", "ollama:other")]
        person = page("POST", "/runs", json={"task": "T", "model": "ollama:other"})

    assert [one.status_code for one in named] == [202, 403]
    assert named[1].json()["code"] == "model_not_allowed"
    assert person.status_code == 202


def test_a_program_does_not_answer_for_a_person(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(), retrieve=running.poor) as (client, world):
        run_id = begun(client)
        _ = heard(client, run_id)
        with Hub(world.settings) as hub, open_runs(hub) as tasks:
            point = tasks.checkpoints.ask(run_id, "root", "T", {})
            other = tasks.checkpoints.ask("r2", "root", "T", {})
        said = [client.post(f"/runs/{run_id}/checkpoints/{one.id}", json={"answer": "go on"}) for one in (point, other)]

    assert [(one.status_code, one.json()["code"]) for one in said] == [(403, "needs_person"), (404, "no_checkpoint")]


def test_a_client_that_only_reads_gets_no_notes_written(tmp_path: Path) -> None:
    reader = ClientSettings(grants=replace(access.default_grants("http"), is_read_only=True))
    with running.asking(tmp_path, Brain(), reader) as (client, _):
        run_id = done(client)
        found = client.post(f"/runs/{run_id}/export", json={"to": "A.md"})

    assert found.status_code == 403


def test_without_a_token_nothing_is_told(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain()) as (client, world):
        nobody = world.as_(client, "")
        found = {nobody(verb, path.format("x"), json=body).status_code for verb, path, body in of_a_run()}
        found.add(nobody("POST", "/runs", json={"task": "T"}).status_code)

    assert found == {401}
