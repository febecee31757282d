"""What Markdown becomes on the page: elements that were meant, and every word that was written."""

import re
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from tests.agents.scripted import Model
from tests.page import sites

pytestmark = pytest.mark.timeout(120)
RENDER = """async (text) => {
  const { render } = await import("/page/js/markdown/render.js");
  const node = document.createElement("div");
  node.append(...render(text, () => {}));
  return PART;
}"""
SHOWN = RENDER.replace("PART", "node.innerHTML")
NOISE = re.compile(
    r' (?:data-\w+|type|rel|target|referrerpolicy|tabindex|role|aria-label|scope|disabled|title)="[^"]*"'
    r"|</?t(?:head|body|able)>"
)
TEXT = RENDER.replace("PART", "node.textContent")
PLACES = RENDER.replace(
    "PART", "[...node.querySelectorAll('[data-first]')].map(n => [+n.dataset.first, +n.dataset.last])"
)
CITE, LINES = '<button class="cite">', '<span class="lines">'
CASES = [
    ("# One #", '<h2 class="level-1">One</h2>'),
    ("###### Six", '<h6 class="level-6">Six</h6>'),
    ("#no heading", "<p>#no heading</p>"),
    ("Title\n===", '<h2 class="level-1">Title</h2>'),
    ("a\nb", "<p>a\nb</p>"),
    ("a  \nb", "<p>a<br>b</p>"),
    (
        "*a* **b** _c_ __d__ ~~e~~ ==f==",
        "<p><em>a</em> <strong>b</strong> <em>c</em> <strong>d</strong> <del>e</del> <mark>f</mark></p>",
    ),
    ("**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"),
    ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
    (r"\*not\* \[[no]]", "<p>*not* [[no]]</p>"),
    ("`` a ` b ``", "<p><code>a ` b</code></p>"),
    ("`<b>&lt;`", "<p><code>&lt;b&gt;&amp;lt;</code></p>"),
    ("a &lt; b &amp; &#99; &#x64; &nope;", "<p>a &lt; b &amp; c d &amp;nope;</p>"),
    ("```py\n# x\n```", "<pre><code># x</code></pre>"),
    ("````\n```\n````", "<pre><code>```</code></pre>"),
    ("```\nopen", "<pre><code>open</code></pre>"),
    ("    code\n\n    more", "<pre><code>code\n\nmore</code></pre>"),
    ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
    ("- a\n\n- b", "<ul><li>a</li><li>b</li></ul>"),
    ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("1. a\n\n   more\n2. b", "<ol><li>a<p>more</p></li><li>b</li></ol>"),
    ("- a\n```\nx\n```", "<ul><li>a</li></ul><pre><code>x</code></pre>"),
    ("- [ ] a\n- [x] b", '<ul><li class="task"><input>a</li><li class="task"><input checked="">b</li></ul>'),
    ("> a\n> b\n\nc", "<blockquote><p>a\nb</p></blockquote><p>c</p>"),
    ("> [!note] T\n> x", '<blockquote class="callout"><p class="callout-title">T</p><p>x</p></blockquote>'),
    ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
    (
        "---\nk: v\n---\ntext",
        '<details class="properties"><summary>Properties</summary><pre><code>k: v</code></pre></details><p>text</p>',
    ),
    (
        "| a | b |\n|---|--:|\n| [[x\\|y]] | 2 |",
        '<div class="scrolls"><tr><th class="align-start">a</th><th class="align-end">b</th></tr>'
        f'<tr><td class="align-start">{CITE}y</button></td><td class="align-end">2</td></tr></div>',
    ),
    (
        "[[A/B#C|d]] [[B#C]] ![[E]]",
        f"<p>{CITE}d</button> {CITE}B \u203a C</button> {CITE}embedded: E</button></p>",
    ),
    (
        "[[B]] (lines 3-9). [[B]] (line 4) [[B|L2-3]]",
        f"<p>{CITE}B {LINES}lines 3\u20139</span></button>. {CITE}B {LINES}line 4</span></button> "
        f"{CITE}B {LINES}lines 2\u20133</span></button></p>",
    ),
    ("[n](Other%20note.md#h)", '<p><button class="cite">n</button></p>'),
    (
        "see https://a.example/x_y_z.",
        '<p>see <a href="https://a.example/x_y_z" class="outside">https://a.example/x_y_z</a>.</p>',
    ),
    (
        "![p](https://a.example/p.png)",
        '<p><a href="https://a.example/p.png" class="outside picture">picture not loaded: p'
        '<span class="where"> (a.example)</span></a></p>',
    ),
    ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
    ("\ufeff# a\r\n\rb", '<h2 class="level-1">a</h2><p>b</p>'),
]


@pytest.fixture(scope="module")
def studio(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Page]:
    base = tmp_path_factory.mktemp("studio")
    with sites.serving(base, Model([["Hi."]]).open) as site, browser.new_context() as context:
        page = context.new_page()
        page.goto(site.address)
        yield page


@pytest.mark.parametrize(("text", "shown"), CASES, ids=range(len(CASES)))
def test_markdown_becomes(studio: Page, text: str, shown: str) -> None:
    assert NOISE.sub("", studio.evaluate(SHOWN, text)) == shown


PIECES = st.sampled_from(
    [*"ab*_`~=#>-+|1.\\\t", " ", " ", "\n", "\n", "\n\n", "  ", "- ", "> ", "1. ", "# ", "**", "    "]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pieces=st.lists(PIECES, max_size=60))
def test_no_letter_is_lost(studio: Page, pieces: list[str]) -> None:
    text = "".join(pieces)
    assume("```" not in text)  # the word after a fence says a language, and isn't shown
    assume("~~~" not in text)
    shown = studio.evaluate(TEXT, text).removeprefix("Properties")

    assert re.findall("[ab]", shown) == re.findall("[ab]", text)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pieces=st.lists(PIECES, max_size=60))
def test_every_block_lies_within_the_text(studio: Page, pieces: list[str]) -> None:
    text = "".join(pieces)
    places = studio.evaluate(PLACES, text)

    assert [place for place in places if not 1 <= place[0] <= place[1] <= text.count("\n") + 1] == []
