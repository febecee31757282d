"""The commands with an index in PostgreSQL: on the machine with the files, and on one without."""

import json
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.app import hub
from knapper.cli import main
from knapper.cli.output import ExitCode
from knapper.config import load
from knapper.errors import KnapError
from tests.postgres import LocalServer

pytestmark = pytest.mark.timeout(60)
PASSWORD = "never-sh0wn-anywhere"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def machines(
    tmp_path: Path, postgres: LocalServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Configure a machine with the files and one without; gives a function that runs a command on one of them."""
    name, role = f"team{secrets.token_hex(3)}", f"reader_{secrets.token_hex(3)}"
    with postgres.connect() as session:
        session.execute(f"CREATE ROLE {role} LOGIN")
    vault = tmp_path / "vault"
    (vault / "Sub").mkdir(parents=True)
    (vault / "Cats.md").write_text("---\naliases: [Kitty]\n---\n# Cats\n\nCats like tomatoes, [[Dogs]].\n", "utf-8")
    (vault / "Sub/Dogs.md").write_text("# Dogs\n\nDogs bark. #pet\n", "utf-8")
    addresses = {
        "files": postgres.address(f"postgres:{PASSWORD}"),
        "none": postgres.address(f"{role}:{PASSWORD}"),
        "down": f"postgresql://{role}:{PASSWORD}@/postgres?host={tmp_path}",
    }
    for machine, address in addresses.items():
        about = f'path = "{vault}"' if machine == "files" else 'path = "/nowhere/at/all"\nfiles = "no"'
        text = f'[vaults.{name}]\n{about}\n[index]\nengine = "{address}"\nreaders = ["{role}"]\n'
        (tmp_path / f"{machine}.toml").write_text(text, "utf-8")

    def run(machine: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / f"{machine}.toml"))
        monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / f"state-{machine}"))
        code = main.run(list(words))
        shown = capsys.readouterr()
        assert PASSWORD not in shown.out + shown.err
        return code, shown.out, shown.err

    return run


def test_what_one_machine_indexes_the_other_searches_reads_and_lists(machines: Run) -> None:
    early = machines("none", "search", "tomatoes")
    indexed = machines("files", "index")
    found = machines("none", "search", "tomatoes")
    read = machines("none", "read", "Kitty")
    listed = machines("none", "find")
    linked = machines("none", "links", "out", "Cats")
    tags = machines("none", "tags")
    status = machines("none", "status")
    own_status = machines("files", "status")
    again = machines("none", "index")
    doctors = [machines(machine, "doctor", "--json") for machine in ("files", "none")]

    assert early[0] != 0
    assert "knap index" in early[2]
    assert indexed[0] == found[0] == read[0] == listed[0] == linked[0] == tags[0] == status[0] == again[0] == 0
    assert "Cats.md:" in found[1]
    assert "Cats like tomatoes" in read[1]
    assert listed[1].split() == ["Cats.md", "Sub/Dogs.md"]
    assert "Sub/Dogs.md" in linked[1]
    assert "#pet" in tags[1]
    assert "no files are here" in status[1]
    assert "current" in own_status[1]
    for code, out, _ in doctors:
        checks = {check["name"]: check for check in json.loads(out)["checks"]}
        assert code == 0
        assert checks["engine"]["state"] == checks["index"]["state"] == checks["vault"]["state"] == "ok"


def test_what_needs_files_is_refused_with_the_reason(machines: Run, tmp_path: Path) -> None:
    machines("files", "index")
    note = tmp_path / "new.txt"
    note.write_text("text", "utf-8")
    for words in (
        ("write", "New.md", str(note)),
        ("rm", "Cats.md"),
        ("move", "Cats.md", "Other.md"),
        ("props", "Cats.md", "set", "a", "b"),
        ("edits",),
        ("undo",),
    ):
        code, _, error = machines("none", *words)

        assert code == ExitCode.REFUSED, words
        assert "none of the files of the vault" in error, words


def test_a_machine_without_files_is_not_told_to_index(machines: Run, tmp_path: Path) -> None:
    machines("files", "index", "--no-embed")
    found = machines("none", "search", "tomatoes")
    indexed = machines("none", "index")
    doctor = machines("none", "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(doctor[1])["checks"]}
    there = tmp_path / "none.toml"
    there.write_text(there.read_text("utf-8").replace("knap-pg-", "knap-pg-gone-"), "utf-8")
    listed = machines("none", "find")
    down = machines("none", "search", "tomatoes")

    assert "until they are embedded, which the machine with the files does" in found[1] + found[2]
    assert "found by words only until embedded: `knap index` on the machine with the files" in indexed[1]
    assert checks["index"]["hint"].endswith("run `knap index` there")
    assert listed[0] == 0
    assert "doesn't answer" in down[2]
    for _, out, error in (found, listed, down):
        assert "run `knap index`" not in out + error


def test_a_server_that_is_down_is_told_and_the_files_are_indexed_all_the_same(machines: Run, tmp_path: Path) -> None:
    machines("files", "index")
    (tmp_path / "down.toml").write_text(
        (tmp_path / "files.toml").read_text("utf-8").replace("knap-pg-", "knap-pg-gone-"), "utf-8"
    )
    indexed = machines("down", "index")
    found = machines("down", "search", "tomatoes")
    status = machines("down", "status")
    doctor = machines("down", "doctor", "--json")

    assert indexed[0] != 0
    assert "2 notes" in indexed[1]
    assert "doesn't answer" in indexed[2]
    assert found[0] == status[0] == 0
    assert "Cats.md" in found[1]
    assert "doesn't answer" in status[1]
    assert [check["state"] for check in json.loads(doctor[1])["checks"] if check["name"] == "engine"] == ["fail"]


def test_a_password_is_shown_nowhere(
    machines: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    machines("files", "index")
    for words in (("config",), ("config", "--json"), ("status", "--json"), ("doctor", "--json"), ("search", "x")):
        for machine in ("files", "none", "down"):
            machines(machine, *words)
    monkeypatch.setenv("KNAP_CONFIG", str(tmp_path / "files.toml"))
    settings = load()
    kept = [
        file for file in tmp_path.rglob("state-*/**/*") if file.is_file() and PASSWORD.encode() in file.read_bytes()
    ]

    assert settings.index.password == PASSWORD
    assert PASSWORD not in repr(settings)
    assert PASSWORD not in settings.index.engine
    assert PASSWORD not in caplog.text
    assert kept == []


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (f"mysql://ada:{PASSWORD}@db/x", "neither local nor an address"),
        (f"postgresql://db/x?password={PASSWORD}", "behind its '?'"),
    ],
)
def test_an_engine_that_cannot_be_used_is_told_without_its_password(
    machines: Run, tmp_path: Path, engine: str, told: str
) -> None:
    (tmp_path / "down.toml").write_text(f'[index]\nengine = "{engine}"\n', "utf-8")
    code, _, error = machines("down", "config")

    assert code != 0
    assert told in error


def test_a_vault_without_files_and_without_a_database_says_what_to_set(machines: Run, tmp_path: Path) -> None:
    (tmp_path / "down.toml").write_text('[vaults.x]\npath = "/nowhere"\nfiles = "no"\n', "utf-8")
    code, _, error = machines("down", "search", "x")

    assert code != 0
    assert "index.engine" in error


def test_a_password_comes_from_the_keyring_where_the_configuration_says_so(
    machines: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        return PASSWORD if len(asked) > 1 else ""

    monkeypatch.setattr("knapper.agents.model.names.read_keyring", read)
    config = tmp_path / "files.toml"
    config.write_text(
        config.read_text("utf-8").replace(f":{PASSWORD}", "").replace("[index]", '[index]\npassword = "keyring"')
    )
    missing = machines("files", "index")
    found = machines("files", "index")

    assert missing[0] != 0
    assert "keyring set" in missing[2]
    assert found[0] == 0
    assert asked[0].startswith("postgresql://postgres@/")


def test_a_client_of_a_machine_without_files_is_shown_what_its_policy_allows(
    machines: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines("files", "index")
    config = tmp_path / "none.toml"
    config.write_text(config.read_text("utf-8") + '[clients.mcp]\nhidden = ["Sub/"]\n', "utf-8")
    monkeypatch.setenv("KNAP_CONFIG", str(config))
    monkeypatch.setenv("KNAP_STATE_DIR", str(tmp_path / "state-none"))
    with hub.Hub(load()) as opened:

        def call(name: str, **arguments: str) -> object:
            return opened.table.call(name, arguments, lambda vault: opened.context(client="mcp", vault=vault))

        found = call("search_vault", query="dogs bark")
        listed = call("list_notes")
        with pytest.raises(KnapError):
            call("read_file", path="Sub/Dogs.md")
        note = call("read_file", path="Cats.md")

    assert "Sub/" not in json.dumps([found, listed])
    assert "Cats like tomatoes" in json.dumps(note)
