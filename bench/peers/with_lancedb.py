"""Store chunks in LanceDB, and ask it; see `measuring`."""

from pathlib import Path

import lancedb
import pyarrow as pa
from lancedb.query import MatchQuery
from measuring import CANDIDATES, Chunks, Peer, main

_REFINED = 3
"""Candidates whose exact vectors are compared, as a multiple of what is asked for."""


class Lance(Peer):
    """A table with an inverted index of the words and one of quantised vectors (IVF_PQ), by their own defaults."""

    def __init__(self, database: Path) -> None:
        self._table = lancedb.connect(str(database)).open_table("chunks")

    @classmethod
    def build(cls, chunks: Chunks, database: Path) -> None:
        schema = _schema(chunks.vectors.shape[1])
        batches = (_batch(schema, *part) for part in chunks.batches())
        table = lancedb.connect(str(database)).create_table("chunks", batches, schema=schema)
        table.create_scalar_index("id")
        table.create_fts_index(
            "words",
            base_tokenizer="whitespace",
            lower_case=False,
            stem=False,
            remove_stop_words=False,
            ascii_folding=False,
            max_token_length=None,
        )
        table.create_index(metric="dot", vector_column_name="vector")
        table.optimize()

    def words(self, question) -> list[int]:
        text = " ".join(word for word, times in question for _ in range(times))
        found = self._table.search(MatchQuery(text, "words"), query_type="fts")
        return _ids(found)

    def meaning(self, vector) -> list[int]:
        found = self._table.search(vector, vector_column_name="vector").distance_type("dot").refine_factor(_REFINED)
        return _ids(found)

    def replace(self, numbers, texts, vectors) -> None:
        batch = _batch(_schema(vectors.shape[1]), numbers, texts, vectors)
        merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.Table.from_batches([batch]))


def _ids(query) -> list[int]:
    return query.limit(CANDIDATES).select(["id"]).to_arrow()["id"].to_pylist()


def _schema(dimensions: int) -> "pa.Schema":
    return pa.schema(
        [("id", pa.int64()), ("words", pa.string()), ("vector", pa.list_(pa.float32(), dimensions))],
    )


def _batch(schema: "pa.Schema", numbers, texts, vectors) -> "pa.RecordBatch":
    flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(texts), flat], schema=schema)


if __name__ == "__main__":
    main(Lance)
