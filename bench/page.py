"""Measure the page in a real browser: its first load, search while typing, long trees, graphs, and memory."""

import argparse
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx2
from playwright.sync_api import Browser, Page, sync_playwright

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places

SUMMARY = "the page in Chromium: first load, search while typing, scrolling, memory"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KNAP = (sys.executable, "-m", "knapper.cli")
_MANY = 5_000
_FRAMES = """(seconds) => new Promise((done) => {
  const times = []; const end = performance.now() + seconds * 1000;
  const step = (now) => { times.push(now); now < end ? requestAnimationFrame(step) : done(times); };
  requestAnimationFrame(step);
})"""
"""Tells when each frame was drawn."""
_FOCUSED = "addEventListener('focusin', () => { window.focusedAt ??= performance.now(); })"
_FIRST_HIT = """(text) => new Promise((done) => {
  const box = document.querySelector('input[type=search]');
  const list = document.body; const began = performance.now();
  const watch = new MutationObserver(() => {
    const found = document.querySelector('.k-found');
    const hit = document.querySelector('.k-hit');
    if (hit && location.search.includes(encodeURIComponent(text).replaceAll('%20', '+'))) {
      watch.disconnect(); done(performance.now() - began);
    }
  });
  watch.observe(list, { childList: true, subtree: true, characterData: true, attributes: true });
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(box, text);
  box.dispatchEvent(new Event('input', { bubbles: true }));
  setTimeout(() => { watch.disconnect(); done(-1); }, 15000);
})"""
"""Puts a question into the box, and tells after how many milliseconds its first hit stood there."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=20_000, help="size of the generated vault (default: 20,000)")
    parser.add_argument("--loads", type=int, default=5, help="first loads measured (default: 5)")
    parser.add_argument("--questions", type=int, default=40, help="searches measured (default: 40)")
    parser.add_argument("--messages", type=int, default=200, help="messages of the long conversation (default: 200)")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        return "no Chromium is installed here"
    generated = generate.vault(places, options.notes)
    if generated is None:
        return "there are no real vaults to generate one from"
    with vaults.scratch(places.cache) as folder, _model() as model:
        vault = folder / "vault"
        shutil.copytree(generated, vault)
        _add_many(vault)
        with _serving(vault, folder, model) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            rows = [
                *_loads(browser, server, options.loads),
                *_searches(browser, server, questions.of(generated, options.questions)),
                *_scrolling(browser, server),
                *_talk(browser, server, options.messages),
            ]
            browser.close()
    about = (
        f"A vault of {options.notes + _MANY:,} notes behind `knap serve`, a Chromium without a screen or a graphics "
        "processor beside it on the same machine. A load begins with an empty cache and ends when the search box has "
        "the focus. A search begins when the question stands in the box, so that it includes the pause that waits for "
        "the next key. Memory is the heap of JavaScript after a collection."
    )
    return Report(title="The page", about=about, rows=rows)


def _add_many(vault: Path) -> None:
    """Put a folder of 5,000 notes beside the rest."""
    pick = random.Random(5)
    folder = vault / "0 Many"
    folder.mkdir()
    for number in range(_MANY):
        others = " ".join(f"[[Many {pick.randrange(_MANY)}]]" for _ in range(5))
        (folder / f"Many {number}.md").write_text(f"# Many {number}\n\nOne of many: {others}\n", encoding="utf-8")


class _Server:
    """A `knap serve`, and how a browser and a program get in."""

    def __init__(self, address: str, token: str, env: dict[str, str]) -> None:
        self.address = address
        self.token = token
        self._env = env

    def enter(self, tab: Page) -> None:
        """Sign a browser in, with an address that is good once."""
        port = self.address.rpartition(":")[2]
        command = [*KNAP, "token", "page", "--port", port]
        said = subprocess.run(command, env=self._env, check=True, capture_output=True, text=True).stdout
        found = re.search(r"http\S+", said)
        assert found is not None
        tab.goto(found[0])
        tab.get_by_role("navigation", name="Views").wait_for()

    def talk(self, messages: int) -> str:
        """Have a conversation of so many messages; gives its id."""
        headers = {"authorization": f"Bearer {self.token}"}
        with httpx2.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False) as client:
            session: str = client.post("/sessions").json()["session"]["id"]
            for number in range(messages):
                path = f"/sessions/{session}/chat"
                _ = client.post(path, json={"message": f"Message {number}"}).raise_for_status()
        return session


@contextmanager
def _serving(vault: Path, folder: Path, model: str) -> Generator[_Server]:
    config = folder / "config.toml"
    settings = {"vaults.page.path": str(vault), "model.name": f"openai:scripted@{model}"}
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()), encoding="utf-8")
    own = {"KNAP_CONFIG": str(config), "KNAP_STATE_DIR": str(folder / "state"), "OPENAI_API_KEY": "none"}
    env = {**os.environ, **own}  # noqa: TID251 - handed on
    frame.say("indexing")
    _ = subprocess.run([*KNAP, "-q", "index"], env=env, check=True)
    command = [*KNAP, "serve", "--port", "0", "--json"]
    log = (folder / "serve.log").open("wb")
    with log, subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log) as process:
        try:
            assert process.stdout is not None
            address: str = json.loads(process.stdout.readline())["url"].rstrip("/")
            threading.Thread(target=process.stdout.read, daemon=True).start()  # it must not wait
            token = next((folder / "state").rglob("page.token")).read_text(encoding="ascii").strip()
            yield _Server(address, token, env)
        finally:
            process.terminate()
            _ = process.wait(60)


@contextmanager
def _model() -> Generator[str]:
    """Serve a model that always says the same, in the protocol of OpenAI's chat completions."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


