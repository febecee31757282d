"""A device is paired by a code, once, within two minutes; and what it may do then."""

import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from knapper.config import ClientSettings, Settings, Vault
from knapper.config.paired import MAX_CLIENTS, PairedClient, PairedClients, clean_label, hash_token
from knapper.errors import BadInput, NotFound, SetupError
from knapper.server import credentials, security
from knapper.server.credentials import PairingCodes, PairingOffer
from knapper.server.http import clients
from knapper.server.http.app import Mount
from knapper.server.http.clients import PairingService
from knapper.server.security import RequestBuckets
from knapper.server.workers import WorkerThreads
from knapper.vault import access
from tests.server import apps, contracts
from tests.server.apps import World

OFFER = PairingOffer(vault="v", folder="/notes", name="", made_by="cli")
FOLDERS = {"/notes"}
OBSIDIAN = {"origin": "app://obsidian.md"}


@dataclass(kw_only=True)
class Clocks:
    """Hold two clocks that the test sets."""

    wall: float = 1_000_000.0
    monotonic: float = 500.0

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def codes(self, folder: Path, key: str = "k") -> PairingCodes:
        return PairingCodes(folder=folder, key=key, now=lambda: self.wall, monotonic=lambda: self.monotonic)


@dataclass(kw_only=True)
class Paired:
    """Hold a world, and who asks it."""

    world: World
    client: TestClient
    codes: PairingCodes
    page: dict[str, str] = field(default_factory=dict[str, str])
    api: dict[str, str] = field(default_factory=dict[str, str])

    def code(self, name: str = "") -> str:
        return self.codes.new(credentials.offer_vault(self.world.settings.vault, name, "cli"))

    def pair(self, code: str, **said: str) -> httpx2.Response:
        return self.client.post("/pair", json={"code": code, **said}, headers=OBSIDIAN)

    def token(self, **said: str) -> dict[str, str]:
        answer = self.pair(self.code(), **said)
        assert answer.status_code == 201, answer.text
        return bearer(answer.json()["token"])


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def mounted(world: World, codes: PairingCodes, tries: int = 10_000) -> Mount:
    service = PairingService(world.hub, codes, "instance-of-the-test", RequestBuckets(tries))
    return clients.mount_clients(service, world.hub, WorkerThreads(2))


@contextmanager
def server(base: Path, *configured: ClientSettings, tries: int = 10_000) -> Generator[Paired]:
    with apps.world(base, *configured) as world:
        codes = credentials.open_codes(world.settings.state_dir)
        with world.client("", mounted(world, codes, tries)) as client:
            page, api = bearer(world.token("page")), bearer(world.token())
            yield Paired(world=world, client=client, codes=codes, page=page, api=api)


def test_a_code_is_short_plain_to_read_and_good_in_any_case(tmp_path: Path) -> None:
    codes = Clocks().codes(tmp_path)
    made = [codes.new(OFFER) for _ in range(5)]

    for code in made:
        assert len(code) == 9
        assert code[4] == "-"
        assert not set("IL01O") & set(code)
    assert len(set(made)) == 5
    typed = [made[0].lower(), made[1].replace("-", ""), f"  {made[2]} ", made[3].replace("-", " - "), made[4]]
    assert [codes.redeem(text, FOLDERS) for text in typed] == [OFFER] * 5


def test_a_code_is_good_once(tmp_path: Path) -> None:
    codes = Clocks().codes(tmp_path)
    code = codes.new(OFFER)

    assert codes.redeem(code, FOLDERS) == OFFER
    assert codes.redeem(code, FOLDERS) is None


def test_of_many_who_use_a_code_at_once_one_has_it(tmp_path: Path) -> None:
    for _ in range(20):
        code = Clocks().codes(tmp_path).new(OFFER)
        start = threading.Barrier(6)

        def redeem(code: str = code, start: threading.Barrier = start) -> bool:
            own = Clocks().codes(tmp_path)
            _ = start.wait()
            return own.redeem(code, FOLDERS) is not None

        with ThreadPoolExecutor(6) as pool:
            outcomes = [one.result() for one in [pool.submit(redeem) for _ in range(6)]]

        assert sum(outcomes) == 1


