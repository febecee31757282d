"""Each engine for words gives the same rows with the same scores, whatever was saved, derived, killed or damaged."""

import json
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pytest

from knapper.index import database
from knapper.index import status as integrity
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest
from knapper.index.tokenizer import Stemmer, parse_query
from knapper.index.words import bm25, fts5, fulltext, postings
from tests.index import word_engines, worlds

ENGINES = pytest.mark.parametrize("kind", ["fts5", "postings"])


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    root = worlds.fill(tmp_path / "v", word_engines.vault(random.Random(5), 25))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        yield engine


def ranker(engine: Engine, kind: str) -> fulltext.KeywordRanker:
    if kind == "postings":
        assert word_engines.is_derived(engine)
    return fulltext.KeywordRanker(engine.folder if kind == "postings" else None)


def save_some(engine: Engine, seed: int) -> None:
    word_engines.change(engine.view.root, random.Random(seed))
    engine.refresh()


@ENGINES
@pytest.mark.parametrize("seed", range(4))
def test_names_are_scored_exactly_too(engine: Engine, kind: str, seed: int) -> None:
    postings.build(engine.store.database)
    for change in range(seed):
        save_some(engine, 10 * seed + change)
    ranked, stemmer = ranker(engine, kind), Stemmer()
    with engine.store.database.snapshot() as connection:
        reference = word_engines.Reference.read(connection, fts5.NAMES, stemmer)
        for question in ("rain", "rain wind", "sun-dial storm über"):
            question_words = [
                fts5.QueryWord(expression=term.expression(), token="".join(stems) if len(stems) == 1 else "")
                for term in parse_query(question).words
                for stems in stemmer.stems([term.text])
            ]
            found = ranked.best(connection, fts5.NAMES, fts5.WordQuestion(words=question_words, limit=12))

            assert word_engines.is_same(found, dict(reference.best(parse_query(question), 12))), question
    ranked.close()
    stemmer.close()


@ENGINES
@pytest.mark.parametrize("limit", [1, 4, 500])
def test_a_filter_leaves_as_many_rows_as_exist(engine: Engine, kind: str, limit: int) -> None:
    postings.build(engine.store.database)
    save_some(engine, 1)
    ranked, stemmer, pick = ranker(engine, kind), Stemmer(), random.Random(2)
    with engine.store.database.snapshot() as connection:
        reference = word_engines.Reference.read(connection, fts5.CHUNKS, stemmer)
        files = [file for (file,) in connection.execute("SELECT id FROM files")]
        for share in (0.0, 0.05, 0.3, 0.9):
            shown = {file for file in files if pick.random() < share}
            allowed = np.zeros(max(files) + 1, np.bool_)
            allowed[sorted(shown)] = True
            for question in ("rain wind storm cloud x", "rain -storm", '"rain wind" x'):
                found = ranked.chunks(connection, parse_query(question), limit=limit, allowed=allowed)
                expected = reference.best(parse_query(question), limit, shown)

                assert {row >> database.CHUNK_BITS for row in found} <= shown
                assert word_engines.is_same(found, dict(expected))
    ranked.close()
    stemmer.close()


