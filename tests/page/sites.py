"""Serve the page and the API over a small vault, in a thread, with a model that says what a test tells it."""

import contextlib
import hashlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, expect
from pydantic_ai.models import Model as AnyModel

from knapper.agents.chat.turn import ChatConfig
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.config import Settings
from knapper.server import addresses, credentials, lifecycle, security
from knapper.server.credentials import BrowserSessions
from knapper.server.http import app, page, schedules, settings
from knapper.server.http.app import Mount, ServerRuntime
from knapper.server.http.background import JobService
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents import scripted
from tests.agents.scripted import Call
from tests.page.wires import Wire
from tests.server import apps

NOTES = {
    "Garden.md": (
        "---\nstatus: open\n---\n# Garden\n\nBeds along the wall.\n\n## Watering\n\n"
        "Every evening, with water from the barrel.\nTomatoes get two cans.\n\n"
        "## Tools\n\nThe spade hangs in the shed.\n"
    ),
    "Plans/Rain.md": "# Rain\n\nIt rains on the tomatoes. See [[Garden#Watering]].\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Hold a server that runs, and the wire that leads to it."""

    wire: Wire
    root: Path
    seats: BrowserSessions
    hub: Hub

    @property
    def address(self) -> str:
        return self.wire.address

    def door(self) -> str:
        """Give an address that signs in, once."""
        return credentials.sign_in_url(self.address, self.seats.new_code())

    def enter(self, tab: Page, address: str = "/") -> None:
        """Sign a browser in, and wait until it shows the page; *address* is one of its own, such as ``/app/chat``."""
        tab.goto(self.door())
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
        if address != "/":
            tab.goto(f"{self.address}{address}")
            expect(tab.get_by_role("navigation", name="Views")).to_be_visible()

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")


def _nothing(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    del hub, stop
    return ()


@contextlib.contextmanager
def serving(
    base: Path,
    open_model: Callable[[], AnyModel],
    *,
    notes: Mapping[str, str] = NOTES,
    change: Callable[[Settings], Settings] = lambda found: found,
    more: Callable[[Hub, StopSignal], Sequence[Mount]] = _nothing,
    open_service: Callable[[Hub], JobService] | None = None,
) -> Generator[Site]:
    """Serve notes below *base*; *more* makes what is served beside the page and its jobs, *open_service* those."""

    def answering(chats: VaultChats, name: str) -> ChatConfig:
        return chats.chat(name) if name else scripted.chat(open_model(), chats.hub.table.specs, meter=chats.meter)

    found = change(apps.settings(base, notes))
    seats, ready = credentials.open_browser_sessions(found.state_dir), threading.Event()
    taken = addresses.bind_socket("127.0.0.1", 0)
    with Hub(found) as hub:
        work = ServerRuntime(threads=WorkerThreads(4))
        service = open_service(hub) if open_service else JobService(hub, ModelOpeners(chat=answering))
        mounts = [
            page.mount_page(seats, hub.vaults),
            settings.mount_settings(hub, work.threads),
            lifecycle.mount_jobs(service, hub, work.stop),
            schedules.mount_schedules(hub, work.threads, lambda: lifecycle.open_schedule_runner(service)),
            *more(hub, work.stop),
        ]
        made = app.create_app(hub, found.server, security.load_client_tokens(found), work, mounts)
        thread = threading.Thread(
            target=lifecycle.run_uvicorn,
            args=(made, taken),
            kwargs={"stop": work.stop, "stop_s": 5, "on_start": ready.set},
        )
        thread.start()
        assert ready.wait(30)
        try:
            with Wire(taken.getsockname()[1]) as wire:
                yield Site(wire=wire, root=found.vault.path, seats=seats, hub=hub)
        finally:
            work.stop.cancel()
            thread.join()


def say(tab: Page, text: str) -> None:
    """Write a message and send it, by the keyboard alone, once nothing is being answered any more."""
    expect(tab.get_by_role("button", name="Send")).to_be_visible()
    tab.get_by_label("Message", exact=True).fill(text)
    tab.keyboard.press("Enter")


def answered(tab: Page) -> None:
    """Wait until the last answer is whole."""
    expect(tab.locator(".k-exchange, .exchange").last.locator("footer")).to_contain_text("scripted")


def rewriting(**changed: str) -> Call:
    """Have the model rewrite the garden's note, with other words in the place of some."""
    text = NOTES["Garden.md"]
    base = hashlib.sha256(text.encode()).hexdigest()
    for old, new in changed.items():
        text = text.replace(old, new)
    return Call("write_file", {"path": "Garden.md", "content": text, "expected_hash": f"sha256:{base}"})
