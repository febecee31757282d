"""What the program logs in notes is indexed apart, and found only where it is asked for."""

from pathlib import Path

import pytest

from knapper.index import chunker
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.search import SearchMode, SearchRequest
from knapper.vault.parser import parse_note
from knapper.vault.paths import NotePath
from tests.index import worlds

ENTRY = "> [!knap-log]- 14:05 · Walk\n>\n> **Summary:** A zebra crossed. [[Street]]\n"
DAY = f"# Day\n\nI walked.\n\n{ENTRY}\nHome again.\n\n{ENTRY}"


def made(text: str) -> list[tuple[str, str]]:
    raw = text.encode()
    return [(chunk.kind, chunk.text) for chunk in chunker.split_note(NotePath("a.md"), raw, parse_note(raw))]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    root = worlds.fill(
        tmp_path / "v",
        {"Day.md": DAY, "Only.md": ENTRY, "Street.md": "A street.\n", "Quote.md": "> a zebra quoted\n"},
    )
    opened = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    opened.refresh()
    opened.embed()
    return opened


def found(engine: Engine, text: str, mode: SearchMode = "hybrid", *, include_log: bool = False) -> set[tuple[str, str]]:
    where = Filter(include_log=include_log)
    hits = engine.search(SearchRequest(text=text, mode=mode, limit=20, per_note=9, where=where)).hits
    return {(hit.row.note, hit.row.kind) for hit in hits}


def test_an_entry_is_a_chunk_of_its_own() -> None:
    assert made(DAY) == [
        ("text", "# Day\n\nI walked."),
        ("log", ENTRY.rstrip()),
        ("text", "Home again."),
        ("log", ENTRY.rstrip()),
    ]


def test_entries_below_each_other_are_packed_together() -> None:
    assert made(f"{ENTRY}\n{ENTRY}") == [("log", f"{ENTRY}\n{ENTRY}".rstrip())]


def test_text_directly_below_an_entry_is_not_the_log() -> None:
    assert made(f"{ENTRY}my words\n") == [("log", ENTRY.rstrip()), ("text", "my words")]


def test_an_entry_shown_in_code_is_code() -> None:
    assert made(f"```\n{ENTRY}```\n")[0][0] == "code"


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_the_log_is_found_only_where_it_is_asked_for(engine: Engine, mode: SearchMode) -> None:
    with engine:
        plain = found(engine, "zebra crossed", mode)
        asked = found(engine, "zebra crossed", mode, include_log=True)

    assert plain == {("Quote.md", "quote")}
    assert {("Day.md", "log"), ("Only.md", "log"), ("Quote.md", "quote")} <= asked


def test_a_note_that_its_name_finds_is_not_shown_by_its_log(engine: Engine) -> None:
    with engine:
        assert found(engine, "Only") == set()
        assert ("Day.md", "text") in found(engine, "Day")


def test_links_of_the_log_count_so_that_moves_keep_them(engine: Engine) -> None:
    with engine:
        sources = {edge.source for edge in engine.graph.incoming(NotePath("Street.md"))}

    assert sources == {"Day.md", "Only.md"}
