from pathlib import Path

import pytest

from knapper.cli.commands import eval as evaluation
from knapper.errors import BadInput

QUERY = '{"_id": "q1", "text": "a question", "more": 1}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a collection with one note, one query and one judgement."""
    (tmp_path / "vault" / "sub").mkdir(parents=True)
    (tmp_path / "vault" / "sub" / "a.md").write_text("text", encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(QUERY + '\n{"_id": "q2", "text": "not judged"}\n', encoding="utf-8")
    (tmp_path / "notes.tsv").write_text("q1\tsub/a.md\t2\n", encoding="utf-8")
    return tmp_path


def test_queries_and_grades_are_read(folder: Path) -> None:
    found = evaluation.read_collection(folder)

    assert found.vault == folder / "vault"
    assert found.queries == {"q1": "a question"}
    assert found.grades == {"q1": {"sub/a.md": 2}}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("queries.jsonl", QUERY + "{", "queries.jsonl:2: it isn't JSON"),
        ("queries.jsonl", QUERY + "[1]", "queries.jsonl:2: it isn't an object"),
        ("queries.jsonl", QUERY + '{"_id": 3, "text": "x"}', "queries.jsonl:2: '_id' and 'text' must be texts"),
        ("queries.jsonl", "\n" + QUERY + QUERY, "queries.jsonl:3: the query 'q1' stands there twice"),
        ("queries.jsonl", "[" * 100_000, "queries.jsonl:1: it isn't JSON"),
        ("notes.tsv", "q1 sub/a.md 1\n", "notes.tsv:1: it has 1 columns, not 3"),
        ("notes.tsv", "q1\tsub/a.md\t1\nq9\tsub/a.md\t1\n", "notes.tsv:2: there is no query 'q9'"),
        ("notes.tsv", "q1\tsub/a.md\thigh\n", "notes.tsv:1: the grade 'high' isn't a number from -99 to 99"),
        ("notes.tsv", "q1\tsub/b.md\t1\n", "notes.tsv:1: there is no note 'sub/b.md'"),
        ("notes.tsv", "", "notes.tsv judges nothing"),
    ],
)
def test_a_bad_line_is_named(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text, encoding="utf-8")

    with pytest.raises(BadInput) as error:
        evaluation.read_collection(folder)

    assert message in error.value.message


def test_what_is_missing_is_named(folder: Path) -> None:
    (folder / "notes.tsv").unlink()
    with pytest.raises(BadInput, match=r"notes\.tsv can't be read"):
        evaluation.read_collection(folder)
    with pytest.raises(BadInput, match="is no collection"):
        evaluation.read_collection(folder / "vault")


def test_a_file_that_is_no_text_is_named(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(b"\xff\n")

    with pytest.raises(BadInput, match="it isn't UTF-8 text"):
        evaluation.read_collection(folder)