def test_a_code_is_good_once_where_several_can_remove_a_file_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink

    def remove_as_on_windows(path: Path, missing_ok: bool = False) -> None:
        is_there = path.exists()
        time.sleep(0.01)
        unlink(path, missing_ok=missing_ok or is_there)

    monkeypatch.setattr(Path, "unlink", remove_as_on_windows)
    test_of_many_who_use_a_code_at_once_one_has_it(tmp_path)


@pytest.mark.parametrize(
    ("wall_s", "monotonic_s", "is_good"),
    [
        (119, 119, True),
        (120, 120, False),
        (-3_600, 5, False),  # the clock was set back
        (3_600, 5, False),  # and forth
        (300, 5, False),  # the machine slept
        (5, 300, False),  # set back just after the code got too old
        (5, -400, False),  # the machine was started anew
    ],
)
def test_a_code_is_good_for_two_minutes_by_both_clocks(
    tmp_path: Path, wall_s: float, monotonic_s: float, is_good: bool
) -> None:
    clocks = Clocks()
    code = clocks.codes(tmp_path).new(OFFER)
    clocks.wall += wall_s
    clocks.monotonic += monotonic_s

    assert (clocks.codes(tmp_path).redeem(code, FOLDERS) is not None) == is_good


def test_an_old_code_does_not_come_back_when_the_clock_is_set_back(tmp_path: Path) -> None:
    clocks = Clocks()
    code = clocks.codes(tmp_path).new(OFFER)
    clocks.pass_time(600)
    clocks.wall -= 600

    assert clocks.codes(tmp_path).redeem(code, FOLDERS) is None


def test_there_are_few_codes_at_once_and_old_ones_go(tmp_path: Path) -> None:
    clocks = Clocks()
    codes = clocks.codes(tmp_path)
    made: list[str] = []
    for _ in range(8):
        clocks.pass_time(1)
        made.append(codes.new(OFFER))

    assert len(list(tmp_path.iterdir())) == credentials.MAX_CODES
    assert [codes.redeem(code, FOLDERS) is not None for code in made] == [False] * 3 + [True] * 5
    _ = codes.new(OFFER)
    clocks.pass_time(600)
    _ = codes.new(OFFER)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_code_is_stored_hashed_and_with_another_key_it_is_none(tmp_path: Path) -> None:
    codes = Clocks().codes(tmp_path)
    code = codes.new(OFFER)
    (file,) = tmp_path.iterdir()
    text = file.read_text(encoding="utf-8")

    assert code not in text
    assert code.replace("-", "") not in text
    assert code.replace("-", "") not in file.name
    assert Clocks().codes(tmp_path, key="other").redeem(code, FOLDERS) is None
    assert os.name != "posix" or stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"digest": "ü", "made": 1, "made_monotonic": 1, "offer": {}}']
)
def test_what_is_no_code_is_passed_over(tmp_path: Path, text: str) -> None:
    codes = Clocks().codes(tmp_path)
    code = codes.new(OFFER)
    (tmp_path / "code-x.json").write_text(text, encoding="utf-8")

    assert codes.redeem("", FOLDERS) is None
    assert codes.redeem("-", FOLDERS) is None
    assert codes.redeem("é" * 8, FOLDERS) is None
    assert codes.redeem(code, FOLDERS) == OFFER


def test_a_code_for_a_vault_that_is_not_served_here_stays_good(tmp_path: Path) -> None:
    codes = Clocks().codes(tmp_path)
    code = codes.new(OFFER)

    with pytest.raises(BadInput) as caught:
        _ = codes.redeem(code, {"/elsewhere"})

    assert caught.value.code == "other_vault"
    assert codes.redeem(code, FOLDERS) == OFFER


