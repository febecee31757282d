import subprocess
import sys

import pytest

from knapper.index.embedders.base import EmbedderKind, EmbedderSettings
from knapper.index.embedders.registry import open_embedder


@pytest.mark.parametrize(
    ("settings", "model_id", "instant"),
    [
        (EmbedderSettings(), "wordllama-l2-supercat-256-spoken", True),
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


@pytest.mark.parametrize(
    ("kind", "loaded"), [("none", set[str]()), ("static", {"numpy", "tokenizers"}), ("endpoint", {"httpx2", "numpy"})]
)
def test_opening_imports_only_what_the_kind_needs(kind: EmbedderKind, loaded: set[str]) -> None:
    code = (
        "import sys; from knapper.index.embedders.registry import *; "
        f"open_embedder(EmbedderSettings(kind={kind!r}, model='m', base_url='http://localhost:1')); "
        "print(*sorted({'numpy', 'tokenizers', 'httpx2', 'fastembed'} & set(sys.modules)))"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert set(shown.split()) == loaded


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(EmbedderSettings(api_key="secret"))
