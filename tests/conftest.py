"""Keep every test away from the person's own settings, state and keyring."""

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Sequence
from functools import cache
from pathlib import Path

import hypothesis
import keyring
import pytest
from keyring.backends import null

from tests import compiled, properties
from tests.postgres import LocalServer

# The same cases each time; `--hypothesis-profile=thorough` has three times as many, `explore` looks for others.
hypothesis.settings.register_profile(
    "knapper", deadline=None, print_blob=True, derandomize=True, max_examples=properties.USUAL
)
hypothesis.settings.register_profile(
    "thorough", deadline=None, print_blob=True, derandomize=True, max_examples=properties.THOROUGH
)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=properties.THOROUGH)
hypothesis.settings.load_profile("knapper")

SLOW_TIMEOUT_S = 120
PROPERTY_TIMEOUT_S = 90
BUSY = 4
"""How much longer a test may take beside others, on a machine that may be slow and shared: only hangs end there."""
BUSY_TIMEOUT_S = 240
THOROUGH_FOLDERS = ("conformance", "page", "parity", "stress")
"""Browsers, races, load, the protocol's suite, and every tool on every surface."""
NOT_THOROUGH = "not thorough"
"""How `scripts/test --fast` chooses."""
THOROUGH_WORDS = (
    *("attacks", "hostile", "injection", "marks", "walls"),  # hundreds of hostile inputs
    *("document", "messages", "stdio", "transcripts"),  # every route, message and transcript
    *("kill", "machine", "races", "recover", "redrawing"),  # processes that die, and random orders of steps
    *("review", "running", "serving", "writing"),  # servers and terminals of their own
    *("run_command", "suite", "realistic"),  # whole runs, with a process a script
)
"""Words of the names of files whose tests take long for what they add to a quick look."""
WAITING_FILES = (
    *("agents/test_run_budget.py", "cli/test_busy.py", "cli/test_cut_short.py", "cli/test_doctor_repair.py"),
    *("codemode/test_script_command.py", "codemode/test_served_runs.py", "index/conformance/test_conformance.py"),
    *("cli/test_asking_server.py", "cli/test_streams.py", "index/test_freshness.py", "net/test_guard_limits.py"),
    *("cli/test_shared_index.py", "index/test_published_engine.py", "index/test_published_readers.py"),
    *("server/ask/test_streams.py", "server/chat/test_streams.py", "server/runs/test_streams.py"),
    *("server/chat/test_asking_for_events.py", "server/mcp/test_confirming.py", "server/test_bodies.py"),
    *("server/test_feed.py", "server/test_first_calls.py", "server/test_freshness.py", "server/test_readers.py"),
    *("server/test_sockets.py", "server/test_threads.py"),
)
"""Files that start processes and databases or wait for time to pass, left out by `--fast` too, but measured."""
ON_DISK_FOLDERS = ("service", "stress")
ON_DISK_FILES = ("engines", "engine", "kill", "processes")
"""Words of the names of files whose kills come at any time: what they cut short has to take as long as usual."""
ATTACKS_ON_THE_PAGE = ("test_hostile", "test_payloads")
"""Files whose tests are tried again only where the browser was slow: it would hide a hole that opens now and then."""
OTHERS_SETTINGS = (
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"),
    *("API_PORT", "FIREWORKS_API_KEY", "FIREWORKS_MODEL", "INDEX_INTERVAL", "LLM_MODEL", "VAULT_PATH", "WHISPER_MODEL"),
    *("COLUMNS", "FORCE_COLOR", "NO_COLOR"),
)


def pytest_configure() -> None:
    gc.disable()  # a seventh of the time to collect the tests goes into looking for cycles among what is kept anyway


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't import what `scripts/test --fast` leaves out by its place, with the browsers and generators it needs."""
    is_test = collection_path.suffix == ".py" and config.rootpath / "tests" in collection_path.parents
    if config.option.markexpr != NOT_THOROUGH or not is_test:
        return None
    return _is_left_out(collection_path, config.rootpath) or _is_waiting(collection_path, config.rootpath) or None


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # modules and tests stay to the end
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    # Before the others' hooks, so that pytest's own selection by -m sees the marker.
    for item in items:
        if _is_thorough(item):
            item.add_marker(pytest.mark.thorough)
            item.add_marker(pytest.mark.no_cover)  # measuring doubles the time, and the others are enough for the gate
        elif _is_waiting(item.path, config.rootpath):
            item.add_marker(pytest.mark.thorough)
        if _is_of_page(item):  # a browser on a busy machine; the summary lists each
            only = {"only_rerun": ["TimeoutError", "with timeout"]} if item.path.stem in ATTACKS_ON_THE_PAGE else {}
            item.add_marker(pytest.mark.flaky(reruns=2, **only))
    yield
    items[:] = _with_page_together(items)
    # After them, since a folder's own conftest sets longer limits where there are none yet.
    is_beside_others = hasattr(config, "workerinput")
    for item in items:
        limit_s = _limit_s(item)
        if is_beside_others:
            limit_s = max(limit_s, min(limit_s * BUSY, BUSY_TIMEOUT_S))
        item.add_marker(pytest.mark.timeout(limit_s), append=False)


