"""`knap run` with a model on loopback."""

import asyncio
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.agents.runs.model import CheckpointEvent, NodeQuestion, RetrievedContext
from knapper.app import Hub
from knapper.app.runs import open_runs
from knapper.cli import main, runs, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from tests.agents import protocol, run_server
from tests.agents.protocol import Reply
from tests.agents.run_server import Served
from tests.agents.run_world import Brain, Part

pytestmark = pytest.mark.timeout(30)
"""Whole commands, one after the other, on a machine that may have much else to do."""
PLAN = {"T all": [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]}
NOTES = {"A.md": "# A\n\nAlpha grows tall.\n", "B.md": "# B\n\nBeta stays small.\n"}


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    for name, text in NOTES.items():
        (root / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("VAULT_PATH", str(root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.setenv("KNAP_RUNS_CODE_MODE", "off")
    monkeypatch.chdir(own_home)
    assert main.run(["index", "--quiet"]) == 0
    return root


def knap(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main.run(["run", *args])
    out, err = capsys.readouterr()
    return code, out, err


def told(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    return json.loads(knap(capsys, *args, "--json")[1])


def begun(capsys: pytest.CaptureFixture[str], server: Served, *more: str) -> str:
    return str(told(capsys, "T", "all", "--model", server.model, *more)["id"])


def test_a_task_is_carried_out_and_each_step_is_shown(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain = Brain(plans=PLAN, answers={"Alpha grows?": "Tall. [[A]] (lines 3-3)"})
    with run_server.serving(brain) as server:
        code, out, err = knap(capsys, "T all", "--model", server.model)

    assert code == ExitCode.OK
    assert out == "join of T all.\n"
    assert re.search(r"✓ 1  Alpha grows\?  score \d.\d\d, 1 citation, 15 tokens", err)
    assert "… root  joining: T all" in err
    assert "complete, 3 nodes, 50 + 25 tokens" in err
    assert vault.is_dir()


@pytest.mark.usefixtures("vault")
def test_the_exit_code_says_how_a_run_ended(capsys: pytest.CaptureFixture[str]) -> None:
    halves = {"Halves": [Part("Alpha tall?"), Part("Beta small?")]}
    with run_server.serving(Brain(plans={**PLAN, **halves}, answers={"Beta small?": " "})) as server:
        whole = knap(capsys, "T all", "--model", server.model)
        half = knap(capsys, "Halves", "--model", server.model)
        server.brain.answers["Nothing"] = " "
        none = knap(capsys, "Nothing", "--model", server.model, "--nodes", "1")

    assert whole[0] == ExitCode.OK
    assert half[0] == ExitCode.PARTIAL
    assert "**Beta small?**: the model's reply is empty" in half[1]
    assert none[0] == ExitCode.FAILED


@pytest.mark.usefixtures("vault")
def test_a_person_sees_that_the_model_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(Reply(status=500, headers={"retry-after-ms": "1"})) as server:
        model = f"tiny@{server.base_url}"
        _, _, err = knap(capsys, "T all", "--model", model)
        _, _, quiet_err = knap(capsys, "T all", "--model", model, "-q")
        _, out, json_err = knap(capsys, "T all", "--model", model, "--json")

    line = f'trying again in 1 s (1 of 2): {model}: its server answered with status 500; it says: "status 500"'
    assert f"! {line}\n" in err
    assert "trying again" not in quiet_err + json_err + out


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_a_run_without_an_answer_says_why_on_the_error_stream(
    capsys: pytest.CaptureFixture[str], quiet: tuple[str, ...]
) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        code, out, err = knap(capsys, "T all", "--model", server.model, "--minutes", "0.0001", *quiet)
        again = told(capsys, "T all", "--model", server.model, "--minutes", "0.0001")

    assert (code, out) == (ExitCode.FAILED, "")
    assert re.search(r"^error: the run \S+ has no answer: .*time", err, re.MULTILINE), err
    assert (again["success"], bool(again["reasons"])) == (False, True)


@pytest.mark.usefixtures("vault")
def test_a_run_that_waits_for_a_person_is_listed_with_that(capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id, other = begun(capsys, server), begun(capsys, server)
    with Hub(setup.read_settings(GlobalOptions())) as hub, open_runs(hub) as opened:
        point = opened.checkpoints.ask(run_id, "1", "Alpha grows?", {})
        node = opened.store.node(run_id, "1")
        asking = NodeQuestion(question="Where does Alpha grow?")
        found = replace(node.found or RetrievedContext(context=""), checkpoint=point.id)
        opened.store.put(run_id, replace(node, found=found, asking=asking))
    rows = {one["id"]: one["asks"] for one in told(capsys, "list")["results"]}
    lines = knap(capsys, "list")[1].splitlines()
    shown = knap(capsys, "status", run_id)[1]

    assert rows == {run_id: 1, other: 0}
    assert ["asks you" in line for line in lines if run_id in line or other in line] == [False, True]
    assert "? 1  Where does Alpha grow?" in shown
    assert [one["id"] for one in told(capsys, "status", run_id)["checkpoints"]] == [point.id]


@pytest.mark.usefixtures("vault")
def test_a_run_can_be_looked_at_from_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)
        listed = knap(capsys, "list")
        status = told(capsys, "status", run_id)
        tree = knap(capsys, "trace", "tree", run_id)[1]
        node = told(capsys, "trace", "node", run_id, "2")
        shown = knap(capsys, "trace", "node", run_id[:12], "1")[1]

    assert run_id in listed[1]
    assert (status["state"], status["answer"], status["node_count"]) == ("complete", "join of T all.", 3)
    assert [line.split()[1] for line in tree.splitlines()] == ["root", "1", "2"]
    assert node["hard"] == ["1"]
    assert node["retrieval"]["sources"]
    assert "attempt 1: direct\n" in shown
    assert "answer of Alpha grows?." in shown


@pytest.mark.usefixtures("vault")
def test_an_unknown_vault_is_told_before_anything_is_begun(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = knap(capsys, "T", "all", "--model", "tiny@http://127.0.0.1:9/v1", "--also", "nope")

    assert code == ExitCode.USAGE
    assert "there is no vault 'nope'" in err
    assert told(capsys, "list")["total"] == 0


@pytest.mark.usefixtures("vault")
def test_a_run_that_is_done_goes_on_without_a_word_to_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)
        server.asked.clear()
        code, out, _ = knap(capsys, "resume", run_id)

    assert code == ExitCode.OK
    assert out == "join of T all.\n"
    assert server.asked == []


def test_replay_asks_again_where_a_note_has_changed(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans={"T all": [Part("Alpha tall?"), Part("Beta small?")]})) as server:
        run_id = begun(capsys, server)
        (vault / "B.md").write_text("# B\n\nBeta has grown.\n", encoding="utf-8")
        server.asked.clear()
        code, _, err = knap(capsys, "resume", run_id, "--replay", "stale")

    assert code == ExitCode.OK, err
    assert server.asked == [("answer", "Beta small?")]


def test_an_answer_becomes_a_note_by_a_proposal_and_undo_takes_it_back(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)
    proposed = told(capsys, "export", run_id, "Runs/Answer.md")
    before = (vault / "Runs").exists()

    accepted = main.run(["edits", "accept", str(proposed["proposal_id"]), "--yes"])
    text = (vault / "Runs/Answer.md").read_text(encoding="utf-8")
    undone = main.run(["undo", "--run", run_id])

    assert (proposed["status"], before) == ("proposed", False)
    assert (accepted, undone) == (0, 0)
    assert f"run: {run_id}" in text
    assert "join of T all." in text
    assert not (vault / "Runs/Answer.md").exists()


def test_with_a_persons_word_it_is_written_at_once(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)

    written = told(capsys, "export", run_id, "Runs/Answer.md", "--yes")

    assert written["status"] == "applied"
    assert "join of T all." in (vault / "Runs/Answer.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("vault")
def test_in_a_folder_each_part_becomes_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)
    proposed = told(capsys, "export", run_id, "Runs/T")

    paths = {file["path"] for file in proposed["files"]}
    assert paths == {"Runs/T/Answer.md", "Runs/T/1 Alpha grows.md", "Runs/T/2 Beta stays.md"}


@pytest.mark.usefixtures("vault")
def test_strategies_are_listed_with_ones_own_which_win(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = own_home / "strategies"
    folder.mkdir()
    (folder / "cooking.md").write_text("# Cooking\n\nMaking dinner.\n\n## Skeleton\n\n- Shopping\n", encoding="utf-8")
    (folder / "research.md").write_text("Mine.\n", encoding="utf-8")
    with run_server.serving(Brain(plans=PLAN)) as server:
        code, _, _ = knap(capsys, "T all", "--strategy", "cooking", "--model", server.model)
    rows = told(capsys, "strategies")["results"]

    assert code == ExitCode.OK
    assert [row["name"] for row in rows] == ["software", "research", "analysis", "planning", "cooking"]
    assert (rows[1]["summary"], rows[1]["own"]) == ("Mine.", True)


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("status", "nothing"), ExitCode.USAGE, "no run 'nothing'"),
        (("T", "--strategy", "x", "--model", "tiny@http://127.0.0.1:9/v1"), ExitCode.USAGE, "no strategy 'x'"),
        (("T", "--depth", "99", "--model", "tiny@http://127.0.0.1:9/v1"), ExitCode.USAGE, "depth is 99"),
        (("T",), ExitCode.SETUP, "no model is set"),
    ],
)
def test_what_can_not_be_done_is_told(
    args: tuple[str, ...], code: ExitCode, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = knap(capsys, *args)

    assert found == code
    assert message in err


def test_a_person_answers_at_the_terminal_one_question_at_a_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("go on\nlook there\n"))
    points = [CheckpointEvent(node_id=one, question=f"{one}?", options=("go on", "skip")) for one in ("a", "b")]

    async def both() -> list[str]:
        person = runs.TerminalPrompt()
        return list(await asyncio.gather(*(person(point) for point in points)))

    assert asyncio.run(both()) == ["go on", "look there"]
    assert "? a?\n  (go on, skip, or in your own words): " in capsys.readouterr().err


def test_an_answer_given_elsewhere_counts_and_what_is_typed_then_answers_the_next_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    points = [CheckpointEvent(node_id=one, id=one, question=f"{one}?", options=("go on", "skip")) for one in ("a", "b")]

    async def elsewhere(point: CheckpointEvent) -> str:
        if point.node_id == "b":
            await asyncio.sleep(60)
        return "skip"

    async def both() -> list[str]:
        person = runs.TerminalPrompt(elsewhere)
        first = await person(points[0])
        _ = os.write(writing, b"look there\n")
        return [first, await person(points[1])]

    with os.fdopen(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        answers = asyncio.run(both())
        os.close(writing)

    assert answers == ["skip", "look there"]
    assert "answered elsewhere: skip" in capsys.readouterr().err


@pytest.mark.usefixtures("vault")
def test_options_of_all_commands_may_stand_before_a_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(knap(capsys, "--json", "list")[1])["total"] == 0


@pytest.mark.usefixtures("vault")
def test_a_run_that_does_not_go_on_can_not_be_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    with run_server.serving(Brain(plans=PLAN)) as server:
        run_id = begun(capsys, server)

    code, out, _ = knap(capsys, "cancel", run_id)

    assert code == ExitCode.NOTHING
    assert "doesn't go on: complete" in out
    assert knap(capsys, "delete", run_id)[0] == ExitCode.OK
