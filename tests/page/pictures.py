"""Take the README's pictures and its recording: .venv/bin/python -m tests.page.pictures [FOLDER]

A scripted model answers over an invented vault, so that they can be taken again, alike, on any machine with Chromium.
The recording is an animated PNG, whose frames are as long as things took; Chromium made each of them, and nothing is
compressed anew.
"""

import asyncio
import datetime as dt
import re
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from knapper.app import Hub
from knapper.changes.disk.files import hash_content
from knapper.config import Settings
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents.scripted import Call, Model
from tests.page import conftest, sites

FOLDER: Final = Path(__file__).parents[2] / "docs" / "assets"
LIST: Final = """
Garden/Watering | garden, summer | Tomatoes get two cans every second evening, at the root and never on the leaves.
  The barrel by the shed holds 200 litres. See [[Tomatoes]], [[Rain barrel]] and [[Beds]].
Garden/Tomatoes | garden, vegetables | Sown in March on the [[Window sill]], planted out after the last frost. Four
  plants of *Matina* in [[Beds|bed two]], one of *Black Cherry* in a pot. [[Watering]] matters more than feeding.
Garden/Beds | garden | Three beds along the wall: herbs, [[Tomatoes]], and [[Beans]] with [[Squash]]. [[Crop
  rotation]] says what comes next.
Garden/Beans | garden, vegetables | Runner beans climb the old ladder. They feed the soil: see [[Crop rotation]] and
  [[Compost]].
Garden/Squash | garden, vegetables | One plant is enough for the family. It wants [[Compost]] and [[Watering]].
Garden/Compost | garden | Two heaps, turned in April and October. Kitchen scraps, leaves, and the paper of
  [[Parcels]].
Garden/Crop rotation | garden, plan | Heavy feeders, light feeders, then [[Beans]]. Noted for each of the [[Beds]]
  since 2022.
Garden/Rain barrel | garden, house | Fed from the [[Roof]]. Empty by Thursday in the dry week of June, see
  [[2026-06-03]].
Garden/Window sill | garden, house | Light from February on. [[Seeds]] are kept in the tin below.
Garden/Seeds | garden | Saved from [[Tomatoes]], [[Beans]] and [[Squash]]. What is left goes to [[Hanna]].
House/Roof | house | The gutters were cleaned in May, and a tile replaced. [[Rain barrel]] hangs on the east side.
  Paid from [[Budget]].
House/Heating | house, plan | Heat pump instead of oil: three offers, see [[Heat pump offers]] and [[Budget]].
  [[Insulation]] comes first.
House/Heat pump offers | house, money | Nordwind 23,400, Kessler 26,100, Aero 21,900. [[Jonas]] says that Aero is
  loud.
House/Insulation | house | The loft was done in 2024, the cellar's ceiling is next. Cut the oil by a fifth:
  [[Heating]].
House/Parcels | house | What comes and goes. The paper goes to [[Compost]].
House/Budget | money, plan | Heating 22,000, [[Roof]] 1,800, [[Travel]] 3,000, garden 400. Looked at each quarter in
  [[Review]].
People/Hanna | people | Lives two doors down. Grows [[Squash]], reads [[The overstory]], waters when we are in
  [[Lisbon]].
People/Jonas | people | Engineer. Helped with [[Insulation]]. Cycled [[Danube]] with us.
People/Mira | people | Our daughter. Beans are hers: [[Beans]]. Wants to see [[Lisbon]].
Travel/Travel | travel, plan | Ideas and what they cost: [[Lisbon]], [[Danube]], [[Night trains]]. Within [[Budget]].
Travel/Lisbon | travel | In October, ten days. [[Night trains]] to Irun, then by day. [[Mira]] plans the food.
Travel/Danube | travel | Passau to Vienna by bicycle, 320 km in six days. With [[Jonas]]. Notes in [[Packing]].
Travel/Night trains | travel | Book 180 days ahead. The couchette to [[Lisbon]]'s border sells out first.
Travel/Packing | travel | One pannier each. Rain jacket, repair kit, [[The overstory]] for the evenings.
Reading/The overstory | reading | Nine people and many trees. Lent to [[Hanna]]. Led to [[Soil]].
Reading/Soil | reading, garden | What lives below the beds, and why digging harms it: [[Compost]], [[Crop rotation]].
Reading/Reading | reading | Read: [[The overstory]], [[Soil]]. Next: a history of [[Night trains]].
Journal/2026-06-03 | daily | Dry for a week. The barrel was empty by Thursday. [[Watering]] every evening saved the
  [[Tomatoes]]. Talked to [[Jonas]].
Journal/2026-06-14 | daily | First ripe tomato. [[Hanna]] brought squash. Wrote to Aero about [[Heat pump offers]].
Journal/2026-07-02 | daily | Booked [[Night trains]]. [[Mira]] picked beans. [[Budget]] still holds.
Journal/Review | daily, plan | Each quarter: [[Budget]], [[Heating]], [[Crop rotation]], [[Travel]].
"""
WATERING: Final = """---
tags: [garden, summer]
status: growing
---
# Watering

## Summer

Tomatoes get two cans every second evening.
Water at the root, never on the leaves: see [[Tomatoes]].

## Rain barrel

The barrel by the shed holds 200 litres.
It is fed from the [[Roof]].

> [!tip] Mornings are fine too
> What counts is that the leaves are dry by night.

| bed | plants | cans |
| --- | --- | ---: |
| one | herbs | 1 |
| two | tomatoes | 8 |
| three | beans, squash | 4 |

- [x] Mend the tap
- [ ] Ask [[Hanna]] to water in October
"""
QUESTION: Final = "How do I water the tomatoes in a dry week?"
ANSWER: Final = (
    "Normally they get **two cans every second evening** [[Watering#Summer]] (lines 9-10), at the root and never "
    "on the leaves. In the dry week of June the barrel was empty by Thursday, and watering *every* evening saved them "
    "[[2026-06-03]] (lines 6-6).\n\nI propose to say so in the note, in two places."
)
BETTER: Final = WATERING.replace(
    "every second evening.", "every second evening, and every evening in a dry week."
).replace("holds 200 litres.", "holds 200 litres, which lasts until Thursday of a dry week.")


