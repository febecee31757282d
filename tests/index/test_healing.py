"""An index that was damaged is noticed and rebuilt, and no state of the files damages it."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.errors import StorageError
from knapper.index import status
from knapper.index.database import DAMAGE_ERRORS
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest
from knapper.index.words import postings
from knapper.tools.search import freshness_fields
from knapper.vault import view
from knapper.vault.paths import NotePath
from tests.index import worlds
from tests.index.test_store import check, texts
from tests.properties import scaled

LARGE = 1_000
"""Bytes above which a note counts as too large in these tests."""


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a note of more than a few bytes for too large to be read."""
    read = view.View.read_bytes

    def read_small(self: view.View, path: view.NotePath) -> bytes:
        return read(self, path, max_bytes=LARGE)

    monkeypatch.setattr(view.View, "read_bytes", read_small)


def damage_words(database: Path, title: str = "n1 md", body: str = "x") -> None:
    """Remove words from a row of the full-text index, maybe ones that it never held, as an older version did."""
    connection = sqlite3.connect(database)
    row = connection.execute("SELECT id FROM chunks LIMIT 1").fetchone()[0]
    connection.execute(
        "INSERT INTO chunk_words (chunk_words, rowid, title, heading, body) VALUES ('delete', ?, ?, '', ?)",
        (row, title, body),
    )
    connection.commit()
    connection.close()


def damage_text(engine: Engine, text: str) -> None:
    """Change a stored text, whose words could then not be removed from the full-text index any more."""
    with engine.store.database.transaction(counts=False) as connection:
        changed = connection.execute("UPDATE chunks SET text = 'other words' WHERE text = ?", (text,))
        assert changed.rowcount == 1


def contents(engine: Engine) -> object:
    """Return what the tables hold of each file, without the numbers of rows."""
    reader = engine.store.database.reader()
    files = "SELECT id, path, target, kind, title, hash, failed_ns > 0 FROM files"
    return {
        (*row, *(frozenset(reader.execute(sql, (file_id,)).fetchall()) for sql in DETAILS))
        for file_id, *row in reader.execute(files).fetchall()
    }


DETAILS = (
    "SELECT kind, target, line FROM links WHERE file_id = ?",
    "SELECT name, line FROM tags WHERE file_id = ?",
    "SELECT name, item FROM properties WHERE file_id = ?",
    "SELECT alias, key FROM aliases WHERE file_id = ?",
    "SELECT level, title, line FROM headings WHERE file_id = ?",
)


def words(engine: Engine, table: str) -> list[tuple[object, ...]]:
    """Return each word of a full-text table with the numbers of rows and places that hold it."""
    with engine.store.database.transaction() as connection:
        connection.execute(f"CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, {table}, row)")
        rows = connection.execute("SELECT term, doc, cnt FROM held ORDER BY term").fetchall()
        connection.execute("DROP TABLE held")
    return rows


def test_a_note_that_can_not_be_read_for_a_moment_does_not_damage_the_index(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"n1.md": "# One\n\nalpha\n", "n2.md": "# Two\n\nbeta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"n1.md": "x" * (LARGE + 1)})
        unread = engine.refresh()
        title = engine.store.database.reader().execute("SELECT title FROM files WHERE path = 'n1.md'").fetchone()[0]
        worlds.fill(root, {"n1.md": "# One\n\nalpha\n"})
        engine.refresh()

        check(engine)
        with worlds.engine(root, tmp_path / "fresh") as fresh:
            fresh.refresh()
            assert words(engine, "chunk_words") == words(fresh, "chunk_words")
    assert title == "n1"
    assert [problem for problem in unread.problems if "damaged" in problem] == []


NAMES = st.sampled_from(["a.md", "sub/a b.c.md", "c.canvas", "pic.png"])
TEXTS = st.sampled_from(["", "alpha\n", "---\ntags: [x]\naliases: [y]\n---\n# H\n\n[[b]]\n", "x " * LARGE])


def _write(root: Path, name: str, text: str) -> None:
    _remove(root, name)
    worlds.fill(root, {name: text})


def _remove(root: Path, name: str) -> None:
    place = root / name
    if place.is_dir() and not place.is_symlink():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)


def _rename(root: Path, name: str, other: str) -> None:
    if os.path.lexists(root / name) and name != other:
        _remove(root, other)
        (root / other).parent.mkdir(exist_ok=True)
        (root / name).rename(root / other)


