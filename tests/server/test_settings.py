"""The settings over HTTP: shown and saved to persons alone, and never a key back."""

import contextlib
import json
import os
import tomllib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper import config
from knapper.config.settings import SETTINGS
from knapper.server.http import settings
from knapper.server.http.app import Mount
from knapper.server.workers import WorkerThreads
from tests.server import apps, chats, contracts
from tests.server.apps import World

KEY = "sk-a-key-that-nobody-is-told"
FILE = f"""# mine
[agents]
link_depth = 1  # near ones

[model]
openai_api_key = "{KEY}"

[server]
token = "{KEY}-of-the-server"
"""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        for name in setting.env:
            monkeypatch.delenv(name, raising=False)


def mounted(world: World) -> Mount:
    return settings.mount_settings(world.hub, WorkerThreads(2))


@contextlib.contextmanager
def person(base: Path, text: str = FILE) -> Generator[tuple[World, TestClient]]:
    """Give a person's client of a server that was started with a configuration file."""
    with apps.world(base) as world:
        file = world.settings.config_file
        file.write_text(text, encoding="utf-8")
        started = config.load(config_file=str(file))
        world.hub.settings = replace(world.settings, origins=started.origins, agents=started.agents)
        with world.client(world.token("page"), mounted(world)) as client:
            yield world, client


def shown(client: TestClient) -> dict[str, dict[str, Any]]:
    answer = client.get("/settings")
    assert answer.status_code == 200, answer.text
    return {row["name"]: row for row in answer.json()["settings"]}


def save(client: TestClient, **values: object) -> Any:  # noqa: ANN401 - any reply
    return client.put("/settings", json={"values": {name.replace("__", "."): value for name, value in values.items()}})


def test_every_setting_is_shown_with_its_source_and_never_a_key(tmp_path: Path) -> None:
    with person(tmp_path) as (_, client):
        text = client.get("/settings").text
        rows = shown(client)

    assert rows.keys() == {setting.name for setting in SETTINGS}
    depth = rows["agents.link_depth"]
    assert (depth["value"], depth["default"], depth["least"], depth["most"]) == (1, 2, 0, 3)
    assert depth["source"].endswith("config.toml:3")
    assert (depth["savable"], depth["restart"], depth["is_set"]) == (True, False, True)
    key = rows["model.openai_api_key"]
    assert (key["value"], key["default"], key["secret"], key["is_set"]) == (None, None, True, True)
    assert rows["model.api_key"]["is_set"] is False
    assert KEY not in text


