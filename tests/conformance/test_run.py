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


def excusable(lost: str, counted: str) -> CompletedProcess[str]:
    return ended(1, f"[fine          ] SUCCESS a\n{lost}\n{counted}")


def test_a_run_that_fails_just_where_it_may_is_right() -> None:
    ran = excusable("[needs-fixture ] FAILURE b", "Passed: 1/2, 1 failed, 0 warnings")

    assert run.excused(ran, ["needs-fixture"]).returncode == 0


@pytest.mark.parametrize(
    ("lost", "counted"),
    [
        ("[other ] FAILURE b", "Passed: 1/2, 1 failed, 0 warnings"),
        ("[needs-fixture ] FAILURE b\n[other ] FAILURE c", "Passed: 1/3, 2 failed, 0 warnings"),
        ("[needs-fixture ] FAILURE b", "Passed: 1/3, 2 failed, 0 warnings"),
        ("[needs-fixture ] FAILURE b", "Passed: 0/1, 1 failed, 0 warnings"),
        ("[needs-fixture ] FAILURE b", ""),
        ("", "Passed: 2/2, 0 failed, 0 warnings"),
    ],
)
def test_a_run_that_fails_elsewhere_or_says_something_else_has_failed(lost: str, counted: str) -> None:
    assert run.excused(excusable(lost, counted), ["needs-fixture"]).returncode == 1


def test_each_exception_has_its_reason() -> None:
    assert sum(map(len, run.baseline().values())) == 2
