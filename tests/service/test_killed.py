"""A server that is killed in the middle of writing: its manager starts it again within 5 s, and no change is torn."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from knapper import config
from knapper.cli import main
from knapper.server import addresses, credentials
from knapper.server.addresses import ServerRecord
from knapper.service.definition import CommandResult, MachineFacts, ServiceDefinition
from knapper.service.platforms import SystemdManager
from tests.service import supervisor

NOTES = 100
KILLS = 5
WAIT_S = 60.0
ROUND = re.compile(r"^round: (\d+)$", re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9"),
]


@dataclass(frozen=True)
class SupervisingRunner:
    """Carries the commands of `systemctl` out with the stand-in, which really starts the server."""

    environment: Mapping[str, str]

    def run(self, command: Sequence[str]) -> CommandResult:
        done = subprocess.run(
            [sys.executable, supervisor.__file__, *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            env=dict(self.environment),
        )
        return CommandResult(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


@dataclass
class Site:
    vault: Path
    state: Path
    manager: SystemdManager
    folder: Path
    """Of the stand-in."""
    done: list[int] = field(default_factory=list[int])
    """Rounds that the server has confirmed."""

    def record(self) -> ServerRecord:
        stop = time.monotonic() + WAIT_S
        while (found := addresses.find_server(self.state)) is None:
            assert time.monotonic() < stop, (self.folder / "log").read_text(encoding="utf-8")
            time.sleep(0.02)
        return found

    def pid(self) -> int:
        return int(str(supervisor.read_state(self.folder)["pid"]))

    def restart_s(self) -> float:
        """Return how long the unit lets its manager wait."""
        return supervisor.read_unit(self.manager.file).restart_s

    def write(self, number: int, server: ServerRecord) -> None:
        """Write a round into every note, in one change."""
        address = urlsplit(server.url)
        token = credentials.token_path(self.state, "api").read_text(encoding="utf-8").strip()
        body = {
            "paths": [f"Note {each}.md" for each in range(NOTES)],
            "field": "round",
            "value": number,
        }
        with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)) as connection:
            connection.request(
                "POST",
                "/tools/batch_update_frontmatter",
                json.dumps(body),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            answer = json.loads(connection.getresponse().read())
        assert answer.get("status") == "applied", answer
        self.done.append(number)

    def rounds(self) -> set[int]:
        """Return the rounds that the notes are of: one, unless a change was torn."""
        return {
            int(found[1]) if (found := ROUND.search(path.read_text(encoding="utf-8"))) else -1
            for path in self.vault.glob("*.md")
        }


@pytest.fixture
def site(tmp_path: Path, own_home: Path) -> Generator[Site]:
    vault = tmp_path / "my Заметки"
    vault.mkdir()
    for number in range(NOTES):
        text = f"---\nround: 0\n---\n# Note {number}\n\n{'some text. ' * 50}\n"
        (vault / f"Note {number}.md").write_text(text, encoding="utf-8")
    (own_home / "config.toml").write_text(
        f'[vaults.notes]\npath = "{vault.as_posix()}"\n\n[clients.http]\nsmall = "apply"\nlarge = "apply"\n'
        'max_files = 100\n\n[embeddings]\nkind = "none"\n',
        encoding="utf-8",
    )
    assert main.run(["index", "-q"]) == 0
    facts = MachineFacts(system="linux", home=own_home, config=own_home / ".config", logs=own_home, user="ada", uid=1)
    environment = {
        **config.environment_variables(),
        "XDG_CONFIG_HOME": str(own_home / ".config"),
        "SUPERVISOR_STATE": str(tmp_path / "manager"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    manager = SystemdManager(machine=facts, runner=SupervisingRunner(environment))
    site = Site(vault=vault, state=own_home / "state", manager=manager, folder=tmp_path / "manager")
    service = ServiceDefinition(
        program=(sys.executable, "-P", "-m", "knapper.cli"),
        arguments=("serve", "--port", "0", "--config", str(own_home / "config.toml")),
        environment={"KNAP_STATE_DIR": str(own_home / "state")},
        log_file=tmp_path / "log",
    )
    manager.install(service)
    try:
        yield site
    finally:
        manager.uninstall()


def test_a_killed_server_comes_back_and_tears_no_change(site: Site) -> None:
    site.write(1, site.record())
    number, waits, torn = 2, list[float](), 0
    for kill in range(KILLS):
        before = site.record()
        writer = threading.Thread(target=write_on, args=(site, number, before))
        writer.start()
        wait_for_note(site, NOTES * kill // KILLS, number)
        os.kill(site.pid(), signal.SIGKILL)
        started = time.monotonic()
        writer.join(WAIT_S)
        torn += len(site.rounds()) > 1  # some notes are of the new round, and some aren't
        while not is_back(site, before):
            assert time.monotonic() - started < WAIT_S, (
                site.rounds(),
                (site.folder / "log").read_text(encoding="utf-8"),
            )
            time.sleep(0.02)
        waits.append(time.monotonic() - started)
        assert site.rounds() <= {site.done[-1], site.done[-1] + 1}
        number = site.done[-1] + 2  # beyond the round that was cut short
        site.write(number, site.record())
        assert site.rounds() == {number}
        number += 1
    told = ", ".join(f"{wait:.1f} s" for wait in waits)
    print(f"{torn} of {KILLS} kills cut a change short; back after {told}")  # noqa: T201 - shown with -s
    assert torn, "no kill came in the middle of a change"
    # What else it takes is the start of a server: `python -m bench setting_up` prints the seconds.
    assert (site.restart_s(), supervisor.read_state(site.folder)["restarts"]) == (0.1, KILLS)
    assert main.run(["doctor", "--json"]) in {0, 1}


def is_back(site: Site, before: ServerRecord) -> bool:
    """Return whether another server answers, and has settled what was cut short, before anybody asks it for a note."""
    after = addresses.find_server(site.state)
    return after is not None and after.instance != before.instance and len(site.rounds()) == 1


def write_on(site: Site, number: int, server: ServerRecord) -> None:
    """Write one round after the other, until the server is gone."""
    with suppress(OSError, http.client.HTTPException):
        while True:
            site.write(number, server)
            number += 1


def wait_for_note(site: Site, note: int, number: int) -> None:
    """Wait until a note is of a round; those after it in the same change may not be yet."""
    stop = time.monotonic() + WAIT_S
    file = site.vault / f"Note {note}.md"
    while not ((found := ROUND.search(file.read_text(encoding="utf-8"))) and int(found[1]) >= number):
        assert time.monotonic() < stop


def test_a_server_that_is_stopped_or_wrongly_configured_is_not_started_again(site: Site, own_home: Path) -> None:
    first = site.pid()
    site.manager.stop()
    assert site.manager.state().running is False
    assert supervisor.read_state(site.folder).get("pid") is None

    (own_home / "config.toml").write_text("not = [TOML", encoding="utf-8")
    site.manager.start()
    stop = time.monotonic() + WAIT_S
    while site.manager.state().detail != "inactive (dead)":
        assert time.monotonic() < stop
        time.sleep(0.1)
    assert (site.folder / "log").read_text(encoding="utf-8").count("error: ") == 1
    assert first > 0


@pytest.mark.parametrize(("code", "again"), [(-9, True), (-11, True), (1, True), (0, False), (3, False), (-15, False)])
def test_the_stand_in_restarts_what_the_units_rules_say(tmp_path: Path, code: int, *, again: bool) -> None:
    facts = MachineFacts(system="linux", home=tmp_path, config=tmp_path, logs=tmp_path, user="ada", uid=1)
    service = ServiceDefinition(
        program=('/opt/my $env/100% "x"/python',),
        arguments=("serve",),
        environment={"A": "b $c %"},
        log_file=tmp_path / "log",
    )
    file = tmp_path / "unit"
    manager = SystemdManager(machine=facts, runner=SupervisingRunner({}))
    file.write_text(manager.render(service), encoding="utf-8")
    unit = supervisor.read_unit(file)

    assert unit.command == ['/opt/my $env/100% "x"/python', "serve"]
    assert unit.environment == {"A": "b $c %"}
    assert supervisor.is_failure(code, unit) == again