class _Answering(BaseHTTPRequestHandler):
    """Streams an answer of some lines of Markdown."""

    protocol_version = "HTTP/1.1"
    answer = "It is **so**, as a list shows:\n\n- one\n- two\n\n```python\nprint(1)\n```\n"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        row: dict[str, Any] = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        parts = [{"content": word} for word in re.findall(r"\S*\s*", self.answer) if word]
        choices: list[dict[str, Any]] = [{"index": 0, "delta": part, "finish_reason": None} for part in parts]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        lines = [f"data: {json.dumps({**row, 'choices': [choice]})}\n\n" for choice in choices]
        body = "".join([*lines, "data: [DONE]\n\n"]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        _ = self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def _tab(browser: Browser, server: _Server) -> Generator[Page]:
    with browser.new_context(viewport={"width": 1440, "height": 900}, locale="en") as context:
        tab = context.new_page()
        server.enter(tab)
        yield tab


def _loads(browser: Browser, server: _Server, count: int) -> list[Row]:
    frame.say("first loads")
    times, requests, sizes = list[float](), list[float](), list[float]()
    for _ in range(count):
        with _tab(browser, server) as tab:
            _ask_browser(tab, "Network.clearBrowserCache")
            tab.add_init_script(_FOCUSED)
            tab.goto(f"{server.address}/app/search")
            tab.locator("input[type=search]:focus").wait_for()
            tab.wait_for_timeout(1_500)
            times.append(tab.evaluate("window.focusedAt"))
            entries = tab.evaluate(
                "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
                ".filter(one => /\\/(page|app)\\//.test(one.name)).map(one => one.transferSize)"
            )
            requests.append(len(entries))
            sizes.append(sum(entries) / 1_000)
    return [
        Row(what="first load, requests for the page", values=requests, goal=Goal(limit=9), digits=0),
        Row(what="first load, sent", values=sizes, unit="kB", goal=Goal(limit=150)),
        Row(what="first load until one can type", values=times, unit="ms", goal=Goal(limit=300)),
    ]


def _searches(browser: Browser, server: _Server, asked: list[str]) -> list[Row]:
    frame.say("searches")
    times = list[float]()
    with _tab(browser, server) as tab:
        for question in asked:
            tab.goto(f"{server.address}/app/search")
            tab.wait_for_selector("input[type=search]")
            times.append(tab.evaluate(_FIRST_HIT, question))
    found = [took for took in times if took >= 0]
    return [
        Row(what="search while typing, first hit, median", values=[frame.percentile(found, 0.5)], unit="ms"),
        Row(what="search while typing, first hit, 95th percentile", values=[frame.percentile(found, 0.95)], unit="ms"),
        Row(what="searches that showed nothing", values=[len(times) - len(found)], digits=0),
    ]


def _scrolling(browser: Browser, server: _Server) -> list[Row]:
    frame.say("scrolling")
    rows = list[Row]()
    with _tab(browser, server) as tab:
        tab.goto(f"{server.address}/app/notes")
        tab.get_by_role("treeitem", name="0 Many").click()
        tab.get_by_role("treeitem", name="Many 0", exact=True).wait_for()
        box = tab.locator(".k-tree").bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + 50, box["y"] + 200)
        rows += _frames(tab, f"tree of {_MANY:,} notes", lambda: tab.mouse.wheel(0, 400))
        tab.goto(f"{server.address}/app/graph/0%20Many/Many%200.md?depth=3")
        tab.locator(".k-graph-canvas").wait_for()
        told = tab.locator(".k-graph-canvas").get_attribute("aria-label") or ""
        tab.wait_for_timeout(6_000)
        tab.mouse.move(700, 450)
        rows += _frames(tab, f"graph ({told.partition(': ')[2].partition('.')[0]})", lambda: tab.mouse.wheel(0, -30))
    return rows


def _frames(tab: Page, what: str, act: Callable[[], None]) -> list[Row]:
    tab.evaluate(f"window.frames_ = ({_FRAMES})(3)")
    for _ in range(40):
        act()
        tab.wait_for_timeout(50)
    times: list[float] = tab.evaluate("window.frames_")
    steps = [after - before for before, after in itertools.pairwise(times)]
    return [
        Row(
            what=f"{what}: frames a second",
            values=[1_000 * len(steps) / sum(steps)],
            goal=Goal(limit=55, sense="at least"),
        ),
        Row(what=f"{what}: longest frame", values=[max(steps)], unit="ms"),
    ]


def _talk(browser: Browser, server: _Server, messages: int) -> list[Row]:
    frame.say(f"a conversation of {messages} messages")
    session = server.talk(messages)
    with _tab(browser, server) as tab:
        before = _heap(tab)
        tab.goto(f"{server.address}/app/chat/{session}")
        tab.locator(".k-exchange").last.wait_for()
        tab.wait_for_timeout(3_000)
        shown = tab.locator(".k-exchange").count()
        return [
            Row(what="memory with the search view", values=[before], unit="MB"),
            Row(what=f"memory with {messages} messages open ({shown} drawn)", values=[_heap(tab)], unit="MB"),
        ]


def _heap(tab: Page) -> float:
    _ask_browser(tab, "HeapProfiler.enable")
    _ask_browser(tab, "HeapProfiler.collectGarbage")
    return _ask_browser(tab, "Runtime.getHeapUsage")["usedSize"] / 1_000_000


def _ask_browser(tab: Page, method: str) -> dict[str, float]:
    client = tab.context.new_cdp_session(tab)
    return cast("dict[str, float]", client.send(method))  # pyright: ignore[reportUnknownMemberType] - its type is loose
