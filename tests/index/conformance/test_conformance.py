"""Whatever engine answers, it answers as a plain reference does: exactly, completely, and one state at a time."""

import json
import random
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from knapper.index.documents import Filter
from knapper.index.tokenizer import Stemmer, parse_query
from knapper.vault.access import Policy
from tests.index import word_engines, worlds
from tests.index.conformance import engines
from tests.index.conformance.conftest import Count
from tests.index.conformance.engines import Kind, State, World
from tests.postgres import LocalServer

pytestmark = [pytest.mark.timeout(600), pytest.mark.parametrize("kind", engines.KINDS)]

MEANINGS = ("rain wind", "storm", "sun-dial cloud x", "日本 über")
WHERES = (
    Filter(folders=("Two",)),
    Filter(exclude_folders=("One",)),
    Filter(folders=("Three",)),
    Filter(policy=Policy(client="x", hidden=("One/",))),
    Filter(policy=Policy(client="x", read=("One/*rain*.md",))),
    Filter(folders=("One",), policy=Policy(client="x", hidden=("*wind*",))),
)


@pytest.fixture
def place(kind: Kind, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make a vault, and tell where it and its index are."""
    engines.choose(kind, monkeypatch.setattr)
    engines.fill(tmp_path / "vault", random.Random(5), 20)
    (tmp_path / "index").mkdir()
    place = [str(tmp_path / "vault"), str(tmp_path / "index")]
    if kind == "postgres":
        server: LocalServer = request.getfixturevalue("postgres")
        place += [server.address(), f"conformance {tmp_path.name}"]
    return place


@pytest.fixture
def world(kind: Kind, place: list[str]) -> Generator[World]:
    """Open it, taken in."""
    with engines.opened(kind, place) as world:
        world.take_in()
        yield world


@pytest.fixture
def stemmer() -> Generator[Stemmer]:
    stemmer = Stemmer()
    yield stemmer
    stemmer.close()


def change(world: World, changes: int, seed: int) -> None:
    """Change the vault, and take it in, so often."""
    for number in range(changes):
        engines.change(world.root, random.Random(100 * seed + number), number + 1)
        world.take_in()


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_those_of_bm25(world: World, stemmer: Stemmer, seed: int, count: Count) -> None:
    change(world, seed, seed)
    with world.state() as state:
        wrong = engines.differing_words(state, state.reference(stemmer), word_engines.QUESTIONS)

    assert wrong == []
    count("scores are BM25's, to nine digits", 2 * len(word_engines.QUESTIONS))


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_are_those_of_comparing_all(world: World, seed: int, count: Count) -> None:
    change(world, seed, seed)
    with world.state() as state:
        wrong = engines.differing_meaning(state, MEANINGS)

    assert wrong == []
    count("nearest as by comparing all", 2 * len(MEANINGS))


def test_filters_and_policies_leave_as_many_chunks_as_exist(world: World, stemmer: Stemmer, count: Count) -> None:
    change(world, 2, 1)
    asked = ("rain wind storm cloud x", "rain -storm", '"rain wind" x')
    with world.state() as state:
        reference = state.reference(stemmer)
        for where in WHERES:
            shown = {note for note in state.notes.values() if engines.is_shown(where, note)}
            assert shown or where.folders == ("Three",)
            assert engines.differing_words(state, reference, asked, where) == []
            assert engines.differing_meaning(state, MEANINGS[:2], where) == []
            count("filters and policies complete", 2 * (len(asked) + 2))


def test_a_reader_sees_the_old_state_until_it_ends_it_and_then_the_new_one(
    kind: Kind, place: list[str], world: World, stemmer: Stemmer, count: Count
) -> None:
    with engines.opened(kind, place) as reader:
        for number in range(3):
            question = f"zebra before{number} after{number}"
            worlds.fill(world.root, {"One/saved.md": f"zebra before{number}\n"})
            world.take_in()
            with reader.state() as state:
                old = rank(state, question)
                worlds.fill(world.root, {"One/saved.md": f"zebra after{number}\n", f"One/{number}.md": "zebra\n"})
                world.take_in()
                world.derive()
                seen = rank(state, question)
            with reader.state() as state:
                new = rank(state, question)
                assert engines.differing_words(state, state.reference(stemmer), ("zebra", f"after{number}")) == []

            assert len(old) == 1 + number
            assert seen == old
            assert len(new) == 2 + number
            count("a reader sees old or new", 3)


def rank(state: State, question: str) -> Mapping[int, float]:
    """Rank by words."""
    return state.snapshot.keyword(parse_query(question), Filter(), limit=50)


@pytest.mark.slow
def test_a_writer_killed_anywhere_leaves_whole_notes_and_exact_answers(
    kind: Kind, place: list[str], stemmer: Stemmer, count: Count
) -> None:
    for kill in range(6):
        writer = engines.start("write", kind, kill, place)
        time.sleep(0.05 + 0.2 * kill)
        end(writer)
        with engines.opened(kind, place) as world:
            for _ in ("as it was left", "taken in", "derived anew"):
                with world.state() as state:
                    assert engines.differing_words(state, state.reference(stemmer), word_engines.QUESTIONS) == []
                    assert engines.differing_meaning(state, MEANINGS[:2]) == []
                    assert engines.torn(state) == []
                world.retry()
                world.derive()
            assert world.check()
        count("exact after kill -9", 3)


@pytest.mark.slow
def test_readers_of_other_processes_beside_a_writer_see_whole_notes_and_exact_answers(
    kind: Kind, place: list[str], count: Count
) -> None:
    with ExitStack() as stack:
        writer = engines.start("write", kind, 9, place)
        stack.callback(end, writer)
        readers = [engines.start("read", kind, states, place) for states in (6, 7)]
        for reader in readers:
            stack.callback(end, reader)
        answers = [json.loads(reader.communicate(timeout=engines.STATES_S + 100)[0]) for reader in readers]

    for answer in answers:
        assert answer["wrong"] == []
        assert answer["states"] >= 6
        count("exact in several processes", answer["questions"])
        count("notes whole, beside a writer", answer["notes"])


def end(process: "subprocess.Popen[str]") -> None:
    """Kill a process where it is."""
    if process.poll() is None:
        process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
