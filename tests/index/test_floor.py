"""The floor: what counts as found, and what is only nearest in meaning."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.app.vault import open_embedder
from knapper.index.documents import Filter
from knapper.index.engine import Engine
from knapper.index.models.base import TOPICS, EmbedderSettings, EmbedderStopped, learn_floor
from knapper.index.search import OpenNote, SearchRequest
from knapper.index.store import floor_key
from knapper.index.tokenizer import find_stop_words
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds

NOTES = {
    "Garden.md": "# Tomatoes\n\nWater them every second evening, said the doctor of plants.\n",
    "Car.md": "Car repair: the brakes are worn, and what is left of the tyres is bald.\n",
    "To do.md": "- [ ] call Anna\n",
    "Tax.md": "Receipts of the year for the office, and letters from the bank.\n",
    "Private/Bread.md": "Rye loaf from the neighbour.\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(root, tmp_path / "s", open_embedder(EmbedderSettings())) as opened:
        opened.refresh()
        opened.embed()
        yield opened


def found(engine: Engine, text: str, **options: object) -> list[str]:
    question = SearchRequest(text=text, limit=10, **options)  # type: ignore[arg-type]
    return list(dict.fromkeys(hit.row.note for hit in engine.search(question).hits))


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_what_no_note_says_is_not_found_and_the_nearest_are_offered_apart(engine: Engine, mode: str) -> None:
    answer = engine.search(SearchRequest(text="football league", mode=mode))  # type: ignore[arg-type]
    cosines = [hit.cosine or 0.0 for hit in answer.nearest]

    assert (answer.hits, bool(cosines)) == ((), True)
    assert cosines == sorted(cosines, reverse=True)
    assert [hit.score for hit in answer.nearest] == pytest.approx(cosines, abs=1e-3)


def test_what_is_near_in_meaning_is_found_without_its_word(engine: Engine) -> None:
    answer = engine.search(SearchRequest(text="automobile"))

    assert ([hit.row.note for hit in answer.hits], answer.nearest) == (["Car.md"], ())
    assert answer.remarks == ("no note holds any of these words: these are the nearest in meaning",)


def test_notes_that_neither_say_it_nor_mean_it_do_not_fill_up_a_list(engine: Engine) -> None:
    assert found(engine, "tomatoes") == ["Garden.md"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_stop_words_alone_are_no_match(engine: Engine, mode: str) -> None:
    assert found(engine, "what is the melody of the anthem for", mode=mode) == []


def test_stop_words_count_where_a_query_has_no_other_or_a_title_is_made_of_them(engine: Engine) -> None:
    assert "Car.md" in found(engine, "what is", mode="keyword")
    assert found(engine, "what is there to do about xylophones", mode="keyword") == ["To do.md"]


def test_each_hit_tells_its_cosine_and_the_best_is_not_always_one(engine: Engine) -> None:
    by_words = engine.search(SearchRequest(text="bank receipts tyres")).hits
    best = [engine.search(SearchRequest(text=text, mode="semantic")).hits[0] for text in ("automobile", "car repair")]

    assert all(hit.cosine is not None and 0 < hit.cosine < 1 for hit in by_words)
    assert [hit.parts["dense"] for hit in best] == [1.0, 1.0]
    assert (best[0].cosine or 1.0) < (best[1].cosine or 0.0)


def test_a_search_by_words_has_no_cosine(engine: Engine) -> None:
    assert [hit.cosine for hit in engine.search(SearchRequest(text="tomatoes", mode="keyword")).hits] == [None]


def test_a_hidden_note_is_not_offered_as_the_nearest(engine: Engine) -> None:
    hidden = Filter(policy=Policy(client="x", hidden=("Private/",)))
    question = SearchRequest(text="sourdough", limit=10)

    assert "Private/Bread.md" in [hit.row.note for hit in engine.search(question).nearest]
    offered = engine.search(SearchRequest(text="sourdough", limit=10, where=hidden)).nearest
    assert "Private/Bread.md" not in [hit.row.note for hit in offered]


def test_a_task_that_no_note_has_to_do_with_finds_only_what_the_open_note_says(engine: Engine) -> None:
    beside = OpenNote(path=NotePath("Car.md"), linked=set[NotePath], words=lambda: "word")
    alone = engine.related(SearchRequest(text="football league"), None)
    beside_car = engine.related(SearchRequest(text="football league"), beside)

    assert (alone.related, bool(alone.nearest)) == ((), True)
    assert {one.why for one in beside_car.related} == {("current_note",)}


def test_the_floor_is_learnt_once_for_each_model_and_kept_with_the_index(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    embedder, other = worlds.WordEmbedder(), worlds.WordEmbedder("other")
    asked: list[int] = []
    for opened in (embedder, embedder, other):
        before = len(opened.asked)
        with worlds.engine(root, tmp_path / "s", opened) as engine:
            engine.refresh()
            engine.embed()
            asked.append(sum(text in dict(map(reversed, TOPICS)) for text in opened.asked[before:]))  # type: ignore[arg-type]
            assert 0 < float(engine.store.meta(floor_key(opened.model_id))) < 0.2

    assert asked == [len(TOPICS), 0, len(TOPICS)]


def test_an_index_from_before_learns_its_floor_at_the_next_search(engine: Engine) -> None:
    engine.store.set_meta(floor_key(engine.model), "")
    engine.freshen()

    assert found(engine, "football league") == []


def test_the_floor_of_a_model_that_was_changed_behind_its_name_is_learnt_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    small, large = worlds.WordEmbedder(), worlds.WordEmbedder()
    small.dimensions = 8
    floors: list[str] = []
    for embedder in (small, large):
        worlds.fill(root, {f"{embedder.dimensions}.md": "another note\n"})
        with worlds.engine(root, tmp_path / "s", embedder) as engine:
            engine.refresh()
            engine.embed()
            floors.append(engine.store.meta(floor_key("words")))

    assert float(floors[0]) > 2 * float(floors[1])


class Alike(worlds.WordEmbedder):
    """Give all texts the same vector."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        del text
        return np.full(self.dimensions, self.dimensions**-0.5, np.float32)