def notes() -> dict[str, str]:
    """Write the vault out: path to text."""
    found: dict[str, str] = {}
    for row in re.sub(r"\n {2}", " ", LIST.strip()).splitlines():
        path, tags, text = (part.strip() for part in row.split("|", 2))
        title = path.rpartition("/")[2]
        found[f"{path}.md"] = f"---\ntags: [{tags}]\n---\n# {title}\n\n{text}\n"
    return {**found, "Garden/Watering.md": WATERING}


class SlowModel(Model):
    """Says its replies word by word, as a model does."""

    def open(self) -> FunctionModel:
        return FunctionModel(stream_function=self._words, function=self._whole)

    async def _words(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        async for part in self._stream(messages, info):
            for word in re.findall(r"\S+\s*", part) if isinstance(part, str) else [part]:
                await asyncio.sleep(0.06)
                yield word


def _model() -> SlowModel:
    change = {"path": "Garden/Watering.md", "content": BETTER, "expected_hash": hash_content(WATERING.encode())}
    return SlowModel(
        [
            [Call("search_vault", {"query": "watering tomatoes dry week"})],
            [Call("read_file", {"path": "Garden/Watering.md"}), Call("read_file", {"path": "Journal/2026-06-03.md"})],
            [Call("write_file", change)],
            [ANSWER],
        ]
    )


def _named(found: Settings) -> Settings:
    return replace(found, model=replace(found.model, name="ollama:qwen3"))


def _browsing(hub: Hub, stop: StopSignal) -> list[Mount]:
    del stop
    return [browsing.mount_browsing(hub, WorkerThreads(2))]


class Recorder:
    """Take frames of a page, and how long each stood."""

    def __init__(self, tab: Page) -> None:
        self._tab = tab
        self._frames: list[tuple[bytes, float]] = []

    def take(self, seconds: float = 0.0) -> None:
        """Take a frame; it stands until the next one, or for *seconds* at least."""
        frame, now = self._tab.screenshot(scale="css"), time.monotonic()
        if not self._frames or self._frames[-1][0] != frame:
            self._frames.append((frame, now))
        if seconds:
            self._tab.wait_for_timeout(seconds * 1000)

    def watch(self, seconds: float) -> None:
        """Take frames for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.take(0.12)

    def animation(self) -> bytes:
        """Join them into an animated PNG that goes round for ever."""
        ends = [at for _, at in self._frames[1:]] + [self._frames[-1][1] + 2]
        delays = [min(2.0, max(0.04, end - at)) for (_, at), end in zip(self._frames, ends, strict=True)]
        return animated([frame for frame, _ in self._frames], delays)


def animated(frames: Sequence[bytes], delays: Sequence[float]) -> bytes:
    """Join PNG files of one size into an animated one.

    Args:
        frames: The files.
        delays: How long each stands, in seconds.

    Source:
        The PNG specification, third edition: acTL, fcTL and fdAT.
    """
    head = next(data for kind, data in chunks(frames[0]) if kind == b"IHDR")
    width, height = struct.unpack(">II", head[:8])
    made = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", head), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    number = 0
    for index, (frame, delay) in enumerate(zip(frames, delays, strict=True)):
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, round(delay * 1000), 1000, 0, 0)
        made.append(_chunk(b"fcTL", control))
        number += 1
        pixels = zlib.compress(zlib.decompress(b"".join(data for kind, data in chunks(frame) if kind == b"IDAT")), 9)
        if index:
            made.append(_chunk(b"fdAT", struct.pack(">I", number) + pixels))
            number += 1
        else:
            made.append(_chunk(b"IDAT", pixels))
    return b"".join([*made, _chunk(b"IEND", b"")])


def chunks(file: bytes) -> list[tuple[bytes, bytes]]:
    """List a PNG file's pieces: kind and content."""
    found, at = list[tuple[bytes, bytes]](), 8
    while at < len(file):
        length = int.from_bytes(file[at : at + 4])
        found.append((file[at + 4 : at + 8], file[at + 8 : at + 8 + length]))
        at += length + 12
    return found


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _still(browser: Browser, site: sites.Site, folder: Path) -> None:
    desk, phone = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
    views: list[tuple[str, str, ViewportSize, Literal["light", "dark"]]] = [
        ("search", "/app/search?q=dry+week", desk, "light"),
        ("note", "/app/notes/Garden/Watering.md", desk, "light"),
        ("graph", "/app/graph/Garden/Watering.md", desk, "dark"),
        ("phone", "/app/notes/Garden/Watering.md", phone, "light"),
    ]
    for name, address, view, scheme in views:
        with browser.new_context(viewport=view, color_scheme=scheme, locale="en") as context:
            tab = context.new_page()
            site.enter(tab, address)
            tab.wait_for_timeout(2_500)
            _ = tab.screenshot(path=folder / f"{name}.png")


def _chat(browser: Browser, site: sites.Site, folder: Path) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en") as context:
        tab = context.new_page()
        site.enter(tab)
        film = Recorder(tab)
        film.take(1)
        for letter in "dry week":
            tab.keyboard.type(letter)
            film.take(0.08)
        film.watch(1.2)
        tab.keyboard.press("ArrowDown")
        film.take(0.6)
        tab.goto(f"{site.address}/app/chat/new")
        expect(tab.get_by_label("Message", exact=True)).to_be_visible()
        for word in re.findall(r"\S+\s*", QUESTION):
            tab.keyboard.type(word)
            film.take(0.1)
        tab.keyboard.press("Enter")
        film.watch(6)
        sites.answered(tab)
        film.take(1)
        tab.locator(".k-answer a, .k-answer button").first.click()
        tab.mouse.move(300, 500)
        film.watch(2)
        _ = tab.screenshot(path=folder / "page.png")
        (folder / "page-moving.png").write_bytes(film.animation())


def main(folder: Path) -> None:
    """Take them all into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    started = dt.datetime.now(tz=dt.UTC)
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        browser = conftest.launch(playwright.chromium)
        with sites.serving(Path(base), _model().open, notes=notes(), change=_named, more=_browsing) as site:
            _still(browser, site, folder)
            _chat(browser, site, folder)
        browser.close()
    for path in sorted(folder.glob("*.png")):
        if path.stat().st_mtime >= started.timestamp():
            print(f"{path.name}: {path.stat().st_size / 1000:,.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