def _link(root: Path, name: str, other: str) -> None:
    if name != other:
        _remove(root, name)
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(root / other)


def _make_folder(root: Path, name: str) -> None:
    _remove(root, name)
    (root / name).mkdir(parents=True)


def _save_with_same_time(root: Path, name: str) -> None:
    if (root / name).is_file():
        status = (root / name).stat()
        (root / name).write_bytes((root / name).read_bytes()[::-1])
        os.utime(root / name, ns=(status.st_atime_ns, status.st_mtime_ns))


STEPS = st.one_of(
    st.tuples(st.just(_write), NAMES, TEXTS),
    st.tuples(st.just(_write), st.just("a.md"), TEXTS),
    st.tuples(st.just(_rename), NAMES, NAMES),
    st.tuples(st.just(_link), NAMES, NAMES),
    st.tuples(st.just(_make_folder), NAMES),
    st.tuples(st.just(_remove), NAMES),
    st.tuples(st.just(_save_with_same_time), NAMES),
)


@given(steps=st.lists(STEPS, min_size=4, max_size=14))
@settings(
    max_examples=scaled(80),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
def test_any_sequence_of_file_states_gives_a_fresh_index(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Callable[..., None], str]]
) -> None:
    base = tmp_path_factory.mktemp("states")
    root = base / "v"
    with worlds.engine(root, base / "s") as engine, worlds.engine(root, base / "fresh") as fresh:
        for step, *arguments in steps:
            step(root, *arguments)
            outcome = engine.refresh()
            assert not [problem for problem in outcome.problems if "damaged" in problem]
        fresh.refresh()

        assert (texts(engine), contents(engine)) == (texts(fresh), contents(fresh))
        for table in ("chunk_words", "title_words", "name_grams", "property_grams"):
            assert words(engine, table) == words(fresh, table)
        assert status.find_damage(engine.store.database) == ""
        check(engine)


def test_words_that_do_not_match_what_was_stored_let_the_index_be_built_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"n1.md": "# One\n\nalpha\n", "n2.md": "# Two\n\nbeta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        damage_words(tmp_path / "s" / "index.db")
        outcome = engine.refresh()
        again = engine.refresh()

        check(engine)
        assert [hit.row.note for hit in engine.search(SearchRequest(text="alpha")).hits] == ["n1.md"]
    assert outcome.indexed == 2
    assert outcome.was_damaged
    assert "was damaged" in outcome.problems[0]
    assert "rebuilt" in outcome.problems[0]
    assert (again.indexed, again.problems) == (0, [])


def test_a_text_that_a_single_save_finds_damaged_makes_the_index_incomplete_until_it_is_built_anew(
    tmp_path: Path,
) -> None:
    notes = {f"{n}.md": f"alpha{n}\n" for n in range(3)}
    root = worlds.fill(tmp_path / "v", notes)
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        damage_text(engine, "alpha1")
        worlds.fill(root, {"1.md": "gamma\n"})
        saved = engine.refresh_paths([root / "1.md"])
        complete = engine.status().complete
        freshness = engine.freshen()

        check(engine)
    assert "damaged" in saved.problems[0]
    assert (complete, freshness.incomplete) == (False, False)


def test_a_large_vault_with_a_damaged_text_is_told_by_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knapper.index.engine._MAX_INLINE_FILES", 2)
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"alpha{n}\n" for n in range(3)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        damage_text(engine, "alpha1")
        worlds.fill(root, {"1.md": "gamma\n"})
        engine.refresh_paths([root / "1.md"])
        freshness = engine.freshen()
        files = len(engine.store.file_states())

    assert freshness.damaged
    assert freshness.incomplete
    assert files == 3
    assert freshness_fields(freshness)["notes"] == [
        "the index is damaged, and answers may be wrong: `knap index` rebuilds it"
    ]


def test_a_damaged_page_lets_the_index_be_built_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"alpha {'beta ' * 100}{n}\n" for n in range(60)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
    worlds.damage(tmp_path / "s" / "index.db")
    with worlds.engine(root, tmp_path / "s") as engine:
        outcome = engine.refresh()

        check(engine)
        assert len(texts(engine)) == 60
    assert "was damaged" in outcome.problems[0]


