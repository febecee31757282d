"""Blocks in notes over HTTP: drawn, listed, accepted and rejected, by persons alone."""

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.changes.drafts import EditText
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import WorkerThreads
from knapper.vault import access
from tests.server import apps, contracts
from tests.server.apps import World

NOTE = "# Plan\n\nOne.\n\nTwo.\n\nThree.\n"
NOTES = {"Plan.md": NOTE, "Private/Diary.md": NOTE}
FOREIGN = '```ai-edit\n{"id":"abc123","type":"replace","before":"Two.","after":"$$ $1 `x`"}\n```\n#ai_edit\n'


def mounted(world: World) -> Mount:
    return browsing.mount_blocks(world.hub, WorkerThreads(2))


@contextlib.contextmanager
def person(base: Path, *clients: ClientSettings) -> Generator[tuple[World, TestClient]]:
    """Give a vault and a person's client of its server."""
    with apps.world(base, *clients, notes=NOTES) as world, world.client(world.token("page"), mounted(world)) as client:
        yield world, client


def propose(world: World, path: str = "Plan.md") -> str:
    """Let changes of two places of a note wait; gives the proposal's id."""
    options = SubmitOptions(propose=True)
    context = world.hub.context(client="agent", submit_options=options)
    requests = [EditText(path=path, old="One.", new="1."), EditText(path=path, old="Three.", new="3.")]
    return context.writer.submit(requests, options).proposal_id


def ids(client: TestClient, path: str = "Plan.md") -> list[str]:
    return [row["id"] for row in client.get("/blocks", params={"path": path}).json()["results"]]


