"""Take the README's pictures and its recording: .venv/bin/python -m tests.page.pictures [FOLDER]

A scripted model answers over an invented vault, so that they can be taken again, alike, on any machine with Chromium.
The recording is an animated PNG of what differs from frame to frame. How long each stands is written down here, so that
it is the same film on a slow machine.
"""

import asyncio
import base64
import datetime as dt
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, cast

from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel

from knapper.agents.chat.turn import ChatConfig
from knapper.agents.runs.engine import AskPerson, RetrievalRequest, RunEngine
from knapper.agents.runs.model import RetrievedContext, SourceRef
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.open_clients import ModelOpeners
from knapper.app.runs import OpenedRuns
from knapper.changes.disk.files import hash_content
from knapper.config import EmbeddingSettings, Settings
from knapper.server.http import browsing, feed
from knapper.server.http.app import Mount
from knapper.server.http.background import JobService
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents import scripted
from tests.agents.run_world import Brain, Part
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


TASK: Final = "What should change in the garden before next summer?"
PARTS: Final = [
    Part("When was water short?"),
    Part("Which plants need the most?"),
    Part("What can be paid for?", needs=["When was water short?"]),
]
READ: Final[Mapping[str, Sequence[str]]] = {
    PARTS[0].task: ("Journal/2026-06-03", "Garden/Rain barrel", "Garden/Watering", "House/Roof"),
    PARTS[1].task: ("Garden/Tomatoes", "Garden/Squash", "Garden/Beans", "Garden/Crop rotation", "Garden/Compost"),
    PARTS[2].task: ("House/Budget", "Journal/Review"),
}
ANSWERS: Final = {
    f"answer {PARTS[0].task}": "In the dry week of June the barrel was empty by Thursday "
    "[[2026-06-03]] (lines 6-7). It is fed from the roof [[Rain barrel]] (lines 6-7).",
    f"answer {PARTS[1].task}": "Tomatoes and squash [[Tomatoes]] (lines 6-6), [[Squash]] (lines 6-6).",
    f"answer {PARTS[2].task}": "The garden has 400 in the budget [[Budget]] (lines 6-6).",
    f"join {TASK}": "**A second barrel, and compost on bed two.** The first barrel was empty by Thursday of the dry "
    "week [[2026-06-03]] (lines 6-7), while tomatoes and squash need the most [[Tomatoes]] (lines 6-6), "
    "[[Squash]] (lines 6-6). The budget has 400 for it [[Budget]] (lines 6-6).",
}


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
        return FunctionModel(stream_function=self._words, function=self._whole, model_name="qwen3")

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
    return replace(found, model=replace(found.model, name="ollama:qwen3"), embeddings=EmbeddingSettings())


def _service(hub: Hub) -> JobService:
    seconds = {TASK: 0.3, **{part.task: 0.5 + 0.3 * number for number, part in enumerate(PARTS)}}
    brain = Brain(plans={TASK: PARTS}, answers=ANSWERS, wait_s=seconds)

    def engine(tasks: OpenedRuns, model: str, person: AskPerson | None) -> RunEngine:
        made = tasks.engine_of(brain.open(), model or "ollama:qwen3", person)
        return replace(made, retrieve=_retrieve, poll_s=0.05)

    def answering(chats: VaultChats, name: str) -> ChatConfig:
        return chats.chat(name) if name else scripted.chat(_model().open(), chats.hub.table.specs, meter=chats.meter)

    return JobService(hub, ModelOpeners(chat=answering, engine=engine))


async def _retrieve(need: RetrievalRequest) -> RetrievedContext:
    """Find what a part of the task is about."""
    await asyncio.sleep(0.4)
    names = READ.get(need.node.task, ())
    texts, sources = list[str](), list[SourceRef]()
    for name in names:
        note = need.context.view.read(f"{name}.md")
        texts.append(note.raw.decode())
        last = len(note.outline.line_starts)
        sources.append(SourceRef(path=note.path, hash=note.hash, first=1, last=last))
    return RetrievedContext(
        context="\n".join(texts), sources=tuple(sources), score=0.7 + 0.04 * len(names), confidence=0.9
    )