def test_what_is_kept_of_masks_and_the_log_answers_as_the_tables_do(engine: Engine) -> None:
    entry = "> [!knap-log]- 14:05 · Walk\n>\n> **Summary:** Rain and wind.\n"
    postings.build(engine.store.database)
    derived, plain, pick = ranker(engine, "postings"), fulltext.KeywordRanker(None), random.Random(7)
    kept: dict[float, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
    for save in range(6):
        if save == 1:
            worlds.fill(engine.view.root, {"Log.md": f"Rain on a day.\n\n{entry}"})
        save_some(engine, save)
        with engine.store.database.snapshot() as connection:
            (last,) = connection.execute("SELECT MAX(id) FROM files").fetchone()
            for share in (0.4, 0.8):
                kept[share] = np.array([pick.random() < share for _ in range(last + 1)])
            masks = [None, *kept.values()]
            for _ in range(40):
                query = parse_query(pick.choice(("rain wind storm", "rain", "rain -storm", '"rain wind" x', "summary")))
                allowed, has_log = pick.choice(masks), pick.random() < 0.5
                found, expected = (
                    one.chunks(connection, query, limit=9, allowed=allowed, include_log=has_log)
                    for one in (derived, plain)
                )
                assert word_engines.is_same(found, expected), (save, query.plain, has_log)
    derived.close()
    plain.close()


@pytest.mark.parametrize(
    "constants",
    [
        {},
        {"_ADDED_ROWS": 4, "_LONG_SHARE": 0.0, "_SPARSE_SHARE": 0.0},
        {"_ADDED_ROWS": 4, "_FEW_SHARE": 99.0, "_SPARSE_SHARE": 99.0, "_CLEAR_LEAD": 0.1, "_NARROWED": 0},
    ],
    ids=["few", "many", "sparse"],
)
def test_the_many_rows_of_frequent_words_are_left_out_only_where_they_cannot_matter(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, constants: dict[str, float]
) -> None:
    postings.build(engine.store.database)
    save_some(engine, 4)
    for name, value in constants.items():
        monkeypatch.setattr(bm25, name, value)
    derived, plain = fulltext.KeywordRanker(engine.folder), fulltext.KeywordRanker(None)
    pick = random.Random(6)
    with engine.store.database.snapshot() as connection:
        for _ in range(150):
            query = parse_query(" ".join(pick.choices(word_engines.WORDS, k=pick.randrange(1, 9))))
            for limit in (1, 3, 10):
                found = derived.chunks(connection, query, limit=limit, allowed=None)
                assert word_engines.is_same(found, plain.chunks(connection, query, limit=limit, allowed=None))
    derived.close()
    plain.close()


def test_more_rows_than_are_sampled_may_be_asked_for() -> None:
    count, limit = 30_000, 20_000
    occurrences = np.arange(count, 0, -1).astype(np.float64)
    term = bm25.ScoredTerm(rows=np.arange(count), occurrences=occurrences, gain=1.0, bound=1.0, scale=1)

    rows, scores, _ = bm25.best_rows([term], np.ones(count), np.zeros(count), limit)

    assert np.isin(np.arange(limit), rows).all()
    assert scores == pytest.approx(occurrences[rows] / (occurrences[rows] + 1))


@pytest.mark.slow
def test_a_process_killed_anywhere_leaves_an_index_that_answers_exactly(tmp_path: Path) -> None:
    root, state = tmp_path / "v", tmp_path / "s"
    worlds.fill(root, word_engines.vault(random.Random(1), 20))
    for kill in range(5):
        writer = start_writer(root, state, kill)
        time.sleep(0.05 + 0.13 * kill)
        writer.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        writer.wait()
        with worlds.engine(root, state) as engine:
            assert word_engines.differences(engine.folder, engine.store.database) == []
            engine.refresh()
            assert word_engines.differences(engine.folder, engine.store.database) == []
            postings.build(engine.store.database)
            assert word_engines.is_derived(engine)
            assert word_engines.differences(engine.folder, engine.store.database) == []
            assert len(list(engine.folder.glob(f"{database.POSTINGS_PREFIX}*"))) == 1


@pytest.mark.slow
def test_a_reader_beside_a_writer_of_another_process_answers_exactly(tmp_path: Path) -> None:
    root, state = tmp_path / "v", tmp_path / "s"
    worlds.fill(root, word_engines.vault(random.Random(1), 20))
    writer = start_writer(root, state, 9)
    try:
        with database.Database(state / "index.db") as index:
            generations: set[int] = set()
            deadline = time.monotonic() + 60
            while len(generations) < 8 and time.monotonic() < deadline:
                with index.snapshot() as connection:
                    generations.add(database.state_of(connection)[1])
                assert word_engines.differences(state, index) == []
    finally:
        writer.kill()
        writer.wait()

    assert len(generations) >= 8


def start_writer(root: Path, state: Path, seed: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.index.word_engines", str(root), str(state), str(seed)]
    writer = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=Path(__file__).parents[2]
    )
    assert writer.stdout is not None
    with writer.stdout as output:
        assert output.readline() == "ready\n"
    return writer


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-64])