def test_a_drawn_proposal_stands_in_its_note_and_names_the_block_of_each_hunk(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        name = propose(world)
        before = client.get(f"/proposals/{name}").json()["files"][0]["hunks"]
        drawn = client.post(f"/proposals/{name}/draw").json()
        after = client.get(f"/proposals/{name}").json()["files"][0]["hunks"]
        listed: dict[str, Any] = client.get("/blocks", params={"path": "Plan.md"}).json()
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert (drawn["status"], drawn["proposal_id"], drawn["path"]) == ("applied", name, "Plan.md")
    assert text.count("```ai-edit") == 2
    assert [hunk.get("block") for hunk in before] == [None, None]
    assert [hunk["block"] for hunk in after] == [row["id"] for row in listed["results"]]
    assert [(row["before"], row["after"]) for row in listed["results"]] == [("One.\n", "1.\n"), ("Three.\n", "3.\n")]
    assert (listed["path"], listed["total"]) == ("Plan.md", 2)


def test_one_block_is_accepted_and_the_other_rejected_to_the_byte(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        name = propose(world)
        client.post(f"/proposals/{name}/draw")
        one, other = ids(client)
        accepted = client.post("/blocks/accept", json={"path": "Plan.md", "ids": [one]})
        rejected = client.post("/blocks/reject", json={"path": "Plan.md", "ids": [other]})
        proposal = client.get(f"/proposals/{name}").json()
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert (accepted.json()["status"], accepted.json()["proposal_id"]) == ("applied", name)
    assert rejected.json()["status"] == "applied"
    assert text == NOTE.replace("One.", "1.")
    assert [hunk["state"] for hunk in proposal["files"][0]["hunks"]] == ["accepted", "rejected"]
    assert all("block" not in hunk for hunk in proposal["files"][0]["hunks"])


def test_a_block_of_another_program_is_decided_by_its_id(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        (world.root / "Plan.md").write_text(NOTE.replace("Two.\n", FOREIGN), encoding="utf-8")
        found = ids(client)
        done = client.post("/blocks/accept", json={"path": "Plan.md", "ids": found})
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert found == ["abc123"]
    assert done.json()["status"] == "applied"
    assert text == NOTE.replace("Two.", "$$ $1 `x`")


def test_all_blocks_of_a_note_are_decided_at_once(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        client.post(f"/proposals/{propose(world)}/draw")
        done = client.post("/blocks/reject", json={"path": "Plan.md", "ids": ["all"]})
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert (done.json()["status"], text) == ("applied", NOTE)


def test_a_dry_run_tells_and_changes_nothing(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        name = propose(world)
        planned = client.post(f"/proposals/{name}/draw", json={"dry_run": True}).json()
        undrawn = (world.root / "Plan.md").read_text(encoding="utf-8")
        client.post(f"/proposals/{name}/draw")
        kept = client.post("/blocks/accept", json={"path": "Plan.md", "ids": ["all"], "dry_run": True}).json()

        assert (planned["status"], undrawn, kept["status"]) == ("planned", NOTE, "planned")
        assert len(ids(client)) == 2


def test_a_note_that_is_not_the_listed_one_any_more_is_left_alone(tmp_path: Path) -> None:
    swapped = FOREIGN.replace("$$ $1 `x`", "evil")
    with person(tmp_path) as (world, client):
        (world.root / "Plan.md").write_text(NOTE.replace("Two.\n", FOREIGN), encoding="utf-8")
        listed = client.get("/blocks", params={"path": "Plan.md"}).json()
        (world.root / "Plan.md").write_text(NOTE.replace("Two.\n", swapped), encoding="utf-8")
        asked = {"path": "Plan.md", "ids": ["abc123"], "hash": listed["hash"]}
        refused = client.post("/blocks/accept", json=asked)
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert (refused.status_code, refused.json()["code"]) == (409, "stale")
    assert text == NOTE.replace("Two.\n", swapped)


@pytest.mark.parametrize("path", ["/blocks/accept", "/blocks/reject", "/proposals/{name}/draw"])
def test_a_programs_token_puts_no_block_into_a_note_and_takes_none_out(tmp_path: Path, path: str) -> None:
    with apps.world(tmp_path, notes=NOTES) as world:
        name = propose(world)
        with world.client(world.token("page"), mounted(world)) as client:
            if "draw" not in path:
                client.post(f"/proposals/{name}/draw")
        before = (world.root / "Plan.md").read_bytes()
        body = {} if "draw" in path else {"path": "Plan.md", "ids": ["all"]}
        with world.client(None, mounted(world)) as client:
            refused = client.post(path.format(name=name), json=body)

        assert (refused.status_code, refused.json()["code"]) == (403, "needs_person")
        assert (world.root / "Plan.md").read_bytes() == before


def test_a_person_who_may_not_see_a_note_learns_nothing_of_its_blocks(tmp_path: Path) -> None:
    guest = ClientSettings(grants=access.default_grants("page"), hidden=("Private/",))
    with person(tmp_path, guest) as (world, client):
        name = propose(world, "Private/Diary.md")
        before = (world.root / "Private/Diary.md").read_bytes()
        answers = [
            client.post(f"/proposals/{name}/draw"),
            client.get("/blocks", params={"path": "Private/Diary.md"}),
            client.post("/blocks/accept", json={"path": "Private/Diary.md", "ids": ["all"]}),
        ]
        nowhere = client.post("/proposals/0-0/draw")

        assert [each.status_code for each in answers] == [404, 404, 404]
        assert "Three" not in " ".join(each.text for each in answers)
        assert answers[0].json()["code"] == nowhere.json()["code"]
        assert (world.root / "Private/Diary.md").read_bytes() == before


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"path": "Plan.md", "ids": []}, 422, "bad_input"),
        ({"path": "Plan.md", "ids": ["all", "abc"]}, 422, "bad_input"),
        ({"path": "Plan.md", "ids": ["abc"]}, 404, "block_not_found"),
        ({"path": "Plan.md", "ids": ["all"]}, 404, "block_not_found"),
        ({"path": "Gone.md", "ids": ["abc"]}, 404, "not_found"),
        ({"path": "../../etc/passwd", "ids": ["all"]}, 403, None),
        ({"path": "Plan.md"}, 422, "bad_arguments"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_is_guessed(
    tmp_path: Path, body: dict[str, object], status: int, code: str | None
) -> None:
    with person(tmp_path) as (world, client):
        refused = client.post("/blocks/accept", json=body)

        assert refused.status_code == status
        assert code is None or refused.json()["code"] == code
        assert (world.root / "Plan.md").read_text(encoding="utf-8") == NOTE


def test_a_block_that_was_taken_out_by_hand_is_no_hunks_block_any_more(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        name = propose(world)
        client.post(f"/proposals/{name}/draw")
        (world.root / "Plan.md").write_text("other\n", encoding="utf-8")
        hunks = client.get(f"/proposals/{name}").json()["files"][0]["hunks"]

    assert [hunk.get("block") for hunk in hunks] == [None, None]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    paths = {"/blocks", "/blocks/accept", "/blocks/reject", "/proposals/{proposal_id}/draw"}
    with person(tmp_path) as (world, client):
        name = propose(world)
        client.post(f"/proposals/{name}/draw")
        contract = contracts.of_app(client.app, world.token("page"), paths, {"proposal_id": name})
        found = contracts.broken_words(contract, mode)

        assert paths <= set(client.get("/openapi.json").json()["paths"])
    assert found == []


def test_what_an_editor_applied_is_accepted_once_the_saved_note_has_it(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        name = propose(world)
        early = client.post(f"/proposals/{name}/applied", json={"hunks": ["1.1"]})
        _ = (world.root / "Plan.md").write_text(NOTE.replace("One.", "1.") + "Typed.\n", encoding="utf-8")
        told = client.post(f"/proposals/{name}/applied", json={"hunks": ["1.1"]})
        again = client.post(f"/proposals/{name}/applied", json={"hunks": ["1.1"]})
        hunks = client.get(f"/proposals/{name}").json()["files"][0]["hunks"]
        text = (world.root / "Plan.md").read_text(encoding="utf-8")

    assert (early.status_code, early.json()["code"]) == (409, "not_applied")
    assert told.status_code == 200, told.text
    assert again.json()["code"] == "not_open"
    assert [hunk["state"] for hunk in hunks] == ["accepted", "open"]
    assert text == NOTE.replace("One.", "1.") + "Typed.\n"


def test_an_agent_cannot_say_that_an_editor_applied_something(tmp_path: Path) -> None:
    with apps.world(tmp_path, notes=NOTES) as world, world.client(None, mounted(world)) as client:
        name = propose(world)
        _ = (world.root / "Plan.md").write_text(NOTE.replace("One.", "1."), encoding="utf-8")
        told = client.post(f"/proposals/{name}/applied", json={"hunks": ["1.1"]})

    assert told.status_code == 403
