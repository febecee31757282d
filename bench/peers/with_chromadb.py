"""Store chunks in chromadb, and ask it; see `measuring`."""

from pathlib import Path

import chromadb
from measuring import CANDIDATES, Chunks, Peer, main


class Chroma(Peer):
    """A collection with cosine distance, and the texts as documents."""

    ranks_words = False

    def __init__(self, database: Path) -> None:
        self._chunks = _client(database).get_collection("chunks")

    @classmethod
    def build(cls, chunks: Chunks, database: Path) -> None:
        cls._add(database, chunks.batches())

    @classmethod
    def build_by_note(cls, chunks: Chunks, database: Path) -> None:
        cls._add(database, chunks.notes())

    @classmethod
    def _add(cls, database: Path, parts) -> None:
        collection = _client(database).create_collection("chunks", metadata={"hnsw:space": "cosine"})
        for numbers, texts, vectors in parts:
            collection.add(ids=[*map(str, numbers)], embeddings=vectors, documents=texts)

    def meaning(self, vector) -> list[int]:
        found = self._chunks.query(query_embeddings=[vector], n_results=CANDIDATES, include=["distances"])
        return [int(i) for i in found["ids"][0]]

    def replace(self, numbers, texts, vectors) -> None:
        ids = [*map(str, numbers)]
        self._chunks.delete(ids=ids)
        self._chunks.add(ids=ids, embeddings=vectors, documents=texts)


def _client(database: Path):
    return chromadb.PersistentClient(str(database), settings=chromadb.Settings(anonymized_telemetry=False))


if __name__ == "__main__":
    main(Chroma)