def test_a_text_that_is_not_what_was_stored_is_told_and_not_shown(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        with engine.store.database.transaction(counts=False) as connection:
            connection.execute("UPDATE chunks SET text = 'alpha bet4'")
        with pytest.raises(StorageError, match="damaged"):
            engine.search(SearchRequest(text="alpha"))
        outcome = engine.refresh()
        shown = engine.search(SearchRequest(text="alpha")).hits[0].row.text

    assert shown == "alpha beta"
    assert "was damaged" in outcome.problems[0]


def test_a_check_finds_a_text_that_nobody_has_asked_for_yet(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        with engine.store.database.transaction(counts=False) as connection:
            connection.execute("UPDATE chunks SET text = 'alpha bet4'")
        unchecked = engine.refresh(check=False)
        checked = engine.refresh(check=True)
        shown = engine.search(SearchRequest(text="alpha")).hits[0].row.text

    assert not unchecked.was_damaged
    assert checked.was_damaged
    assert shown == "alpha beta"


@pytest.mark.parametrize("value", [60_000.0, float("nan")])
def test_a_vector_with_a_flipped_bit_is_told(tmp_path: Path, value: float) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha beta\n", "b.md": "gamma\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        vector = np.zeros(4096, np.float16)
        vector[5] = value
        with engine.store.database.transaction(counts=False) as connection:
            connection.execute("UPDATE vectors SET vector = ? WHERE chunk_id = 1 << 20", (vector.tobytes(),))
        with pytest.raises(StorageError, match="damaged"):
            engine.search(SearchRequest(text="gamma"))
        outcome = engine.refresh()

    assert "was damaged" in outcome.problems[0]


@pytest.fixture(scope="module")
def sound_index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, list[object]]:
    """Return a vault, the bytes of its index, and what that answers."""
    top = tmp_path_factory.mktemp("sound")
    notes = {f"{n}.md": f"---\ntags: [t{n % 3}]\n---\n# Note {n}\n\nalpha{n % 7} beta [[{n + 1}]]\n" for n in range(30)}
    root = worlds.fill(top / "v", notes)
    with worlds.engine(root, top / "s") as engine:
        engine.refresh()
        engine.store.database.reader().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return root, (top / "s" / "index.db").read_bytes(), answers(engine)


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_raise_no_strange_errors_and_the_next_refresh_mends_them(
    tmp_path: Path, sound_index: tuple[Path, bytes, list[object]], seed: int
) -> None:
    root, sound, wanted = sound_index
    chance = random.Random(seed)
    for number in range(10):
        raw = bytearray(sound)
        for _ in range(3):
            raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "index.db").write_bytes(raw)
        with worlds.engine(root, folder) as engine:
            is_wrong = False
            with suppress(StorageError):
                is_wrong = answers(engine) != wanted
            outcome = engine.refresh()

            assert answers(engine) == wanted
            assert outcome.was_damaged or not is_wrong


def answers(engine: Engine) -> list[object]:
    """Ask the index in several ways, as the tools do: an error that damage explains is told as such."""
    try:
        hits = engine.search(SearchRequest(text="alpha3", mode="keyword")).hits
        return [
            [(hit.row.note, hit.row.text) for hit in hits],
            sorted(edge.source for edge in engine.graph.incoming(NotePath("7.md"))),
            engine.catalog.tag_counts(Filter()),
            engine.status().chunks,
        ]
    except DAMAGE_ERRORS as error:
        failure = engine.explain(error)
        if failure is None:
            raise
        raise failure from error


