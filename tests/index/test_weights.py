"""How much meaning counts beside words: the more, the fewer of a question's words the notes know."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.index.documents import Filter
from knapper.index.engine import Engine, RankFusion
from knapper.index.search import Hit, SearchRequest
from knapper.index.snapshot import RankingWeights
from knapper.vault.access import Policy
from tests.index import worlds

NOTES = {
    "words.md": "The harvest festival begins at noon.\n",
    "meaning.md": "Apfel Ernte Fest.\n",
    "Secret/hidden.md": "The obsolete zeppelin.\n",
}
WEIGHTS = RankingWeights()


class Translator(worlds.WordEmbedder):
    """Has one axis for a word in two languages."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        return super()._vector(text.lower().replace("festival", "fest").replace("harvest", "ernte"))


def opened(folder: Path, meaning: float | None = None, embedder: worlds.WordEmbedder | None = None) -> Engine:
    plain = worlds.engine(worlds.fill(folder / "v", NOTES), folder / "s")
    view = plain.view
    plain.close()
    embedder = embedder or Translator()
    engine = Engine(folder / "s", view, open_embedder=lambda: embedder, fusion=RankFusion(meaning=meaning))
    engine.refresh()
    engine.embed()
    return engine


def share_of_meaning(engine: Engine, text: str, where: Filter | None = None) -> float:
    """Return the weight of meaning that the parts of a hit show."""
    hits = engine.search(SearchRequest(text=text, where=where or Filter())).hits

    def weight(hit: Hit) -> float:
        words, meaning = hit.parts["keyword"], hit.parts["dense"]
        return (hit.parts["chunk"] - words) / (meaning - words)

    return next(weight(hit) for hit in hits if abs(hit.parts["dense"] - hit.parts["keyword"]) > 0.01)


def test_meaning_counts_more_where_fewer_words_are_known() -> None:
    weights = [WEIGHTS.meaning(known, base=None, is_instant=True) for known in (1, 0.5, 0)]

    assert weights == pytest.approx([WEIGHTS.dense, (WEIGHTS.dense + WEIGHTS.dense_without_words) / 2, 0.8])
    assert WEIGHTS.meaning(1, base=None, is_instant=False) == WEIGHTS.dense_of_transformer
    assert WEIGHTS.meaning(0, base=0.95, is_instant=True) == 0.95


def test_the_words_of_a_question_decide_its_weight(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        known, half = share_of_meaning(engine, "harvest festival"), share_of_meaning(engine, "harvest zzyzx")

    assert known == pytest.approx(WEIGHTS.dense)
    assert half == pytest.approx(WEIGHTS.meaning(0.5, base=None, is_instant=True))


def test_the_configured_weight_is_used(tmp_path: Path) -> None:
    with opened(tmp_path, meaning=0.6) as engine:
        assert share_of_meaning(engine, "harvest festival") == pytest.approx(0.6)


def test_an_embedder_of_whole_texts_has_a_weight_of_its_own(tmp_path: Path) -> None:
    embedder = Translator()
    embedder.instant = False

    with opened(tmp_path, embedder=embedder) as engine:
        assert share_of_meaning(engine, "harvest festival") == pytest.approx(WEIGHTS.dense_of_transformer)


def test_words_of_hidden_notes_change_no_weight(tmp_path: Path) -> None:
    guest = Filter(policy=Policy(client="guest", hidden=("Secret/",)))

    with opened(tmp_path) as engine:
        hidden, unknown = (share_of_meaning(engine, f"harvest {word}", guest) for word in ("zeppelin", "zzyzx"))

    assert hidden == pytest.approx(unknown)


def test_a_corrected_word_counts_as_known(tmp_path: Path) -> None:
    with opened(tmp_path) as engine:
        (tmp_path / "v" / "Harvest moon.md").write_text("It shines.\n", encoding="utf-8")
        engine.refresh()
        engine.embed()
        corrected = engine.search(SearchRequest(text="harvst festival"))

        assert corrected.remarks == ("no note holds it as typed: searched for 'harvest' for 'harvst'",)
        assert share_of_meaning(engine, "harvst festival") == pytest.approx(WEIGHTS.dense)
