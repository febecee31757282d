"""Runs over HTTP that look through other vaults, and who sees them."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.config import ClientSettings, Settings, Vault
from knapper.config.sections import RunSettings
from knapper.vault import access
from tests.agents.run_world import Brain
from tests.index import worlds
from tests.server import running
from tests.server.running import done

pytestmark = pytest.mark.timeout(60)
FENCE = {"Fence.md": "# Fence\n\nThe fence costs 900 crowns.\n"}
CITED = "900 crowns. [[work:Fence]] (lines 3-3)"


def settings(base: Path, *clients: ClientSettings, hidden: Sequence[str] = ()) -> Settings:
    made = running.settings(base, *clients)
    work = Vault(name="work", path=worlds.fill(base / "work", FENCE).resolve(), hidden=tuple(hidden))
    return replace(made, vaults=(made.vault, work), runs=RunSettings(code_mode=False))


def test_a_run_looks_through_the_other_vaults_that_it_is_told_of(tmp_path: Path) -> None:
    brain = Brain(answers={"What does the fence cost?": CITED})
    with running.asking(tmp_path, brain, found=settings(tmp_path)) as (client, _):
        run_id = done(client, "What does the fence cost?", also=["work", "work"])
        shown = client.get(f"/runs/{run_id}").json()

    assert (shown["also"], shown["removed"]) == (["work"], [])
    assert [(one["vault"], one["path"]) for one in shown["citations"]] == [("work", "Fence.md")]


@pytest.mark.parametrize(
    ("also", "status", "code"),
    [(["nowhere"], 404, "no_vault"), ("work", 422, "bad_arguments"), ([3], 422, "bad_arguments")],
)
def test_a_vault_that_isnt_there_is_refused_before_anything_is_asked(
    tmp_path: Path, also: object, status: int, code: str
) -> None:
    brain = Brain()
    with running.asking(tmp_path, brain, found=settings(tmp_path)) as (client, _):
        refused = client.post("/runs", json={"task": "T", "also": also})
        total = client.get("/runs").json()["total"]

    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert (total, brain.asked) == (0, [])


@pytest.mark.parametrize(("also", "expected"), [((), 1), (("work",), 0)])
def test_a_person_sees_no_run_that_may_have_read_what_another_vault_hides_from_it(
    tmp_path: Path, also: Sequence[str], expected: int
) -> None:
    found = settings(tmp_path)
    page = ClientSettings(grants=access.default_grants("page"), read=("v.md", "Alpha.md", "Beta.md"))
    with running.asking(tmp_path, Brain(), found=found) as (client, _):
        _ = done(client, also=[*also])
    own = replace(found.vault, read=("v.md", "Alpha.md", "Beta.md"))
    torn = replace(found, choice=own, vaults=(own, found.vaults[1]), clients=(page,))
    with running.asking(tmp_path, Brain(), found=torn) as (client, world):
        listed = world.as_(client, world.tokens["page"])("GET", "/runs").json()["total"]

    assert listed == expected


def test_the_list_tells_which_runs_ask_a_person_something(tmp_path: Path) -> None:
    with running.asking(tmp_path, Brain(), retrieve=running.poor, who="page") as (client, _):
        made = client.post("/runs", json={"task": "T", "depth": 1}).json()["id"]
        while not (points := client.get(f"/runs/{made}").json()["checkpoints"]):
            time.sleep(0.02)
        asking = client.get("/runs").json()["results"]
        _ = client.post(f"/runs/{made}/checkpoints/{points[0]['id']}", json={"answer": "go on"})
        _ = running.heard(client, made)
        after = client.get("/runs").json()["results"]

    assert [(one["id"], one["asks"]) for one in asking] == [(made, 1)]
    assert [(one["id"], one["asks"]) for one in after] == [(made, 0)]
