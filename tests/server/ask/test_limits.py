"""The limits that a task sets for itself: all that the settings have, for this task alone."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.agents.pipeline.records import ResearchSettings, ScoutSettings
from knapper.app import Hub, pipelines
from knapper.app.open_clients import OpenClients
from knapper.config.settings import SETTINGS, Settings
from knapper.server.http.binding import RequestArguments
from knapper.server.http.tasks import NUMBER_RANGES, OVERRIDE_PARAMETERS, read_task_order
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.server import apps, chats, tasks

TASK = {"task": "rain?", "note": "Rain.md"}
LIMITS: dict[str, Any] = {
    "rounds": 2,
    "notes": 3,
    "linked_notes": 5,
    "semantic_notes": 4,
    "semantic_similarity": 70,
    "keyword_limit": 4,
    "tools": ["search_keyword", "fetch_note"],
    "show_tags": True,
    "timeout_s": 60,
    "snippet_limit": 4,
    "fetch_limit": 1,
    "token_budget": 2_000,
    "auto_search": False,
    "orchestrator_steps": 2,
    "orchestrator_tokens": 9_000,
}


RENAMED = {
    "web.max_results": "snippet_limit",
    "web.max_pages": "fetch_limit",
    "agents.same_folder": "include_same_folder",
}
"""Which settings the documents name otherwise."""
WEB_LIMITS = ("web.max_results", "web.max_pages", "web.token_budget", "web.auto_search")
STANDING_FOR = [one.name for one in SETTINGS if one.name.startswith(("agents.", "scout.")) or one.name in WEB_LIMITS]
"""The settings that a task can say otherwise."""


def test_a_task_takes_each_limit_that_the_settings_have() -> None:
    taken = {one.name for one in OVERRIDE_PARAMETERS}
    wanted = {RENAMED.get(name, name.partition(".")[2]) for name in STANDING_FOR}

    assert wanted - taken == {"model", "task"}  # the scout's model is no limit, and the task has its text there
    assert set(LIMITS) <= taken
    assert set(LIMITS) - {"tools", "show_tags", "auto_search"} < set(NUMBER_RANGES)


def test_the_agents_work_within_them_also_when_a_run_goes_on(tmp_path: Path) -> None:
    settings = apps.settings(tmp_path)
    with Hub(settings) as hub, contextlib.closing(OpenClients(hub)) as opened:
        desk = opened.pipelines("http")
        order = read_task_order(RequestArguments(values={**TASK, **LIMITS, "chat_history_length": 3}))
        request = desk.request(order)
        stored = pipelines.pipeline_context.read_request(request.as_dict())

    assert stored == request
    assert (request.chat_history_length, request.limits.as_dict()) == (3, LIMITS)
    assert request.limits.for_scout(ScoutSettings()) == ScoutSettings(
        rounds=2,
        notes=3,
        keyword_limit=4,
        tools=frozenset({"update_selection", "search_keyword", "fetch_note"}),
        show_tags=True,
        timeout_s=60,
    )
    assert request.limits.for_web(ResearchSettings()) == ResearchSettings(
        snippet_limit=4, fetch_limit=1, token_budget=2_000, auto_search=False
    )


def test_the_scout_has_the_rounds_and_tools_of_the_task_and_later_ones_the_usual(tmp_path: Path) -> None:
    looking = Cast({"scout": [[Call("search_keyword", {"query": "rain"})]], "task": [tasks.ANSWER]})
    with chats.asking(tmp_path, looking.open) as client:
        _ = client.post("/ask", json={**TASK, "scout": True, "rounds": 2, "tools": ["search_keyword"]})
        first = len(looking.asked["scout"])
        offered = {one.name for one in looking.infos["scout"][0].function_tools}
        _ = client.post("/ask", json={**TASK, "scout": True})
        usual = {one.name for one in looking.infos["scout"][first].function_tools}
        second = len(looking.asked["scout"]) - first

    assert offered == {"update_selection", "search_keyword", "get_continuation"}
    assert len(usual) > len(offered)
    assert first < second


def test_the_length_of_the_history_is_the_tasks_own(tmp_path: Path) -> None:
    cast = tasks.answering()
    with chats.asking(tmp_path, cast.open) as client:
        session = client.post("/sessions", json={}).json()["session"]["id"]
        for length, task in ((None, "paint it white"), (0, "and now?"), (10, "and then?")):
            _ = client.post("/ask", json={**TASK, "task": task, "session_id": session, "chat_history_length": length})

    assert "paint it white" not in cast.prompts("task", 1)
    assert "paint it white" in cast.prompts("task", 2)


@pytest.mark.parametrize("name", sorted(set(LIMITS) - {"tools", "show_tags", "auto_search"}))
def test_a_number_has_the_range_of_its_setting(name: str) -> None:
    named = {RENAMED.get(one.name, one.name.partition(".")[2]): one for one in SETTINGS if one.name in STANDING_FOR}

    assert NUMBER_RANGES[name] == (named[name].least, named[name].most)


@pytest.mark.parametrize(
    "body",
    [
        {"tools": ["list_all_tags"]},
        {"auto_search": True},
        {"timeout_s": 301},
        {"orchestrator_tokens": 0},
        {"orchestrator_tokens": 9_001},
    ],
)
def test_a_program_takes_no_more_than_the_owner_allows_and_a_person_does(tmp_path: Path, body: dict[str, Any]) -> None:
    settings = apps.settings(tmp_path)
    scout = replace(settings.agents.scout, tools=("search_keyword",))
    agents = replace(settings.agents, scout=scout, auto_search=False, orchestrator_tokens=9_000)
    found = _ask_as_both(replace(settings, agents=agents), {**TASK, **body})

    assert found == [(403, "over_limit"), (200, None)]


def test_nobody_is_promised_more_results_of_the_web_than_it_gives(tmp_path: Path) -> None:
    found = _ask_as_both(apps.settings(tmp_path), {**TASK, "snippet_limit": 9})

    assert found == [(403, "over_limit")] * 2


@pytest.mark.parametrize(
    "body", [{"tools": []}, {"auto_search": False}, {"timeout_s": 5}, {"orchestrator_tokens": 5_000}, {"rounds": 10}]
)
def test_what_is_less_or_bounded_is_taken_from_all(tmp_path: Path, body: dict[str, Any]) -> None:
    settings = apps.settings(tmp_path)
    agents = replace(settings.agents, orchestrator_tokens=9_000)
    found = _ask_as_both(replace(settings, agents=agents), {**TASK, **body})

    assert found == [(200, None), (200, None)]


def _ask_as_both(settings: Settings, body: dict[str, Any]) -> list[tuple[int, str | None]]:
    """Give what a program and a person are told."""
    found: list[tuple[int, str | None]] = []
    with Hub(settings) as hub:
        world = apps.World(hub=hub, settings=settings, root=settings.vault.path)
        for token in ("api", "page"):
            with world.client(world.token(token), chats.mounted(hub, world.stop, tasks.answering().open)) as client:
                answer = client.post("/ask", json=body)
            found.append((answer.status_code, answer.json().get("code")))
    return found