CROP: Final = """async ([before, after]) => {
    const read = async (image) => {
        const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${image}`)).blob());
        const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
        context.drawImage(bitmap, 0, 0);
        return context.getImageData(0, 0, bitmap.width, bitmap.height);
    };
    const now = await read(after);
    const { width, height } = now;
    let [left, top, right, bottom] = [0, 0, width, height];
    if (before) {
        const [one, other] = [await read(before), now].map(({ data }) => new Uint32Array(data.buffer));
        [left, top, right, bottom] = [width, height, 1, 1];
        for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
            if (one[y * width + x] === other[y * width + x]) continue;
            [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
            [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
        }
        [left, top] = [Math.min(left, right - 1), Math.min(top, bottom - 1)];
    }
    const cut = new OffscreenCanvas(right - left, bottom - top);
    cut.getContext('2d').putImageData(now, -left, -top);
    const bytes = new Uint8Array(await (await cut.convertToBlob({ type: 'image/png' })).arrayBuffer());
    let text = '';
    for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
    return [left, top, btoa(text)];
}"""
"""Cuts out of a frame what differs from the one before."""


class Recorder:
    """Film a page: each frame with how long it stands in the film, however long this machine took for it."""

    def __init__(self, tab: Page) -> None:
        self._tab = tab
        self._frames: list[tuple[bytes, float]] = []

    @property
    def seconds(self) -> float:
        """How long the film is."""
        return sum(seconds for _, seconds in self._frames)

    def take(self, seconds: float) -> None:
        """Take a frame that stands for *seconds*; one like the last only prolongs that."""
        frame = self._tab.screenshot(scale="css")
        if self._frames and self._frames[-1][0] == frame:
            self._frames[-1] = (frame, self._frames[-1][1] + seconds)
        else:
            self._frames.append((frame, seconds))

    def type(self, text: str, pieces: str, seconds: float) -> None:
        """Write a text piece by piece, a frame each."""
        for piece in re.findall(pieces, text):
            self._tab.keyboard.type(piece)
            self.take(seconds)

    def watch(self, until: Locator, seconds: float, step_ms: int) -> None:
        """Take a frame at each step until something is visible; each that differs stands for *seconds*."""
        while not until.is_visible():
            frame = self._tab.screenshot(scale="css")
            if self._frames[-1][0] != frame:
                self._frames.append((frame, seconds))
            self._tab.wait_for_timeout(step_ms)

    def animation(self) -> bytes:
        """Join them into an animated PNG that goes round for ever."""
        cuts = list[tuple[int, int, bytes]]()
        before = ""
        with self._tab.context.browser.new_page() as bench:  # pyright: ignore[reportOptionalMemberAccess]
            for frame, _ in self._frames:
                after = base64.b64encode(frame).decode()
                left, top, cut = cast("tuple[int, int, str]", bench.evaluate(CROP, [before, after]))
                cuts.append((left, top, base64.b64decode(cut)))
                before = after
        places = [(left, top) for left, top, _ in cuts]
        return animated([cut for _, _, cut in cuts], [seconds for _, seconds in self._frames], places)


def animated(
    frames: Sequence[bytes], delays: Sequence[float], places: Sequence[tuple[int, int]] | None = None
) -> bytes:
    """Join PNG files into an animated one, of the first one's size.

    Args:
        frames: The files; all of one kind of pixels.
        delays: How long each stands, in seconds.
        places: Where each is drawn over the one before, from the left and the top; None for the corner.

    Source:
        The PNG specification, third edition: acTL, fcTL and fdAT.
    """
    head = next(data for kind, data in chunks(frames[0]) if kind == b"IHDR")
    made = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", head), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    number = 0
    for index, (frame, delay) in enumerate(zip(frames, delays, strict=True)):
        left, top = places[index] if places else (0, 0)
        size = next(data for kind, data in chunks(frame) if kind == b"IHDR")[:8]
        control = size + struct.pack(">IIHHBB", left, top, round(delay * 1000), 1000, 0, 0)
        made.append(_chunk(b"fcTL", struct.pack(">I", number) + control))
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


