"""Make small worlds of runs, and take them down again."""

from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.agents import run_world
from tests.agents.run_world import Brain, Make, World


@pytest.fixture
def make(tmp_path: Path) -> Generator[Make]:
    """Give a function that makes a world, with notes of its own where they are given."""
    made: list[World] = []

    def one(brain: Brain | None = None, notes: Mapping[str, str] | None = None) -> World:
        made.append(run_world.world(tmp_path / str(len(made)), brain or Brain(), notes))
        return made[-1]

    yield one
    for world in made:
        run_world.shut(world)
