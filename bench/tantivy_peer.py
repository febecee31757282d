"""Index and query the same words with tantivy; runs in a virtual environment of its own.

    python tantivy_peer.py FOLDER     prints {"version", "build_s", "size_mb", "times", "found", "save", "cold", …}

FOLDER holds texts.json, the words of each row as stems, a title's three times and a heading's twice, and
questions.json, the words of each question with their repetitions. Times are processor time.
"""

import json
import re
import sys
import time
from pathlib import Path

import tantivy

_LIMIT = 200
_SAVES = 20


def main(folder: Path) -> None:
    texts: list[str] = json.loads((folder / "texts.json").read_text("utf-8"))
    questions: list[list[tuple[str, int]]] = json.loads((folder / "questions.json").read_text("utf-8"))
    place = folder / "tantivy"
    place.mkdir()
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("id", stored=True, indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = tantivy.Index(schema, path=str(place))
    begin = time.process_time()
    writer = index.writer(heap_size=100_000_000, num_threads=1)
    for number, text in enumerate(texts):
        writer.add_document(_document(number, text))
    writer.commit()
    writer.wait_merging_threads()
    built = time.process_time() - begin
    size = sum(file.stat().st_size for file in place.iterdir()) / 2**20
    index.reload()
    begin = time.process_time()
    searcher = tantivy.Index.open(str(place)).searcher()
    _ask(searcher, schema, questions[0])
    cold = (time.process_time() - begin) * 1000
    times: list[float] = []
    found: list[list[int]] = []
    for question in questions[:20]:
        _ask(searcher, schema, question)
    for question in questions:
        begin = time.process_time()
        found.append(_ask(searcher, schema, question))
        times.append((time.process_time() - begin) * 1000)
    memory = _memory()
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    saves: list[float] = []
    walls: list[float] = []
    for number in range(_SAVES):
        begin, wall = time.process_time(), time.perf_counter()
        writer.delete_documents_by_term("id", number)
        writer.add_document(_document(number, texts[number]))
        writer.commit()
        index.reload()
        _ask(index.searcher(), schema, questions[number])
        saves.append((time.process_time() - begin) * 1000)
        walls.append((time.perf_counter() - wall) * 1000)
    answer = {"version": str(tantivy.__version__), "build_s": built, "size_mb": size, "times": times, "found": found}
    print(json.dumps({**answer, "save": saves, "save_wall": walls, "cold": cold, "memory_mb": memory}))


def _document(number: int, text: str) -> "tantivy.Document":
    document = tantivy.Document()
    document.add_unsigned("id", number)
    document.add_text("words", text)
    return document


def _ask(searcher: "tantivy.Searcher", schema: "tantivy.Schema", question: list[tuple[str, int]]) -> list[int]:
    parts = [
        (
            tantivy.Occur.Should,
            tantivy.Query.boost_query(
                tantivy.Query.term_query(schema, "words", word, index_option="freq"), float(times)
            ),
        )
        for word, times in question
    ]
    hits = searcher.search(tantivy.Query.boolean_query(parts), _LIMIT, count=False).hits
    return [searcher.doc(address)["id"][0] for _, address in hits]


def _memory() -> float:
    status = Path("/proc/self/status")
    found = re.search(r"RssAnon:\s+(\d+)", status.read_text("ascii")) if status.exists() else None
    return int(found[1]) / 1024 if found else float("nan")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