def test_what_is_told_of_damage_holds_no_text_of_a_note(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        with engine.store.database.transaction() as connection:
            connection.execute("UPDATE files SET title = CAST(x'736563726574ff' AS TEXT)")
        with pytest.raises(StorageError, match="damaged") as caught:
            engine.search(SearchRequest(text="alpha"))
        outcome = engine.refresh()

    assert "secret" not in caught.value.message
    assert "secret" not in outcome.problems[0]
    assert "was damaged" in outcome.problems[0]


@pytest.mark.slow
def test_bits_of_posting_lists_that_change_answers_are_found(tmp_path: Path) -> None:
    # FTS5 joins its checksums by XOR, in which a word that is renamed in an even number of rows may cancel itself out.
    notes = {f"{n}.md": f"alpha{n % 3} beta {'gamma ' * (n % 4)}\n" for n in range(15)}
    root = worlds.fill(tmp_path / "v", notes)
    asked = [SearchRequest(text=text, mode="keyword") for text in ("alpha1", "gamma", "alpha2 beta")]

    def ask(engine: Engine) -> list[list[tuple[str, float]]]:
        return [[(hit.row.note, hit.score) for hit in engine.search(one).hits] for one in asked]

    silent = missed = 0
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        wanted, database = ask(engine), engine.store.database
        # The lists of the first segment, whose rows follow the structure's own.
        page, block = database.reader().execute("SELECT id, block FROM chunk_words_data ORDER BY id DESC").fetchone()
        update = "UPDATE chunk_words_data SET block = ? WHERE id = ?"
        # Every third bit, which is each of a byte in turn.
        for at in range(0, 8 * len(block), 3):
            raw = bytearray(block)
            raw[at // 8] ^= 1 << at % 8
            with database.transaction() as connection:
                connection.execute(update, (bytes(raw), page))
            try:
                is_silent = ask(engine) != wanted
            except (StorageError, sqlite3.DatabaseError):
                is_silent = False
            if is_silent:
                silent += 1
                missed += status.find_damage(database) == ""
    assert silent > 3
    assert missed == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE added_words SET weight = weight + 1",
        "UPDATE added_words SET term = term || 'x'",
        "UPDATE added_rows SET words = words + 1",
        "UPDATE added_rows SET id = id + 64",
        "UPDATE dropped_rows SET id = id + 64",
    ],
)
def test_a_wrong_record_of_changed_rows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"alpha{n} beta\n" for n in range(5)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        worlds.fill(root, {"1.md": "gamma\n"})
        engine.refresh_paths([root / "1.md"])
        before = status.find_damage(engine.store.database)
        with engine.store.database.transaction(counts=False) as connection:
            changed = connection.execute(change).rowcount
        damage = status.find_damage(engine.store.database)

    assert (before, changed > 0) == ("", True)
    assert "recorded" in damage


