"""Follow the documentation's links with the program's own parser and index."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.graph import Edge
from knapper.vault import links, parser
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(NotePath(path.relative_to(DOCS).as_posix()) for path in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    view = View.open(DOCS, Policy(client="owner"))
    with Engine(tmp_path_factory.mktemp("index"), view, open_embedder=lambda: None) as opened:
        opened.refresh()
        yield opened


def where(edge: Edge) -> str:
    return f"{edge.source}:{edge.line} {edge.target}{''.join('#' + one for one in edge.headings)}"


def inner(engine: Engine, page: NotePath) -> list[Edge]:
    return [edge for edge in engine.graph.outgoing(page) if edge.kind != "external"]


def test_every_link_leads_to_a_file(engine: Engine) -> None:
    followed = [edge for page in PAGES for edge in inner(engine, page)]

    assert len(followed) > len(PAGES)
    assert [where(edge) for edge in engine.graph.broken()] == []


def test_every_link_leads_to_one_file_alone(engine: Engine) -> None:
    assert [where(edge) for page in PAGES for edge in inner(engine, page) if len(edge.ambiguous) > 1] == []


def test_every_linked_heading_is_there(engine: Engine) -> None:
    missing: list[str] = []
    for page in PAGES:
        for edge in inner(engine, page):
            if edge.headings and edge.path is not None:
                titles = [section.title for section in parser.read_note(DOCS, edge.path).outline.sections]
                known = [any(links.heading_matches(wanted, title) for title in titles) for wanted in edge.headings]
                missing.extend([] if all(known) else [where(edge)])

    assert missing == []


def test_every_page_can_be_reached_from_the_map(engine: Engine) -> None:
    reached: set[NotePath] = set()
    waiting = [NotePath("index.md")]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += [edge.path for edge in inner(engine, page) if edge.path is not None and edge.path in PAGES]

    assert sorted(set(PAGES) - reached) == []


def test_no_page_has_a_problem(engine: Engine) -> None:
    assert [f"{row.path}: {row.message}" for row in engine.status(Filter()).skipped] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_is_about(page: NotePath) -> None:
    outline = parser.read_note(DOCS, page).outline
    titles = [section for section in outline.sections if section.level == 1]

    assert outline.frontmatter is not None
    assert {"tags", "aliases"} <= outline.frontmatter.values.keys()
    assert len(titles) == 1
