"""The page's settings in a real browser: sections, wrong values, keys that never come back, pairing, a first visit."""

import contextlib
import re
import tomllib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

import keyring
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from knapper import config
from knapper.app import Hub
from knapper.config import ClientSettings, Settings, Vault
from knapper.config.sections import ServerSettings
from knapper.config.settings import SETTINGS
from knapper.index import refresh
from knapper.server import credentials
from knapper.server.http import clients, indexing
from knapper.server.http.app import Mount
from knapper.server.http.clients import PairingService
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.system import private
from knapper.vault import access
from tests.agents.scripted import Model
from tests.agents.test_keys import Ring
from tests.page import axe, sites
from tests.page.conftest import WAIT_MS
from tests.page.sites import Site
from tests.page.test_shell import SIZES, listening, picture

KEY = "sk-nobody-is-told-1234567890"
READY = Model([["ready"]])
SECTIONS = ("models", "agents", "web", "limits", "index", "clients", "appearance", "about")
HOSTILE = '<img src=x onerror="document.title=1"> & \u202egnp.exe'
FILE = """# mine
[agents]
link_depth = 1  # near ones

[model]
name = "openai:gpt-4o-mini"
day_tokens = 200000
day_cents = 300
"""


@pytest.fixture(autouse=True)
def ring() -> Generator[Ring]:
    before, own = keyring.get_keyring(), Ring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        for name in setting.env:
            monkeypatch.delenv(name, raising=False)


