import subprocess
import sys
from pathlib import Path

import pytest

from knapper.app.vault import open_embedder
from knapper.index.models.base import EmbedderError, EmbedderKind, EmbedderSettings, choose_prefixes


@pytest.mark.parametrize(
    ("settings", "model_id", "instant"),
    [
        (EmbedderSettings(), "multilingual-e5-small-static-160", True),
        (EmbedderSettings(kind="endpoint", model="m", base_url="http://localhost:1"), "endpoint:m", False),
        (EmbedderSettings(kind="onnx", model="org/m"), "onnx:org/m", False),
    ],
)
def test_the_configured_kind_is_opened(settings: EmbedderSettings, model_id: str, *, instant: bool) -> None:
    embedder = open_embedder(settings)

    assert embedder is not None
    assert embedder.model_id == model_id
    assert embedder.instant is instant


def test_search_by_words_only_needs_no_embedder() -> None:
    assert open_embedder(EmbedderSettings(kind="none")) is None


@pytest.mark.parametrize(("kind", "loaded"), [("none", set[str]()), ("static", {"numpy"}), ("endpoint", {"httpx2"})])
def test_opening_imports_only_what_the_kind_needs(kind: EmbedderKind, loaded: set[str]) -> None:
    model = "m" if kind == "endpoint" else ""
    code = (
        "import sys; from knapper.app.vault import *; "
        f"open_embedder(EmbedderSettings(kind={kind!r}, model={model!r}, base_url='http://localhost:1')); "
        "print(*sorted({'numpy', 'kitoken', 'tokenizers', 'httpx2', 'fastembed'} & set(sys.modules)))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert set(shown.split()) == loaded


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(EmbedderSettings(api_key="secret"))


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        (EmbedderSettings(kind="static", model="bge-m3"), "onnx"),
        (EmbedderSettings(kind="static", model="minishlab/potion-base-8M", folder=Path("/models/potion")), "take"),
        (EmbedderSettings(kind="endpoint", model="m", base_url="http://localhost:1", folder=Path("/models")), "take"),
    ],
)
def test_a_setting_that_the_kind_doesnt_know_is_told(settings: EmbedderSettings, hint: str) -> None:
    with pytest.raises(EmbedderError) as raised:
        open_embedder(settings)

    assert hint in raised.value.hint


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("snowflake-arctic-embed:335m", "Represent this sentence", ""),
        ("Snowflake/snowflake-arctic-embed-m-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-large-zh-v1.5", "为这个句子", ""),
        ("bge-m3", "", ""),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("some-model", "", ""),
    ],
)
def test_a_known_model_gets_its_prompts(model: str, query: str, passage: str) -> None:
    prefixes = choose_prefixes(EmbedderSettings(model=model))

    assert prefixes.query.startswith(query)
    assert bool(prefixes.query) is bool(query)
    assert prefixes.passage == passage
