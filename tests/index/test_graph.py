"""The graph: links resolve as in Obsidian, in both directions."""

from pathlib import Path

import pytest

from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.vault.paths import NotePath
from tests.index import worlds

NOTES = {
    "A.md": "[[B]] [[B#H|x]] [[b^id]] ![[B]] [t](sub/C.md) [[Missing]] [[#Own]] `[[B]]` https://x.example\n",
    "B.md": "---\nup: '[[A]]'\n---\nalone here\n",
    "sub/B.md": "[[B]]\n",
    "sub/C.md": "[[sub/B]] [up](../A.md)\n",
    "Lonely.md": "nothing\n",
    "map.canvas": '{"nodes":[{"id":"1","type":"file","file":"sub/C.md"}],"edges":[]}',
}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    opened = worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s")
    opened.refresh()
    return opened


def test_every_form_of_link_is_a_backlink_and_code_is_none(engine: Engine) -> None:
    edges = engine.graph.incoming(NotePath("B.md"))

    assert [(edge.source, edge.kind) for edge in edges] == [
        ("A.md", "wikilink"),
        ("A.md", "wikilink"),
        ("A.md", "wikilink"),
        ("A.md", "embed"),
        ("sub/B.md", "wikilink"),
    ]
    assert (edges[1].headings, edges[1].alias, edges[2].block) == (("H",), "x", "id")


def test_a_path_from_the_root_means_just_that_note(engine: Engine) -> None:
    sources = {edge.source for edge in engine.graph.incoming(NotePath("sub/B.md"))}

    assert "sub/C.md" in sources
    assert "A.md" not in sources


def test_properties_canvases_and_markdown_links_count(engine: Engine) -> None:
    into_a = [(edge.source, edge.kind) for edge in engine.graph.incoming(NotePath("A.md"))]
    into_c = [(edge.source, edge.kind) for edge in engine.graph.incoming(NotePath("sub/C.md"))]

    assert into_a == [("A.md", "wikilink"), ("B.md", "property"), ("sub/C.md", "markdown")]
    assert into_c == [("A.md", "markdown"), ("map.canvas", "canvas")]


def test_outgoing_links_tell_where_they_lead(engine: Engine) -> None:
    edges = engine.graph.outgoing(NotePath("A.md"))

    assert [(edge.target, edge.path) for edge in edges if edge.kind == "markdown"] == [("sub/C.md", "sub/C.md")]
    assert [edge.path for edge in edges if edge.target == "Missing"] == [None]


def test_broken_links_and_orphans_are_listed(engine: Engine) -> None:
    assert [(edge.source, edge.target) for edge in engine.graph.broken()] == [("A.md", "Missing")]
    assert engine.catalog.orphans(Filter()) == ["Lonely.md"]


def test_a_note_whose_name_ends_so_before_its_ending_is_found_by_the_shorter_name(tmp_path: Path) -> None:
    opened = worlds.engine(
        worlds.fill(tmp_path / "v", {"A.md": "[[x.md]] [[X.md.md]]\n", "x.md.md": ""}), tmp_path / "s"
    )
    opened.refresh()

    assert [edge.target for edge in opened.graph.incoming(NotePath("x.md.md"))] == ["x.md", "X.md.md"]


def test_a_path_with_a_slash_at_its_end_is_a_backlink(tmp_path: Path) -> None:
    opened = worlds.engine(worlds.fill(tmp_path / "v", {"A.md": "[[./B/]] [b](/B.md/)\n", "B.md": ""}), tmp_path / "s")
    opened.refresh()

    assert [edge.kind for edge in opened.graph.incoming(NotePath("B.md"))] == ["wikilink", "markdown"]


def test_what_links_say_is_given_by_the_names_that_they_may_mean(engine: Engine) -> None:
    found = {written.source: written.links for written in engine.graph.links_to_keys(["b"])}

    assert found[NotePath("sub/C.md")] == (("wikilink", "sub/B"),)
    assert set(found) == {"A.md", "sub/B.md", "sub/C.md"}


def test_a_file_without_links_is_known_all_the_same(engine: Engine) -> None:
    written = engine.graph.links_of(NotePath("Lonely.md"))

    assert written is not None
    assert (written.links, written.known.size) == ((), 8)
    assert engine.graph.links_of(NotePath("None.md")) is None