def mounts(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    threads = WorkerThreads(4)
    service = PairingService(hub, credentials.open_codes(hub.settings.state_dir), "instance-of-the-test")
    return [
        clients.mount_clients(service, hub, threads),
        indexing.mount_index(hub, threads, stop),
    ]


def _same(found: Settings) -> Settings:
    return found


@contextlib.contextmanager
def serving(
    base: Path,
    text: str = "",
    *,
    change: Callable[[Settings], Settings] = _same,
    model: Model = READY,
) -> Generator[Site]:
    def configured(found: Settings) -> Settings:
        if text:
            found.config_file.write_text(text, encoding="utf-8")
            read = config.load(config_file=str(found.config_file))
            found = replace(found, origins=read.origins, agents=read.agents, model=read.model)
        return change(found)

    with sites.serving(base, model.open, change=configured, more=mounts) as site:
        yield site


def stored(site: Site) -> dict[str, object]:
    return tomllib.loads(site.hub.settings.config_file.read_text(encoding="utf-8"))


def open_section(site: Site, tab: Page, section: str) -> None:
    site.enter(tab, f"/app/settings/{section}")
    expect(tab.locator(".k-settings .k-set-group").first).to_be_visible()


def row(tab: Page, name: str) -> Locator:
    return tab.locator(f'[data-name="{name}"]')


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_section_is_whole_fits_and_is_accessible(
    tmp_path: Path, browser: Browser, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    reader = ClientSettings(
        grants=replace(access.default_grants("reader"), write=("Inbox/",), small="apply"), hidden=("Private/",)
    )
    with (
        serving(tmp_path, FILE, change=lambda found: replace(found, clients=(reader,))) as site,
        browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            locale="en",
        ) as context,
    ):
        context.set_default_timeout(WAIT_MS)
        offer = credentials.offer_vault(site.hub.vault_folders[0], "Phone", "page")
        _ = credentials.pair(site.hub.settings, offer, "Phone", "Obsidian on an iPhone 17")
        tab = context.new_page()
        site.enter(tab)
        with listening(tab) as told:
            for section in SECTIONS:
                tab.goto(f"{site.address}/app/settings/{section}")
                expect(tab.locator(".k-settings .k-set-group").first).to_be_visible()
                expect(tab.get_by_role("status", name="Loading")).to_have_count(0)
                picture(tab, f"settings-{section}-{size}-{scheme}")

                assert axe.findings(tab) == [], section
                assert tab.evaluate("document.documentElement.scrollWidth") <= width, section
                assert tab.locator(".k-content").evaluate("node => node.scrollWidth - node.clientWidth") <= 0, section

    assert told == []


@pytest.mark.timeout(120)
def test_a_value_is_saved_checked_and_reset(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site, listening(tab) as told:
        open_section(site, tab, "agents")
        depth = row(tab, "agents.link_depth")
        field = tab.get_by_role("textbox", name="Link depth")
        expect(field).to_have_value("1")
        expect(depth).to_contain_text("Default: 2")
        expect(depth).to_contain_text("0 to 3")
        expect(depth).to_contain_text("From config.toml, line 3")

        field.fill("9")
        field.press("Enter")
        expect(depth.get_by_role("alert")).to_contain_text("9 is out of range: 0 to 3.")
        expect(field).to_have_attribute("aria-invalid", "true")
        field.press("Escape")
        expect(field).to_have_value("1")
        expect(depth.get_by_role("alert")).to_have_count(0)
        field.fill("3")
        field.press("Enter")
        expect(depth.get_by_role("status")).to_contain_text("Saved")
        assert stored(site)["agents"] == {"link_depth": 3}

        depth.get_by_role("button", name="Reset to default").click()
        expect(field).to_have_value("2")
        expect(depth).to_contain_text("Default")
        assert "agents" not in stored(site) or stored(site)["agents"] == {}

        row(tab, "agents.same_folder").get_by_role("switch").click()
        expect(row(tab, "agents.same_folder").get_by_role("switch")).to_have_attribute("aria-checked", "true")
        tab.get_by_label("Editable notes").select_option("current")
        row(tab, "agents.can").get_by_label("delete").uncheck()
        tab.get_by_label("Excluded folders").fill("Archive/\n\n  Templates/")
        tab.get_by_label("Excluded folders").blur()
        expect(row(tab, "agents.excluded_folders").get_by_role("status")).to_contain_text("Saved")

    assert stored(site)["agents"] == {
        "same_folder": "on",
        "editable": "current",
        "can": ["add", "create", "navigate"],
        "excluded_folders": ["Archive/", "Templates/"],
    }
    assert told == []


@pytest.mark.timeout(120)
def test_what_the_server_refuses_stands_beside_the_field(tmp_path: Path, tab: Page) -> None:
    text = FILE + f'openai_api_key = "{KEY}"\n'
    with serving(tmp_path, text) as site:
        open_section(site, tab, "models")
        address = tab.get_by_label("Ollama address")
        address.fill("nowhere")
        address.press("Enter")
        expect(row(tab, "model.ollama_url").get_by_role("alert")).to_contain_text("An address starts with http")
        address.fill("http://127.0.0.1:9")
        address.press("Enter")

        expect(row(tab, "model.ollama_url").get_by_role("alert")).to_contain_text("isn't changed while a key is set")
        assert KEY not in tab.content()


@pytest.mark.timeout(120)
def test_a_variable_and_what_the_file_alone_decides_are_told_and_not_editable(
    tmp_path: Path, tab: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAP_WEB_MAX_PAGES", "2")
    with serving(tmp_path) as site:
        open_section(site, tab, "web")
        pages = row(tab, "web.max_pages")
        expect(tab.get_by_label("Pages read per question")).to_be_disabled()
        expect(pages).to_contain_text("From the environment variable KNAP_WEB_MAX_PAGES")
        tab.get_by_role("list", name="Sections").get_by_text("About").click()
        expect(tab.get_by_label("Listen address")).to_be_disabled()

        expect(row(tab, "server.host")).to_contain_text("Only in the configuration file")


@pytest.mark.timeout(120)
def test_a_key_goes_into_the_keyring_and_never_comes_back(tmp_path: Path, tab: Page, ring: Ring) -> None:
    with serving(tmp_path, FILE) as site, listening(tab) as told:
        open_section(site, tab, "models")
        requests: list[str] = []
        tab.on("request", lambda request: requests.append(request.url))
        field = tab.get_by_role("textbox", name="Key of OpenAI")
        keys = tab.get_by_role("region", name="Keys")
        field.fill(KEY)
        keys.get_by_role("button", name="Save key").first.click()
        expect(keys.get_by_text("In the keyring")).to_be_visible()
        expect(field).to_have_value("")
        held = dict(ring.held)
        everything = tab.content() + tab.evaluate("[...document.querySelectorAll('input')].map(i => i.value).join()")
        kept = tab.evaluate("JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage})")
        tab.reload()
        expect(keys.get_by_text("In the keyring")).to_be_visible()
        again = tab.content()

        keys.get_by_role("button", name="Remove the Key of OpenAI").click()
        tab.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(keys.get_by_text("In the keyring")).to_have_count(0)

    assert held == {("knapper", "openai"): KEY}
    assert ring.held == {}
    assert KEY not in everything + kept + again + "".join(requests)
    assert told == []


@pytest.mark.timeout(120)
def test_without_a_keyring_a_key_goes_into_the_file_and_is_not_shown_either(tmp_path: Path, tab: Page) -> None:
    from keyring.backends import fail  # noqa: PLC0415 - as a machine without one has it

    keyring.set_keyring(fail.Keyring())
    with serving(tmp_path, FILE) as site:
        open_section(site, tab, "models")
        expect(tab.get_by_text("This computer has no working keyring")).to_be_visible()
        tab.get_by_label("Key of Anthropic").fill(KEY)
        tab.keyboard.press("Enter")
        kept = tab.get_by_role("region", name="Keys").get_by_text("In the configuration file", exact=True)
        expect(kept).to_be_visible()

        assert stored(site)["model"] == {
            "name": "openai:gpt-4o-mini",
            "day_tokens": 200000,
            "day_cents": 300,
            "anthropic_api_key": KEY,
        }
        assert KEY not in tab.content()


@pytest.mark.timeout(120)
def test_a_model_is_chosen_and_tried_and_answers_at_once(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        open_section(site, tab, "models")
        tab.get_by_label("Provider").select_option("openrouter")
        model = tab.get_by_role("region", name="Model", exact=True)
        model.get_by_role("button", name="Use and test").click()
        expect(model.get_by_text("Enter the model's name.")).to_be_visible()
        tab.get_by_role("combobox", name="Model", exact=True).fill("google/gemini-2.5-flash")
        model.get_by_role("button", name="Use and test").click()
        expect(model.get_by_role("status").last).to_contain_text("openrouter:google/gemini-2.5-flash answered")
        expect(model.get_by_role("status").last).to_contain_text(re.compile(r"ready.*tokens"))
        picture(tab, "settings-trial")
        shown = stored(site)

        tab.goto(f"{site.address}/app/settings/limits")
        expect(tab.get_by_text("1 request")).to_be_visible()

    assert shown == {"model": {"name": "openrouter:google/gemini-2.5-flash"}}


@pytest.mark.timeout(120)
def test_a_device_is_paired_by_another_browser_and_revoked(tmp_path: Path, browser: Browser, tab: Page) -> None:
    with serving(tmp_path, FILE) as site, browser.new_context() as other, listening(tab) as told:
        open_section(site, tab, "clients")
        tab.get_by_role("button", name="Pair a device").click()
        dialog = tab.get_by_role("dialog", name="Pair a device")
        dialog.get_by_role("button", name="Create code").click()
        code = dialog.get_by_label("Code", exact=True)
        expect(code).to_have_text(re.compile(r"^[A-Z2-9]{4}-[A-Z2-9]{4}$"))
        expect(dialog.get_by_role("timer")).to_contain_text(re.compile(r"1:[0-5]\d more"))
        expect(dialog.get_by_text("There is no QR code for http://127.0.0.1")).to_be_visible()
        expect(dialog.get_by_role("link", name="Open in Obsidian")).to_have_attribute(
            "href", re.compile(r"^obsidian://knapper\?vault=")
        )
        picture(tab, "settings-pairing")
        asking = other.new_page()
        asking.goto(site.address)
        answer = asking.evaluate(
            "said => fetch('/pair', {method: 'POST', headers: {'content-type': 'application/json'},"
            " body: JSON.stringify(said)}).then(reply => reply.json())",
            {"code": code.inner_text(), "name": HOSTILE, "device": HOSTILE},
        )
        expect(dialog.get_by_text("is paired")).to_be_visible()
        dialog.get_by_role("button", name="Done").click()
        devices = tab.get_by_role("list", name="Paired devices")
        expect(devices).to_contain_text(answer["name"])
        assert tab.locator("img").count() == 0
        assert "\u202e" not in tab.content()

        token = {"authorization": f"Bearer {answer['token']}"}
        assert other.request.get(f"{site.address}/tools", headers=token).status == 200
        devices.get_by_role("button", name=f"Revoke {answer['name']}").click()
        tab.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(tab.get_by_text("No paired devices")).to_be_visible()
        assert other.request.get(f"{site.address}/tools", headers=token).status == 401
        assert answer["token"] not in tab.content()

    assert told == []


@pytest.mark.timeout(120)
def test_over_https_the_code_is_a_picture_too(tmp_path: Path, tab: Page) -> None:
    def named(found: Settings) -> Settings:
        return replace(found, server=ServerSettings(hosts=("notes.example",), requests_per_minute=0))

    with serving(tmp_path, FILE, change=named) as site:
        open_section(site, tab, "clients")
        tab.get_by_role("button", name="Pair a device").click()
        dialog = tab.get_by_role("dialog", name="Pair a device")
        dialog.get_by_label("Address of this server").fill("https://elsewhere.example")
        dialog.get_by_role("button", name="Create code").click()
        expect(dialog.get_by_role("alert")).to_contain_text("The server doesn't answer by the name elsewhere.example")
        dialog.get_by_label("Address of this server").fill("https://notes.example")
        dialog.get_by_role("button", name="Create code").click()

        expect(dialog.get_by_role("img", name="QR code of the link")).to_be_visible()
        picture(tab, "settings-qr")
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("button", name="Pair a device")).to_be_focused()


@pytest.mark.timeout(120)
def test_who_read_foreign_text_is_shown_and_trusted_again(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site:
        context = site.hub.context(client="http")
        context.writer.taints.mark("http", "", HOSTILE)
        open_section(site, tab, "clients")
        held = tab.get_by_role("list", name="Limited to proposals")
        expect(held).to_contain_text("http")
        expect(held).to_contain_text("<img src=x")
        picture(tab, "settings-trust")
        held.get_by_role("button", name="Trust again: http").click()

        expect(tab.get_by_text("No client is limited now.")).to_be_visible()


@pytest.mark.timeout(120)
def test_the_rights_of_a_program_are_changed_in_the_file(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site, listening(tab) as told:
        open_section(site, tab, "clients")
        expect(tab.get_by_role("button", name="Edit permissions of page")).to_have_count(0)
        tab.get_by_role("button", name="Edit permissions of mcp").click()
        rights = tab.get_by_role("group", name="Permissions of mcp")
        rights.get_by_role("combobox", name="Small changes").select_option("propose")
        small = rights.locator('[data-name="small"]')
        expect(small).to_contain_text("Takes effect after a restart")
        rights.get_by_role("textbox", name="Changes only").fill(f"Inbox/\n{HOSTILE}")
        tab.keyboard.press("Tab")
        expect(rights.locator('[data-name="write"]').get_by_role("status")).to_contain_text("Saved")
        rights.get_by_role("textbox", name="Changes only").fill("!Inbox/")
        tab.keyboard.press("Tab")
        expect(rights.get_by_role("alert")).to_contain_text("doesn't take anything back here")
        picture(tab, "settings-rights")
        first = stored(site)
        with tab.expect_response(lambda response: response.request.method == "PUT"):  # its value is shown before
            small.get_by_role("button", name="Reset to default: Small changes").click()
        expect(rights.get_by_role("combobox", name="Small changes")).to_have_value("apply")

        assert first["clients"] == {"mcp": {"small": "propose", "write": ["Inbox/", HOSTILE]}}
        assert stored(site)["clients"] == {"mcp": {"write": ["Inbox/", HOSTILE]}}
        assert tab.locator("img").count() == 0
        assert axe.findings(tab) == []
    assert [line for line in told if "422" not in line] == []  # the browser tells of the one that was refused


@pytest.mark.timeout(120)
def test_the_index_is_brought_up_to_date_with_its_progress(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site:
        open_section(site, tab, "index")
        (site.root / "New.md").write_text("# New\n\nWords.\n", encoding="utf-8")
        tab.get_by_role("button", name="Update now").click()
        # One, or all three where the server hadn't read the others yet.
        expect(tab.get_by_text(re.compile("Up to date · (1 note|3 notes) read"))).to_be_visible()
        expect(tab.get_by_role("region", name="Index", exact=True)).to_contain_text("Search by meaning is off")
        tab.get_by_role("button", name="Rebuild").click()
        tab.get_by_role("dialog").get_by_role("button", name="Rebuild").click()

        expect(tab.get_by_text("Up to date · 3 notes read")).to_be_visible()


@pytest.mark.timeout(120)
def test_with_several_vaults_and_hostile_names_every_section_works_too(tmp_path: Path, tab: Page) -> None:
    def several(found: Settings) -> Settings:
        (tmp_path / "other").mkdir()
        return replace(found, vaults=(found.vault, Vault(name=HOSTILE, path=tmp_path / "other")))

    text = FILE + f"fallbacks = [{HOSTILE!r}]\n\n[web]\nmodel = {HOSTILE!r}\n"
    with serving(tmp_path, text, change=several) as site, listening(tab) as told:
        for section in SECTIONS:
            open_section(site, tab, section)
            expect(tab.get_by_role("status", name="Loading")).to_have_count(0)
            expect(tab.locator(".k-settings .k-notice[data-tone=removed]")).to_have_count(0)
            assert tab.locator("img").count() == 0
        tab.goto(f"{site.address}/app/settings/agents")
        row(tab, "agents.same_folder").get_by_role("switch").click()
        expect(row(tab, "agents.same_folder").get_by_role("status")).to_contain_text("Saved")
        tab.goto(f"{site.address}/app/settings/index")
        tab.get_by_role("button", name="Update now").click()
        expect(tab.get_by_text("Up to date ·")).to_be_visible()

        assert tab.title() != "1"
    assert told == []


@pytest.mark.timeout(120)
def test_the_language_of_dates_and_the_theme_are_kept(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site:
        open_section(site, tab, "appearance")
        tab.get_by_label("Date format").select_option("de")
        expect(tab.get_by_text("gestern")).to_be_visible()
        tab.get_by_role("radio", name="Dark").click()
        tab.reload()
        expect(tab.get_by_text("gestern")).to_be_visible()

        expect(tab.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.timeout(120)
def test_settings_are_changed_by_keys_alone(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, FILE) as site:
        site.enter(tab)
        expect(tab.get_by_label("Search your notes")).to_be_focused()
        tab.keyboard.press("Control+k")
        expect(tab.get_by_role("combobox", name="Find notes, conversations and commands")).to_be_focused()
        tab.keyboard.type("limits and usage")
        expect(tab.get_by_role("option", name="Settings: Limits and usage")).to_be_visible()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name="Today")).to_be_visible()
        tab.get_by_label("Per answer", exact=True).focus()
        tab.keyboard.press("Control+a")
        tab.keyboard.type("1000")
        tab.keyboard.press("Tab")
        expect(row(tab, "model.turn_tokens").get_by_role("status")).to_contain_text("Saved")

        assert stored(site)["model"]["turn_tokens"] == 1000  # pyright: ignore[reportIndexIssue]


@pytest.mark.timeout(120)
def test_a_first_visit_leads_from_the_index_over_the_model_to_a_question(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab)
        card = tab.get_by_role("region", name="First steps")
        expect(card.get_by_role("heading", name="Choose a model")).to_be_visible()
        picture(tab, "first-search")
        assert axe.findings(tab) == []
        if card.get_by_role("button", name="Index now").count():
            card.get_by_role("button", name="Index now").click()
        expect(card.get_by_text("2 notes can be searched.")).to_be_visible()
        card.get_by_role("link", name="Choose a model").click()
        tab.get_by_role("combobox", name="Model", exact=True).fill("qwen3:8b")
        tab.get_by_role("button", name="Use and test").click()
        expect(tab.get_by_text("ollama:qwen3:8b answered")).to_be_visible()
        tab.get_by_role("navigation", name="Views").get_by_role("link", name="Search").click()
        expect(card).to_have_count(0)
        tab.reload()
        expect(tab.get_by_role("heading", name="Recently changed")).to_be_visible()

        expect(card).to_have_count(0)


@pytest.mark.timeout(120)
def test_the_first_steps_offer_no_second_indexing_while_one_is_under_way(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        engine = site.hub.open("").engine
        with private.acquire_process_lock(engine.folder, refresh.WRITE_LOCK_FILE, wait_s=10) as is_held:
            assert is_held
            site.enter(tab)
            card = tab.get_by_role("region", name="First steps")
            expect(card.get_by_role("status")).to_have_text("Being indexed right now.")
            expect(card.get_by_role("button", name="Index now")).to_have_count(0)
            picture(tab, "first-indexing")
            assert axe.findings(tab) == []

        expect(card.get_by_role("button", name="Index now")).to_be_visible()


@pytest.mark.timeout(120)
def test_who_wants_no_model_is_not_asked_again(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        _ = site.hub.open("").engine.refresh()
        site.enter(tab, "/app/chat/new")
        card = tab.get_by_role("region", name="First steps")
        expect(card).to_be_visible()
        picture(tab, "first-chat")
        card.get_by_role("button", name="Not now").click()
        expect(card).to_have_count(0)
        tab.reload()
        expect(tab.get_by_role("heading", name="Ask your notes")).to_be_visible()

        expect(card).to_have_count(0)
