"""A process is killed when its time is up, and never before."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from knapper.codemode.sandbox.pool import Watchdog

WAIT_S = 30
"""That no test takes, unless it fails."""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as made:
        yield made
        made.kill()


def test_it_bites_when_the_time_is_up(process: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(process)

    with watchdog.limit(0.05):
        _ = process.wait(WAIT_S)

    assert watchdog.has_killed
    watchdog.close()


def test_it_doesnt_bite_who_ends_in_time(process: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(process)
    for _ in range(100):
        with watchdog.limit(1.5):  # a busy machine takes longer than nothing for it
            pass
    with watchdog.limit(WAIT_S), pytest.raises(subprocess.TimeoutExpired):
        _ = process.wait(1.7)  # longer than the limits that are over

    assert not watchdog.has_killed
    watchdog.close()


def test_it_bites_at_once_where_it_is_told_to(process: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(process)

    with watchdog.limit(WAIT_S) as bite:
        bite()
        _ = process.wait(WAIT_S)

    assert watchdog.has_killed
    watchdog.close()


def test_it_bites_nobody_for_a_limit_that_is_over(process: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(process)
    with watchdog.limit(WAIT_S) as old:
        pass

    old()
    with watchdog.limit(WAIT_S):
        old()
        with pytest.raises(subprocess.TimeoutExpired):
            _ = process.wait(0.3)

    assert not watchdog.has_killed
    watchdog.close()


@pytest.mark.parametrize("before", [0.0, WAIT_S])
def test_a_shorter_time_after_a_longer_one_counts(process: subprocess.Popen[bytes], before: float) -> None:
    watchdog = Watchdog(process)
    if before:
        with watchdog.limit(before):
            pass

    with watchdog.limit(0.05):
        _ = process.wait(WAIT_S)

    assert watchdog.has_killed
    watchdog.close()


def test_its_thread_ends_with_it(process: subprocess.Popen[bytes]) -> None:
    watchdog = Watchdog(process)
    mine = [one for one in threading.enumerate() if one.name == f"watchdog {process.pid}"]

    with watchdog.limit(WAIT_S):
        watchdog.close()

    mine[0].join(WAIT_S)
    assert not mine[0].is_alive()