def flip_header(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[40] ^= 4
    file.write_bytes(raw)


def garble(file: Path) -> None:
    raw = file.read_bytes()
    file.write_bytes(raw[:4096] + b"\xa5" * (len(raw) - 4096))


def predate(file: Path) -> None:
    """Put the header of an earlier version in, which named no kind."""
    raw = file.read_bytes()
    header = json.dumps({"format": 3, "size": len(raw), "tables": {}}).encode()
    head = b"%08x %s\n" % (zlib.crc32(header), header)
    file.write_bytes(head + raw[len(head) :])


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("harm", [cut, flip_header, garble, predate, empty, Path.unlink])
def test_a_damaged_file_changes_no_answer_and_is_derived_anew(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    engine.refresh()
    (file,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    harm(file)
    different = word_engines.differences(engine.folder, engine.store.database)
    engine.refresh()

    assert different == []
    assert word_engines.is_derived(engine)
    assert word_engines.differences(engine.folder, engine.store.database) == []


def test_a_file_of_another_index_is_not_used(engine: Engine, tmp_path: Path) -> None:
    postings.build(engine.store.database)
    (file,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    other_root = worlds.fill(tmp_path / "w", word_engines.vault(random.Random(77), 30))
    with worlds.engine(other_root, tmp_path / "t") as other:
        other.refresh()
        postings.build(other.store.database)
        (own,) = other.folder.glob(f"{database.POSTINGS_PREFIX}*")
        own.write_bytes(file.read_bytes())

        assert not word_engines.is_derived(other)
        assert word_engines.differences(other.folder, other.store.database) == []


@pytest.mark.parametrize("name", ["../postings-x", "/etc/passwd", "postings-/../../x", "index.db", ""])
def test_a_name_in_a_damaged_database_leads_nowhere(engine: Engine, tmp_path: Path, name: str) -> None:
    postings.build(engine.store.database)
    (file,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    (tmp_path / "postings-x").write_bytes(file.read_bytes())
    with engine.store.database.transaction() as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = ?", (name, fts5.FILE_META))

    assert not word_engines.is_derived(engine)
    assert word_engines.differences(engine.folder, engine.store.database) == []


def test_a_small_index_has_no_file_and_a_large_one_follows_its_changes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_small_derived = word_engines.is_derived(engine)
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    monkeypatch.setattr(postings, "_MIN_CHANGED_ROWS", 10)
    engine.refresh()
    (first,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    worlds.fill(engine.view.root, {"one.md": "one\n"})
    engine.refresh()
    (second,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    for seed in range(4):
        save_some(engine, seed)
    (third,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")

    assert not is_small_derived
    assert second == first
    assert third != first
    assert word_engines.differences(engine.folder, engine.store.database) == []


def test_an_accent_without_a_letter_neither_damages_the_index_nor_ends_its_file(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    monkeypatch.setattr(postings, "_MIN_CHANGED_ROWS", 0)
    monkeypatch.setattr(postings, "_MAX_CHANGED_SHARE", 0)
    engine.refresh()
    (first,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")
    worlds.fill(engine.view.root, {"accent.md": "# wind \u0301\n\nstorm \u0301\u0308 and \u0302\n"})
    outcome = engine.refresh()
    (second,) = engine.folder.glob(f"{database.POSTINGS_PREFIX}*")

    assert not outcome.was_damaged
    assert second != first
    assert word_engines.differences(engine.folder, engine.store.database) == []


def test_too_many_changes_end_the_recording_and_the_file_comes_back(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    postings.build(engine.store.database)
    monkeypatch.setattr(fts5, "MAX_RECORDED_ROWS", 20)
    for seed in range(4):
        save_some(engine, seed)
    with engine.store.database.snapshot() as connection:
        counts = [connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in RECORDS]
        is_named = fts5.names_file(connection)
    different = word_engines.differences(engine.folder, engine.store.database)
    postings.build(engine.store.database)

    assert (counts, is_named, different) == ([0, 0, 0], False, [])
    assert word_engines.is_derived(engine)
    assert word_engines.differences(engine.folder, engine.store.database) == []


RECORDS = ("added_words", "added_rows", "dropped_rows")


def test_recording_a_changed_row_costs_the_same_after_many_others(engine: Engine) -> None:
    postings.build(engine.store.database)

    def steps(connection: sqlite3.Connection, first: int, count: int) -> int:
        """Count SQLite's steps, in tens, while rows are recorded one after the other."""
        taken: list[None] = []
        connection.set_progress_handler(lambda: taken.append(None), 10)
        for number in range(first, first + count):
            text = f"word{number} " + " ".join(f"w{(number * step) % 997}" for step in range(1, 40))
            fts5.record_added(connection, fts5.CHUNKS, [(number, ["title", "heading", text])])
        connection.set_progress_handler(None, 0)
        return len(taken)

    with engine.store.database.transaction() as connection:
        early = steps(connection, 1_000_000, 20)
        _ = steps(connection, 2_000_000, 400)
        late = steps(connection, 3_000_000, 20)
        fts5.stop_recording(connection)

    assert late < 2 * early


def test_a_full_index_forgets_the_file(engine: Engine) -> None:
    postings.build(engine.store.database)
    engine.refresh(full=True)

    assert list(engine.folder.glob(f"{database.POSTINGS_PREFIX}*")) == []


def test_a_folder_that_cannot_be_written_leaves_the_answers_as_they_are(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    monkeypatch.setattr(postings, "write_file", full)
    outcome = engine.refresh()

    assert outcome.problems == []
    assert word_engines.differences(engine.folder, engine.store.database) == []


def test_every_word_of_a_long_question_counts(tmp_path: Path) -> None:
    # Each note has one word of its own, and all share the others: the word that finds it is the last of all.
    common = [f"common{n}" for n in range(fulltext.MAX_RANKED_WORDS - 1)]
    notes = {f"{n}.md": f"{' '.join(common)} own{n}\n" for n in range(60)}
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s") as engine:
        engine.refresh()
        for kind in ("fts5", "postings"):
            if kind == "postings":
                postings.build(engine.store.database)
            found = engine.search(SearchRequest(text=" ".join([*common, "own41"]), mode="keyword", limit=3)).hits

            assert found[0].row.note == "41.md", kind


@pytest.mark.parametrize(("count", "named"), [(25, "its 25"), (300, "its first 128")])
def test_that_a_passage_is_ranked_by_some_of_its_words_is_told(tmp_path: Path, count: int, named: str) -> None:
    with worlds.engine(worlds.fill(tmp_path / "v", {"a.md": "word1 x\n"}), tmp_path / "s") as engine:
        engine.refresh()
        passage = " ".join(f"word{n}" for n in range(count))
        long = engine.search(SearchRequest(text=passage, mode="keyword")).remarks
        short = engine.search(SearchRequest(text=" ".join(passage.split()[:24]), mode="keyword")).remarks

    assert long == (f"a long question: of {named} different words, the 24 that weigh most were used",)
    assert short == ()


@pytest.mark.parametrize("letter", ["क", "я"])
def test_a_word_that_is_cut_inside_of_a_character_is_found_like_any_other(tmp_path: Path, letter: str) -> None:
    long = "x" + letter * 17_000
    root = worlds.fill(
        tmp_path / "v", {"a.md": f"# {long}\n\nrain\n", "b.md": f"## {long}\n\nwind\n", "c.md": "wind\n"}
    )
    asked = SearchRequest(text=long, mode="keyword")
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        before = engine.search(asked).hits
        postings.build(engine.store.database)
        after = engine.search(asked).hits

    assert {hit.row.note for hit in before} == {hit.row.note for hit in after} == {"a.md", "b.md"}
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before], rel=1e-12)


def test_changed_notes_are_found_as_a_new_index_finds_them(engine: Engine) -> None:
    asked = SearchRequest(text="rain wind storm", mode="keyword", limit=20)
    postings.build(engine.store.database)
    save_some(engine, 8)
    found = engine.search(asked).hits
    engine.refresh(full=True)
    anew = engine.search(asked).hits

    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in anew], rel=1e-9)


def test_a_file_that_came_after_the_mask_was_made_is_not_found(engine: Engine) -> None:
    postings.build(engine.store.database)
    none = np.zeros(1, np.bool_)
    with engine.store.database.snapshot() as connection:
        for kind in ("fts5", "postings"):
            ranked = ranker(engine, kind)
            assert ranked.chunks(connection, parse_query("rain"), limit=5, allowed=none) == {}
            ranked.close()


def test_an_index_that_fts5_cannot_open_is_told_as_damage(engine: Engine) -> None:
    with engine.store.database.transaction() as connection:
        connection.execute("DELETE FROM chunk_words_config")
    engine.store.database.close()

    assert integrity.find_damage(engine.store.database)


@pytest.mark.parametrize("size", ["NULL", "x'0102'", "x'ffffffffffffffffff0101'"])
def test_a_length_that_cannot_be_read_is_told_as_damage(engine: Engine, size: str) -> None:
    with engine.store.database.transaction() as connection:
        connection.execute(
            f"UPDATE chunk_words_docsize SET sz = {size} WHERE id = (SELECT MAX(id) FROM chunk_words_docsize)"
        )

    assert integrity.find_damage(engine.store.database)


_DERIVE = """
import re, sys
from pathlib import Path
from knapper.index.words import postings
from tests.index import worlds

def own_kb():
    return int(re.search("RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

root = worlds.fill(Path(sys.argv[1]) / "v", {"a.md": "alpha"})
with worlds.engine(root, Path(sys.argv[1]) / "s") as engine:
    engine.refresh()
    postings.build(engine.store.database)
    # What is freed between pieces that stay isn't returned by itself.
    pieces = [bytearray(40_000) for _ in range(1_000)]
    del pieces[::2]
    before = own_kb()
    postings.build(engine.store.database)
    print(before - own_kb())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators keep nothing, or return nothing")
def test_after_deriving_what_is_free_is_returned_to_the_system(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _DERIVE, str(tmp_path)]
    returned_kb = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert returned_kb > 10_000
