"""The store: a file's chunks are replaced as a whole, and nothing is left of what went."""

import sqlite3
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.errors import StorageError
from knapper.index import documents
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest
from knapper.index.store import IndexStore
from tests.index import worlds
from tests.properties import scaled

WORDS = ("FTS", "chunk_words", "title_words", "name_grams")


def texts(engine: Engine) -> dict[str, list[str]]:
    rows = engine.store.database.reader().execute(
        "SELECT f.path, c.text FROM chunks c JOIN files f ON f.id = c.id >> 20 ORDER BY f.path, c.position"
    )
    found: dict[str, list[str]] = {}
    for path, text in rows:
        found.setdefault(path, []).append(text)
    return found


def check(engine: Engine) -> None:
    """Ask SQLite whether the file and its word tables are sound, and whether each chunk is in them once."""
    with engine.store.database.transaction() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        for table in WORDS[1:]:
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        chunks = connection.execute("SELECT COUNT(*) FROM chunks").fetchone()[0]
        words = connection.execute("SELECT COUNT(*) FROM chunk_words_docsize").fetchone()[0]
        names = connection.execute("SELECT COUNT(*) FROM title_words_docsize").fetchone()[0]
        files = connection.execute("SELECT COUNT(*) FROM files WHERE kind != 'attachment'").fetchone()[0]
        stray = connection.execute(
            "SELECT COUNT(*) FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
        ).fetchone()[0]
    assert (words, names, stray) == (chunks, files, 0)


def test_a_new_file_has_the_digest_of_the_rows_that_were_stored(tmp_path: Path) -> None:
    strange = "---\ntags: [a, b]\nn: 1.50\ne: []\no: {x: null}\nlink: '[[Über|x]]'\n---\n"
    strange += "# A\0B\n\n[[b#C^d]] ![](<c d.png>) 検索\n"
    root = worlds.fill(tmp_path / "v", {"Über a.md": strange, "b.md": "", "c.md": "#t [x](https://a.b)\n\n## H\n"})
    (root / "d.png").write_bytes(b"x")
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        connection = engine.store.database.reader()
        stored = dict(connection.execute("SELECT id, rows_digest FROM files"))

        assert stored == {file_id: documents.digest_rows(connection, file_id) for file_id in stored}
        assert len(stored) == 4


