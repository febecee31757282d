"""Attachments and graphs over HTTP: what the policy shows, and nothing that a browser would run."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.config import ClientSettings
from knapper.config.paired import hash_token
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import WorkerThreads
from knapper.vault import access
from tests.server import apps, contracts
from tests.server.apps import World

NOTES = {
    "Garden.md": "---\ntags: [green]\n---\n# Garden\n\nSee [[Rain]] and ![[Bed.png]].\n",
    "Rain.md": "# Rain\n\nIt falls on [[Plans/Barrel]].\n",
    "Plans/Barrel.md": "# Barrel\n\n[[Private/Diary]] says more.\n",
    "Private/Diary.md": "# Diary\n\nBack to [[Garden]].\n",
    "Alone.md": "# Alone\n\nNothing.\n",
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(2)</script></svg>"
TOKEN = "agent-token-0123456789"
AGENT = ClientSettings(
    grants=access.default_grants("reader", "agent"), token_hash=hash_token(TOKEN), hidden=("Private/",)
)


def mounted(world: World) -> Mount:
    return browsing.mount_browsing(world.hub, WorkerThreads(2))


@contextlib.contextmanager
def asking(base: Path, token: str = "") -> Generator[tuple[World, TestClient]]:
    """Give a vault with attachments, and a client of its server: the page's, or one with another token."""
    with apps.world(base, AGENT, notes=NOTES) as world:
        for name in ("Bed.png", "Private/Me.png", "a #&? ü.png"):
            (world.root / name).write_bytes(PNG)
        (world.root / "Bad.svg").write_bytes(SVG)
        (world.root / "Run.html").write_bytes(b"<script>alert(1)</script>")
        with world.client(token or world.token("page"), mounted(world)) as client:
            yield world, client


def test_an_image_comes_with_its_type_and_headers_that_let_it_do_nothing(tmp_path: Path) -> None:
    with asking(tmp_path) as (_, client):
        image = client.get("/attachments/Bed.png")
        drawn = client.get("/attachments/Bad.svg")
        odd = client.get("/attachments/a%20%23%26%3F%20%C3%BC.png")
        head = client.head("/attachments/Bed.png")

    assert (image.status_code, image.content, image.headers["content-type"]) == (200, PNG, "image/png")
    assert image.headers["x-content-type-options"] == "nosniff"
    assert image.headers["cross-origin-resource-policy"] == "same-origin"
    assert "sandbox" in drawn.headers["content-security-policy"].split("; ")
    assert drawn.headers["content-security-policy"].startswith("default-src 'none'")
    assert (odd.status_code, odd.content) == (200, PNG)
    assert odd.headers["content-disposition"].startswith("inline; filename*=UTF-8''a%20%23")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(PNG)), b"")


@pytest.mark.parametrize(
    ("asked", "status", "sent", "span"),
    [
        ("bytes=0-3", 206, PNG[:4], f"bytes 0-3/{len(PNG)}"),
        ("bytes=2050-", 206, PNG[2050:], f"bytes 2050-{len(PNG) - 1}/{len(PNG)}"),
        ("bytes=-2", 206, PNG[-2:], f"bytes {len(PNG) - 2}-{len(PNG) - 1}/{len(PNG)}"),
        ("bytes=0-999999", 200, PNG, None),
        ("bytes=9999-", 416, b"", f"bytes */{len(PNG)}"),
        ("bytes=5-2", 416, b"", f"bytes */{len(PNG)}"),
        ("bytes=0-1,4-5", 200, PNG, None),
        ("pages=1-2", 200, PNG, None),
        ("bytes=-", 200, PNG, None),
    ],
)
def test_a_part_is_sent_where_it_is_asked_for(
    tmp_path: Path, asked: str, status: int, sent: bytes, span: str | None
) -> None:
    with asking(tmp_path) as (_, client):
        answer = client.get("/attachments/Bed.png", headers={"range": asked})

    assert (answer.status_code, answer.content) == (status, sent)
    assert answer.headers.get("content-range") == span


