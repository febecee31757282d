"""Keys in the system's keyring."""

import io
from collections.abc import Generator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, PasswordDeleteError

from knapper.agents.model import names
from knapper.cli import main
from knapper.errors import SetupError


class Ring(KeyringBackend):
    priority = 1  # pyright: ignore[reportAssignmentType] - as the library's own backends do

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError


class Broken(Ring):
    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringError(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        raise KeyringError(service, username, len(password))


@pytest.fixture
def ring() -> Generator[Ring]:
    before = keyring.get_keyring()
    own = Ring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def test_a_key_is_stored_found_and_removed(
    ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" sk-secret \n"))
    assert main.run(["models", "key", "openai"]) == 0

    assert names.read_keyring("openai") == "sk-secret"
    assert ring.held == {("knapper", "openai"): "sk-secret"}
    assert main.run(["models", "key", "openai", "--remove"]) == 0
    assert main.run(["models", "key", "openai", "--remove"]) == 0
    assert names.read_keyring("openai") == ""
    out, err = capsys.readouterr()
    assert "sk-secret" not in out + err


def test_a_key_is_asked_for_only_where_it_can_be_stored(monkeypatch: pytest.MonkeyPatch, ring: Ring) -> None:
    piped = io.StringIO("k\n")
    monkeypatch.setattr("sys.stdin", piped)
    keyring.set_keyring(Broken())
    refused = main.run(["models", "key", "openai"])
    left = piped.tell()
    keyring.set_keyring(ring)

    assert (refused, left) == (3, 0)
    assert main.run(["models", "key", "openai"]) == 0
    assert names.read_keyring("openai") == "k"


def test_a_piped_keys_byte_order_mark_is_none_of_it(monkeypatch: pytest.MonkeyPatch, ring: Ring) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffk\n"))

    assert main.run(["models", "key", "openai"]) == 0
    assert ring.held == {("knapper", "openai"): "k"}


def test_an_address_may_have_a_key_and_nonsense_may_not(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("k\n"))

    assert main.run(["models", "key", "http://host/v1/"]) == 0
    assert main.run(["models", "key", "nonsense"]) == 2
    assert main.run(["models", "key", "openai"]) == 2
    assert ring.held == {("knapper", "http://host/v1"): "k"}


def test_a_keyring_that_does_not_work_has_no_keys_and_cannot_store_any(ring: Ring) -> None:
    keyring.set_keyring(Broken())

    assert names.read_keyring("openai") == ""
    with pytest.raises(SetupError) as told:
        names.store_key("openai", "k")
    assert told.value.code == "no_keyring"
    assert ring.held == {}


@pytest.mark.parametrize(
    ("name", "variable"), [("openai", "OPENAI_API_KEY"), ("http://127.0.0.1:9/v1", "KNAP_API_KEY")]
)
def test_without_a_keyring_the_variable_for_the_key_is_named(
    ring: Ring, name: str, variable: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keyring.set_keyring(Broken())

    assert main.run(["models", "key", name]) == 3
    assert f"hint: set {variable}" in capsys.readouterr().err
    assert ring.held == {}


def test_a_model_without_provider_is_said_with_the_variable_that_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FIREWORKS_MODEL", "tiny")

    assert main.run(["models"]) == 3
    assert "'tiny' names no provider (FIREWORKS_MODEL)" in capsys.readouterr().err