def test_a_model_that_tells_nothing_apart_still_finds(tmp_path: Path) -> None:
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s", Alike()) as engine:
        engine.freshen()

        assert len(found(engine, "anything", mode="semantic")) == len(NOTES)


class Stopped(worlds.WordEmbedder):
    """Be stopped while it embeds."""

    def passages(self, texts: Sequence[str], *, stop: threading.Event | None = None) -> NDArray[np.float32]:
        if stop:
            stop.set()
        return super().passages(texts)


def test_learning_ends_when_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with pytest.raises(EmbedderStopped):
        learn_floor(Stopped(), stop=stop)
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s", Stopped()) as engine:
        engine.refresh()
        assert engine.embed(stop=threading.Event()) == len(NOTES)
        assert engine.store.meta(floor_key("words")) == ""


LONG = "A long paragraph about the harvest. " * 8


@pytest.mark.parametrize(
    ("notes", "places"),
    [
        ({"a/Plan.md": "kerosene now\n", "b/Plan.md": "kerosene now\n"}, [["a/Plan.md", "b/Plan.md"]]),
        ({"Plan.md": f"kerosene {LONG}\n", "Copy.md": f"kerosene {LONG}\n"}, [["Copy.md", "Plan.md"]]),
        ({"Plan.md": "kerosene now\n", "Other.md": "kerosene now\n"}, [["Other.md"], ["Plan.md"]]),
        ({"a/Plan.md": "kerosene now\n", "b/Plan.md": "kerosene then\n"}, [["a/Plan.md"], ["b/Plan.md"]]),
    ],
)
def test_a_text_in_two_notes_is_one_hit_with_both_places(
    tmp_path: Path, notes: dict[str, str], places: list[list[str]]
) -> None:
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s") as engine:
        engine.refresh()
        hits = engine.search(SearchRequest(text="kerosene", mode="keyword", limit=2, merges_copies=True)).hits

    assert sorted([hit.row.note, *sorted(row.note for row in hit.copies)] for hit in hits) == places


def test_copies_take_no_place_from_other_notes(tmp_path: Path) -> None:
    notes = {f"{folder}/Plan.md": "kerosene kerosene\n" for folder in "abcdefgh"} | {
        "Lamp.md": "one word of kerosene\n"
    }
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s") as engine:
        engine.refresh()
        hits = engine.search(SearchRequest(text="kerosene", mode="keyword", limit=2, merges_copies=True)).hits

    assert [hit.row.note for hit in hits] == ["a/Plan.md", "Lamp.md"]


@pytest.mark.parametrize(
    ("query", "stops"),
    [
        ("What is the recipe for it?", {"What", "is", "the", "for", "it?"}),
        ("don\u2019t panic", {"don\u2019t"}),
        ("to be or not to be", set[str]()),
        ("IT department", set[str]()),
        ("WHAT IS A LOAN", {"WHAT", "IS", "A"}),
        ("die hard", set[str]()),
        ("wo ist die Katze", {"wo", "ist", "die"}),
        ("où est le chat", {"où", "est", "le"}),
        ("検索 the", {"the"}),
        ("", set[str]()),
        ("?!", set[str]()),
    ],
)
def test_stop_words_are_those_of_the_language_of_the_query(query: str, stops: set[str]) -> None:
    assert find_stop_words(query.split()) == stops


CHEROKEE = "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"
NO_LETTERS = "searched by words only: the embedding model doesn't know the letters of this question"


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_a_question_in_letters_that_the_model_does_not_know_says_so(engine: Engine, mode: str) -> None:
    answer = engine.search(SearchRequest(text=CHEROKEE, mode=mode))  # type: ignore[arg-type]

    assert (answer.hits, answer.nearest, answer.remarks) == ((), (), (NO_LETTERS,))


def test_it_is_found_by_its_words_even_where_meaning_alone_was_asked_for(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {**NOTES, "Language.md": f"{CHEROKEE}\n"})
    with worlds.engine(root, tmp_path / "s", open_embedder(EmbedderSettings())) as engine:
        engine.refresh()
        engine.embed()
        answer = engine.search(SearchRequest(text=CHEROKEE, mode="semantic"))

    assert ([hit.row.note for hit in answer.hits], answer.remarks) == (["Language.md"], (NO_LETTERS,))


def test_single_words_that_the_model_does_not_know_are_named(engine: Engine) -> None:
    answer = engine.search(SearchRequest(text="automobile ᏣᎳᎩ"))

    assert [hit.row.note for hit in answer.hits] == ["Car.md"]
    assert answer.remarks[0] == "the embedding model doesn't know the letters of 'ᏣᎳᎩ': found by words only"
    assert engine.search(SearchRequest(text="кофе 東京 café №")).remarks == ()
