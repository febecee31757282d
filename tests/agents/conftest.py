"""Keep tests away from the person's own keyring."""

from collections.abc import Generator

import keyring
import pytest
from keyring.backends import null


@pytest.fixture(autouse=True, scope="session")
def no_keyring() -> Generator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(null.Keyring())
    yield
    keyring.set_keyring(before)
