"""What each noun answers."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.requests import Request

from knapper.config import ClientSettings
from knapper.server.http import binding
from knapper.server.http.binding import ToolRoute
from knapper.vault import access
from tests.server import apps


def call(path: Path, method: str, url: str, json: object = None) -> tuple[int, dict[str, Any]]:
    with apps.world(path) as world, world.client() as client:
        found = client.request(method, url, json=json)
        return found.status_code, found.json()


def test_a_note_is_read_with_its_hash_as_tag(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.get("/notes/Private/Diary.md")
        again = client.get("/notes/Private/Diary.md", headers={"if-none-match": found.headers["etag"]})
        other = client.get("/notes/Rain.md", headers={"if-none-match": found.headers["etag"]})

    assert found.json()["content"].startswith("# Diary")
    assert found.headers["etag"] == f'"{found.json()["hash"]}"'
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


def test_what_shows_other_notes_too_is_sent_again_since_they_may_have_changed(tmp_path: Path) -> None:
    url = "/notes/Plan.md?expand_embeds=true"
    with apps.world(tmp_path, notes={"Plan.md": "![[Part]]\n", "Part.md": "one\n"}) as world, world.client() as client:
        tag = f'"{client.get(url).json()["hash"]}"'
        client.post("/tools/edit_file", json={"path": "Part.md", "old_text": "one", "new_text": "two"})
        again = client.get(url, headers={"if-none-match": tag})

    assert (again.status_code, "etag" in again.headers) == (200, False)
    assert again.json()["embeds"][0]["content"] == "two\n"


def test_a_stretch_of_a_section_is_read_by_the_query(tmp_path: Path) -> None:
    status, found = call(tmp_path, "GET", "/notes/Garden.md?heading=Watering&line_numbers=true&length=40")

    assert status == 200
    assert "6: ## Watering" in found["content"]


def test_names_with_signs_and_letters_of_all_scripts_are_found(tmp_path: Path) -> None:
    name = "Über #1 100% été? 日本.md"
    with apps.world(tmp_path, notes={name: "# Ü\n"}) as world, world.client() as client:
        found = client.get("/notes/%C3%9Cber%20%231%20100%25%20%C3%A9t%C3%A9%3F%20%E6%97%A5%E6%9C%AC.md")

    assert found.json()["path"] == name


@pytest.mark.parametrize("limit", ["0", "abc", "9999"])
def test_a_bad_value_is_told_under_the_name_that_the_request_gave(tmp_path: Path, limit: str) -> None:
    status, error = call(tmp_path, "GET", f"/search?query=rain&limit={limit}")

    assert status == 422
    assert "limit" in error["error"]
    assert "n_results" not in error["error"]


@pytest.mark.parametrize("name", ["two\nlines.md", "In/two\nlines.md", "last\n"])
def test_a_name_of_several_lines_is_found(tmp_path: Path, name: str) -> None:
    with apps.world(tmp_path, notes={name: "# Ü\n"}) as world, world.client() as client:
        found = client.get(f"/notes/{quote(name)}")

    assert found.json()["path"] == name


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("/notes/Gardn.md", 404),
        ("/notes/", 422),
        ("/notes/..%2F..%2Fetc%2Fpasswd", 403),
        ("/notes/%2Fetc%2Fpasswd", 403),
        ("/notes/a%00b.md", 422),
        ("/notes/Garden.md?length=0", 422),
        ("/notes/Garden.md?length=abc", 422),
        ("/notes/Garden.md?length=1&length=2", 422),
        ("/notes/Garden.md?path=Rain.md", 422),
        ("/notes/Garden.md?nonsense=1", 422),
        ("/notes/Garden.md?heading=Nowhere", 404),
        ("/notes/.obsidian/app.json", 404),
        ("/proposals/none", 404),
        ("/proposals?status=nonsense", 422),
        ("/proposals?limit=0", 422),
        ("/changes?offset=-1", 422),
        ("/nowhere", 404),
    ],
)
def test_errors_have_one_shape_and_the_right_status(tmp_path: Path, url: str, status: int) -> None:
    found, error = call(tmp_path, "GET", url)

    assert found == status
    assert error["success"] is False
    assert error["error"]
    assert error["code"]


def test_a_method_that_a_path_lacks_is_told_with_those_it_has(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        found = client.delete("/notes/Rain.md")

    assert (found.status_code, found.headers["allow"], found.json()["code"]) == (405, "GET, HEAD", "method_not_allowed")


def test_a_tool_is_called_by_name(tmp_path: Path) -> None:
    status, found = call(tmp_path, "POST", "/tools/read_file", json={"path": "Rain.md"})

    assert status == 200
    assert found["path"] == "Rain.md"


def test_an_unknown_tool_is_told_with_the_nearest(tmp_path: Path) -> None:
    status, found = call(tmp_path, "POST", "/tools/read_fiel", json={})

    assert (status, found["code"]) == (404, "no_tool")
    assert "read_file" in found["hint"]


def test_a_tool_without_arguments_needs_no_body(tmp_path: Path) -> None:
    status, found = call(tmp_path, "POST", "/tools/list_changes")

    assert (status, found["results"]) == (200, [])


def test_a_vault_is_chosen_by_name(tmp_path: Path) -> None:
    known, _ = call(tmp_path, "POST", "/tools/read_file", json={"path": "Rain.md", "vault": "v"})
    unknown, error = call(tmp_path, "POST", "/tools/read_file", json={"path": "Rain.md", "vault": "w"})

    assert (known, unknown, error["code"]) == (200, 404, "no_vault")


def test_a_change_is_listed_and_taken_back(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        before = (world.root / "Rain.md").read_bytes()
        done = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "More.", "reason": "why not"})
        listed = client.get("/changes?limit=1").json()["results"]
        undone = client.post(f"/changes/{listed[0]['id']}/undo", json={})
        after = (world.root / "Rain.md").read_bytes()

    assert (done.status_code, listed[0]["reason"]) == (200, "why not")
    assert (undone.status_code, undone.json()["undone"]) == (200, [listed[0]["id"]])
    assert after == before


def test_the_last_change_is_taken_back_without_naming_it(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        done = client.post("/tools/append_to_file", json={"path": "Rain.md", "content": "More."}).json()
        undone = client.post("/changes/undo").json()

    assert undone["undone"] == [done["change_id"]]


def test_a_hunk_is_edited_and_then_accepted_by_a_person(tmp_path: Path) -> None:
    careful = ClientSettings(grants=replace(access.default_grants("http"), small="propose"))
    told = {"path": "Rain.md", "old_text": "rains", "new_text": "snows"}
    with apps.world(tmp_path, careful) as world, world.client(world.token("page")) as page, world.client() as api:
        name = api.post("/tools/edit_file", json=told).json()["proposal_id"]
        shown = page.get(f"/proposals/{name}").json()
        hunk = f"/proposals/{name}/hunks/{shown['files'][0]['hunks'][0]['id']}"
        edited = page.put(hunk, json={"digest": shown["digest"], "new_text": "It hails.\n"})
        stale = page.post(f"/proposals/{name}/accept", json={"digest": shown["digest"]})
        done = page.post(f"/proposals/{name}/accept", json={"digest": edited.json()["digest"]})
        text = (world.root / "Rain.md").read_text(encoding="utf-8")

    assert (edited.status_code, stale.status_code, done.status_code) == (200, 409, 200)
    assert "It hails." in text


def test_a_proposal_is_rejected_with_a_reason(tmp_path: Path) -> None:
    careful = ClientSettings(grants=replace(access.default_grants("http"), large="propose"))
    with apps.world(tmp_path, careful) as world, world.client() as client:
        name = client.post("/tools/delete_file", json={"path": "Rain.md"}).json()["proposal_id"]
        done = client.post(f"/proposals/{name}/reject", json={"reason": "no"})
        listed = client.get("/proposals?status=rejected").json()

    assert done.status_code == 200
    assert [one["id"] for one in listed["results"]] == [name]


def test_a_note_that_changed_is_a_conflict(tmp_path: Path) -> None:
    told = {"path": "Rain.md", "content": "x", "expected_hash": "sha256:" + "0" * 64}
    status, error = call(tmp_path, "POST", "/tools/write_file", json=told)

    assert status == 409
    assert error["current_hash"].startswith("sha256:")


def test_every_reply_names_its_request_and_forbids_sniffing(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client() as client:
        own = client.get("/notes/Rain.md", headers={"x-request-id": "my-request.1"})
        hostile = client.get("/nowhere", headers={"x-request-id": "a\tb<script>"})

    assert own.headers["x-request-id"] == "my-request.1"
    assert hostile.headers["x-request-id"].isalnum()
    assert own.headers["x-content-type-options"] == hostile.headers["x-content-type-options"] == "nosniff"


def test_a_query_of_very_many_names_is_read_at_once_and_holds_nobody_up() -> None:
    count = 40_000  # what compares each name with all others takes longer than a test may
    query = "&".join(f"n{number}={number}" for number in range(count)).encode()
    request = Request({"type": "http", "method": "GET", "query_string": query, "headers": [], "path_params": {}})
    face = ToolRoute(method="GET", path="/search", tool="search_vault")

    given = asyncio.run(binding.read_tool_arguments(face, request, {}))

    assert (len(given), given["n0"], given["n39999"]) == (count, "0", "39999")
