"""A reranker orders a search on every surface alike, and its failure is told on each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.config.sections import RerankSettings
from knapper.config.settings import SearchSettings, Settings
from tests.index.test_rerank import alphabetical
from tests.net.servers import Reply, serving
from tests.parity import surfaces
from tests.parity.test_parity import WAYS

_QUESTION = {"query": "garden rain trip old page", "n_results": 4}


def _with_reranker(url: str) -> Callable[[Path, Path], Settings]:
    make = surfaces.settings

    def settings(base: Path, state: Path) -> Settings:
        rerank = RerankSettings(kind="endpoint", base_url=url, timeout_s=1)
        return replace(make(base, state), search=SearchSettings(rerank=rerank))

    return settings


def _ask(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> tuple[list[str], list[str]]:
    monkeypatch.setattr(surfaces, "settings", _with_reranker(url))
    for name, value in {"": "endpoint", "_BASE_URL": url}.items():
        monkeypatch.setenv(f"KNAP_RERANK{name}", value)
    with WAYS[way](tmp_path, tmp_path / "state") as call:
        answer = call("search_vault", _QUESTION)
    return [hit["source"] for hit in answer["results"]], answer.get("notes", [])


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
def test_every_surface_gives_the_order_of_the_reranker(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(alphabetical) as server:
        sources, notes = _ask(way, tmp_path, monkeypatch, server.url)

    assert list(dict.fromkeys(sources))[:2] == ["Plans/Trip.md", "Rain.md"]
    assert not any("rerank" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("way", list(WAYS))
def test_every_surface_tells_that_the_reranker_failed(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Reply(status=500, body=b"{}")) as server:
        sources, notes = _ask(way, tmp_path, monkeypatch, server.url)
        told = f"not reranked: {server.url} can't rerank (HTTP 500)"

    assert len(sources) == 4
    assert told in notes
