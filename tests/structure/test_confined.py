"""`scripts.confined` runs every suite of attacks."""

from pathlib import Path

import pytest

from knapper.system import private
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


def test_the_machine_code_that_the_tests_made_is_taken_along_and_stays_private(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / confined.MACHINE_CODE.name
    private.make_folder(kept / "private")
    private.write_bytes(kept / "private" / "x.code", b"made")

    confined.give_machine_code(tmp_path, kept)
    confined.give_machine_code(tmp_path / "other", tmp_path / "none")

    copied = tmp_path / "cache" / "d" / "machine-code" / "private"
    assert (copied / "x.code").read_bytes() == b"made"
    assert not private.has_modes() or not [path for path in copied.rglob("*") if private.is_open(path.lstat())]
    assert not (tmp_path / "other").exists()


def test_the_machine_code_is_looked_for_where_the_tests_keep_it(pytestconfig: pytest.Config) -> None:
    cache = pytestconfig.cache
    assert cache
    own = cache.mkdir("machine-code").relative_to(pytestconfig.rootpath / pytestconfig.getini("cache_dir"))

    assert confined.ROOT / ".pytest_cache" / own == confined.MACHINE_CODE


def test_every_suite_that_is_run_confined_is_there() -> None:
    assert [name for name in confined.SUITES if not (confined.ROOT / name).is_file()] == []
