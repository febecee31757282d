"""Have programs propose and change notes beside the page, and look at what the page shows of it."""

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Locator, Page, expect

from knapper.app import Hub
from knapper.changes.writer import SubmitOptions
from knapper.config import Settings
from knapper.server.http import feed
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from knapper.tools import files, proposals
from tests.agents.scripted import Model
from tests.page import sites
from tests.page.sites import Site

BARREL: Final = "water from the barrel"
OLD_BARREL: Final = "rain water from the old barrel"
SHED: Final = "in the shed"
BARN: Final = "in the barn"


@contextmanager
def serving(
    base: Path,
    *,
    notes: Mapping[str, str] = sites.NOTES,
    change: Callable[[Settings], Settings] = lambda found: found,
) -> Generator[Site]:
    """Serve a vault with its news, as a whole server does."""
    threads = WorkerThreads(2)

    def news(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
        return [feed.mount_feed(hub, threads, stop)]

    with sites.serving(base, Model([["Hello."]]).open, notes=notes, change=change, more=news) as site:
        yield site
    threads.close()


def propose(
    site: Site, path: str = "Garden.md", client: str = "agent", *, run: str = "", reason: str = "", **changed: str
) -> str:
    """Have a program propose other words in the place of some; return the proposal's id."""
    text = site.read(path)
    base = hashlib.sha256(text.encode()).hexdigest()
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    context = site.hub.context(client=client, submit_options=SubmitOptions(run=run, reason=reason, propose=True))
    answer = files.write_file(context, path, text, f"sha256:{base}")
    assert answer["status"] == "proposed", answer
    return str(answer["proposal_id"])


def two_places(site: Site, **more: str) -> str:
    """Have a program propose to change the garden's note at two places."""
    return propose(site, **{BARREL: OLD_BARREL, SHED: BARN}, **more)


def accept(site: Site, path: str = "Garden.md", *, run: str = "", reason: str = "", **changed: str) -> str:
    """Have a person accept what a program proposes; return the change's id."""
    name = propose(site, path, run=run, reason=reason, **changed)
    context = site.hub.context(client="page")
    shown = proposals.show_proposal(context, name)
    answer = proposals.accept_proposal(context, name, shown["digest"])
    assert answer["status"] == "applied", answer
    return str(answer["change_id"])


def reviewing(site: Site, tab: Page, proposal: str) -> None:
    """Sign in, and open a proposal by its address."""
    site.enter(tab, f"/app/review/{proposal}")
    expect(tab.locator(".k-review-file").first).to_be_visible()


def hunk(tab: Page, number: int) -> Locator:
    """Give a place of the proposal that is shown, by its number from 0."""
    return tab.locator(".k-hunk[data-hunk]").nth(number)


def unit(tab: Page, number: int) -> Locator:
    """Give what the keys go to, by its number from 0."""
    return tab.locator(".k-unit").nth(number)


def waits(tab: Page, number: int) -> None:
    """See how many things wait, by the rail's count."""
    badge = tab.get_by_role("navigation", name="Views").locator(".k-badge")
    if number:
        expect(badge).to_contain_text(f"{number} waiting")
    else:
        expect(badge).to_have_count(0)
