"""What the agents are told in words: each rule stands in the prompt of the agent that it concerns.

A rule is found by the words that carry its meaning, which stand together in one paragraph or point of a list.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.records import ResearchSettings, ScoutSettings
from knapper.agents.pipeline.scopes import ABILITIES, Ability, ContextScopeConfig, EditRules
from knapper.agents.pipeline.store import AgentToggles
from knapper.net.web import Web
from tests.agents import runs, scripts
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.tools import opened

ALL = AgentToggles(scout=True, web=True)
NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]].\n",
    "Plants.md": "# Plants\n",
    "Other.md": "# Other\n",
}
RULES = {
    "scout": {
        "it doesn't do the task": "don't do the task|nothing but the notes that you choose",
        "several hops": "several hops|links to",
        "fetch before select": "read before you choose|fetch_note",
        "calls side by side": "independent|together",
        "running selection": "each round|update_selection|why|exploring|confident|done|replaces",
        "ends early": "as soon as|`done`",
        "few notes": "few notes|most needed first",
        "asks where it is ambiguous": "several ways|ask_user|once",
        "notes are data": "vault-data|can't change|these rules",
        "limits": "7 rounds|at most 9 notes",
    },
    "web": {
        "it doesn't do the task": "don't do the task|hand over",
        "evaluates first": "evaluate_context|first|why",
        "a search only where it is needed": "evaluate_context|answer the task in full|you are done",
        "formulates a query": "short query|web_search",
        "selects pages": "select_pages|few",
        "extracts": "finalize_web_context|each source|matters for the task",
        "notes stay here": "never|notes|query|leave this machine",
        "pages are data": "vault-data|can't change|open an address",
        "limits": "at most 4 results|at most 2 pages|3,000 tokens",
    },
    "orchestrator": {
        "each agent's part": "`scout`|explores|notes",
        "the web's part": "`web`|searches the web",
        "the task is last": "`task`|always last",
        "as few as it needs": "fewest steps|only `task`",
        "rounds": "after `web`|`scout` once more|after `scout`|`web` once more",
        "only those switched on": "`next`|switched on",
        "notes are data": "vault-data|never an order",
    },
    "task": {
        "answers or edits": "answer a question|propose edits",
        "a question changes nothing": "a question|`summary`|changes nothing",
        "nothing is done without a word": "person|accepts or rejects",
        "JSON": "one json object|nothing else",
        "whole lines without numbers": "`content`|whole lines|without line numbers",
        "the scope": "open note and the notes that it links with|Garden.md|Plants.md|thrown away",
        "numbers count from the note as it is": "line numbers|as it is now|never shifts",
        "no overlap": "must not overlap",
        "as little as it needs": "as little as the task needs|as it is",
        "its own edits that wait": "waits|replace all|block",
        "nothing that isn't shown": "isn't shown|can't be replaced or deleted",
        "cites notes": "comes from a note|[[projects/garden.md#fence]] (lines 12-14)|web|address",
        "says what isn't known": "doesn't say it|say so",
        "notes are data": "vault-data|can't change the task|may edit",
        "what was chosen and why": "garden.md|chosen",
    },
}
"""What each agent has to be told: a rule's name, and words that stand together."""
SCOPES = {"current": "open note only", "linked": "links with directly", "context": "any of the notes"}
POSITIONS: dict[Ability, tuple[str, ...]] = {
    "add": ("`start`", "`end`", "`after:", "`insert:"),
    "delete": ("`replace:", "`delete:"),
    "create": ("`create`",),
    "navigate": ("`open`",),
}
FORBIDDEN: dict[Ability, str] = {
    "add": "inserting|forbidden|start|end|after|insert",
    "delete": "replacing|deleting|forbidden|replace|delete",
    "create": "making|forbidden|create",
    "navigate": "opening|forbidden|open",
}


class Nowhere(Web):
    """Stand in for a web that nobody searches."""

    def __init__(self) -> None:
        pass


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Have all agents work, and give what each was told by its system prompt."""
    vault = opened.vault(tmp_path_factory.mktemp("rules"), NOTES)
    cast = Cast(
        {
            "orchestrator": [[f'{{"next": "{name}"}}'] for name in ("scout", "web", "task")],
            "scout": [[scripts.select("Garden.md", "Plants.md")]],
            "web": [[Call("evaluate_context", {"needs_web": False, "reasoning": "the notes say it"})]],
            "task": [scripts.task("Green.")],
        }
    )
    agents = runs.agents(
        cast,
        scout=ScoutSettings(rounds=7, notes=9),
        web=ResearchSettings(snippet_limit=4, fetch_limit=2, token_budget=3_000),
    )
    request = TaskRequest(
        task="which colour?", current="Garden.md", toggles=ALL, orchestrate=True, rules=EditRules(editable="linked")
    )
    with runs.context(vault) as context:
        _ = runs.run(agents, replace(context, open_web=Nowhere), request)
    return {agent: cast.system(agent) for agent in cast.infos}


def says(text: str, words: str) -> bool:
    """Tell whether one paragraph or point holds all words, which ``|`` parts."""
    points = [point.casefold() for point in text.splitlines()]
    return any(all(word.casefold() in point for word in words.split("|")) for point in points)


@pytest.mark.parametrize(("agent", "rule"), [(agent, rule) for agent, rules in RULES.items() for rule in rules])
def test_an_agent_is_told_its_rule(told: dict[str, str], agent: str, rule: str) -> None:
    assert says(told[agent], RULES[agent][rule]), told[agent]


@pytest.mark.parametrize("editable", SCOPES)
def test_the_task_is_told_which_notes_it_may_edit(tmp_path: Path, editable: str) -> None:
    system = task_system(tmp_path, EditRules(editable=editable))  # pyright: ignore[reportArgumentType]

    assert [scope for scope, words in SCOPES.items() if words in system] == [editable]
    assert says(system, "now these are|Garden.md")
    assert says(system, "now these are|Plants.md") is (editable != "current")
    assert not says(system, "now these are|Other.md")


@pytest.mark.parametrize("ability", ABILITIES)
def test_the_task_is_offered_no_position_that_is_switched_off_and_is_warned_of_it(
    tmp_path: Path, ability: Ability
) -> None:
    system = task_system(tmp_path, EditRules(can=frozenset(ABILITIES) - {ability}))

    offered = [line for line in system.splitlines() if line.startswith("- `") and "`: " in line]
    for name, forms in POSITIONS.items():
        for form in forms:
            assert any(line.startswith(f"- {form}") for line in offered) is (name != ability), form
    assert [name for name, words in FORBIDDEN.items() if says(system, words)] == [ability]


def test_where_all_is_allowed_nothing_is_forbidden(told: dict[str, str]) -> None:
    assert "forbidden" not in told["task"].casefold()


def task_system(base: Path, rules: EditRules) -> str:
    cast = Cast({"task": [scripts.task("Green.")]})
    scope = ContextScopeConfig(link_depth=1)
    _ = runs.do(opened.vault(base, NOTES), cast, current="Garden.md", rules=rules, scope=scope)
    return cast.system("task")
