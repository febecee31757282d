"""What counts for a note: its name, said as a whole or in part, of rare words or common ones; and how long it is."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from knapper.index.database import CHUNK_BITS, POSTINGS_PREFIX
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.search import SearchRequest
from knapper.index.snapshot import (
    NoteRanking,
    RankingWeights,
    SqliteSnapshot,
    SqliteSnapshotCache,
    fuse_scores,
    rank_notes,
)
from knapper.index.tokenizer import Stemmer, parse_query, without_run_ends
from knapper.index.words import fts5, postings
from knapper.index.words.bm25 import PostingsEngine
from knapper.index.words.fulltext import KeywordRanker
from knapper.vault.access import Policy
from tests.index import worlds

NOTES = {
    "Garden.md": "Soil and seeds in the garden.\n",
    "Garden fence.md": "Larch boards around it.\n",
    "Zeppelin.md": "It floats over the garden.\n",
    "To do.md": "Paint the fence of the garden.\n",
    "検索.md": "見つける方法。\n",
    "検索の履歴.md": "古い質問。\n",
    "Diary.md": "In the garden again, all day. The garden, the garden.\n",
    "Letters.md": "About the garden of a friend.\n",
    "Secret/Hangar.md": "Zeppelin upon zeppelin.\n\n# More\n\nzeppelin\n\n# Again\n\nzeppelin\n",
}
Ranker = Callable[[dict[int, list[float]], dict[int, int], dict[int, float]], NoteRanking]
GUEST = Filter(policy=Policy(client="guest", hidden=("Secret/",)))


@contextmanager
def opened(folder: Path, notes: dict[str, str]) -> Generator[Engine]:
    with worlds.engine(worlds.fill(folder / "v", notes), folder / "s") as engine:
        engine.refresh()
        yield engine


@pytest.fixture
def engine(tmp_path: Path) -> Generator[Engine]:
    with opened(tmp_path, NOTES) as engine:
        yield engine


def named(engine: Engine, text: str, where: Filter | None = None) -> dict[str, float]:
    """Return the scores of names by path."""
    cache = SqliteSnapshotCache(engine.store)
    with cache.snapshot("") as snapshot:
        scores = snapshot.names(parse_query(text), where or Filter()).by_file
        paths = snapshot.paths(scores)
    cache.close()
    return {paths[i]: score for i, score in scores.items()}


def test_a_question_that_is_nothing_but_a_name_names_it_fully(engine: Engine) -> None:
    for name in ("garden", "garden fence", "to do", "検索", "検索の履歴"):
        scores = named(engine, name)

        assert max(scores, key=scores.__getitem__).lower() == f"{name}.md"
        assert max(scores.values()) == 1


@pytest.mark.parametrize("text", ["C++", "c++", "C#", "C", "Gardens", "garden"])
def test_a_name_as_it_is_spelled_comes_before_others_of_the_same_words(tmp_path: Path, text: str) -> None:
    names = ("C", "C#", "C++", "Garden", "Gardens")
    with opened(tmp_path, {f"{name}.md": f"# {name}\n\nsome notes\n" for name in names}) as engine:
        hits = engine.search(SearchRequest(text=text, mode="keyword")).hits

    assert hits[0].row.title.casefold() == text.casefold()


def test_a_hidden_name_as_it_is_spelled_changes_no_score(tmp_path: Path) -> None:
    notes = {"C#.md": "sharp\n", "Secret/C++.md": "plus\n"}
    with opened(tmp_path, notes) as engine:
        assert named(engine, "C++", GUEST) == {"C#.md": 1.0}
        assert named(engine, "C++") == {"C#.md": 0.8, "Secret/C++.md": 1.0}


def test_a_rare_name_counts_more_than_a_common_one(engine: Engine) -> None:
    scores = named(engine, "which zeppelin flew over our garden", GUEST)

    assert scores["Zeppelin.md"] > 2 * scores["Garden.md"] > 0


def test_a_name_as_it_is_written_counts_more_than_its_words(engine: Engine) -> None:
    written = named(engine, "boards for the garden fence")["Garden fence.md"]
    apart = named(engine, "boards for a fence in the garden")["Garden fence.md"]
    some = named(engine, "boards for a fence")["Garden fence.md"]

    assert written > 2 * apart > 2 * some > 0


def test_a_name_of_stop_words_is_found_within_a_question(engine: Engine) -> None:
    assert named(engine, "paint what is on my to do list")["To do.md"] > 0
    assert "To do.md" not in named(engine, "what do you paint")


def test_a_name_is_found_within_a_sentence_without_spaces(engine: Engine) -> None:
    scores = named(engine, "昨日の検索の履歴を見る")

    assert scores["検索の履歴.md"] > scores["検索.md"] > 0


@pytest.mark.parametrize("kind", ["fts5", "postings"])
def test_words_of_hidden_notes_change_no_score_of_a_name(tmp_path: Path, kind: str) -> None:
    visible = {path: text for path, text in NOTES.items() if not path.startswith("Secret/")}
    found: list[dict[str, float]] = []
    for number, notes in enumerate((NOTES, visible)):
        with opened(tmp_path / str(number), notes) as engine:
            if kind == "postings":
                postings.build(engine.store.database)
            found.append(named(engine, "a zeppelin over the garden", GUEST))

    assert found[0] == pytest.approx(found[1])
    assert found[0]["Zeppelin.md"] > 0


@pytest.mark.parametrize("where", [None, GUEST])
def test_both_engines_for_words_score_names_alike_after_changes(tmp_path: Path, where: Filter | None) -> None:
    with opened(tmp_path, NOTES) as engine:
        postings.build(engine.store.database)
        worlds.fill(engine.view.root, {"Diary.md": "Nothing but a zeppelin.\n", "Weather.md": "A zeppelin again.\n"})
        (engine.view.root / "Letters.md").unlink()
        engine.refresh()
        derived = named(engine, "the zeppelin over the fence of the garden-fence", where)
        engine.refresh(full=True)
        plain = named(engine, "the zeppelin over the fence of the garden-fence", where)

    assert derived == pytest.approx(plain)
    assert {"Zeppelin.md", "Garden fence.md"} <= derived.keys()


ALIASED = '---\naliases:\n  - The greenhouses\n  - "?!"\n  - 検索の庭\n---\nPanes.\n'


def test_the_derived_file_holds_the_stems_of_names_but_for_those_that_changed(tmp_path: Path) -> None:
    with opened(tmp_path, {**NOTES, "Glass.md": ALIASED, "?!.md": "Signs alone.\n"}) as engine:
        postings.build(engine.store.database)
        before = derived_stems(engine)
        worlds.fill(engine.view.root, {"Diary.md": ALIASED, "New.md": "x\n", "Zeppelin.md": "Another text.\n"})
        (engine.view.root / "Letters.md").unlink()
        engine.refresh()
        after = derived_stems(engine)

    assert before["Glass.md"] == [["glass"], ["the", "greenhous"], ["検索", "索の", "の庭"]]
    assert before.keys() == {*NOTES, "Glass.md"}
    assert after.keys() == before.keys() - {"Diary.md", "Letters.md"}
    assert after == {path: before[path] for path in after}


def derived_stems(engine: Engine) -> dict[str, list[list[str]]]:
    """Return what the derived file holds of the current notes, which is what the tables give."""
    words, stemmer = PostingsEngine(engine.folder), Stemmer()
    with engine.store.database.snapshot() as connection:
        path_of: dict[int, str] = dict(connection.execute("SELECT id, path FROM files"))
        derived, numbers = words.name_stems(connection, list(path_of), ("garden", "nowher"))
        file = postings.open_named(connection, engine.folder)
        assert file is not None
        lists = file.tables[fts5.NAMES.name]
        found: dict[str, list[list[str]]] = {}
        for id_, start, stop in zip(
            derived.files, *pairs(derived.file_heads.tolist(), len(derived.stems)), strict=True
        ):
            by_name: dict[int, list[str]] = {}
            for name, number in zip(
                derived.names[start:stop].tolist(), derived.stems[start:stop].tolist(), strict=True
            ):
                raw = lists.terms[lists.term_starts[number] : lists.term_starts[number + 1]].tobytes()
                by_name.setdefault(name, []).append(raw.decode())
            found[path_of[id_]] = list(by_name.values())
            stems = stemmer.stems([name for _, name in fts5.read_names(connection, [id_])])
            assert found[path_of[id_]] == [without_run_ends(one) for one in stems if one]
    words.close()
    stemmer.close()
    assert numbers.keys() == {"garden"}
    return found


def pairs(heads: list[int], end: int) -> tuple[list[int], list[int]]:
    """Return where each part begins, and where it ends."""
    return heads, [*heads[1:], end]


QUERIES = (
    *("garden", "the garden fence", "fence of the garden", "to do", "the who", "who", "the the", "larch garden garden"),
    *("garden-fence", "a garden-fence in the zeppelin", "検索", "検索の履歴", "昨日の検索の履歴を見る", "nothing"),
)


@pytest.mark.parametrize("text", QUERIES)
def test_names_score_alike_in_arrays_and_one_by_one(tmp_path: Path, text: str) -> None:
    more = {"The the.md": "x\n", "The Who.md": "x\n", "Who.md": "x\n", "Garden of the garden.md": ALIASED}
    with opened(tmp_path, {**NOTES, **more}) as engine:
        plain = named(engine, text)
        postings.build(engine.store.database)
        derived = named(engine, text)

    assert derived == pytest.approx(plain)


def test_damaged_stems_of_names_change_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    with opened(tmp_path, NOTES) as engine:
        plain = named(engine, "the zeppelin over the garden fence")
        postings.build(engine.store.database)
        (path,) = engine.folder.glob(f"{POSTINGS_PREFIX}*")
        with engine.store.database.snapshot() as connection:
            file = postings.open_named(connection, engine.folder)
        assert file is not None
        stems, raw = file.names.stems.tobytes(), path.read_bytes()
        path.write_bytes(raw.replace(stems, stems[::-1]))
        damaged = named(engine, "the zeppelin over the garden fence")
        is_due = postings.is_due(engine.store.database)

    assert raw.count(stems) == 1
    assert damaged == pytest.approx(plain)
    assert is_due


def test_a_file_of_an_earlier_version_is_derived_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MIN_ROWS", 1)
    with opened(tmp_path, NOTES) as engine:
        with monkeypatch.context() as earlier:
            earlier.setattr(postings, "_KIND", "postings 3")
            postings.build(engine.store.database)
        (old,) = engine.folder.glob(f"{POSTINGS_PREFIX}*")
        due = [postings.is_due(engine.store.database)]
        before = named(engine, "zeppelin")
        engine.refresh()
        after = named(engine, "zeppelin")
        (new,) = engine.folder.glob(f"{POSTINGS_PREFIX}*")
        due.append(postings.is_due(engine.store.database))

    assert due == [True, False]
    assert new != old
    assert before == pytest.approx(after)


def test_both_engines_for_words_count_the_same_chunks_after_changes(tmp_path: Path) -> None:
    with opened(tmp_path, {**NOTES, "Long.md": "# One\n\na\n\n# Two\n\nb\n\n# Three\n\nc\n\n# Four\n\nd\n"}) as engine:
        postings.build(engine.store.database)
        worlds.fill(engine.view.root, {"Diary.md": "# One\n\na\n\n# Two\n\nb\n", "Secret/Hangar.md": "Once.\n"})
        (engine.view.root / "Letters.md").unlink()
        engine.refresh()
        with engine.store.database.snapshot() as connection:
            files = [int(i) for (i,) in connection.execute("SELECT id FROM files")]
            rankers = KeywordRanker(engine.folder), KeywordRanker(None)
            derived, plain = (one.lengths(connection, [*files, 10**6], most=3) for one in rankers)
            path_of = dict(connection.execute("SELECT id, path FROM files"))
        for one in rankers:
            one.close()

    assert derived == plain
    counts = {path_of[i]: count for i, count in zip(files, plain, strict=False)}
    assert (counts["Long.md"], counts["Diary.md"], counts["Secret/Hangar.md"]) == (3, 2, 1)
    assert plain[-1] == 0


@pytest.fixture
def rank(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranker]:
    """Rank notes by the scores of their chunks, how many chunks each has, and its name."""
    with engine.open_snapshots().snapshot("") as snapshot:

        def rank(chunks: dict[int, list[float]], lengths: dict[int, int], names: dict[int, float]) -> NoteRanking:
            def read_lengths(_: SqliteSnapshot, notes: Sequence[int], *, most: int) -> Sequence[int]:
                assert most == 3
                return [lengths[note] for note in notes]

            monkeypatch.setattr(SqliteSnapshot, "lengths", read_lengths)
            scores = {
                note << CHUNK_BITS | number: score for note in chunks for number, score in enumerate(chunks[note])
            }
            # By words alone, where the best chunk gets 1 and the last 0.
            fused = replace(fuse_scores(scores, {}, share=0.0), scores=np.array(list(scores.values())))
            return rank_notes(snapshot, fused, names, RankingWeights())

        yield rank


def test_a_long_note_counts_no_more_for_being_long(rank: Ranker) -> None:
    ranking = rank({1: [0.9], 2: [0.9, 0.2, 0.1], 3: [0.9]}, {1: 1, 2: 3, 3: 3}, {})
    scores = dict(zip(ranking.notes.tolist(), ranking.scores.tolist(), strict=True))

    assert scores[1] > scores[2] > scores[3]
    assert scores[3] == pytest.approx(0.9 / 1.75 ** RankingWeights().evenness)


def test_many_good_passages_still_count_more_than_one(rank: Ranker) -> None:
    ranking = rank({1: [0.9], 2: [0.9, 0.9, 0.9]}, {1: 1, 2: 3}, {})

    assert ranking.notes[ranking.best(1)].tolist() == [2]


def test_a_short_note_about_it_comes_before_a_long_one_that_mentions_it(tmp_path: Path) -> None:
    filler = "".join(f"# Part {n}\n\nSomething else altogether, number {n}.\n\n" for n in range(6))
    notes = {
        "Long.md": f"{filler}# Boats\n\nThe kayak leaks.\n\n# Repairs\n\nTar, of all things, and a kayak.\n",
        "Short.md": "The kayak leaks, says Ann.\n",
    }
    with opened(tmp_path, notes) as engine:
        hits = engine.search(SearchRequest(text="kayak leaks", per_note=1)).hits

    assert [hit.row.note for hit in hits] == ["Short.md", "Long.md"]
    assert [hit.parts["passages"] for hit in hits] == [1, 3]


def test_chunks_that_were_removed_meanwhile_still_count(rank: Ranker) -> None:
    ranking = rank({1: [0.5], 2: [1.0, 0.5], 3: [0.1] * 4}, {1: 0, 2: 0, 3: 0}, {1: 0.2, 7: 0.4})

    assert dict(zip(ranking.notes.tolist(), ranking.lengths.tolist(), strict=True)) == {1: 1, 2: 2, 3: 3, 7: 0}
    assert ranking.notes[ranking.best(3)].tolist() == [2, 1, 7]
    assert ranking.notes[ranking.best(9)].tolist() == [2, 1, 7, 3]
    assert ranking.best(0) == []