def test_a_column_with_another_name_is_found(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        engine.store.database.reader().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    file = tmp_path / "s" / "index.db"
    file.write_bytes(
        file.read_bytes().replace(b"target TEXT NOT NULL, target_key", b"tarfet TEXT NOT NULL, target_key")
    )
    with worlds.engine(root, tmp_path / "s") as engine:
        damage = status.find_damage(engine.store.database)

    assert damage == "the schema isn't the one that was stored"


def test_unusual_characters_are_no_damage(tmp_path: Path) -> None:
    head = '---\naliases: ["a\\0b", "\\u0001"]\nsummary: "x\\0y \U0001f600"\n---\n'
    text = f"{head}# \u691c\u7d22\u3067\n\na\0b \u691c\u7d22 \ufb01 \u0301\n"
    root = worlds.fill(tmp_path / "v", {"\u691c\u7d22 \U0001f600.md": text, "pic.png": "x", "c.canvas": "{}"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        aliases = engine.store.database.reader().execute("SELECT alias FROM aliases").fetchall()

        assert status.find_damage(engine.store.database) == ""
    assert ("a\0b",) in aliases


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE files SET modified = '2001-01-01', target = 'b.md'",
        "UPDATE files SET properties = '{}'",
        "UPDATE links SET line = line + 1",
        "UPDATE links SET target = 'c'",
        "UPDATE tags SET line = line + 64",
        "UPDATE properties SET name = 'Tagt'",
        "UPDATE aliases SET alias = 'yy'",
        "UPDATE headings SET level = 2",
        "UPDATE chunks SET start_line = start_line + 1",
        "DELETE FROM links",
    ],
)
def test_a_row_that_is_not_what_was_stored_is_found(tmp_path: Path, change: str) -> None:
    text = "---\ntags: [x]\naliases: [y]\n---\n# H\n\n[[b]] #inline\n"
    root = worlds.fill(tmp_path / "v", {"a.md": text, "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        os.utime(root / "a.md", (1, 1))
        engine.refresh()
        before = status.find_damage(engine.store.database)
        with engine.store.database.transaction(counts=False) as connection:
            changed = connection.execute(change).rowcount
        damage = status.find_damage(engine.store.database)
        outcome = engine.refresh()

    assert (before, changed > 0) == ("", True)
    assert damage == "database disk image is malformed: a row isn't the one that was stored"
    assert outcome.was_damaged


@pytest.mark.parametrize(
    "change", ["vector = CAST(x'01' || substr(vector, 2) AS BLOB)", "chunk_id = chunk_id + 1", "model = 'wordt'"]
)
def test_a_vector_that_is_not_the_chunks_own_is_found(tmp_path: Path, change: str) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha beta\n", "old.md": "gamma\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        (root / "old.md").rename(root / "copy.md")
        worlds.fill(root, {"sub/copy.md": "gamma\n"})
        engine.refresh()
        before = status.find_damage(engine.store.database)
        with engine.store.database.transaction(counts=False) as connection:
            connection.execute(f"UPDATE vectors SET {change} WHERE chunk_id = 1 << 20")
        damage = status.find_damage(engine.store.database)

    assert before == ""
    assert damage == "database disk image is malformed: a vector isn't one that was stored"


@pytest.mark.parametrize("column", ["path", "hash", "target"])
def test_looking_for_changes_tells_a_damaged_row_as_such(tmp_path: Path, column: str) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        with engine.store.database.transaction(counts=False) as connection:
            connection.execute(f"UPDATE files SET {column} = CAST(x'61ff' AS TEXT), racy = 1")
        with pytest.raises(StorageError, match="damaged"):
            _ = engine.freshen()
        outcome = engine.refresh()

    assert outcome.was_damaged


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Make a vault of three notes and its index, which nothing has open."""
    root = worlds.fill(tmp_path / "v", {f"n{n}.md": f"# Note {n}\n\nalpha{n} beta\n" for n in range(3)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
    return root


def found(engine: Engine, word: str) -> list[str]:
    return sorted(hit.row.note for hit in engine.search(SearchRequest(text=word, mode="keyword", limit=20)).hits)


def test_an_index_that_something_else_has_changed_is_checked_before_it_answers(closed: Path, tmp_path: Path) -> None:
    damage_words(tmp_path / "s" / "index.db", "", "beta")
    with worlds.engine(closed, tmp_path / "s") as engine, pytest.raises(StorageError) as raised:
        found(engine, "beta")
    with worlds.engine(closed, tmp_path / "s") as engine:
        freshness = engine.freshen()
        notes = found(engine, "beta")

    assert raised.value.code == "index_damaged"
    assert freshness.is_current
    assert notes == ["n0.md", "n1.md", "n2.md"]


def test_a_large_index_that_something_else_has_changed_says_so_until_it_was_checked(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.index.engine._MAX_INLINE_CHECK_BYTES", 0)
    os.utime(tmp_path / "s" / "index.db")
    with worlds.engine(closed, tmp_path / "s") as engine:
        before = engine.freshen()
    with worlds.engine(closed, tmp_path / "s") as engine:
        still = engine.freshen()
        engine.refresh()
        after = engine.freshen()
    with worlds.engine(closed, tmp_path / "s") as engine:
        later = engine.freshen()

    assert "`knap index` checks it" in str(freshness_fields(before)["notes"])
    assert [len(freshness.notices) for freshness in (before, still, after, later)] == [1, 1, 0, 0]


def test_a_search_of_a_large_index_does_not_ask_who_writes_it(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("knapper.index.engine._MAX_INLINE_CHECK_BYTES", 0)
    os.utime(tmp_path / "s" / "index.db")
    with worlds.engine(closed, tmp_path / "s") as engine:
        monkeypatch.setattr(Engine, "is_being_filled", property(lambda _: bool(asked.append("lock"))))
        notes = found(engine, "beta")

    assert (notes, asked) == (["n0.md", "n1.md", "n2.md"], [])


def test_an_index_that_nothing_else_has_changed_is_not_checked(
    closed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("the whole index is read")

    monkeypatch.setattr(status, "find_damage", refuse)
    with worlds.engine(closed, tmp_path / "s") as one, worlds.engine(closed, tmp_path / "s") as other:
        for number in range(4):
            worlds.fill(closed, {f"new{number}.md": "beta\n"})
            assert (one, other)[number % 2].freshen().is_current
        one.store.database.reader().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        with one.store.batch():
            one.store.set_meta("x", "y")
    for _ in range(2):
        with worlds.engine(closed, tmp_path / "s") as engine:
            assert engine.freshen().notices == ()
            assert len(found(engine, "beta")) == 7


def test_an_index_of_a_version_that_recorded_nothing_is_taken_as_it_is(closed: Path, tmp_path: Path) -> None:
    (tmp_path / "s" / "written.json").unlink()
    with worlds.engine(closed, tmp_path / "s") as engine:
        assert engine.store.database.is_trusted
    (tmp_path / "s" / "written.json").write_text("[")
    with worlds.engine(closed, tmp_path / "s") as engine:
        assert not engine.store.database.is_trusted
        assert engine.freshen().is_current
        assert engine.store.database.is_trusted
