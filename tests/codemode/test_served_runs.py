"""Runs in Code Mode over HTTP: what is hidden from a client is hidden from its scripts, and no cache gives it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.app.hub import ScriptRuntime
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import ClientSettings
from knapper.config.sections import RunSettings
from knapper.vault import access
from tests.agents.run_world import Brain, Part
from tests.codemode.askers import fenced, searching
from tests.server import running
from tests.server.running import done, heard

LONG = "The larch boards are twenty millimetres thick and stand on stone feet. " * 16
NOTES = {
    "Fence.md": f"# Fence\n\nWe decided on a green larch fence. The neighbour pays half of the cost.\n\n{LONG}",
    "Private/Costs.md": f"# Costs\n\nThe green larch fence costs 2,345 euros; the neighbour pays half.\n\n{LONG}",
}
TASK = "Which larch fence did we decide on, and what does the neighbour pay of its cost?"
PEEK = fenced(
    "found = [hit for hit in obsidian.search('larch fence neighbour cost', limit=10)]\n"
    "texts = [hit['content'] for hit in found] + [obsidian.read_note('Private/Costs.md')]\n"
    "names = obsidian.list_notes('Private') + obsidian.list_notes()\n"
    "__result__ = {'context': '\\n\\n'.join(texts) + ' '.join(names), 'confidence': 0.9,\n"
    "  'citations': [{'path': hit['path'], 'text': hit['content'][:40]} for hit in found]}\n"
)


ABSENT = "Explain quaternion interpolation for spacecraft attitude control"
PLAN = {"T": [Part(ABSENT, impact="security"), Part(TASK)]}


@pytest.fixture(autouse=True)
def _shared(sandbox: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server use the sandbox that these tests share."""

    def shared(_: ScriptRuntime) -> WorkerPool:
        return sandbox

    def kept(_: ScriptRuntime) -> None:
        """Leave it open for others."""

    monkeypatch.setattr(ScriptRuntime, "sandbox", shared)
    monkeypatch.setattr(ScriptRuntime, "close", kept)


def test_what_is_hidden_from_the_client_is_hidden_from_its_scripts_and_no_cache_gives_it(tmp_path: Path) -> None:
    narrow = ClientSettings(grants=access.default_grants("http"), hidden=("Private/",))
    found = replace(running.settings(tmp_path, narrow, notes=NOTES, section=RunSettings()))
    brain = Brain(scripts={TASK: [PEEK]})
    with running.asking(tmp_path, brain, found=found) as (client, world):
        page = world.as_(client, world.tokens["page"])
        theirs = page("POST", "/runs", json={"task": TASK}).json()["id"]
        while page("GET", f"/runs/{theirs}").json()["is_live"]:
            time.sleep(0.02)
        seen = str(brain.prompts["answer", TASK]) + str(page("GET", f"/runs/{theirs}/nodes/root").json())
        brain.prompts.clear()
        mine = done(client, TASK)
        events = str([one.data for one in heard(client, mine)])
        told = str(brain.prompts) + str(client.get(f"/runs/{mine}/nodes/root").json()) + events

    assert "2,345" in seen
    assert "green larch" in told
    assert "2,345" not in told
    assert "Private" not in told.replace("read_note('Private", "").replace("list_notes('Private", "")


@pytest.mark.parametrize(
    ("word", "state", "expected"),
    [
        ("Use slerp between unit quaternions.", "done", "Use slerp between unit quaternions."),
        ("Fence.md", "done", "green larch fence"),
        ("skip", "failed", ""),
    ],
)
def test_a_question_of_code_mode_is_answered_over_http(tmp_path: Path, word: str, state: str, expected: str) -> None:
    found = running.settings(tmp_path, notes=NOTES, section=RunSettings())
    brain = Brain(plans=PLAN, scripts={ABSENT: [searching("larch")], TASK: [PEEK]})
    with running.asking(tmp_path, brain, found=found, who="page") as (page, _):
        run_id = running.begun(page)
        while not (waiting := page.get(f"/runs/{run_id}").json()["checkpoints"]):
            time.sleep(0.02)
        point = waiting[0]
        kept = page.post(f"/runs/{run_id}/checkpoints/{point['id']}", json={"answer": word})
        _ = heard(page, run_id)
        node = page.get(f"/runs/{run_id}/nodes/1").json()
        left = page.get(f"/runs/{run_id}").json()["checkpoints"]

    assert (point["node_id"], point["options"], kept.status_code) == ("1", ["go on", "skip"], 200)
    assert (node["state"], node["checkpoint"]["unattended"], left) == (state, False, [])
    assert expected in str(brain.prompts.get(("answer", ABSENT), ""))
