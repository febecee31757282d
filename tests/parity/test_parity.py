"""Every tool gives the same on every surface, and what it says it gives."""

from pathlib import Path
from typing import Any, Final, cast

import jsonschema
import pytest

from knapper.app import tables
from knapper.tools import registry
from tests import compiled, states
from tests.parity import surfaces
from tests.parity.examples import CALLS

WAYS: Final = {
    "direct": surfaces.direct,
    "agent": surfaces.by_an_agent,
    "mcp": surfaces.over_mcp,
    "http": surfaces.over_http,
    "cli": surfaces.by_command,
}


@pytest.fixture(scope="session")
def state(code_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a state folder for all vaults, with the sandbox's machine code."""
    made = tmp_path_factory.mktemp("state")
    compiled.put(code_folder, made)
    return made


_NOT_IN_SCRIPTS: Final = {"find_tool", "show_proposal"}
"""Tools that scripts haven't, and one whose example needs what an earlier call made."""


def run(base: Path, state: Path, way: str) -> list[tuple[str, dict[str, Any]]]:
    """Make all calls one after another; what an earlier answer told stands in for a mark."""
    known: dict[str, str] = {}
    answers: list[tuple[str, dict[str, Any]]] = []
    with WAYS[way](base, state) as call:
        for name, arguments in CALLS:
            answer = call(name, {key: _filled(value, known) for key, value in arguments.items()})
            known |= {"proposal": answer["proposal_id"]} if answer.get("proposal_id") else {}
            known |= {"digest": answer["digest"]} if answer.get("digest") else {}
            known |= {"change": answer["change_id"]} if answer.get("change_id") else {}
            answers.append((name, answer))
            assert states.open_to_others(state) == [], (way, name)
    return answers


def _filled(value: object, known: dict[str, str]) -> object:
    return value.format(**known) if isinstance(value, str) and value.startswith("{") else value


def test_every_tool_has_an_example() -> None:
    assert {name for name, _ in CALLS} == {row.name for row in tables.build_table().specs}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", ["agent", "mcp", "http", "cli"])
def test_every_surface_gives_what_a_direct_call_gives(tmp_path: Path, state: Path, way: str) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    direct, there = run(one, state, "direct"), run(other, state, way)

    for (name, here), (_, found) in zip(direct, there, strict=True):
        if way == "agent" and name == "find_tool":
            continue  # it tells an agent only of what an agent may call
        assert (name, surfaces.masked(found, other)) == (name, surfaces.masked(here, one))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_script_gets_what_a_direct_call_gives(tmp_path: Path, state: Path) -> None:
    table = tables.build_table()
    reading = [
        (name, arguments)
        for name, arguments in CALLS
        if (row := table.find(name)).effect == "read" and not row.open_world and name not in _NOT_IN_SCRIPTS
    ]

    with surfaces.direct(tmp_path, state) as call:
        for name, arguments in reading:
            code = f"__result__ = obsidian.tools.{name}(**{arguments!r})"
            outcome = call("run_script", {"code": code})
            here = call(name, arguments)
            assert (name, outcome["error"]) == (name, "" if here["success"] else outcome["error"])
            if here["success"]:
                assert surfaces.masked(outcome["result"], tmp_path) == surfaces.masked(here, tmp_path)
    assert len(reading) > 20


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_every_tool_answers_with_what_it_says(tmp_path: Path, state: Path) -> None:
    table = tables.build_table()

    for name, answer in run(tmp_path, state, "direct"):
        if not answer["success"]:
            assert answer["code"]
            continue
        said = closed(registry.answer_schema(table.find(name)))
        if name != "call_tool":  # it gives what the called tool gives
            jsonschema.validate(answer, said, jsonschema.Draft202012Validator)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_most_examples_succeed(tmp_path: Path, state: Path) -> None:
    failed = {name: answer["code"] for name, answer in run(tmp_path, state, "direct") if not answer["success"]}

    assert failed == {
        "write_file": "stale",
        "accept_proposal": "person_needed",
        "web_search": "web_off",
        "fetch_page": "web_off",
        "transcribe_audio": "audio_off",
        "run_script": "script_error",
        "ask_vault": "no_model",
        "scout_vault": "no_model",
        "run_agent": "no_model",
    }


def closed(schema: Any) -> Any:  # noqa: ANN401 - any JSON
    """Let no object hold more than its schema names."""
    if isinstance(schema, list):
        return [closed(one) for one in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in cast("dict[str, object]", schema).items()}
    return {"additionalProperties": False, **made} if isinstance(made.get("properties"), dict) else made