def _film(browser: Browser, site: sites.Site, folder: Path) -> float:
    """Film a search, a question, its review, a run and the graph of its notes; return how long that is."""
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en") as context:
        tab = context.new_page()
        site.enter(tab)
        expect(tab.locator("#standing")).to_be_visible()
        film = Recorder(tab)
        film.take(0.8)
        film.type("dry week", ".", 0.12)
        expect(tab.locator(".k-hit-reason", has_text="Meaning").first).to_be_visible()
        film.take(1.0)
        tab.keyboard.press("ArrowDown")
        film.take(0.6)
        _film_chat(site, tab, film)
        _ = tab.screenshot(path=folder / "page.png")
        tab.get_by_role("button", name="Close the pane").click()
        tab.get_by_role("button", name="Preview").click()
        expect(tab.locator(".k-changes ins").first).to_be_visible()
        tab.locator(".k-changes").scroll_into_view_if_needed()
        film.take(1.6)
        tab.get_by_role("link", name=re.compile("^Review")).click()
        tab.get_by_role("region", name="Waiting for review").get_by_role("link").first.click()
        expect(tab.locator(".k-review-file ins").first).to_be_visible()
        film.take(1.8)
        _film_run(site, tab, film)
        (folder / "page-moving.png").write_bytes(film.animation())
        return film.seconds


def _film_chat(site: sites.Site, tab: Page, film: Recorder) -> None:
    tab.goto(f"{site.address}/app/chat/new")
    expect(tab.get_by_label("Message", exact=True)).to_be_focused()
    film.type(QUESTION, r"\S+\s*", 0.08)
    tab.keyboard.press("Enter")
    film.watch(tab.locator(".k-exchange-spent"), 0.08, 60)
    film.take(0.8)
    tab.locator(".k-answer .k-cite").first.click()
    tab.mouse.move(300, 500)
    expect(tab.locator(".k-pane [data-cited]").first).to_be_visible()
    film.take(2.0)


def _film_run(site: sites.Site, tab: Page, film: Recorder) -> None:
    tab.goto(f"{site.address}/app/runs?new=1")
    box = tab.get_by_label("Task", exact=True)
    box.click()
    film.type(TASK, r"\S+\s*", 0.07)
    ticked = tab.get_by_role("checkbox", name="Let the model write scripts")
    if ticked.is_enabled():
        ticked.set_checked(checked=False)
    tab.get_by_role("button", name="Start").click()
    expect(tab.locator("[role=treeitem]").first).to_be_visible()
    film.watch(tab.locator(".k-run-said"), 0.18, 120)
    _ = tab.locator(".k-toasts button").first.click()
    film.take(2.0)
    tab.get_by_role("link", name="Graph of its notes").click()
    expect(tab.locator(".k-graph-canvas")).to_be_visible()
    film.watch(tab.locator(".k-graph-canvas[data-moves=no]"), 0.1, 60)
    film.take(2.4)


def main(folder: Path) -> None:
    """Take them all into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    started = dt.datetime.now(tz=dt.UTC)
    with tempfile.TemporaryDirectory() as base, sync_playwright() as playwright:
        browser = conftest.launch(playwright.chromium)
        services: list[JobService] = []

        def service(hub: Hub) -> JobService:
            services.append(_service(hub))
            return services[0]

        def mounts(hub: Hub, stop: StopSignal) -> list[Mount]:
            threads = WorkerThreads(2)
            news = feed.mount_feed(hub, threads, stop, [feed.run_source(hub, services[0])])
            return [browsing.mount_browsing(hub, threads), news]

        with sites.serving(
            Path(base), _model().open, notes=notes(), change=_named, more=mounts, open_service=service
        ) as site:
            _still(browser, site, folder)
            print(f"the film takes {_film(browser, site, folder):.1f} s")  # noqa: T201
        browser.close()
    for path in sorted(folder.glob("*.png")):
        if path.stat().st_mtime >= started.timestamp():
            print(f"{path.name}: {path.stat().st_size / 1000:,.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
