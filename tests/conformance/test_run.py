"""How the protocol's own suite is judged; ``scripts/conformance`` runs it."""

from subprocess import CompletedProcess

import pytest

from tests.conformance import run


def ended(code: int, said: str) -> CompletedProcess[str]:
    return CompletedProcess([], code, f"=== SUMMARY ===\n{said}\n", "")


def test_a_run_that_passes_all_that_was_reached_is_right() -> None:
    assert run.held(ended(0, "Total: 84 passed, 0 failed"), 84).returncode == 0


@pytest.mark.parametrize("said", ["Total: 83 passed, 0 failed", "Total: 0 passed, 84 failed", "", "Total: ? passed"])
def test_a_run_that_passes_fewer_checks_has_failed_whatever_the_suite_says(said: str) -> None:
    assert run.held(ended(0, said), 84).returncode == 1


def test_a_failed_run_stays_one() -> None:
    assert run.held(ended(2, "Total: 84 passed, 1 failed"), 84).returncode == 2