def test_a_value_is_saved_with_comments_kept_and_counts_at_once_or_says_that_it_does_not(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        saved = save(client, agents__link_depth=3, web__timeout_s=60).json()
        text = world.settings.config_file.read_text(encoding="utf-8")
        again = shown(client)
        with world.client(world.token("page"), chats.jobs(world.hub, world.stop)) as page:
            usual = page.get("/ask/defaults").json()

    assert text == FILE.replace("link_depth = 1", "link_depth = 3") + "\n[web]\ntimeout_s = 60\n"
    assert [(row["name"], row["value"], row["restart"]) for row in saved["settings"]] == [
        ("web.timeout_s", 60, True),
        ("agents.link_depth", 3, False),
    ]
    assert (again["web.timeout_s"]["restart"], again["agents.link_depth"]["restart"]) == (True, False)
    assert usual["choice"]["scope"]["link_depth"] == 3


def test_a_key_is_saved_and_not_told_even_then(tmp_path: Path) -> None:
    with person(tmp_path, "") as (world, client):
        answer = save(client, model__anthropic_api_key=KEY)
        file = world.settings.config_file
        stored = tomllib.loads(file.read_text(encoding="utf-8"))

    (row,) = answer.json()["settings"]
    assert (row["value"], row["is_set"], row["restart"]) == (None, True, False)
    assert KEY not in answer.text
    assert stored == {"model": {"anthropic_api_key": KEY}}


def test_a_model_and_the_limits_of_a_day_count_without_a_restart(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world:
        jobs = chats.jobs(world.hub, world.stop)
        with world.client(world.token("page"), mounted(world), jobs) as client:
            before = (client.get("/models").json()["configured"], client.get("/usage").json()["limits"]["day_tokens"])
            saved = save(client, model__name="ollama:qwen3", model__day_tokens=5_000)
            after = (client.get("/models").json()["configured"], client.get("/usage").json()["limits"]["day_tokens"])

    assert [row["restart"] for row in saved.json()["settings"]] == [False, False]
    assert (before, after) == (("", None), ("ollama:qwen3", 5_000))


def test_the_vault_that_a_program_sends_with_each_request_counts_for_nothing(tmp_path: Path) -> None:
    with person(tmp_path) as (_, client):
        seen = client.get("/settings?vault=v")
        saved = client.put("/settings", json={"values": {"agents.link_depth": 3}, "vault": "v"})

    assert (seen.status_code, saved.status_code) == (200, 200)


def test_null_takes_a_value_out_of_the_file(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        saved = save(client, agents__link_depth=None).json()
        text = world.settings.config_file.read_text(encoding="utf-8")

    assert text == FILE.replace("link_depth = 1  # near ones\n", "")
    assert (saved["settings"][0]["value"], saved["settings"][0]["source"]) == (2, "default")


def test_a_variable_that_is_stronger_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNAP_FUSION", "rrf")
    with person(tmp_path) as (_, client):
        saved = save(client, search__fusion="convex").json()

    assert (saved["settings"][0]["value"], saved["settings"][0]["source"]) == ("rrf", "KNAP_FUSION")


@pytest.mark.parametrize(
    ("values", "status", "code"),
    [
        ({"agents__link_depth": 4}, 422, "bad_arguments"),
        ({"agents__link_depth": "2"}, 422, "bad_arguments"),
        ({"agents__editable": "all"}, 422, "bad_arguments"),
        ({"agents__nothing": 1}, 422, "bad_arguments"),
        ({"vaults__v__path": "/"}, 422, "bad_arguments"),
        ({"clients__http__access": "person"}, 422, "bad_arguments"),
        ({"embeddings__base_url": "ftp://x"}, 403, "file_only"),
        ({"model__base_url": "http://evil.example/v1"}, 403, "file_only"),
        ({"model__name": "tiny@http://evil.example/v1"}, 403, "file_only"),
        ({"model__fallbacks": ["tiny@http://evil.example/v1"]}, 403, "file_only"),
        ({"server__token": "x" * 40}, 403, "file_only"),
        ({"server__origins": ["https://evil.example"]}, 403, "file_only"),
        ({"scripts__fs_read": ["/"]}, 403, "file_only"),
        ({"state_dir": "/elsewhere"}, 403, "file_only"),
        ({"index__engine": "postgresql://evil.example/x"}, 403, "file_only"),
        ({"index__readers": ["evil"]}, 403, "file_only"),
        ({"model__prompt": "/etc/passwd"}, 403, "file_only"),
        ({"git__commit": "yes"}, 403, "file_only"),
        ({"default_vault": "/"}, 403, "file_only"),
        ({"agents__link_depth": 3, "model__timeout_s": 0}, 422, "bad_arguments"),
        ({"agents__excluded_folders": ["a\0b"]}, 422, "config_invalid"),
    ],
)
def test_what_cannot_or_may_not_be_saved_leaves_the_file_as_it_is(
    tmp_path: Path, values: dict[str, object], status: int, code: str
) -> None:
    with person(tmp_path) as (world, client):
        refused = save(client, **values)

        assert (refused.status_code, refused.json()["code"]) == (status, code)
        assert KEY not in refused.text
        assert world.settings.config_file.read_text(encoding="utf-8") == FILE


def test_an_address_and_its_key_are_saved_where_no_key_is_set_yet(tmp_path: Path) -> None:
    with person(tmp_path, "") as (_, client):
        saved = save(client, model__base_url="http://localhost:1/v1", model__api_key=KEY, model__name="tiny")
        moved = save(client, model__base_url="http://evil.example/v1")

    assert saved.status_code == 200
    assert (moved.status_code, moved.json()["code"]) == (403, "file_only")


def test_a_section_in_one_line_is_changed_in_that_line(tmp_path: Path) -> None:
    with person(tmp_path, "agents = {link_depth = 1}\n") as (world, client):
        saved = save(client, agents__link_depth=3)

        assert saved.status_code == 200, saved.text
        assert world.settings.config_file.read_text(encoding="utf-8") == "agents = {link_depth = 3}\n"


def test_a_file_that_does_not_exist_yet_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(world.token("page"), mounted(world)) as client:
        saved = save(client, search__fusion="rrf")

        assert saved.status_code == 200, saved.text
        assert world.settings.config_file.stat().st_mode & 0o777 == 0o600
        assert world.settings.config_file.read_text(encoding="utf-8") == '[search]\nfusion = "rrf"\n'


def test_a_programs_token_neither_sees_nor_changes_settings(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        refused = [client.get("/settings"), save(client, search__fusion="rrf")]

        assert {(each.status_code, each.json()["code"]) for each in refused} == {(403, "needs_person")}
        assert not world.settings.config_file.exists()


def test_a_file_that_was_broken_by_hand_is_told_and_not_written(tmp_path: Path) -> None:
    with person(tmp_path) as (world, client):
        world.settings.config_file.write_text("[agents\n", encoding="utf-8")
        answers = [client.get("/settings"), save(client, agents__link_depth=3)]

        assert all(each.status_code in {403, 422} for each in answers)
        assert {each.json()["code"] for each in answers} == {"config_invalid"}
        assert world.settings.config_file.read_text(encoding="utf-8") == "[agents\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with person(tmp_path) as (world, client):
        contract = contracts.of_app(client.app, world.token("page"), {"/settings"})
        found = contracts.broken_words(contract, mode)
        text = json.dumps(client.get("/settings").json())

    assert found == []
    assert KEY not in text


RIGHTS_FILE = """# mine
[clients.mcp]
small = "propose"  # until I trust it

[clients.reader]
kind = "mcp"
hidden = ["Private/"]
"""


@contextlib.contextmanager
def owner(base: Path, text: str = RIGHTS_FILE) -> Generator[tuple[World, TestClient]]:
    """Give the page of a server that was started with clients in its configuration file."""
    file = apps.settings(base).config_file
    file.write_text(text, encoding="utf-8")
    configured = config.load(config_file=str(file)).clients
    with apps.world(base, *configured) as world, world.client(world.token("page"), mounted(world)) as client:
        yield world, client


def rights(reply: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - any reply
    assert reply.status_code == 200, reply.text
    return {row["name"]: row for row in reply.json()["settings"]}


def test_the_rights_of_a_program_are_shown_with_what_is_usual(tmp_path: Path) -> None:
    with owner(tmp_path) as (world, client):
        answer = client.get("/clients/mcp/rights")
        rows, agent = rights(answer), rights(client.get("/clients/agent/rights"))

    assert (answer.json()["config_file"], answer.json()["is_writable"]) == (str(world.settings.config_file), True)
    assert {"kind", "token_hash"}.isdisjoint(rows)
    small, large = rows["small"], rows["large"]
    assert (small["value"], small["default"], small["choices"]) == ("propose", "apply", ["apply", "propose", "refuse"])
    assert (small["source"], small["is_set"]) == (f"{world.settings.config_file}:3", True)
    assert (large["value"], large["default"], large["source"]) == ("propose", "propose", "default")
    assert (agent["guarded"]["value"], agent["confirm"]["value"]) == (["Preferences.md"], "propose")
    assert not any(row["restart"] for row in (*rows.values(), *agent.values()))


def test_rights_are_saved_with_comments_kept_and_count_from_the_next_start(tmp_path: Path) -> None:
    with owner(tmp_path) as (world, client):
        answer = client.put("/clients/mcp/rights", json={"values": {"small": "refuse", "write": ["Inbox/"]}})
        saved = rights(answer)
        made = client.put("/clients/http/rights", json={"values": {"access": "read"}})
        file = world.settings.config_file
        text = file.read_text(encoding="utf-8")
        taken_out = client.put("/clients/mcp/rights", json={"values": {"small": None, "write": None}})
        again = config.load(config_file=str(file))

    assert (saved["small"]["restart"], saved["small"]["value"], saved.keys()) == (True, "refuse", {"small", "write"})
    assert made.status_code == 200
    assert 'small = "refuse"  # until I trust it' in text
    assert text.startswith("# mine\n")
    assert tomllib.loads(text)["clients"]["http"] == {"access": "read"}
    assert (rights(taken_out)["small"]["value"], rights(taken_out)["small"]["restart"]) == ("apply", True)
    assert (again.client("mcp").grants.small, again.client("http").grants.is_read_only) == ("apply", True)


@pytest.mark.parametrize(
    ("name", "values", "status", "code"),
    [
        ("mcp", {"kind": "person"}, 422, "bad_arguments"),
        ("reader", {"token_hash": "sha256:" + "0" * 64}, 422, "bad_arguments"),
        ("mcp", {"small": "always"}, 422, "bad_arguments"),
        ("mcp", {"max_files": 0}, 422, "bad_arguments"),
        ("mcp", {"vaults": ["nowhere"]}, 422, "config_invalid"),
        ("mcp", {"write": ["!Private/"]}, 422, "config_invalid"),
        ("mcp", {"hidden": ["a\0b"]}, 422, "config_invalid"),
        ("page", {"access": "read"}, 403, "file_only"),
        ("cli", {"hidden": ["*"]}, 403, "file_only"),
        ("nobody", {"access": "write"}, 404, "unknown_client"),
        ("x]\n[server", {"access": "write"}, 404, "unknown_client"),
    ],
)
def test_rights_that_cannot_or_may_not_be_saved_leave_the_file_as_it_is(
    tmp_path: Path, name: str, values: dict[str, object], status: int, code: str
) -> None:
    with owner(tmp_path) as (world, client):
        refused = client.put(f"/clients/{quote(name, safe='')}/rights", json={"values": values})

        assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
        assert world.settings.config_file.read_text(encoding="utf-8") == RIGHTS_FILE


def test_a_program_neither_sees_nor_widens_its_rights(tmp_path: Path) -> None:
    with apps.world(tmp_path) as world, world.client(None, mounted(world)) as client:
        refused = [
            client.get("/clients/http/rights"),
            client.put("/clients/http/rights", json={"values": {"max_files": 1_000}}),
        ]

        assert [(one.status_code, one.json()["code"]) for one in refused] == [(403, "needs_person")] * 2
        assert not world.settings.config_file.exists()


def test_rights_in_a_file_that_is_read_only_are_shown_and_said_to_be_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner(tmp_path) as (world, client):
        file = world.settings.config_file
        usual = os.access

        def only_read(path: str | Path, mode: int) -> bool:  # the tests' own user may be root, who may write anything
            return not (mode == os.W_OK and Path(path) == file.resolve()) and usual(path, mode)

        monkeypatch.setattr(os, "access", only_read)
        shown_rights = client.get("/clients/mcp/rights")
        refused = client.put("/clients/mcp/rights", json={"values": {"small": "apply"}})

        assert shown_rights.json()["is_writable"] is False
        assert not any(row["savable"] for row in rights(shown_rights).values())
        assert (refused.status_code, refused.json()["code"]) == (503, "config_unwritable")
        assert file.read_text(encoding="utf-8") == RIGHTS_FILE
