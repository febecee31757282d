"""`scripts.confined` runs every suite of attacks."""

from pathlib import Path

from scripts import confined

TESTS = Path(__file__).resolve().parents[1]
WORDS = frozenset(
    (
        *("attacks", "guard", "guest", "hostile", "injection", "payloads"),
        *("places", "policy", "pool", "strict", "swapped", "taint"),
    )
)


def test_every_file_of_attacks_is_run_confined() -> None:
    files = {
        path.relative_to(confined.ROOT).as_posix()
        for path in TESTS.rglob("test_*.py")
        if not WORDS.isdisjoint(path.stem.split("_"))
    }

    assert files - set(confined.SUITES) == set()


def test_every_suite_that_is_run_confined_is_there() -> None:
    assert [name for name in confined.SUITES if not (confined.ROOT / name).is_file()] == []
