"""Run scripts as models write them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from knapper.codemode import bridge
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.tools.context import Context
from tests.codemode import realistic
from tests.tools import opened

NOW = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory, sandbox: WorkerPool) -> Iterator[Context]:
    vault = opened.vault(tmp_path_factory.mktemp("realistic"), realistic.NOTES)
    with vault.open("script") as made:
        _ = made.index.refresh()
        yield replace(made, open_sandbox=lambda: sandbox, now=lambda: NOW)


@pytest.mark.parametrize("name", realistic.SCRIPTS)
def test_a_script_as_models_write_them_runs(name: str, context: Context) -> None:
    code = realistic.SCRIPTS[name] + "\n__result__ = {'got': __result__, 'expected': expected}\n"

    outcome = bridge.execute_script(context, code)

    assert outcome.error == ""
    assert isinstance(outcome.result, dict)
    assert json.dumps(outcome.result["got"]) == json.dumps(outcome.result["expected"])


def test_there_are_enough_of_them() -> None:
    assert len(realistic.SCRIPTS) >= 30


def test_what_is_printed_comes_back(context: Context) -> None:
    outcome = bridge.execute_script(context, realistic.SCRIPTS["printing"])

    assert outcome.stdout == 'found: 3\n{"a": 1}'
