"""Scores that are computed in memory are those that SQLite gives, whatever came and went meanwhile."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knapper.index import database, fulltext, tokenizer
from knapper.index.engine import Engine
from knapper.index.fulltext import KeywordRanker, Postings, QueryWord
from knapper.index.search import SearchRequest
from knapper.index.tokenizer import Stemmer
from tests.index import worlds

WEIGHTS = {"title": 3.0, "heading": 2.0, "body": 1.0}
Row = tuple[str, str, str]


def opened(rows: Sequence[Row] = ()) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.execute("INSERT INTO meta VALUES ('uid', 'one'), ('generation', '1')")
    columns = "title, heading, body, content=''"
    connection.execute(f'CREATE VIRTUAL TABLE chunk_words USING fts5({columns}, tokenize="{tokenizer.TOKENIZER}")')
    for statement in database.TEMPORARY_TABLES_SQL:
        connection.execute(statement)
    for number, row in enumerate(rows, start=1):
        add(connection, number, row)
    return connection


def add(connection: sqlite3.Connection, number: int, row: Row) -> None:
    connection.execute("INSERT INTO chunk_words (rowid, title, heading, body) VALUES (?, ?, ?, ?)", (number, *row))


def remove(connection: sqlite3.Connection, number: int, row: Row) -> None:
    connection.execute(
        "INSERT INTO chunk_words (chunk_words, rowid, title, heading, body) VALUES ('delete', ?, ?, ?, ?)",
        (number, *row),
    )


def word(stemmer: Stemmer, text: str, times: int = 1, *, prefix: bool = False) -> QueryWord:
    (stems,) = stemmer.stems([text])
    expression = f'"{text}"*' if prefix else f'"{text}"'
    return QueryWord(expression=expression, token=stems[0] if len(stems) == 1 and not prefix else "", times=times)


def by_engine(connection: sqlite3.Connection, words: Sequence[QueryWord]) -> dict[int, float]:
    match = " OR ".join(w.expression for w in words for _ in range(w.times))
    score = f"-bm25(chunk_words, {', '.join(map(str, WEIGHTS.values()))})"
    rows = connection.execute(f"SELECT rowid, {score} FROM chunk_words WHERE chunk_words MATCH ?", (match,))
    return {int(i): float(value) for i, value in rows}


def in_memory(postings: Postings, connection: sqlite3.Connection, words: Sequence[QueryWord]) -> dict[int, float]:
    ids, scores = postings.scores(connection, words)
    assert ids.tolist() == sorted(ids.tolist())
    return dict(zip(ids.tolist(), scores.tolist(), strict=True))


TEXT = st.lists(st.sampled_from(["rain", "rains", "wind", "sun-dial", "ÜBER", "日", "x"]), max_size=6).map(" ".join)
ROWS = st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(rows=ROWS, later=ROWS, gone=st.sets(st.integers(1, 8)), times=st.integers(1, 3))
def test_scores_are_those_of_the_engine(rows: list[Row], later: list[Row], gone: set[int], times: int) -> None:
    stemmer, postings, connection = Stemmer(), Postings("chunk_words", WEIGHTS), opened(rows)
    words = [
        word(stemmer, "raining", times),
        word(stemmer, "sun-dial"),
        word(stemmer, "wi", prefix=True),
        word(stemmer, "über"),
        word(stemmer, "absent"),
    ]
    first, expected_first = in_memory(postings, connection, words), by_engine(connection, words)
    for number in gone & set(range(1, len(rows) + 1)):
        remove(connection, number, rows[number - 1])
    for number, row in enumerate(later, start=len(rows) + 1):
        add(connection, number, row)
    second, expected_second = in_memory(postings, connection, words), by_engine(connection, words)
    stemmer.close()
    connection.close()

    assert first == pytest.approx(expected_first, rel=1e-12)
    assert second == pytest.approx(expected_second, rel=1e-12)


@pytest.mark.parametrize("length", [1, 127, 128, 16_383, 16_384, 70_000])
def test_a_row_may_be_of_any_length(length: int) -> None:
    stemmer, connection = Stemmer(), opened([("", "", "rain " + "x " * (length - 1)), ("rain", "", "rain")])
    words = [word(stemmer, "rain")]
    found, expected = in_memory(Postings("chunk_words", WEIGHTS), connection, words), by_engine(connection, words)
    stemmer.close()
    connection.close()

    assert found == pytest.approx(expected, rel=1e-12)


def test_an_index_that_was_begun_anew_is_counted_anew() -> None:
    stemmer, postings, connection = Stemmer(), Postings("chunk_words", WEIGHTS), opened([("", "", "rain x x x x")])
    words = [word(stemmer, "rain")]
    in_memory(postings, connection, words)
    remove(connection, 1, ("", "", "rain x x x x"))
    add(connection, 1, ("", "", "rain"))
    add(connection, 2, ("", "", "x x"))
    connection.execute("UPDATE meta SET value = 'two' WHERE key = 'uid'")
    found, expected = in_memory(postings, connection, words), by_engine(connection, words)
    stemmer.close()
    connection.close()

    assert found == pytest.approx(expected, rel=1e-12)


def test_what_is_remembered_of_rows_that_are_gone_is_dropped() -> None:
    stemmer, postings, connection = Stemmer(), Postings("chunk_words", WEIGHTS), opened([("", "", "rain")])
    words = [word(stemmer, "rain")]
    for start in range(2, 6_000, 1_500):
        connection.execute("BEGIN")
        for number in range(start, start + 1_500):
            add(connection, number, ("", "", "rain"))
        connection.execute("COMMIT")
        in_memory(postings, connection, words)
        connection.execute("BEGIN")
        for number in range(start, start + 1_500):
            remove(connection, number, ("", "", "rain"))
        connection.execute("COMMIT")
    add(connection, 7_000, ("", "", "rain"))
    found = in_memory(postings, connection, words)
    held = postings.lengths.find(connection, np.array([1]))[0]
    stemmer.close()
    connection.close()

    assert set(found) == {1, 7_000}
    assert len(held.ids) < 6_000


def test_a_row_without_a_length_is_told_as_damage() -> None:
    stemmer, connection = Stemmer(), opened([("", "", "rain"), ("", "", "rain x")])
    connection.execute("DELETE FROM chunk_words_docsize WHERE id = 2")
    with pytest.raises(sqlite3.DatabaseError, match="malformed") as raised:
        in_memory(Postings("chunk_words", WEIGHTS), connection, [word(stemmer, "rain")])
    stemmer.close()
    connection.close()

    assert database.as_storage_error(raised.value) is not None


@pytest.mark.parametrize("block", ["NULL", "7", "7.5", "'abc'", "CAST(x'05ff41fe' AS TEXT)", "x''", "x'00000000'"])
def test_numbers_of_all_rows_that_cannot_be_read_are_told_as_damage(block: str) -> None:
    stemmer, connection = Stemmer(), opened([("", "", "rain"), ("", "", "rain x")])
    connection.execute(f"UPDATE chunk_words_data SET block = {block} WHERE id = 1")
    with pytest.raises(sqlite3.DatabaseError, match="malformed") as raised:
        in_memory(Postings("chunk_words", WEIGHTS), connection, [word(stemmer, "rain")])
    stemmer.close()
    connection.close()

    assert database.as_storage_error(raised.value) is not None


@pytest.mark.parametrize("size", ["NULL", "x'0102'", "x'ffffffffffffffffff0101'", "x'818080808080808080000101'"])
def test_a_length_that_cannot_be_read_is_told_as_damage(size: str) -> None:
    stemmer, connection = Stemmer(), opened([("", "", "rain"), ("", "", "rain x")])
    connection.execute(f"UPDATE chunk_words_docsize SET sz = {size} WHERE id = 2")
    with pytest.raises(sqlite3.DatabaseError, match="malformed") as raised:
        in_memory(Postings("chunk_words", WEIGHTS), connection, [word(stemmer, "rain")])
    stemmer.close()
    connection.close()

    assert database.as_storage_error(raised.value) is not None


def test_a_word_of_an_index_that_has_become_empty_is_in_no_row() -> None:
    stemmer, connection = Stemmer(), opened([("", "", "rain")])
    remove(connection, 1, ("", "", "rain"))
    found = in_memory(Postings("chunk_words", WEIGHTS), connection, [word(stemmer, "rain")])
    stemmer.close()
    connection.close()

    assert found == {}


NOTES = {
    **{f"{name}.md": f"# {name}\n\nrain {'wind ' * number}\n" for number, name in enumerate("abcdefgh")},
    "same 1.md": "rain rain\n",
    "same 2.md": "rain rain\n",
    "hidden.md": "rain rain rain\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s") as engine:
        engine.refresh()
        yield engine


@pytest.mark.parametrize("limit", [1, 3, 5, 50])
@pytest.mark.parametrize("hides", [False, True])
def test_the_first_question_and_later_ones_are_answered_alike(engine: Engine, limit: int, *, hides: bool) -> None:
    with engine.store.database.snapshot() as connection:
        ids = dict(connection.execute("SELECT path, id FROM files"))
        allowed = np.ones(max(ids.values()) + 1, np.bool_) if hides else None
        if allowed is not None:
            allowed[[ids["hidden.md"], ids["a.md"]]] = False
        keywords, query = KeywordRanker(), tokenizer.parse_query("raining winds")
        first = keywords.chunks(connection, query, limit=limit, allowed=allowed)
        later = keywords.chunks(connection, query, limit=limit, allowed=allowed)
        keywords.close()

    assert list(later) == list(first)
    assert later == pytest.approx(first, rel=1e-12)
    assert {i >> database.CHUNK_BITS for i in later}.isdisjoint({ids["hidden.md"]} if hides else set[int]())


def test_this_sqlite_is_one_whose_tables_were_tested() -> None:
    oldest, newest = fulltext.TESTED

    assert oldest <= sqlite3.sqlite_version_info[:2] <= newest, (
        f"words are scored slowly by SQLite {sqlite3.sqlite_version}: if all other tests here pass with it, "
        "widen lengths.TESTED"
    )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE chunk_words_config SET v = 5 WHERE k = 'version'",
        "ALTER TABLE chunk_words_docsize ADD COLUMN origin INTEGER",
        "ALTER TABLE chunk_words_data RENAME TO elsewhere",
        "DROP TABLE chunk_words_config",
    ],
)
def test_tables_of_another_form_are_not_read(change: str) -> None:
    connection = opened([("", "", "rain")])
    known = Postings("chunk_words", WEIGHTS).lengths.is_known(connection)
    connection.execute(change)
    known_later = Postings("chunk_words", WEIGHTS).lengths.is_known(connection)
    connection.close()

    assert (known, known_later) == (True, False)


def test_an_index_that_fts5_cannot_open_is_told_as_damage(engine: Engine) -> None:
    with engine.store.database.transaction() as connection:
        connection.execute("DELETE FROM chunk_words_config")

    with closing(sqlite3.connect(engine.store.database.path)) as other, pytest.raises(sqlite3.DatabaseError):
        fulltext.check_lengths(other)


def test_by_a_sqlite_that_was_not_tested_all_is_found_as_before(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [SearchRequest(text=text, mode="keyword", limit=20) for text in ("rain", "rain wind", "raining winds")]
    expected = [engine.search(question).hits for question in [*asked, *asked]][len(asked) :]
    monkeypatch.setattr(fulltext, "TESTED", ((3, 0), (3, 0)))
    monkeypatch.delattr(Postings, "scores")
    with worlds.engine(engine.view.root, tmp_path / "s") as other:
        found = [other.search(question).hits for question in [*asked, *asked]][len(asked) :]
        with other.store.database.snapshot() as connection:
            fulltext.check_lengths(connection)

    assert [[hit.row for hit in hits] for hits in found] == [[hit.row for hit in hits] for hits in expected]
    assert [hit.score for hits in found for hit in hits] == pytest.approx(
        [hit.score for hits in expected for hit in hits], rel=1e-12
    )


def test_a_file_that_came_after_the_mask_was_made_is_not_found(engine: Engine) -> None:
    with engine.store.database.snapshot() as connection:
        keywords, query, none = KeywordRanker(), tokenizer.parse_query("rain"), np.zeros(1, np.bool_)
        found = [keywords.chunks(connection, query, limit=5, allowed=none) for _ in range(2)]
        keywords.close()

    assert found == [{}, {}]


def test_changed_notes_are_found_as_a_new_index_finds_them(engine: Engine) -> None:
    asked = SearchRequest(text="rain wind storm", mode="keyword", limit=20)
    engine.search(asked)
    engine.search(asked)
    (engine.view.root / "a.md").unlink()
    worlds.fill(engine.view.root, {"b.md": "storm and rain\n", "new.md": "wind " * 300})
    engine.refresh()
    found = engine.search(asked).hits
    engine.refresh(full=True)
    anew = engine.search(asked).hits

    assert [hit.row.note for hit in found] == [hit.row.note for hit in anew]
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in anew], rel=1e-9)
    assert {"b.md", "new.md"} <= {hit.row.note for hit in found}


@pytest.mark.parametrize("letter", ["क", "я"])
def test_a_word_that_is_cut_inside_of_a_character_is_found_like_any_other(tmp_path: Path, letter: str) -> None:
    long = "x" + letter * 17_000
    root = worlds.fill(
        tmp_path / "v", {"a.md": f"# {long}\n\nrain\n", "b.md": f"## {long}\n\nwind\n", "c.md": "wind\n"}
    )
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        found = [engine.search(SearchRequest(text=long, mode="keyword")).hits for _ in range(2)]

    assert [{hit.row.note for hit in hits} for hits in found] == [{"a.md", "b.md"}] * 2
    assert [hit.score for hit in found[1]] == pytest.approx([hit.score for hit in found[0]], rel=1e-12)
