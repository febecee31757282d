"""Store words in tantivy and vectors in usearch, and ask both; see `measuring`."""

from pathlib import Path

import numpy as np
import tantivy
from measuring import CANDIDATES, Chunks, Peer, main
from usearch.index import Index

_HEAP_BYTES = 100_000_000
_SMALL_HEAP_BYTES = 15_000_000


class TantivyUsearch(Peer):
    """An index of words and a graph over float16 vectors, side by side: nothing keeps them at one state."""

    def __init__(self, database: Path) -> None:
        self._schema = _schema()
        self._index = tantivy.Index.open(str(database / "words"))
        self._searcher = self._index.searcher()
        self._place = str(database / "vectors.usearch")
        self._graph = Index.restore(self._place, view=True)
        self._is_view = True

    @classmethod
    def build(cls, chunks: Chunks, database: Path) -> None:
        (database / "words").mkdir(parents=True)
        index = tantivy.Index(_schema(), path=str(database / "words"))
        writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
        graph = Index(ndim=chunks.vectors.shape[1], metric="ip", dtype="f16")
        for numbers, texts, vectors in chunks.batches():
            for number, text in zip(numbers, texts, strict=True):
                writer.add_document(_document(number, text))
            graph.add(np.array(numbers), vectors)
        writer.commit()
        writer.wait_merging_threads()
        graph.save(str(database / "vectors.usearch"))

    def words(self, question) -> list[int]:
        parts = [
            (
                tantivy.Occur.Should,
                tantivy.Query.boost_query(
                    tantivy.Query.term_query(self._schema, "words", word, index_option="freq"), float(times)
                ),
            )
            for word, times in question
        ]
        hits = self._searcher.search(tantivy.Query.boolean_query(parts), CANDIDATES, count=False).hits
        return [self._searcher.doc(address)["id"][0] for _, address in hits]

    def meaning(self, vector) -> list[int]:
        return self._graph.search(vector, CANDIDATES).keys.tolist()

    def replace(self, numbers, texts, vectors) -> None:
        if self._is_view:
            # What is mapped can't be changed: all of it is read once.
            self._graph = Index.restore(self._place)
            self._is_view = False
        writer = self._index.writer(heap_size=_SMALL_HEAP_BYTES, num_threads=1)
        for number, text in zip(numbers, texts, strict=True):
            writer.delete_documents_by_term("id", number)
            writer.add_document(_document(number, text))
        writer.commit()
        self._graph.remove(np.array(numbers))
        self._graph.add(np.array(numbers), vectors)
        # The graph knows no smaller step than writing all of it.
        self._graph.save(self._place)
        self._index.reload()
        self._searcher = self._index.searcher()


def _schema() -> "tantivy.Schema":
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def _document(number: int, text: str) -> "tantivy.Document":
    document = tantivy.Document()
    document.add_unsigned("id", number)
    document.add_text("words", text)
    return document


if __name__ == "__main__":
    main(TantivyUsearch)