def test_a_copy_that_is_current_isnt_sent_again(tmp_path: Path) -> None:
    with asking(tmp_path) as (world, client):
        tag = client.get("/attachments/Bed.png").headers["etag"]
        same = client.get("/attachments/Bed.png", headers={"if-none-match": tag})
        (world.root / "Bed.png").write_bytes(PNG + b"more")
        changed = client.get("/attachments/Bed.png", headers={"if-none-match": tag})

    assert (same.status_code, same.content) == (304, b"")
    assert changed.status_code == 200


def test_a_hidden_attachment_is_one_that_isnt_there(tmp_path: Path) -> None:
    with asking(tmp_path, TOKEN) as (world, client):
        hidden = client.get("/attachments/Private/Me.png")
        missing = client.get("/attachments/Private/No.png")
        (world.root / "Private" / "Run.html").write_bytes(b"x")
        other = client.get("/attachments/Private/Run.html")

    assert [hidden.status_code, missing.status_code, other.status_code] == [404, 404, 404]
    assert hidden.json()["error"].replace("Me", "No") == missing.json()["error"]
    assert "Me.png" not in str(missing.json())


@pytest.mark.parametrize("name", ["Run.html", "Garden.md", "Bed.png%00.html"])
def test_only_kinds_that_obsidian_shows_are_sent(tmp_path: Path, name: str) -> None:
    with asking(tmp_path) as (_, client):
        answer = client.get(f"/attachments/{name}")

    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["../secret.png", "%2e%2e/secret.png", "..%2fsecret.png", "/etc/passwd", ".git/x.png"])
def test_nothing_outside_the_vault_is_sent(tmp_path: Path, name: str) -> None:
    with asking(tmp_path) as (world, client):
        (world.root.parent / "secret.png").write_bytes(b"secret")
        (world.root / "way.png").symlink_to(world.root.parent / "secret.png")
        answers = [client.get(f"/attachments/{each}") for each in (name, "way.png")]

    assert {answer.status_code for answer in answers} <= {403, 404, 422}
    assert not any(answer.content == b"secret" for answer in answers)


def test_a_graph_has_the_notes_around_one_and_their_links(tmp_path: Path) -> None:
    with asking(tmp_path) as (_, client):
        near = client.get("/graph/Garden.md", params={"depth": 1}).json()
        far = client.get("/graph/Garden.md", params={"depth": 3}).json()

    assert [(node["path"], node["depth"], node["tags"]) for node in near["nodes"]] == [
        ("Garden.md", 0, ["green"]),
        ("Private/Diary.md", 1, []),
        ("Rain.md", 1, []),
    ]
    named = {
        (far["nodes"][edge["source"]]["path"], far["nodes"][edge["target"]]["path"], edge["kind"])
        for edge in far["edges"]
    }
    assert named == {
        ("Garden.md", "Rain.md", "link"),
        ("Rain.md", "Plans/Barrel.md", "link"),
        ("Plans/Barrel.md", "Private/Diary.md", "link"),
        ("Private/Diary.md", "Garden.md", "link"),
    }
    assert (far["is_complete"], near["is_complete"]) == (True, True)


def test_a_graph_leads_neither_to_nor_through_what_is_hidden(tmp_path: Path) -> None:
    with asking(tmp_path, TOKEN) as (_, client):
        graph = client.get("/graph/Plans/Barrel.md", params={"depth": 3}).json()
        hidden = client.get("/graph/Private/Diary.md")

    assert [node["path"] for node in graph["nodes"]] == ["Plans/Barrel.md", "Rain.md", "Garden.md"]
    assert "Diary" not in str(graph)
    assert hidden.status_code == 404


def test_a_bounded_graph_says_that_something_was_left_out(tmp_path: Path) -> None:
    with asking(tmp_path) as (_, client):
        graph = client.get("/graph/Garden.md", params={"depth": 3, "limit": 2}).json()
        wrong = client.get("/graph/Garden.md", params={"depth": 4})

    assert (len(graph["nodes"]), graph["is_complete"], graph["limit"]) == (2, False, 2)
    assert wrong.status_code == 422


