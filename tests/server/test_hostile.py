"""Whatever is sent: an answer, or an error of the one shape; never a mistake of ours."""

from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.properties import scaled
from tests.server import apps

LIMITS = settings(max_examples=scaled(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
KNOWN = {200, 400, 401, 403, 404, 405, 409, 413, 415, 422}

odd = st.sampled_from(
    [
        *(
            "..",
            "../..",
            "/",
            "\\",
            "C:\\x",
            "//host/share",
            "~",
            "~root",
            "a\x00b",
            "\u202e",
            "\u2028",
            "\x7f",
            "\x85",
        ),
        *(
            "CON",
            "nul.md",
            "a.",
            "a ",
            " ",
            "a" * 300,
            "a/" * 200,
            "%2e%2e",
            "%",
            "%zz",
            "e\u0301.md",
            "é.md",
            "\U0001f327.md",
        ),
        *(
            ".obsidian/app.json",
            ".trash",
            ".git/config",
            "Garden.md/x",
            "garden.MD",
            "Private",
            "*",
            "?",
            "[",
            "#",
            "|",
        ),
    ]
)
names = st.one_of(odd, st.text(max_size=60), st.builds("/".join, st.lists(odd, max_size=4)))
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, names),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=8,
)


@pytest.fixture
def client(tmp_path: Path) -> Generator[TestClient]:
    with apps.world(tmp_path) as world, world.client() as client:
        yield client


def check(status: int, body: dict[str, object]) -> None:
    assert status in KNOWN, (status, body)
    if status == 200:
        assert body["success"] is True or "kind" in body  # a script that fails has an outcome, too
    else:
        assert body["success"] is False
        assert isinstance(body["error"], str)
        assert isinstance(body["code"], str)


@LIMITS
@given(
    path=names,
    query=st.dictionaries(st.sampled_from(["offset", "length", "heading", "line_numbers", "vault", "x"]), names),
)
def test_any_path_and_query_of_a_note(client: TestClient, path: str, query: dict[str, str]) -> None:
    found = client.get(f"/notes/{quote(path, safe='/', errors='replace')}", params=query)

    check(found.status_code, found.json())


@LIMITS
@given(data=st.data())
def test_any_arguments_of_any_tool(client: TestClient, data: st.DataObject) -> None:
    shown = client.get("/tools").json()["results"]
    tool = data.draw(st.sampled_from(shown))
    parameters = st.sampled_from([*tool["parameters"]["properties"], "vault", "x"])
    arguments = data.draw(st.dictionaries(parameters, values, max_size=6))
    found = client.post(f"/tools/{tool['name']}", json=arguments)

    check(found.status_code, found.json())


@LIMITS
@given(data=st.data())
def test_texts_of_the_right_kind_but_any_content(client: TestClient, data: st.DataObject) -> None:
    shown = client.get("/tools").json()["results"]
    tool = data.draw(st.sampled_from(shown))
    texts = [name for name, one in tool["parameters"]["properties"].items() if one.get("type") == "string"]
    needed = tool["parameters"].get("required", [])
    arguments = {name: data.draw(names) for name in texts if name in needed or data.draw(st.booleans())}
    found = client.post(f"/tools/{tool['name']}", json=arguments)

    check(found.status_code, found.json())


@LIMITS
@given(name=names, verb=st.sampled_from(["accept", "reject", "hunks/1", ""]), digest=names)
def test_any_id_of_a_proposal_and_of_a_change(client: TestClient, name: str, verb: str, digest: str) -> None:
    quoted = quote(name, safe="", errors="replace")
    proposal = client.post(f"/proposals/{quoted}/{verb}", json={"digest": digest})
    undo = client.post(f"/changes/{quoted}/undo", json={})

    check(proposal.status_code, proposal.json())
    check(undo.status_code, undo.json())


@LIMITS
@given(
    body=st.one_of(
        st.binary(max_size=300), st.text(max_size=100).map(lambda text: text.encode("utf-16", "surrogatepass"))
    )
)
def test_any_bytes_as_a_body(client: TestClient, body: bytes) -> None:
    found = client.post("/tools/read_file", content=body, headers={"content-type": "application/json"})

    check(found.status_code, found.json())


@LIMITS
@given(
    path=st.text(max_size=40).map(lambda text: quote(text, safe="/", errors="replace")),
    method=st.sampled_from(["GET", "PUT", "PATCH", "HEAD"]),
)
def test_any_path_and_method(client: TestClient, path: str, method: str) -> None:
    found = client.request(method, f"/{path}")

    assert found.status_code in KNOWN


@LIMITS
@given(
    name=st.sampled_from(
        ["authorization", "if-none-match", "content-type", "origin", "host", "x-request-id", "last-event-id"]
    ),
    value=st.binary(max_size=80),
)
def test_any_header(client: TestClient, name: str, value: bytes) -> None:
    found = client.get("/notes/Rain.md", headers=[(name.encode(), value)])

    assert found.status_code in {*KNOWN, 304}