def _with_page_together(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Put the page's tests where the first of them is, in their own order: they share a browser."""
    of_page = [item for item in items if _is_of_page(item)]
    if not of_page:
        return [*items]
    first = items.index(of_page[0])
    others = [item for item in items if not _is_of_page(item)]
    return [*others[:first], *of_page, *others[first:]]


def _is_thorough(item: pytest.Item) -> bool:
    """Return whether `scripts/test --fast` leaves a test out for what it does."""
    if _is_property(item) or item.get_closest_marker("slow"):
        return True
    return _is_left_out(item.path, item.config.rootpath)


def _is_left_out(file: Path, root: Path) -> bool:
    return _is_place(file, root, THOROUGH_FOLDERS, THOROUGH_WORDS)


def _is_waiting(file: Path, root: Path) -> bool:
    return file.relative_to(root / "tests").as_posix() in WAITING_FILES


def _is_on_disk(item: pytest.Item) -> bool:
    """Return whether a test's files lie on a disk, whatever is said of others."""
    return _is_place(item.path, item.config.rootpath, ON_DISK_FOLDERS, ON_DISK_FILES)


@cache  # asked several times for each test, and slow
def _is_place(file: Path, root: Path, folders: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Return whether a file of tests lies in one of some folders, or has one of some words in its name."""
    folder = file.relative_to(root / "tests").parts[0]
    return folder in folders or any(f"_{word}_" in f"{file.stem}_" for word in words)


def _is_of_page(item: pytest.Item) -> bool:
    return _is_place(item.path, item.config.rootpath, ("page",), ())


def _is_property(item: pytest.Item) -> bool:
    # Hypothesis adds its marker in this same hook, maybe later: ask the function itself.
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def _limit_s(item: pytest.Item) -> float:
    if said := item.get_closest_marker("timeout"):
        return float(said.args[0])
    if item.get_closest_marker("slow") or "code_folder" in getattr(item, "fixturenames", ()):
        return SLOW_TIMEOUT_S  # whoever asks first for machine code may have to compile it
    if _is_property(item):  # a hundred cases in one test
        return PROPERTY_TIMEOUT_S
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))


@pytest.fixture(scope="session")
def postgres() -> Generator[LocalServer]:
    """Start a PostgreSQL once for all tests that ask for it; each makes vaults of its own names in it."""
    server = LocalServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def code_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the sandbox's machine code; `compiled.put` gives it to a state in which scripts run."""
    kept = request.config.cache
    assert kept is not None
    return compiled.provide(kept, tmp_path_factory.mktemp("machine-code"))


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Give a folder on a disk, even where scripts/test has all others in memory."""
    usual = tmp_path_factory.getbasetemp()
    if usual.stat().st_dev == Path(tempfile.gettempdir()).stat().st_dev:
        yield usual
        return
    with tempfile.TemporaryDirectory(prefix="knapper-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give the test's own folder, on a disk where that matters."""
    if not _is_on_disk(request.node):
        return tmp_path
    return Path(tempfile.mkdtemp(prefix="test-", dir=request.getfixturevalue("disk")))


@pytest.fixture(autouse=True)
def own_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Give the test an empty home, outside its tmp_path, and none of the caller's settings.

    By patches of its own: those of the test, which may stand in the way of removing folders, are undone before it.
    """
    if _is_on_disk(request.node):
        home = Path(tempfile.mkdtemp(prefix="home-", dir=request.getfixturevalue("disk")))
    else:
        home = tmp_path_factory.mktemp("home")
    failed_before = request.session.testsfailed
    with pytest.MonkeyPatch.context() as patches:
        for name in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
            patches.setenv(name, str(home))
        for name in OTHERS_SETTINGS:
            patches.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("KNAP_")]:  # noqa: TID251 - takes them away
            patches.delenv(name)
        patches.setenv("KNAP_STATE_DIR", str(home / "state"))
        patches.setenv("KNAP_CONFIG", str(home / "config.toml"))
        yield home
    is_kept = request.config.getini("tmp_path_retention_policy") == "all"  # as pytest does with tmp_path
    if not is_kept and request.session.testsfailed == failed_before:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True, scope="session")
def no_keyring() -> Generator[None]:
    """Look for the system's keyring nowhere: it may be slow, locked, or the person's own."""
    before = keyring.get_keyring()
    keyring.set_keyring(null.Keyring())
    yield
    keyring.set_keyring(before)
