"""Which provider searches the web, with which model, and with whose key."""

from dataclasses import replace
from pathlib import Path

import pytest

from knapper.app import models
from knapper.config import Settings
from knapper.errors import SetupError
from tests.tools import opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    plain = opened.vault(tmp_path, {"A.md": "A\n"}).settings()
    return replace(plain, web=replace(plain.web, is_allowed=True, provider="model"))


def choose(settings: Settings, model: dict[str, object], web: dict[str, object]) -> tuple[str, str, str]:
    given = replace(settings, model=replace(settings.model, **model), web=replace(settings.web, **web))
    found = models.web_options(given)
    return found.model, found.base_url, found.api_key


@pytest.mark.parametrize(
    ("model", "web", "expected"),
    [
        ({"name": "openai:gpt-5", "api_key": "K"}, {}, ("gpt-5", "", "K")),
        ({"name": "openai:gpt-5", "keys": (("openai", "K"),)}, {}, ("gpt-5", "", "K")),
        ({"name": "tiny", "base_url": "http://h:1/v1", "api_key": "K"}, {}, ("tiny", "http://h:1/v1", "K")),
        ({"name": "tiny@http://h:1/v1", "api_key": "K"}, {}, ("tiny", "http://h:1/v1", "K")),
        ({"name": "anthropic:c", "api_key": "A"}, {"model": "gpt-5", "api_key": "K"}, ("gpt-5", "", "K")),
        ({"name": "anthropic:c", "keys": (("openai", "K"),)}, {"model": "openai:gpt-5"}, ("gpt-5", "", "K")),
        (
            {"name": "tiny", "base_url": "http://h:1/v1"},
            {"base_url": "http://o:2/v1/", "api_key": "W"},
            ("tiny", "http://o:2/v1", "W"),
        ),
    ],
)
def test_a_model_searches_under_its_own_name_at_its_own_place(
    settings: Settings, model: dict[str, object], web: dict[str, object], expected: tuple[str, str, str]
) -> None:
    assert choose(settings, model, web) == expected


@pytest.mark.parametrize(
    ("model", "web"),
    [
        ({"name": "anthropic:c", "api_key": "A"}, {"model": "gpt-5"}),
        ({"name": "tiny", "base_url": "http://h:1/v1", "api_key": "A"}, {"base_url": "http://o:2/v1"}),
        ({"name": "openai:gpt-5", "api_key": "A"}, {"base_url": "http://o:2/v1"}),
        ({"name": "tiny@http://h:1/v1", "api_key": "A"}, {"model": "gpt-5"}),
    ],
)
def test_a_key_of_another_place_is_not_sent_to_where_the_web_is_searched(
    settings: Settings, model: dict[str, object], web: dict[str, object]
) -> None:
    assert choose(settings, model, web)[2] == ""


@pytest.mark.parametrize("name", ["anthropic:c", "ollama:qwen3", "fireworks:x", "openrouter:a/b", ""])
def test_a_model_that_cannot_search_is_told_before_anything_is_sent(settings: Settings, name: str) -> None:
    with pytest.raises(SetupError) as told:
        choose(settings, {"name": name, "api_key": "A"}, {})

    assert told.value.code == "search_key"
    assert "web.model" in told.value.hint


def test_other_providers_are_given_their_own_key_alone(settings: Settings) -> None:
    assert choose(settings, {"name": "openai:g", "api_key": "A"}, {"provider": "brave", "api_key": "B"}) == (
        "",
        "",
        "B",
    )
