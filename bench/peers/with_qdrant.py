"""Store chunks in Qdrant Edge, and ask it; see `measuring`."""

import json
import zlib
from collections import Counter
from pathlib import Path

import qdrant_edge as qdrant
from measuring import CANDIDATES, Chunks, Peer, main

_K1, _B = 1.2, 0.75
_LENGTH = "mean_length.json"


class QdrantEdge(Peer):
    """A shard with a sparse vector of BM25's weights and a dense one with a graph (HNSW), by its own defaults."""

    def __init__(self, database: Path) -> None:
        self._shard = qdrant.EdgeShard.load(str(database))
        self._mean = json.loads((database / _LENGTH).read_text("utf-8"))

    @classmethod
    def build(cls, chunks: Chunks, database: Path) -> None:
        database.mkdir(parents=True, exist_ok=True)
        shard = qdrant.EdgeShard.create(
            str(database),
            qdrant.EdgeConfig(
                vectors={"meaning": qdrant.EdgeVectorParams(chunks.vectors.shape[1], qdrant.Distance.Dot)},
                sparse_vectors={"words": qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
            ),
        )
        lengths = [len(text.split()) for _, texts, _ in chunks.batches() for text in texts]
        mean = sum(lengths) / len(lengths)
        for part in chunks.batches():
            shard.update(qdrant.UpdateOperation.upsert_points(_points(mean, *part)))
        shard.optimize()
        shard.flush()
        shard.close()
        (database / _LENGTH).write_text(json.dumps(mean), "utf-8")

    def words(self, question) -> list[int]:
        weights = Counter[int]()
        for word, times in question:
            weights[_term(word)] += times
        vector = qdrant.SparseVector([*weights], [*map(float, weights.values())])
        return self._ask(qdrant.Query.Nearest(vector, using="words"))

    def meaning(self, vector) -> list[int]:
        return self._ask(qdrant.Query.Nearest(vector.tolist(), using="meaning"))

    def _ask(self, query) -> list[int]:
        return [point.id for point in self._shard.query(qdrant.QueryRequest(query=query, limit=CANDIDATES))]

    def replace(self, numbers, texts, vectors) -> None:
        self._shard.update(qdrant.UpdateOperation.delete_points([*numbers]))
        self._shard.update(qdrant.UpdateOperation.upsert_points(_points(self._mean, numbers, texts, vectors)))
        self._shard.flush()


def _points(mean: float, numbers, texts, vectors) -> list["qdrant.Point"]:
    return [
        qdrant.Point(number, {"meaning": vector, "words": _weigh(text, mean)})
        for number, text, vector in zip(numbers, texts, vectors.tolist(), strict=True)
    ]


def _weigh(text: str, mean: float) -> "qdrant.SparseVector":
    words = text.split()
    counts = Counter(map(_term, words))
    longer = _K1 * (1 - _B + _B * len(words) / mean)
    return qdrant.SparseVector([*counts], [count * (_K1 + 1) / (count + longer) for count in counts.values()])


def _term(word: str) -> int:
    return zlib.crc32(word.encode())


if __name__ == "__main__":
    main(QdrantEdge)
