"""Measure the page in a real browser: its first load, search while typing, long trees, graphs, and memory."""

import argparse
import bisect
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx2
from playwright.sync_api import Browser, Page, Route, sync_playwright

from bench import frame, generate, questions, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places

SUMMARY = "the page in Chromium: first load, search while typing, scrolling, memory"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KNAP = (sys.executable, "-m", "knapper.cli")
_MANY = 5_000
_FRAME_MS = 16.7
_TRACED = ("-*", "devtools.timeline", "disabled-by-default-devtools.timeline")
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
    parser.add_argument("--rows", type=int, default=2_000, help="rows of the long lists (default: 2,000)")


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
                *_tree_and_graph(browser, server),
                *_lists(browser, server, options.rows),
                *_talk(browser, server, options.messages),
            ]
            browser.close()
    about = (
        f"A vault of {options.notes + _MANY:,} notes behind `knap serve`, a Chromium without a screen or a graphics "
        "processor beside it on the same machine. A load begins with an empty cache and ends when the search box has "
        "the focus. A search begins when the question stands in the box, so that it includes the pause that waits for "
        "the next key. Scrolling is a turn of the wheel every 50 ms; a frame costs what the page's main thread works "
        "since the frame before, in processor time, as the tracing has it: other work on the machine isn't in "
        "it, nor is drawing the pixels, which a graphics processor does elsewhere. 60 frames a second leave 16.7 ms. "
        "Memory is the heap of JavaScript after a collection."
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

    def __init__(self, address: str, folder: Path, env: dict[str, str]) -> None:
        self.address = address
        self.token = _token(folder, "page")
        self.program = _token(folder, "api")
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

    def _client(self, token: str) -> httpx2.Client:
        headers = {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False)

    def talk(self, messages: int) -> str:
        """Have a conversation of so many messages; gives its id."""
        with self._client(self.token) as client:
            session: str = client.post("/sessions").json()["session"]["id"]
            for number in range(messages):
                path = f"/sessions/{session}/chat"
                _ = client.post(path, json={"message": f"Message {number}"}).raise_for_status()
        return session

    def fill(self, count: int) -> None:
        """Have so many conversations, and so many proposals of a program that may only propose."""
        with self._client(self.token) as client:
            session: str = client.post("/sessions").json()["session"]["id"]
            _ = client.post(f"/sessions/{session}/chat", json={"message": "One of many"}).raise_for_status()
            for _ in range(count - 1):
                _ = client.post(f"/sessions/{session}/fork", json={}).raise_for_status()
        with self._client(self.program) as client:
            for number in range(count):
                body = {"path": f"Proposed/Number {number}.md", "content": f"# Number {number}\n"}
                answer = client.post("/tools/create_file", json=body).raise_for_status().json()
                assert answer["status"] == "proposed", answer


@contextmanager
def _serving(vault: Path, folder: Path, model: str) -> Generator[_Server]:
    config = folder / "config.toml"
    settings = {"vaults.page.path": str(vault), "model.name": f"openai:scripted@{model}"}
    settings |= {"clients.http.small": "propose", "clients.http.large": "propose", "server.requests_per_minute": 0}
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
            yield _Server(address, folder, env)
        finally:
            process.terminate()
            _ = process.wait(60)


def _token(folder: Path, name: str) -> str:
    return next((folder / "state").rglob(f"{name}.token")).read_text(encoding="ascii").strip()


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


def _tree_and_graph(browser: Browser, server: _Server) -> list[Row]:
    frame.say("tree and graph")
    rows = list[Row]()
    with _tab(browser, server) as tab:
        tab.goto(f"{server.address}/app/notes")
        tab.get_by_role("treeitem", name="0 Many").click()
        tab.get_by_role("treeitem", name="Many 0", exact=True).wait_for()
        rows += _scroll(browser, tab, f"tree of {_MANY:,} notes", ".k-tree")
        address = f"{server.address}/app/graph/0%20Many/Many%200.md?depth=3"
        tab.goto(address)
        canvas = tab.locator(".k-graph-canvas")
        canvas.wait_for()
        label = canvas.get_attribute("aria-label") or ""
        what = f"graph ({label.partition(': ')[2].partition('.')[0]})"
        tab.goto("about:blank")

        def begin() -> None:
            tab.goto(address)
            tab.locator('.k-graph-canvas[data-moves="no"]').wait_for(timeout=120_000)

        rows += _frames(browser, tab, f"{what} that finds its shape", begin)
        tab.wait_for_timeout(1_000)
        box = canvas.bounding_box()
        assert box is not None
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        rows += _frames(browser, tab, f"{what}, zoomed", lambda: _turn(tab, (-30, 30)))
        rows += _frames(browser, tab, f"{what}, under the pointer", lambda: _sweep(tab, box["x"], box["y"]))
    return rows


def _lists(browser: Browser, server: _Server, count: int) -> list[Row]:
    frame.say(f"lists of {count} rows")
    server.fill(count)
    rows = list[Row]()
    with _tab(browser, server) as tab:
        tab.goto(f"{server.address}/app/chat")
        tab.locator("[data-session]").first.wait_for()
        while tab.locator(".k-list-body .k-more").count():  # more come when the end is in view
            tab.locator(".k-list-body").evaluate("box => box.scrollTop = box.scrollHeight")
            tab.wait_for_timeout(200)
        tab.locator(".k-list-body").evaluate("box => box.scrollTop = 0")
        rows += _scroll(browser, tab, "{} conversations", ".k-list-body", "[data-session]")
        tab.goto(f"{server.address}/app/review")
        tab.locator(".k-waiting li").nth(count - 1).wait_for(state="attached", timeout=120_000)
        rows += _scroll(browser, tab, "{} waiting proposals", ".k-list-body", ".k-waiting li")
        tab.route("**/tools/search_vault", lambda route: _multiply(route, count))
        tab.goto(f"{server.address}/app/search?q=many")
        tab.locator(".k-hit").first.wait_for()
        rows += _scroll(browser, tab, "{} results", ".k-main-scroll", ".k-hit")
        box = tab.locator(".k-main-scroll").bounding_box()
        assert box is not None
        rows += _frames(browser, tab, f"{count:,} results, under the pointer", lambda: _sweep(tab, box["x"], box["y"]))
    return rows


def _multiply(route: Route, count: int) -> None:
    """Answer a search with so many passages: more than the server finds, which stops at 200."""
    reply = route.fetch()
    answer = reply.json()
    hits = answer["results"]
    more = [{**hits[at % len(hits)], "start_line": at + 1, "end_line": at + 2} for at in range(count)] if hits else []
    route.fulfill(response=reply, json={**answer, "results": more})


def _scroll(browser: Browser, tab: Page, what: str, box: str, row: str = "") -> list[Row]:
    """Turn the wheel over a box, down and up; *what* may name how many rows it has after that."""
    found = tab.locator(box).first.bounding_box()
    assert found is not None
    tab.wait_for_timeout(1_000)
    tab.mouse.move(found["x"] + 100, found["y"] + 200)
    rows = _frames(browser, tab, what, lambda: _turn(tab, (400, 400, 400, -400)))
    total = tab.locator(row).count() if row else 0
    return [replace(one, what=one.what.format(f"{total:,}")) for one in rows]


def _turn(tab: Page, steps: Sequence[int]) -> None:
    for step in itertools.islice(itertools.cycle(steps), 60):
        tab.mouse.wheel(0, step)
        tab.wait_for_timeout(50)


def _sweep(tab: Page, left: float, top: float) -> None:
    for at in range(60):
        tab.mouse.move(left + 120 + at * 7, top + 120 + at * 6)
        tab.wait_for_timeout(50)


def _frames(browser: Browser, tab: Page, what: str, act: Callable[[], None]) -> list[Row]:
    """Trace what the main thread does meanwhile, and tell what a frame of it costs."""
    browser.start_tracing(page=tab, categories=list(_TRACED))
    act()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    costs = _costs(events)
    late = sum(cost > _FRAME_MS for cost in costs)
    return [
        Row(what=f"{what}: a frame, median of {len(costs)}", values=[frame.percentile(costs, 0.5)], unit="ms"),
        Row(
            what=f"{what}: a frame, 95th percentile",
            values=[frame.percentile(costs, 0.95)],
            unit="ms",
            goal=Goal(limit=_FRAME_MS),
        ),
        Row(what=f"{what}: frames that cost more than 16.7 ms", values=[late], digits=0),
    ]


def _costs(events: Sequence[dict[str, Any]]) -> list[float]:
    """Give each frame's processor time on the page's main thread, in ms."""
    ends = [event for event in events if event["name"] == "BeginCommitCompositorFrame"]
    [(main, _)] = Counter((event["pid"], event["tid"]) for event in ends).most_common(1)
    times = sorted(event["ts"] for event in ends if (event["pid"], event["tid"]) == main)
    costs = [0.0] * len(times)
    for event in events:
        if event["name"] == "RunTask" and event["ph"] == "X" and (event["pid"], event["tid"]) == main:
            place = bisect.bisect_right(times, event["ts"])  # a task belongs to the frame that it ends or comes before
            if place < len(times):
                costs[place] += event.get("tdur", 0) / 1_000
    return costs


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
