"""What the status of an index tells somebody who doesn't see all of it."""

from pathlib import Path

from knapper.index.filters import Filter
from knapper.vault.access import Policy
from tests.index import worlds

NOTES = {
    "a.md": "one\n",
    "b.md": "two\n",
    "In/c.md": "# Three\n\nthree\n\n# Four\n\nfour\n",
    "In/p.png": "",
    "q.png": "",
}


def test_who_does_not_see_all_is_told_of_the_rest_only(tmp_path: Path) -> None:
    guest = Filter(policy=Policy(hidden=("In/",)))
    embedder = worlds.WordEmbedder()
    with worlds.engine(worlds.fill(tmp_path / "v", NOTES), tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        (tmp_path / "v" / "a.md").write_text("one\n\n# Five\n\nmore\n", encoding="utf-8")
        (tmp_path / "v" / "In" / "c.md").write_text("# Three\n\nother\n\n# Four\n\nfour\n", encoding="utf-8")
        engine.refresh()
        seen, whole = engine.status(guest), engine.status()

    assert (seen.notes, seen.files, whole.notes, whole.files) == (2, 3, 3, 5)
    assert (seen.chunks, seen.embedded, seen.pending) == (3, 2, 1)
    assert (whole.chunks, whole.embedded, whole.pending) == (5, 3, 2)


def test_vectors_of_another_model_do_not_count_for_who_does_not_see_all(tmp_path: Path) -> None:
    guest = Filter(policy=Policy(hidden=("In/",)))
    vault = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
    with worlds.engine(vault, tmp_path / "s", worlds.WordEmbedder("others")) as engine:
        seen = engine.status(guest)

    assert (seen.model, seen.chunks, seen.embedded, seen.pending) == ("others", 2, 0, 2)
