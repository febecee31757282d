"""What the owner hides from everybody: it isn't even in the index."""

from pathlib import Path

import pytest

from knapper import app, config
from knapper.tools.search import search_vault
from tests.index import worlds


def test_what_the_owner_hides_from_everybody_is_not_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "secret/b.md": "alpha beta\n"})
    (tmp_path / "c.toml").write_text(f'[vaults.v]\npath = "{root}"\nhidden = ["secret/"]\n')
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "c.toml"))
    with app.open_vault(config.load({})) as context:
        found = search_vault(context, "beta", 50, "keyword")
        known = set(context.index.store.known())

    assert known == {"a.md"}
    assert found["results"] == []
