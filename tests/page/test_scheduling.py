"""Schedules on the page: making, changing, running and deleting one, and what becomes of its runs."""

import datetime as dt
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pydantic_ai.models import Model as AnyModel

from knapper.agents.stages import Schedule, ScheduledRun, ScheduleStore
from knapper.app import Hub, schedules
from knapper.server.http import feed
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents.scripted import Call, Model
from tests.page import axe, sites
from tests.page.conftest import WAIT_MS
from tests.page.sites import Site
from tests.page.test_shell import SIZES, listening, picture
from tests.server.chats import Gate

pytestmark = pytest.mark.timeout(120)
NOTES = {**sites.NOTES, "Lone.md": "# Lone\n\nNothing leads here.\n"}
PROPOSE = Call("append_to_file", {"path": "Lone.md", "content": "- See also [[Garden]]: where it stands"})
REPORT = "Proposed a link from Lone to Garden."
QUIET = Model([[REPORT]])


@contextmanager
def serving(base: Path, opens: Callable[[], AnyModel]) -> Generator[Site]:
    """Serve the page with the vault's news."""

    def more(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
        return [feed.mount_feed(hub, WorkerThreads(2), stop)]

    with sites.serving(base, opens, notes=NOTES, more=more) as site:
        yield site


def store_of(site: Site) -> ScheduleStore:
    return schedules.open_schedules(site.hub)


def main(tab: Page) -> Locator:
    return tab.locator("main")


def fact(tab: Page, name: str) -> Locator:
    """Give what stands beside a name."""
    return main(tab).locator("dt", has_text=re.compile(f"^{name}$")).locator("+ dd")


def row(tab: Page, name: str) -> Locator:
    return tab.get_by_role("list", name="Schedules").get_by_role("link", name=name)


def stored(site: Site, name: str = "weekly-review", **more: object) -> None:
    made = Schedule(name=name, agent="weekly-review", cadence="daily", handled=dt.datetime.now())  # noqa: DTZ005
    _ = store_of(site).add(replace(made, **more))


def test_a_first_schedule_is_made_by_its_form(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        site.enter(tab, "/app/schedules")
        expect(main(tab)).to_contain_text("Let agents work on their own")
        main(tab).get_by_role("link", name="New schedule").click()
        expect(tab.get_by_label("Agent", exact=True)).to_be_focused()
        expect(main(tab)).to_contain_text("Propose links between notes that have none")
        tab.get_by_label("Day", exact=True).select_option("Friday")
        tab.get_by_label("Time", exact=True).fill("07:30")
        tab.get_by_text("Limits and reports").click()
        tab.get_by_label("Tokens per run").fill("50000")
        tab.get_by_label("Name", exact=True).fill("fridays")
        tab.get_by_role("button", name="Add schedule").click()

        expect(tab).to_have_url(re.compile(r"/app/schedules/fridays$"))
        expect(fact(tab, "When")).to_have_text("Every Friday at 07:30")
        expect(fact(tab, "Next run")).to_contain_text("7:30")
        expect(fact(tab, "Changes")).to_have_text("Proposed")
        expect(fact(tab, "Limits")).to_contain_text("50k tokens and 60 minutes")
        expect(main(tab)).to_contain_text("It hasn't run yet.")
        expect(row(tab, "fridays")).to_contain_text("Every Friday at 07:30")
        (kept,) = store_of(site).all()
        assert (kept.weekday, kept.max_tokens, kept.may_apply, kept.results) == (4, 50_000, False, "Reviews")


def test_what_the_server_refuses_is_shown_in_the_form(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        stored(site)
        site.enter(tab, "/app/schedules?new=1")
        tab.get_by_label("When", exact=True).select_option("changed")
        tab.get_by_label("Folder", exact=True).fill("Nowhere")
        tab.get_by_role("button", name="Add schedule").click()
        expect(tab.get_by_role("alert")).to_contain_text("Nowhere")
        tab.get_by_label("Folder", exact=True).fill("Plans")
        tab.get_by_role("button", name="Add schedule").click()

        expect(tab.get_by_role("alert")).to_contain_text("there is a schedule 'weekly-review' already")
        assert len(store_of(site).all()) == 1


def test_a_schedule_is_changed_and_keeps_what_wasnt_asked(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        stored(site, runs=("a",), max_open=7)
        site.enter(tab, "/app/schedules/weekly-review")
        expect(fact(tab, "When")).to_have_text("Every day at 18:00")
        tab.keyboard.press("e")
        tab.get_by_label("When", exact=True).select_option("changed")
        tab.get_by_label("Folder", exact=True).fill("Plans")
        tab.get_by_role("radio", name="Apply").check()
        tab.get_by_role("button", name="Save").click()

        expect(fact(tab, "When")).to_have_text("When notes in Plans change")
        expect(fact(tab, "Next run")).to_have_text("After a change")
        expect(fact(tab, "Changes")).to_contain_text("Applied")
        (kept,) = store_of(site).all()
        assert (kept.cadence, kept.folder, kept.may_apply, kept.max_open) == ("changed", "Plans", True, 7)
        assert (kept.runs, bool(kept.fingerprint)) == (("a",), True)


def test_a_run_is_begun_and_leads_to_its_proposals_report_and_conversation(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, Model([[PROPOSE], [REPORT]]).open) as site:
        stored(site)
        site.enter(tab, "/app/schedules/weekly-review")
        main(tab).get_by_role("button", name="Run now").click()
        last = tab.get_by_role("region", name="Last run")
        expect(last).to_contain_text("Complete, 1 proposal")
        waiting = tab.get_by_role("region", name="Waiting for review")
        expect(waiting.get_by_role("link")).to_have_count(2)
        expect(tab.locator(".k-toasts")).to_contain_text("weekly-review: Complete, 1 proposal")
        last.get_by_role("button", name="Open the report").click()
        expect(tab).to_have_url(re.compile(r"/app/review/"))
        tab.go_back()
        waiting.get_by_role("link", name="Lone").click()
        expect(main(tab)).to_contain_text("See also")
        tab.go_back()
        last.get_by_role("link", name="Open the run").click()

        expect(main(tab)).to_contain_text(REPORT)


def test_a_run_is_followed_and_stopped(tmp_path: Path, tab: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "CANCEL_POLL_S", 0.05)
    gate = Gate()
    with serving(tmp_path, gate.open) as site:
        stored(site)
        site.enter(tab, "/app/schedules/weekly-review")
        expect(fact(tab, "Agent")).to_have_text("weekly-review")
        tab.keyboard.press("r")
        gate.until_waiting()
        last = tab.get_by_role("region", name="Last run")
        expect(last).to_contain_text("Running")
        expect(row(tab, "weekly-review")).to_contain_text("Running")
        expect(last.get_by_role("link", name="Follow the run")).to_have_attribute("href", re.compile("^/app/chat/"))
        main(tab).get_by_role("button", name="Stop").click()

        expect(last).to_contain_text("Cancelled")
        expect(main(tab).get_by_role("button", name="Run now")).to_be_enabled()


def test_why_nothing_happens_is_told(tmp_path: Path, tab: Page) -> None:
    held = ScheduledRun(at=dt.datetime.now(), state="held", reason="1 of its proposals waits")  # noqa: DTZ005
    with serving(tmp_path, Model([[PROPOSE], [REPORT]]).open) as site:
        stored(site, max_open=2)
        stored(site, name="later", last=held)
        site.enter(tab, "/app/schedules/weekly-review")
        main(tab).get_by_role("button", name="Run now").click()
        expect(main(tab).locator(".k-notice")).to_contain_text("On hold: 2 proposals of its runs wait for review")
        expect(row(tab, "weekly-review")).to_contain_text("On hold")
        tab.keyboard.press("p")
        expect(main(tab).locator(".k-notice")).to_contain_text("Paused")
        expect(fact(tab, "Next run")).to_have_text("Paused")
        expect(row(tab, "weekly-review")).to_contain_text("Paused")
        assert store_of(site).find("weekly-review").is_paused
        main(tab).get_by_role("button", name="Resume").click()
        expect(fact(tab, "Next run")).to_contain_text("6:00")
        tab.keyboard.press("k")

        expect(main(tab).locator("h1")).to_have_text("later")
        expect(tab.get_by_role("region", name="Last run")).to_contain_text("Not run: too many proposals wait")


def test_a_schedule_is_deleted_after_a_question(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        stored(site)
        site.enter(tab, "/app/schedules/weekly-review")
        for answer in ("Cancel", "Delete"):
            main(tab).get_by_role("button", name="Actions for weekly-review").click()
            tab.get_by_role("menuitem", name="Delete").click()
            tab.get_by_role("dialog").get_by_role("button", name=answer).click()

        expect(main(tab)).to_contain_text("Let agents work on their own")
        assert store_of(site).all() == []


def test_what_happens_elsewhere_is_seen_at_once(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        site.enter(tab, "/app/schedules")
        expect(main(tab)).to_contain_text("Let agents work on their own")
        stored(site, name="nightly")
        expect(fact(tab, "When")).to_have_text("Every day at 18:00")
        store_of(site).remove("nightly")

        expect(main(tab)).to_contain_text("There is no schedule “nightly”")


def test_schedules_are_found_by_keys_and_by_the_palette(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, QUIET.open) as site:
        stored(site, name="nightly")
        site.enter(tab, "/app/settings")
        expect(tab.locator(".k-set-control").first).to_be_visible()
        tab.locator("body").press("g")
        tab.locator("body").press("d")
        expect(main(tab).locator("h1")).to_have_text("nightly")
        tab.keyboard.press("c")
        expect(main(tab).locator("h1")).to_have_text("New schedule")
        tab.goto(f"{site.address}/app/search")
        tab.keyboard.press("Control+k")
        tab.keyboard.type("nightly")
        tab.get_by_role("group", name="Schedules").get_by_role("option", name="nightly").click()

        expect(tab).to_have_url(re.compile(r"/app/schedules/nightly$"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_nothing_of_it_overflows_or_has_a_serious_finding(
    tmp_path: Path, browser: Browser, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    found: list[str] = []
    failed = ScheduledRun(
        at=dt.datetime.now(),  # noqa: DTZ005
        state="failed",
        reason="no model is set (set one up: `knap models`)",
    )
    with (
        serving(tmp_path, Model([[PROPOSE], [REPORT]]).open) as site,
        browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            locale="en",
        ) as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab)

        def look(name: str, address: str, sign: str, press: str = "") -> None:
            tab.goto(f"{site.address}{address}")
            expect(tab.get_by_text(sign).locator("visible=true").first).to_be_visible()
            if press:
                tab.get_by_text(press).click()
            picture(tab, f"schedules-{name}-{size}-{scheme}")
            found.extend(f"{name}: {finding}" for finding in axe.findings(tab))
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, name

        with listening(tab) as told:
            look("empty", "/app/schedules", "No schedules yet")
            stored(site, name="inbox-when-it-changes", cadence="changed", folder="Plans", last=failed, is_paused=True)
            stored(site, max_open=2)
            look("form", "/app/schedules?new=1", "Limits and reports", press="Limits and reports")
            look("paused", "/app/schedules/inbox-when-it-changes", "Runs it misses aren't made up for")
            look("new", "/app/schedules/weekly-review", "It hasn't run yet")
            tab.get_by_role("button", name="Run now").click()
            expect(tab.get_by_text("Complete, 1 proposal").first).to_be_visible()
            look("held", "/app/schedules/weekly-review", "On hold")
            look("list", "/app/schedules", "weekly-review")
            look("gone", "/app/schedules/nothing", "There is no schedule “nothing”")
            look("runs", "/app/runs", "No runs yet")

    assert found == [], "\n".join(found)
    assert told == []


def test_on_a_phone_runs_lead_to_it(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path, QUIET.open) as site, browser.new_context(viewport={"width": 390, "height": 844}) as context:
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab, "/app/runs")
        views = tab.get_by_role("navigation", name="Views")
        expect(views.get_by_role("link", name="Schedules")).to_have_count(0)
        tab.get_by_role("link", name="Schedules").click()

        expect(tab.get_by_text("No schedules yet")).to_be_visible()
        expect(views.get_by_role("link", name="Runs")).to_have_attribute("aria-current", "page")