def test_a_device_is_paired_and_is_a_person_in_its_vault(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        answer = it.pair(it.code(), name="Phone", device="iPhone 17")
        told = answer.json()
        mine = bearer(told["token"])
        read = it.client.get("/notes/Rain.md", headers={**mine, **OBSIDIAN})
        written = it.client.post(
            "/tools/create_file", json={"path": "New.md", "content": "# New\n"}, headers={**mine, **OBSIDIAN}
        )
        listed = it.client.get("/clients", headers=it.page).json()
        stored = "".join(file.read_text("utf-8") for file in (tmp_path / "state" / "server" / "clients").glob("*.json"))

    assert answer.status_code == 201
    assert answer.headers["access-control-allow-origin"] == "app://obsidian.md"
    assert answer.headers["cache-control"] == "no-store"
    assert (told["name"], told["vault"], told["product"], told["instance"]) == (
        *("Phone", "v", "knapper"),
        "instance-of-the-test",
    )
    assert (read.status_code, read.headers["access-control-allow-origin"]) == (200, "app://obsidian.md")
    assert written.json()["success"] is True
    assert (tmp_path / "vault" / "New.md").exists()  # as a person writes, at once
    (row,) = listed["results"]
    assert (row["name"], row["device"], row["vault"], row["made_by"]) == ("Phone", "iPhone 17", "v", "cli")
    assert datetime.fromisoformat(row["paired"]) <= datetime.now(UTC)
    assert told["token"] not in stored
    assert hash_token(told["token"]) in stored
    assert "token" not in json.dumps(listed)


def test_a_code_that_was_used_is_refused_like_any_other(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        code = it.code()
        first, again, unknown = it.pair(code), it.pair(code), it.pair("ABCD-EFGH")

    assert [one.status_code for one in (first, again, unknown)] == [201, 403, 403]
    assert again.json() == unknown.json()
    assert again.json()["code"] == "code_refused"


def test_tries_are_few_right_or_wrong(tmp_path: Path) -> None:
    with server(tmp_path, tries=3) as it:
        code = it.code()
        wrong = [it.pair("ABCD-EFGH").status_code for _ in range(3)]
        right = it.pair(code)

    assert wrong == [403] * 3
    assert (right.status_code, right.json()["code"]) == (429, "too_many_requests")
    assert int(right.headers["retry-after"]) > 0
    assert clients.TRIES_PER_MINUTE <= 10


@pytest.mark.parametrize("origin", ["http://localhost", "http://localhost:3000", "https://evil.example", "null"])
def test_no_other_page_pairs_or_uses_up_tries(tmp_path: Path, origin: str) -> None:
    with server(tmp_path, tries=1) as it:
        code = it.code()
        refused = [
            it.client.post("/pair", json={"code": code}, headers={"origin": origin}),
            it.client.post("/pair", content=json.dumps({"code": code}), headers={"origin": origin}),
        ]
        paired = it.pair(code)

    assert [one.json()["code"] for one in refused] == ["origin_refused"] * 2
    assert paired.status_code == 201


@pytest.mark.parametrize("origin", ["app://obsidian.md", "capacitor://localhost"])
def test_obsidian_may_pair_and_read_the_answer(tmp_path: Path, origin: str) -> None:
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    with server(tmp_path) as it:
        preflight = it.client.options("/pair", headers=asked)
        answer = it.client.post("/pair", json={"code": it.code()}, headers={"origin": origin})
        refused = it.client.post("/pair", json={"code": "wrong"}, headers={"origin": origin})

    assert preflight.status_code == 204
    for reply in (preflight, answer, refused):
        assert reply.headers["access-control-allow-origin"] == origin
        assert "access-control-allow-credentials" not in reply.headers
    assert (answer.status_code, refused.status_code) == (201, 403)


@pytest.mark.parametrize(
    "body", [{}, {"code": 1}, {"code": None}, {"code": "x" * 101}, {"code": "x", "vault": "v"}, {"code": ["x"]}]
)
def test_a_body_of_another_form_is_refused(tmp_path: Path, body: dict[str, object]) -> None:
    with server(tmp_path) as it:
        assert it.client.post("/pair", json=body).status_code == 422


def test_two_devices_of_one_name_are_two_clients(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        names = [it.pair(it.code(), name="Phone").json()["name"] for _ in range(2)]
        names += [it.pair(it.code(), name="PHONE").json()["name"]]
        rows = it.client.get("/clients", headers=it.page).json()["results"]

    assert names == ["Phone", "Phone 2", "PHONE 3"]
    assert [row["name"] for row in rows] == names


@pytest.mark.parametrize("name", ["cli", "page", "mcp", "http", "agent", "script", "owner", "Page", "reader", "READER"])
def test_no_device_takes_the_name_of_another_client(tmp_path: Path, name: str) -> None:
    reader = ClientSettings(grants=access.default_grants("reader", "http"))
    with server(tmp_path, reader) as it:
        given = it.pair(it.code(), name=name).json()["name"]
        named = it.pair(it.code(name)).json()["name"]

    assert (given, named) == (f"{name} 2", f"{name} 3")


def test_the_owners_name_counts_more_than_the_devices(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        named = it.pair(it.code("My phone"), name="Other").json()["name"]
        unnamed = it.pair(it.code(), device="iPad").json()["name"]
        silent = it.pair(it.code()).json()["name"]

    assert (named, unnamed, silent) == ("My phone", "iPad", "Obsidian")


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("../../etc", "etc"),
        ("a/b\\c", "a b c"),
        ("\x1b[31mred\u202e", "31mred"),
        ("Anna\u2019s  iPhone\n", "Anna\u2019s iPhone"),
        ("कीबोर्ड 電話 Ж", "कीबोर्ड 電話 Ж"),
        ("\u200b\u2066", ""),
        ("x" * 99, "x" * 40),
        ("<b>&amp;", "b &amp"),
        (".", ""),
    ],
)
def test_a_name_is_one_line_that_steers_nothing(raw: str, cleaned: str) -> None:
    assert clean_label(raw, 40) == cleaned


def test_a_revoked_client_may_nothing_at_once(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        mine = it.token(name="Phone")
        before = it.client.get("/notes/Rain.md", headers=mine)
        answer = it.client.delete("/clients/Phone", headers=it.page)
        after = it.client.get("/notes/Rain.md", headers=mine)
        again = it.client.delete("/clients/Phone", headers=it.page)
        rows = it.client.get("/clients", headers=it.page).json()["results"]
        rules = it.world.hub.settings.client("Phone")

    assert (before.status_code, answer.status_code, after.status_code) == (200, 200, 401)
    assert answer.json()["revoked"]["revoked"]
    assert (again.status_code, again.json()["code"]) == (404, "no_client")
    assert rows == []
    assert rules.grants.is_read_only
    assert not rules.may_open("v")
    assert not rules.grants.is_person


def test_a_name_that_was_revoked_can_be_had_again_and_the_old_token_stays_dead(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        old = it.token(name="Phone")
        _ = it.client.delete("/clients/Phone", headers=it.page)
        new = it.token(name="Phone")
        codes = [it.client.get("/notes/Rain.md", headers=headers).status_code for headers in (old, new)]

    assert codes == [401, 200]


def test_a_paired_device_can_not_let_others_in_nor_lock_them_out(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        phone, tablet = it.token(name="Phone"), it.token(name="Tablet")
        made = it.client.post("/pair/codes", json={}, headers=phone)
        locked = it.client.delete("/clients/Tablet", headers=phone)
        unknown = it.client.delete("/clients/Nobody", headers=phone)
        seen = it.client.get("/clients", headers=phone).json()["results"]
        itself = it.client.delete("/clients/Phone", headers=phone)
        left = it.client.get("/clients", headers=tablet)

    assert [one.json()["code"] for one in (made, locked, unknown)] == ["needs_owner"] * 3
    assert [row["name"] for row in seen] == ["Phone"]
    assert itself.status_code == 200
    assert left.status_code == 200


def test_the_page_is_told_what_programs_may_do_and_when_they_called_and_a_device_is_not(tmp_path: Path) -> None:
    reader = ClientSettings(
        grants=replace(access.default_grants("reader"), write=("Inbox/",), is_read_only=True),
        hidden=("Private/",),
        vaults=("v",),
        token_hash=hash_token("t" * 40),
    )
    with server(tmp_path, reader) as it:
        phone = it.token(name="Phone")
        _ = it.client.get("/search?q=rain", headers=it.api)
        answer = it.client.get("/clients", headers=it.page)
        rows = {row["name"]: row for row in answer.json()["programs"]}
        own = it.client.get("/clients", headers=phone).json()["programs"]

    assert {*rows} == {"cli", "page", "mcp", "http", "agent", "script", "reader"}
    assert [name for name, row in rows.items() if row["is_configured"]] == ["reader"]
    assert {name: row["credential"] for name, row in rows.items() if row["credential"] != "none"} == {
        "page": "page",
        "mcp": "api",
        "http": "api",
        "reader": "own",
    }
    assert (rows["agent"]["kind"], rows["agent"]["rights"]["small"]) == ("agent", "propose")
    assert rows["reader"]["rights"]["is_read_only"] is True
    assert [rows["reader"]["rights"][name] for name in ("write", "hidden", "vaults")] == [
        ["Inbox/"],
        ["Private/"],
        ["v"],
    ]
    assert rows["http"]["last_used"] is not None
    assert rows["mcp"]["last_used"] is None
    assert "sha256" not in answer.text
    assert own == []


def test_programs_neither_make_codes_nor_see_nor_revoke_devices(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        _ = it.token(name="Phone")
        replies = [
            it.client.post("/pair/codes", json={}, headers=it.api),
            it.client.get("/clients", headers=it.api),
            it.client.delete("/clients/Phone", headers=it.api),
        ]
        without = [it.client.post("/pair/codes", json={}), it.client.get("/clients"), it.client.delete("/clients/x")]

    assert [(one.status_code, one.json()["code"]) for one in replies] == [(403, "needs_person")] * 3
    assert [one.status_code for one in without] == [401] * 3


def test_a_paired_device_has_no_way_in_for_models(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        mine = it.token(name="Phone")
        refused = it.client.post("/mcp", json={}, headers=mine)

    assert (refused.status_code, refused.json()["code"]) == (403, "person_key_refused")


def test_the_page_makes_a_code_that_pairs(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        made = it.client.post("/pair/codes", json={"name": "Phone"}, headers=it.page)
        told = made.json()
        paired = it.pair(told["code"])
        row = it.client.get("/clients", headers=it.page).json()["results"][0]
        wrong = it.client.post("/pair/codes", json={"vault": "other"}, headers=it.page)
        unlisted = it.client.post("/pair/codes", json={"address": "https://box.example"}, headers=it.page)

    assert made.status_code == 201
    assert told["address"] == apps.HOST
    assert told["link"].startswith("obsidian://knapper?vault=vault&address=http%3A%2F%2F127.0.0.1")
    assert told["qr"] is None
    assert paired.json()["name"] == "Phone"
    assert row["made_by"] == "page"
    assert (wrong.status_code, unlisted.json()["code"]) == (404, "host_not_listed")


def test_a_client_is_bound_to_the_vaults_folder_not_to_its_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with server(tmp_path / "a") as it:
        mine = it.token(name="Phone")
        state = it.world.settings.state_dir
    settings = replace(apps.settings(tmp_path / "b"), state_dir=state)  # another folder, also called v
    with apps.open_hub(settings) as hub:
        world = World(hub=hub, settings=settings, root=settings.vault.path)
        with world.client("", mounted(world, credentials.open_codes(state))) as client:
            read = client.get("/notes/Rain.md", headers=mine)
            named = client.get("/notes/Rain.md?vault=v", headers=mine)

    assert (read.status_code, read.json()["code"]) == (404, "no_vault")
    assert named.status_code == 404


def test_of_several_vaults_it_sees_its_own_and_the_others_sound_unknown(tmp_path: Path) -> None:
    settings = apps.settings(tmp_path)
    other = apps.worlds.fill(tmp_path / "other", {"Secret.md": "# Secret\n"}).resolve()
    settings = replace(settings, vaults=(settings.vault, Vault(name="w", path=other)))
    with apps.open_hub(settings) as hub:
        world = World(hub=hub, settings=settings, root=settings.vault.path)
        codes = credentials.open_codes(settings.state_dir)
        with world.client("", mounted(world, codes)) as client:
            code = codes.new(credentials.offer_vault(settings.vaults[1], "", "cli"))
            mine = bearer(client.post("/pair", json={"code": code}).json()["token"])
            own = client.get("/notes/Secret.md", headers=mine)
            others = client.get("/notes/Rain.md?vault=v", headers=mine)
            unknown = client.get("/notes/Rain.md?vault=nowhere", headers=mine)

    assert own.status_code == 200
    assert (others.status_code, unknown.status_code) == (404, 404)
    assert others.json()["error"].replace("'v'", "'nowhere'") == unknown.json()["error"]
    assert "v" not in others.json()["hint"].replace("vault", "").split()


def test_a_client_of_the_configuration_is_none_that_was_paired(tmp_path: Path) -> None:
    with server(tmp_path) as it:
        mine = it.token(name="Phone")
        state = it.world.settings
    later = replace(state, clients=(ClientSettings(grants=access.default_grants("Phone", "mcp")),))
    known = security.load_client_tokens(later)

    assert known.find_paired(mine["authorization"].removeprefix("Bearer ")) is None
    assert not later.client("Phone").grants.is_person


def paired_clients(folder: Path, start: datetime) -> tuple[PairedClients, list[datetime]]:
    now = [start]
    return PairedClients(folder=folder, now=lambda: now[0]), now


def wanted(name: str) -> PairedClient:
    return PairedClient(name=name, device="", vault="v", folder="/v", token_hash="", paired="", made_by="cli")


def test_when_a_client_was_last_there_is_known_to_the_minute(tmp_path: Path) -> None:
    start = datetime(2026, 11, 23, 9, tzinfo=UTC)
    stored, now = paired_clients(tmp_path, start)
    client = stored.add(wanted("Phone"), "t" * 30, ())
    now[0] = start + timedelta(hours=2)
    stored.note_use(client)
    now[0] = start + timedelta(hours=2, seconds=20)
    stored.note_use(client)
    used = stored.last_used(client)
    now[0] = start - timedelta(days=1)  # the clock was set back
    stored.note_use(client)

    assert used == start + timedelta(hours=2)
    assert stored.last_used(client) == start - timedelta(days=1)
    assert stored.is_current(client)


def test_there_is_an_end_to_how_many_are_paired_and_to_how_long_revoked_ones_are_remembered(tmp_path: Path) -> None:
    start = datetime(2026, 11, 23, 9, tzinfo=UTC)
    stored, now = paired_clients(tmp_path, start)
    for number in range(MAX_CLIENTS):
        _ = stored.add(wanted(f"Phone {number}"), secrets.token_hex(16), ())
    with pytest.raises(BadInput) as caught:
        _ = stored.add(wanted("One more"), secrets.token_hex(16), ())
    _ = stored.revoke("Phone 7")
    _ = stored.add(wanted("One more"), secrets.token_hex(16), ())
    remembered = stored.find("Phone 7")
    _ = stored.revoke("Phone 8")
    now[0] = start + timedelta(days=100)
    _ = stored.add(wanted("Later"), secrets.token_hex(16), ())

    assert caught.value.code == "too_many_clients"
    assert remembered is not None
    assert remembered.token_hash == ""
    assert stored.find("Phone 7") is None
    with pytest.raises(NotFound, match="no client 'Phone 7'"):
        _ = stored.revoke("Phone 7")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "Phone"}', "\xff"])
def test_a_damaged_file_lets_nobody_in_and_stops_nobody(tmp_path: Path, text: str) -> None:
    stored, _ = paired_clients(tmp_path, datetime(2026, 11, 23, 9, tzinfo=UTC))
    client = stored.add(wanted("Phone"), "t" * 30, ())
    _ = stored.add(wanted("Tablet"), "u" * 30, ())
    next(file for file in tmp_path.glob("*.json") if "Phone" in file.read_text("utf-8")).write_bytes(
        text.encode("latin-1")
    )

    assert stored.find_token("t" * 30) is None
    assert not stored.is_current(client)
    assert [one.name for one in stored.list_all()] == ["Tablet"]
    assert stored.find_token("") is None


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "box",
            "ftp://127.0.0.1",
            "http://",
            "http://127.0.0.1/path",
            "http://127.0.0.1?x=1",
            "http://a@127.0.0.1",
        ),
        *(
            "http://127.0.0.1:x",
            "http://127.0.0.1#token",
            "http://127.0.0.1\n",
            "https://[::1",
            "http://bücher.example",
        ),
        "http://127.0.0.1 ",
        "https://" + "x" * 400,
    ],
)
def test_what_is_no_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises((BadInput, SetupError)) as caught:
        _ = credentials.check_address(apps.settings(tmp_path), address)

    assert caught.value.code in {"bad_address", "host_not_listed"}


def test_an_address_has_to_be_one_by_which_the_server_answers(tmp_path: Path) -> None:
    listed: Settings = apps.settings(tmp_path, server=replace(apps.NO_LIMIT, hosts=("box.ts.net",)))
    wide = apps.settings(tmp_path, server=replace(apps.NO_LIMIT, host="0.0.0.0", token="t" * 30))

    assert credentials.check_address(listed, "https://box.ts.net/") == "https://box.ts.net"
    assert credentials.check_address(wide, "http://192.168.1.7:9") == "http://192.168.1.7:9"
    with pytest.raises(SetupError, match=r"other\.ts\.net") as caught:
        _ = credentials.check_address(listed, "https://other.ts.net")
    assert "knap config set server.hosts box.ts.net,other.ts.net" in caught.value.hint


def test_a_link_holds_the_address_and_the_code_and_nothing_breaks_out_of_it() -> None:
    link = credentials.pairing_link("https://box.ts.net", "ABCD-EFGH", "/home/me/My & Notes?#=Ж")

    assert link == (
        "obsidian://knapper?vault=My%20%26%20Notes%3F%23%3D%D0%96&address=https%3A%2F%2Fbox.ts.net&code=ABCD-EFGH"
    )


def test_a_qr_code_is_made_for_https_alone() -> None:
    offer = PairingOffer(vault="v", folder="/v", name="", made_by="cli")
    rows = credentials.Invitation(code="ABCD-EFGH", address="https://box.ts.net", offer=offer).qr
    plain = credentials.Invitation(code="ABCD-EFGH", address="http://192.168.1.7:25627", offer=offer).qr

    assert rows is not None
    assert {len(row) for row in rows} == {len(rows)}
    assert rows[4][4:11] == "1111111"  # the finder pattern, inside the quiet zone
    assert plain is None
    assert "without HTTPS" in credentials.why_no_qr("http://192.168.1.7:25627")
    assert "other devices don't reach" in credentials.why_no_qr("http://127.0.0.1:25627")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_documents_word(tmp_path: Path, mode: GenerationMode) -> None:
    with apps.world(tmp_path) as world:
        codes = credentials.open_codes(world.settings.state_dir)
        contract = contracts.of_app(
            world.app(mounted(world, codes)),
            world.token("page"),
            {"/pair", "/pair/codes", "/clients", "/clients/{name}"},
        )
        found = contracts.broken_words(contract, mode)

    assert found == []
