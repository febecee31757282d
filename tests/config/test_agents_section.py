"""The settings of the agents: their defaults and their ranges."""

from pathlib import Path

import pytest

from knapper.agents.pipeline.records import ResearchSettings, ScoutSettings
from knapper.agents.pipeline.scopes import SCOUT_TOOLS, UPDATE_SELECTION
from knapper.app import clients, pipelines
from knapper.config import load
from knapper.config.sections import AgentSettings
from knapper.errors import KnapError


def configured(base: Path, text: str) -> AgentSettings:
    file = base / "config.toml"
    file.write_text(text, "utf-8")
    return load(config_file=str(file)).agents


def test_the_defaults_are_those_of_the_document(tmp_path: Path) -> None:
    found = configured(tmp_path, "")

    assert found == AgentSettings()
    assert (found.scout_on, found.web_on, found.task_on) == (False, False, True)
    assert (found.link_depth, found.same_folder, found.excluded_folders) == (2, False, ())
    assert (found.editable, found.can) == ("context", ("add", "delete", "create", "navigate"))
    assert (found.chat_history_length, found.auto_search, found.orchestrate) == (10, True, False)
    assert (found.scout.rounds, found.scout.notes, found.scout.keyword_limit) == (5, 20, 10)
    assert {UPDATE_SELECTION, *found.scout.tools} == set(SCOUT_TOOLS)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("agents.link_depth", 0, 3),
        ("agents.token_limit", 3_000, 2_000_000),
        ("agents.chat_history_length", 0, 100),
        ("agents.orchestrator_steps", 1, 8),
        ("scout.rounds", 2, 10),
        ("scout.notes", 3, 50),
        ("scout.keyword_limit", 3, 20),
        ("web.max_results", 3, 15),
        ("web.max_pages", 1, 5),
        ("web.token_budget", 2_000, 20_000),
    ],
)
def test_numbers_have_their_ranges(tmp_path: Path, name: str, least: int, most: int) -> None:
    section, _, key = name.partition(".")

    for value in (least, most):
        _ = configured(tmp_path, f"[{section}]\n{key} = {value}\n")
    for wrong in (least - 1, most + 1):
        with pytest.raises(KnapError):
            _ = configured(tmp_path, f"[{section}]\n{key} = {wrong}\n")


@pytest.mark.parametrize(
    "wrong",
    [
        '[agents]\neditable = "all"\n',
        '[agents]\ncan = ["fly"]\n',
        '[agents]\nscout = "maybe"\n',
        '[scout]\ntools = ["rm"]\n',
        '[scout]\nshow_tags = "some"\n',
    ],
)
def test_words_that_are_none_are_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(KnapError):
        _ = configured(tmp_path, wrong)


def test_what_is_set_reaches_the_agents(tmp_path: Path) -> None:
    text = (
        '[agents]\nscout = "on"\nlink_depth = 1\nsame_folder = "on"\nexcluded_folders = ["Private"]\n'
        'editable = "linked"\ncan = ["add"]\n'
        '[scout]\nrounds = 7\nnotes = 9\nkeyword_limit = 4\ntools = ["fetch_note"]\nshow_tags = "on"\ntimeout_s = 60\n'
        '[web]\nauto_search = "off"\nmax_pages = 2\n'
    )
    file = tmp_path / "config.toml"
    file.write_text(text, "utf-8")
    settings = load(config_file=str(file))

    chosen = clients.configured_preset(settings)
    limits = pipelines.configured_task_limits(settings)
    scout, web = limits.for_scout(ScoutSettings()), limits.for_web(ResearchSettings())

    assert (chosen.toggles.scout, chosen.scope.link_depth, chosen.scope.include_same_folder) == (True, 1, True)
    assert (chosen.scope.excluded_folders, chosen.rules.editable, chosen.rules.can) == (("Private",), "linked", {"add"})
    assert (scout.rounds, scout.notes, scout.keyword_limit, scout.show_tags, scout.timeout_s) == (7, 9, 4, True, 60)
    assert scout.tools == {UPDATE_SELECTION, "fetch_note"}
    assert (web.auto_search, web.fetch_limit) == (False, 2)
