"""`scripts.confined` runs every suite of attacks."""

from pathlib import Path

from scripts import confined

TESTS = Path(__file__).resolve().parents[1]
WORDS = ("attacks", "hostile", "injection", "payloads", "places", "policy", "swapped", "taint")


def test_every_file_of_attacks_is_run_confined() -> None:
    files = {
        path.relative_to(confined.ROOT).as_posix()
        for path in TESTS.rglob("test_*.py")
        if any(word in path.stem.split("_") for word in WORDS)
    }

    assert files - set(confined.SUITES) == set()


def test_every_suite_that_is_run_confined_is_there() -> None:
    assert [name for name in confined.SUITES if not (confined.ROOT / name).is_file()] == []
