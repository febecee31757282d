"""Fixtures for the tests of requests."""

from collections.abc import Generator

import pytest

from tests.net.internet import Internet, internet


@pytest.fixture
def net() -> Generator[Internet]:
    with internet() as made:
        yield made
