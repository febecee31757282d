"""`knap token`, and what the configuration says of the server and its clients."""

import json
import stat
import sys
from pathlib import Path

import pytest

from knapper import config
from knapper.cli import main
from knapper.config.paired import hash_token
from knapper.errors import SetupError
from knapper.server import credentials, security

HASH = hash_token("x" * 30)


def written(home: Path, text: str) -> config.Settings:
    (home / "config.toml").write_text(text, encoding="utf-8")
    return config.load()


def test_the_place_of_the_token_is_told_and_the_token_is_not(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["token"])
    printed = capsys.readouterr()
    place = Path(printed.out.strip())

    assert code == 0
    assert place == credentials.token_path(own_home / "state", "api")
    assert sys.platform == "win32" or stat.S_IMODE(place.stat().st_mode) == 0o600
    assert place.read_text(encoding="ascii").strip() not in printed.out + printed.err


def test_a_file_that_the_server_does_not_look_at_is_told_as_one(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _ = written(own_home, f'[server]\ntoken = "{"x" * 30}"\n')
    code = main.run(["token"])
    printed = capsys.readouterr()

    assert code == 0
    assert "doesn't look at this file" in printed.err
    assert "x" * 30 not in printed.out + printed.err


def test_rotating_replaces_both_tokens(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = own_home / "state"
    before = {name: credentials.read_or_make_token(state, name) for name in ("api", "page")}
    code = main.run(["token", "rotate", "--json"])
    after = {name: credentials.read_or_make_token(state, name) for name in ("api", "page")}

    assert code == 0
    assert json.loads(capsys.readouterr().out)["success"] is True
    assert not set(before.values()) & set(after.values())


def test_a_new_token_fits_the_line_for_the_configuration(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["token", "new", "--json"])
    made = json.loads(capsys.readouterr().out)
    settings = written(own_home, f'[clients.reader]\nkind = "http"\ntoken_hash = "{made["token_hash"]}"\n')

    assert code == 0
    assert security.load_client_tokens(settings).find_client(made["token"]) == "reader"


@pytest.mark.parametrize(
    "text",
    [
        f'[clients.page]\ntoken_hash = "{HASH}"\n',
        f'[clients.cli]\ntoken_hash = "{HASH}"\n',
        '[clients.a]\nkind = "http"\ntoken_hash = "a plain token"\n',
        '[clients.a]\nkind = "http"\ntoken_hash = "sha256:12"\n',
        '[server]\ntoken = "short"\n',
        f'[server]\ntoken = "{"two words " * 4}"\n',
        '[server]\norigins = ["*"]\n',
        '[server]\norigins = ["https://a.example/path"]\n',
        '[server]\norigins = ["null"]\n',
        '[server]\nhosts = ["*"]\n',
        '[server]\nhosts = ["https://a.example"]\n',
        "[server]\nport = 0\n",
        '[server]\nrequests_per_minute = "many"\n',
    ],
)
def test_what_would_open_the_server_by_mistake_is_refused(own_home: Path, text: str) -> None:
    with pytest.raises(SetupError) as caught:
        _ = written(own_home, text)

    assert caught.value.code == "config_invalid"
    assert HASH not in caught.value.message


def test_tokens_are_never_shown(own_home: Path) -> None:
    secret = "s3cret" * 6
    text = f'[server]\ntoken = "{secret}"\n[clients.a]\nkind = "http"\ntoken_hash = "{HASH}"\n'
    settings = written(own_home, text)

    assert secret not in repr(settings)
    assert HASH not in repr(settings)
    shown = {origin.name: origin.value for origin in settings.origins}
    assert (shown["server.token"], shown["clients.a.token_hash"]) == ("(set)", "(set)")


def test_the_server_is_set_by_file_and_variables(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNAP_HOST", "::1")
    monkeypatch.setenv("API_PORT", "9000")
    monkeypatch.setenv("KNAP_TOKEN", "t" * 40)
    text = '[server]\norigins = ["APP://obsidian.md/", "http://a.example:80"]\nhosts = ["Notes.Example"]\nthreads = 3\n'
    server = written(own_home, text).server

    assert (server.host, server.port, server.token, server.threads) == ("::1", 9000, "t" * 40, 3)
    assert server.origins == ("app://obsidian.md", "http://a.example:80")
    assert server.hosts == ("notes.example",)


def test_the_public_address_may_call_the_server(own_home: Path) -> None:
    server = written(
        own_home, '[server]\npublic_url = "https://Notes.Example:8443/knap/"\nhosts = ["a.example"]\n'
    ).server

    assert server.public_url == "https://notes.example:8443/knap"
    assert server.hosts == ("a.example", "notes.example")
    assert written(own_home, '[server]\npublic_url = "http://[::1]:9000"\n').server.public_url == "http://[::1]:9000"
    assert written(own_home, '[server]\npublic_url = "http://localhost"\n').server.public_url == "http://localhost"


@pytest.mark.parametrize(
    "address",
    [
        "http://notes.example",
        "http://127.0.0.1.evil.example",
        "ftp://notes.example",
        "notes.example",
        "https://me:secret@notes.example",
        "https://notes.example/?x=1",
        "https://notes.example/#x",
        "https://notes.example:port",
        "https://notes.example:0",
        "https://notes.example:65536",
        "https://",
        "https://:443",
        "https://no tes.example",
        "https://notes.example/a b",
        "https://notes.example\\@evil.example",
        "https://notes.example/\u202ecba",
        "https://[::1",
    ],
)
def test_a_public_address_is_one_that_can_be_opened_safely(own_home: Path, address: str) -> None:
    with pytest.raises(SetupError, match=r"server\.public_url") as failure:
        _ = written(own_home, f"[server]\npublic_url = {json.dumps(address)}\n")

    assert failure.value.code == "config_invalid"
    assert "secret" not in f"{failure.value.message} {failure.value.hint}"
