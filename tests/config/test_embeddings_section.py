"""What the section ``[embeddings]`` says reaches the embedder."""

import json
from pathlib import Path

import numpy as np
import pytest

from knapper import config
from knapper.app.hub import Hub
from tests.index.test_embed_static import ROWS, write_model2vec


def test_the_prefixes_of_the_file_are_taken_as_they_are(config_file: Path) -> None:
    config_file.write_text("[embeddings]\nquery_prefix = 'ask: '\npassage_prefix = ''\n", encoding="utf-8")

    embeddings = config.load().embeddings

    assert (embeddings.query_prefix, embeddings.passage_prefix) == ("ask: ", "")


def test_without_prefixes_the_model_tells() -> None:
    embeddings = config.load().embeddings

    assert (embeddings.query_prefix, embeddings.passage_prefix, embeddings.folder) == ("auto", "auto", "")


@pytest.mark.parametrize("name", ["potion", "./potion"])
def test_a_folder_beside_the_file_holds_the_table(config_file: Path, tmp_path: Path, name: str) -> None:
    write_model2vec(config_file.parent / "potion", {"embeddings": ROWS.astype("<f4")})
    vault = tmp_path / "a vault"
    vault.mkdir()
    (vault / "note.md").write_text("red green", encoding="utf-8")
    config_file.write_text(
        f"[embeddings]\nfolder = '{name}'\n[vaults.one]\npath = {json.dumps(str(vault))}\n", encoding="utf-8"
    )

    with Hub(config.load()) as hub:
        embedder = hub.open().engine.embedder

    assert embedder is not None
    assert embedder.model_id.startswith("model2vec:")
    assert np.allclose(embedder.query("red"), [1, 0, 0, 0])