def test_some_notes_are_a_graph_too_without_what_is_hidden(tmp_path: Path) -> None:
    wanted = ["Rain.md", "Private/Diary.md", "Garden.md", "Rain.md", "Nowhere.md", "Plans/Barrel.md"]
    with asking(tmp_path) as (_, client):
        whole = client.post("/graph", json={"paths": wanted}).json()
        near = client.post("/graph", json={"paths": wanted, "by": "meaning"}).json()
        empty = client.post("/graph", json={"paths": []})
    with asking(tmp_path / "agent", TOKEN) as (_, client):
        seen = client.post("/graph", json={"paths": wanted}).json()

    paths = [node["path"] for node in whole["nodes"]]
    assert paths == ["Rain.md", "Private/Diary.md", "Garden.md", "Plans/Barrel.md"]
    assert {(paths[edge["source"]], paths[edge["target"]]) for edge in whole["edges"]} == {
        ("Rain.md", "Plans/Barrel.md"),
        ("Private/Diary.md", "Garden.md"),
        ("Garden.md", "Rain.md"),
        ("Plans/Barrel.md", "Private/Diary.md"),
    }
    assert (whole["missing"], whole["is_complete"]) == (1, True)
    assert {edge["kind"] for edge in near["edges"]} <= {"meaning"}
    assert [node["path"] for node in seen["nodes"]] == ["Rain.md", "Garden.md", "Plans/Barrel.md"]
    assert (seen["missing"], len(seen["edges"])) == (2, 2)
    assert empty.status_code == 422


def test_backlinks_come_with_their_lines_and_without_hidden_notes(tmp_path: Path) -> None:
    with asking(tmp_path) as (world, client):
        (world.root / "Twice.md").write_text("One [[Rain]].\n\n- two ![[Rain]]  \n", encoding="utf-8")
        told = client.get("/backlinks/Rain.md").json()
        of_person = client.get("/backlinks/Garden.md").json()
        page = client.get("/backlinks/Rain.md", params={"limit": 1, "offset": 1}).json()
    with asking(tmp_path / "agent", TOKEN) as (_, client):
        of_agent = client.get("/backlinks/Garden.md").json()

    assert [(row["path"], [(link["line"], link["text"]) for link in row["links"]]) for row in told["results"]] == [
        ("Garden.md", [(6, "See [[Rain]] and ![[Bed.png]].")]),
        ("Twice.md", [(1, "One [[Rain]]."), (3, "- two ![[Rain]]")]),
    ]
    assert [link["is_embed"] for link in told["results"][1]["links"]] == [False, True]
    assert [row["path"] for row in page["results"]] == ["Twice.md"]
    assert ([row["path"] for row in of_person["results"]], of_person["total"]) == (["Private/Diary.md"], 1)
    assert (of_agent["results"], of_agent["total"]) == ([], 0)


def test_the_routes_are_held_to_the_document(tmp_path: Path) -> None:
    with apps.world(tmp_path, notes=NOTES) as world:
        (world.root / "Bed.png").write_bytes(PNG)
        paths = ("/attachments/{path}", "/backlinks/{path}", "/graph/{path}", "/graph")
        contract = contracts.of_app(world.app(mounted(world)), world.token(), paths)
        told = contracts.broken_words(contract, GenerationMode.POSITIVE, cases=10)
        refused = contracts.broken_words(contract, GenerationMode.NEGATIVE, cases=10)

    assert told + refused == []


@pytest.mark.parametrize("path", ["/backlinks/{path}", "/graph/{path}"])
def test_a_reply_has_the_fields_of_the_document_each_with_the_words_below_it(tmp_path: Path, path: str) -> None:
    with asking(tmp_path) as (_, client):
        described = client.get("/openapi.json").json()["paths"][path]["get"]["responses"]["200"]
        told = client.get(path.format(path="Rain.md")).json()

    schema = described["content"]["application/json"]["schema"]
    assert set(schema["required"]) <= told.keys() <= schema["properties"].keys()
    assert schema["properties"]["success"] == {"const": True}
    # Of a class that the reply's extends, and of the rows within.
    assert schema["properties"]["index_stale"]["description"].startswith("Whether files changed that the index")
    row = schema["properties"]["results" if "backlinks" in path else "nodes"]["items"]
    assert row["properties"]["foreign"]["description"].startswith("Whether others wrote it")
