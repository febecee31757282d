from pathlib import Path

import pytest

from knapper import config
from knapper.config.sections import WebSettings
from knapper.errors import SetupError


def read(config_file: Path, text: str) -> WebSettings:
    config_file.write_text(f"[web]\n{text}", encoding="utf-8")
    return config.load().web


def test_the_web_is_off_as_it_comes(config_file: Path) -> None:
    assert read(config_file, 'access = "off"') == config.load().web == WebSettings()
    assert not WebSettings().is_allowed


def test_every_value_can_be_set(config_file: Path) -> None:
    found = read(
        config_file,
        """access = "on"\nprovider = "model"\napi_key = "k"\nbase_url = "http://localhost:1/v1"\nmodel = "m"
max_results = 15\nmax_pages = 5\ntoken_budget = 2000\nhosts = ["example.org"]\ntimeout_s = 9\nmax_page_kb = 50""",
    )

    assert found == WebSettings(
        is_allowed=True,
        provider="model",
        api_key="k",
        base_url="http://localhost:1/v1",
        model="m",
        max_results=15,
        max_pages=5,
        token_budget=2_000,
        hosts=("example.org",),
        timeout_s=9,
        max_page_kb=50,
    )
    assert "'k'" not in repr(found)


def test_openai_is_another_name_for_a_models_own_search(config_file: Path) -> None:
    assert read(config_file, 'provider = "openai"').provider == "model"


def test_a_provider_gets_its_own_key_and_no_other(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tavily's")
    monkeypatch.setenv("SERPER_API_KEY", "serper's")

    assert read(config_file, 'provider = "tavily"').api_key == "tavily's"
    assert read(config_file, 'provider = "serper"').api_key == "serper's"
    assert read(config_file, 'provider = "brave"').api_key == ""
    assert read(config_file, 'provider = "ddgs"').api_key == ""
    assert read(config_file, 'provider = "brave"\napi_key = "mine"').api_key == "mine"


@pytest.mark.parametrize(
    "line", ["max_results = 2", "max_results = 16", "max_pages = 6", "token_budget = 1999", 'provider = "bing"']
)
def test_values_out_of_range_are_refused(config_file: Path, line: str) -> None:
    with pytest.raises(SetupError):
        read(config_file, line)