def test_an_unchanged_chunk_keeps_its_id_and_vector_when_its_note_changes(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "# One\n\nstays\n\n# Two\n\ngoes\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        before = engine.store.database.reader().execute("SELECT id FROM chunks WHERE heading = '# One'").fetchone()
        embedder.asked.clear()
        worlds.fill(root, {"a.md": "new first line\n\n# One\n\nstays\n\n# Two\n\ncame\n"})
        engine.refresh()
        engine.embed()
        after = (
            engine.store.database.reader()
            .execute("SELECT id, start_line FROM chunks WHERE heading = '# One'")
            .fetchone()
        )

        assert after == (before[0], 3)
        assert len(embedder.asked) == 2
        assert not any("stays" in text for text in embedder.asked)


def test_a_moved_note_keeps_its_vectors(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"old/a.md": "some text\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        embedder.asked.clear()
        (root / "new").mkdir()
        (root / "old/a.md").rename(root / "new/a.md")
        outcome = engine.refresh()
        count = engine.embed()

        assert (outcome.indexed, outcome.removed, count, embedder.asked) == (1, 1, 0, [])


@pytest.mark.parametrize(("source", "target"), [("x/a.md", "y/a.md"), ("y/a.md", "x/a.md")])
def test_a_passage_that_moves_between_notes_of_one_name_keeps_its_vector(
    tmp_path: Path, source: str, target: str
) -> None:
    passage = "# One\n\nwanders\n"
    root = worlds.fill(tmp_path / "v", {source: f"# Two\n\nstays\n\n{passage}", target: "# Two\n\nstays\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        embedder.asked.clear()
        worlds.fill(root, {source: "# Two\n\nstays\n", target: f"# Two\n\nstays\n\n{passage}"})
        engine.refresh()
        engine.embed()

        assert not any("wanders" in text for text in embedder.asked)


def test_rows_of_replaced_files_are_those_of_a_new_index(tmp_path: Path) -> None:
    notes = {f"n{n}.md": f"---\ntags: [t{n}]\naliases: [A{n}]\n---\n# H{n}\n\n[[n0]]\n\n# B\n\nb\n" for n in range(4)}
    root = worlds.fill(tmp_path / "v", notes)
    edited = {
        "n0.md": "# B\n\nb\n",
        "n1.md": "new\n\n" + notes["n1.md"],
        "n2.md": "",
        "n3.md": notes["n3.md"] + "#x [[y]]\n",
    }
    with worlds.engine(root, tmp_path / "s") as engine, worlds.engine(root, tmp_path / "t") as fresh:
        engine.refresh()
        worlds.fill(root, edited)
        engine.refresh_paths([root / name for name in reversed(edited)])
        fresh.refresh()
        connection = engine.store.database.reader()
        digests = dict(connection.execute("SELECT id, rows_digest FROM files"))

        assert digests == {file_id: documents.digest_rows(connection, file_id) for file_id in digests}
        for table, columns in _COMPARED.items():
            rows = [
                sorted(one.store.database.reader().execute(f"SELECT f.path, {columns} FROM {table}"), key=repr)
                for one in (engine, fresh)
            ]
            assert rows[0] == rows[1], table


_COMPARED = {
    "files f": "hash, title_row, properties, path_key, name_key, folder_key, kind, title",
    "links JOIN files f ON f.id = file_id": "links.kind, links.target, target_key, line",
    "tags JOIN files f ON f.id = file_id": "key, name, line",
    "properties JOIN files f ON f.id = file_id": "key, name, shape, item",
    "aliases JOIN files f ON f.id = file_id": "alias, key",
    "headings JOIN files f ON f.id = file_id": "level, headings.title, line",
    "chunks c JOIN files f ON f.id = c.id >> 20": "c.position, c.start, c.stop, c.text",
}


def test_a_note_of_thousands_of_equal_chunks_is_taken_in(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "# same\n" * 14_000})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()

        assert engine.store.database.reader().execute("SELECT count(*) FROM chunks").fetchone() == (14_000,)


def test_equal_chunks_of_a_copied_note_take_its_vectors(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "# same\n# same\n"})
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        embedder.asked.clear()
        worlds.fill(root, {"x/a.md": "# same\n# same\n# same\n"})
        engine.refresh()

        assert (engine.embed(), embedder.asked) == (0, [])


def test_two_chunks_with_the_same_beginning_are_both_kept(tmp_path: Path) -> None:
    same = "word " * 60
    root = worlds.fill(tmp_path / "v", {"a.md": f"# A\n\n{same}alpha\n", "b.md": f"# A\n\n{same}beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()

        assert [len(found) for found in texts(engine).values()] == [1, 1]


def test_a_batch_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        before = (engine.store.generation(), texts(engine))

        def fail() -> None:
            with engine.store.batch():
                engine.store.remove(list(engine.store.file_states()))
                raise KeyError

        with pytest.raises(KeyError):
            fail()

        assert (engine.store.generation(), texts(engine)) == before
        check(engine)


def test_a_damaged_index_is_built_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "index.db").write_bytes(b"this is no database" * 100)
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()

        assert texts(engine) == {"a.md": ["alpha"]}


@pytest.mark.skipif(sys.platform != "linux", reason="this system doesn't list what is open")
def test_a_damaged_file_is_closed_before_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows removes no file that is open.
    opened: list[str] = []
    unlink = Path.unlink

    def look(path: Path, *, missing_ok: bool = False) -> None:
        if path.name == "index.db":
            links = [handle for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink()]
            opened.extend(str(target) for link in links if (target := link.readlink()) == path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", look)
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "index.db").write_bytes(b"this is no database" * 100)
    with worlds.engine(root, tmp_path / "s") as engine:
        assert engine.store.database.replaced

    assert opened == []


def test_an_index_that_is_damaged_within_is_built_anew_at_the_next_refresh(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"alpha {'beta ' * 200}{n}\n" for n in range(60)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
    worlds.damage(tmp_path / "s" / "index.db")
    with worlds.engine(root, tmp_path / "s") as engine:
        outcome = engine.refresh()

        assert len(texts(engine)) == 60
        assert any("was damaged" in problem for problem in outcome.problems)
        check(engine)


def test_an_index_of_another_version_is_built_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
    with sqlite3.connect(tmp_path / "s" / "index.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with worlds.engine(root, tmp_path / "s") as engine:
        known = engine.store.file_states()

        assert known == {}
        check(engine)


def test_an_index_that_cannot_be_opened_says_where_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(StorageError, match="index") as caught:
        worlds.engine(tmp_path / "v", tmp_path / "file" / "s")
    assert "permissions" in caught.value.hint


def test_a_model_that_changes_leaves_words_searchable_and_its_chunks_pending(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder("one")) as engine:
        engine.refresh()
        engine.embed()
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder("two")) as engine:
        pending = engine.status().pending
        done = engine.embed()

        assert (pending, done, engine.status().pending) == (1, 1, 0)


def test_a_reader_that_is_behind_what_is_remembered_loads_all_vectors_again(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"{n}.md": f"number{n} text\n" for n in range(5)})
    asked = SearchRequest(text="number1", mode="semantic")
    embedder = worlds.WordEmbedder()
    with (
        worlds.engine(root, tmp_path / "s", embedder) as engine,
        worlds.engine(root, tmp_path / "s", embedder) as other,
    ):
        engine.refresh()
        engine.embed()
        before = [hit.row.note for hit in other.search(asked).hits]
        worlds.fill(root, {"1.md": "changed\n"})
        engine.refresh()
        engine.store.forget(keep=0)
        held = engine.store.database.reader().execute("SELECT COUNT(*) FROM removed").fetchone()
        after = [hit.row.note for hit in other.search(asked).hits]

        check(engine)
    assert ("1.md" in before, "1.md" in after, held) == (True, False, (0,))


def test_removed_chunks_are_not_remembered_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IndexStore.forget, "__kwdefaults__", {"keep": 3})
    with worlds.engine(tmp_path / "v", tmp_path / "s") as engine:
        for number in range(9):
            worlds.fill(engine.view.root, {"a.md": f"{number}\n" * (number + 1)})
            engine.refresh()
        held = engine.store.database.reader().execute("SELECT COUNT(*) FROM removed").fetchone()[0]

    assert 0 < held < 8


NAMES = st.sampled_from(["a.md", "b.md", "sub/a.md", "Ünïcode 🦊.md", "c.canvas", "pic.png"])
TEXTS = st.sampled_from(
    [
        "",
        "alpha\n",
        "# H\n\nbeta\n",
        "---\ntags: [x]\naliases: [y]\n---\n# H\n\ngamma\n",
        "{}",
        "日本語の検索\n",
        "# A > B\n\n[[b]]\n",
    ]
)


@given(steps=st.lists(st.tuples(NAMES, st.none() | TEXTS), max_size=12))
@settings(max_examples=scaled(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_to_files_the_index_equals_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]]
) -> None:
    base = tmp_path_factory.mktemp("world")
    root = base / "v"
    embedder = worlds.WordEmbedder()
    with worlds.engine(root, base / "s", embedder) as engine, worlds.engine(root, base / "fresh", embedder) as fresh:
        for name, text in steps:
            if text is None:
                (root / name).unlink(missing_ok=True)
            else:
                worlds.fill(root, {name: text})
            engine.refresh()
            _ = engine.embed()
        fresh.refresh()

        assert texts(engine) == texts(fresh)
        assert set(engine.store.file_states()) == set(fresh.store.file_states())
        check(engine)
