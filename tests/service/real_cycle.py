"""The service's whole life under a real `systemd --user`, as a program: it prints what happened, as JSON.

`test_real_systemd` starts it in namespaces of its own, so that no service and no folder of the person is touched.
"""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from knapper import config
from knapper.cli import main
from knapper.service import definition
from knapper.service.platforms import UNIT, SystemdManager
from tests.service.test_killed import NOTES, Site, is_back, wait_for_note, write_on

KILLS = 2
MAX_KILLS = 8
"""Where none came in the middle of a change, as they may be late on a busy machine."""
WAIT_S = 60.0


def knap(*words: str) -> dict[str, object]:
    """Run a command with --json; return its answer with its exit code, as ``code``."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main.run([*words, "--json"])
    return {**json.loads(printed.getvalue()), "code": int(code)}


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    stop = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > stop:
            raise TimeoutError(what)
        time.sleep(0.02)


def unit_state(name: str) -> str:
    """Return a property of the unit, as systemd tells it."""
    command = ["systemctl", "--user", "show", UNIT, f"--property={name}", "--value"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def processor_s(pid: int) -> float:
    """Return how long a process has worked so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def variable(name: str) -> Path:
    """Return the folder or file that a variable names."""
    return Path(config.environment_variables()[name])


def make_site(folder: Path) -> Site:
    """Make a vault, and the configuration that KNAP_CONFIG names."""
    vault = folder / "my Заметки"
    vault.mkdir()
    for number in range(NOTES):
        (vault / f"Note {number}.md").write_text(f"---\nround: 0\n---\n{'some text. ' * 50}\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variable("KNAP_CONFIG").write_text(
        f'[vaults.notes]\npath = "{vault.as_posix()}"\n\n[clients.http]\nsmall = "apply"\nlarge = "apply"\n'
        f'max_files = 100\n\n[embeddings]\nkind = "none"\n\n[server]\nport = {port}\n',
        encoding="utf-8",
    )
    manager = SystemdManager(machine=definition.detect_machine(), runner=definition.SystemRunner())
    return Site(vault=vault, state=variable("KNAP_STATE_DIR"), manager=manager, folder=folder)


def kill_often(site: Site) -> dict[str, object]:
    """Kill the server in the middle of changes; return how long it was gone, and how many changes were cut short."""
    waits, work, torn, number = list[float](), list[float](), 0, 1
    while len(waits) < KILLS or (not torn and len(waits) < MAX_KILLS):
        before = site.record()
        site.write(number, before)
        writer = threading.Thread(target=write_on, args=(site, number + 1, before))
        writer.start()
        wait_for_note(site, NOTES * (len(waits) % KILLS) // KILLS, number + 1)
        os.kill(before.pid, signal.SIGKILL)
        killed = time.monotonic()
        writer.join(WAIT_S)
        torn += len(site.rounds()) > 1
        wait_for(lambda before=before: is_back(site, before), f"it isn't back: {site.rounds()}")
        waits.append(time.monotonic() - killed)
        work.append(processor_s(site.record().pid))
        number = site.done[-1] + 3
    site.write(number, site.record())
    unit = unit_state("NRestarts"), unit_state("RestartUSec")
    gone = {"waits": waits, "work": work}
    return {**gone, "unit": unit, "cut_short": torn, "rounds": sorted(site.rounds()), "last": number}


def live(site: Site) -> dict[str, object]:
    """Take the service through all that happens to it, and tell each step."""
    seen: dict[str, object] = {"installed": knap("service", "install"), "running": knap("service", "status")}
    seen["killed"] = kill_often(site)
    before = site.record()
    seen["restarted"] = knap("service", "restart")
    seen["is_another"] = site.record().instance != before.instance
    seen["stopped"] = knap("service", "stop"), knap("service", "status"), unit_state("ActiveState")
    subprocess.run(["systemctl", "--user", "start", "default.target"], check=True)  # what a login does
    site.record()
    seen["at_login"] = unit_state("ActiveState")
    file = variable("KNAP_CONFIG")
    text = file.read_text(encoding="utf-8")
    file.write_text("not = [TOML", encoding="utf-8")
    site.manager.restart()
    wait_for(lambda: unit_state("ActiveState") == "failed", "a wrong configuration is started again and again")
    seen["misconfigured"] = unit_state("NRestarts"), unit_state("ExecMainStatus")
    file.write_text(text, encoding="utf-8")
    knap("service", "install", "--watch-only")
    wait_for(lambda: any(site.state.rglob("watch.beat")), "nobody watches")
    seen["watching"] = knap("service", "status")
    seen["removed"] = knap("service", "uninstall"), knap("service", "status")
    seen["left"] = sorted(path.name for path in site.manager.file.parents[1].rglob("*knapper*"))
    return seen


if __name__ == "__main__":
    site = make_site(Path(sys.argv[1]))
    try:
        text = json.dumps(live(site))
    finally:
        site.manager.uninstall()
    sys.stdout.write(f"{text}\n")
