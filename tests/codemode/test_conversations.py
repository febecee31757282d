"""Talk with workers that were taken over; nothing they say does harm."""

import time
from collections.abc import Mapping

import pytest

from knapper.codemode.sandbox import pool
from knapper.codemode.sandbox.pool import KILL_GRACE_S, WorkerConnection
from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptInputs, ScriptLimits
from tests.codemode import liars

LIMITS = ScriptLimits(timeout_s=0.6, stdout_bytes=100_000, calls=20)
SLOW_S = 40
"""What a busy machine may take beyond the time of a script; a liar would take longer."""
pytestmark = pytest.mark.timeout(60)


def host(method: str, given: Mapping[str, JSONValue]) -> JSONValue:
    del given
    return "y" * 1_000_000 if method == "big" else "answer"


@pytest.mark.parametrize("name", liars.LIES)
def test_a_lie_ends_in_an_outcome_of_the_script_alone(name: str) -> None:
    liar = WorkerConnection(liars.start(name))
    liar.wait_until_ready()
    start = time.monotonic()

    talk = liar.run("1", host, LIMITS, ScriptInputs())
    outcome = pool.result_from_output(talk, LIMITS, 0.0, 0.0)

    assert time.monotonic() - start < LIMITS.timeout_s + KILL_GRACE_S + SLOW_S
    assert outcome.kind != "ok"
    assert outcome.result is None
    assert len(outcome.stdout) <= LIMITS.stdout_bytes + 100
    assert len(outcome.error) <= 4_000
    liar.close()
    assert not liar.is_alive()


@pytest.mark.parametrize(
    "program",
    ["", "import os; os.write(1, b'R\\x00\\x00\\x00\\x00')", "import os; os.write(1, b'R\\xff\\xff\\x00\\x00')"],
)
def test_a_worker_that_doesnt_get_ready_is_an_error_of_the_setup(program: str) -> None:
    with pytest.raises(SetupError, match="doesn't start"):
        WorkerConnection(liars.run(program)).wait_until_ready()


def test_empty_pieces_of_output_are_bounded_as_others() -> None:
    limits = ScriptLimits(timeout_s=20, stdout_bytes=1_000)
    liar = WorkerConnection(liars.start("endless_empty_output"))
    liar.wait_until_ready()

    talk = liar.run("1", host, limits, ScriptInputs())
    liar.close()

    assert talk.outcome == "crash"
    assert len(talk.output) <= 1_001
