"""A small stand-in for `systemctl --user`: starts what a unit says for real, and restarts it by the unit's own rules.

Where a machine has no systemd for its users, such as a container, this shows what the unit would do there. It follows
ExecStart, Environment, Restart=on-failure, RestartSec, RestartPreventExitStatus and the start limit, and nothing else.
It needs Python alone, and two variables: SUPERVISOR_STATE, a folder of its own, and where units lie, XDG_CONFIG_HOME.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CLEAN_SIGNALS = frozenset({1, 2, 13, 15})
"""Ends that aren't failures: SIGHUP, SIGINT, SIGPIPE, SIGTERM. Source: systemd.service(5), "Restart="."""
STOP_S = 20.0
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')


@dataclass
class Unit:
    """What is followed of a unit."""

    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    restart: str = "no"
    restart_s: float = 0.1
    prevent: frozenset[int] = frozenset()
    limit_s: float = 10.0
    limit: int = 5


def read_words(text: str, *, in_command: bool) -> list[str]:
    """Split a line as systemd does: quotes, backslashes, %% and, in commands, $$."""
    words: list[str] = []
    for match in WORD.finditer(text):
        word = re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2]
        if re.search(r"%(?!%)", word.replace("%%", "")):
            raise ValueError(f"a specifier that isn't followed: {word}")
        word = word.replace("%%", "%")
        words.append(word.replace("$$", "$") if in_command else word)
    return words


def read_unit(file: Path) -> Unit:
    """Read a unit."""
    unit = Unit(command=[])
    for row in file.read_text(encoding="utf-8").splitlines():
        name, _, value = row.partition("=")
        match name:
            case "ExecStart":
                unit.command = read_words(value, in_command=True)
            case "Environment":
                unit.environment |= dict(word.split("=", 1) for word in read_words(value, in_command=False))
            case "Restart":
                unit.restart = value
            case "RestartSec":
                unit.restart_s = float(value)
            case "RestartPreventExitStatus":
                unit.prevent = frozenset(map(int, value.split()))
            case "StartLimitIntervalSec":
                unit.limit_s = float(value)
            case "StartLimitBurst":
                unit.limit = int(value)
            case _:
                pass
    return unit


def is_failure(code: int, unit: Unit) -> bool:
    """Return whether an end is one after which the unit is started again; *code* is that of `subprocess`."""
    if unit.restart != "on-failure" or code in unit.prevent:
        return False
    return code > 0 or (code < 0 and -code not in CLEAN_SIGNALS)


def write_state(folder: Path, **fields: object) -> None:
    """Write what `systemctl show` tells, in one step."""
    beside = folder / "state.new"
    beside.write_text(json.dumps(fields), encoding="utf-8")
    beside.replace(folder / "state.json")


def read_state(folder: Path) -> dict[str, object]:
    """Read it; nothing where nothing was ever started."""
    try:
        return json.loads((folder / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def supervise(file: Path, folder: Path) -> None:
    """Run a unit until it is stopped, ends well, or fails too often."""
    unit = read_unit(file)
    stopping: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def stop(number: int, frame: object) -> None:
        del frame
        stopping.append(number)
        for process in child:
            with contextlib.suppress(OSError):
                process.terminate()

    signal.signal(signal.SIGTERM, stop)
    starts: list[float] = []
    restarts = -1
    while not stopping:
        starts = [at for at in starts if time.monotonic() - at < unit.limit_s]
        if len(starts) >= unit.limit:
            write_state(folder, ActiveState="failed", SubState="failed", starts=len(starts))
            return
        starts.append(time.monotonic())
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                unit.command,
                env={**os.environ, **unit.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )
        child[:] = [process]
        restarts += 1
        running = {"pid": process.pid, "supervisor": os.getpid(), "restarts": restarts}
        write_state(folder, ActiveState="active", SubState="running", **running)
        code = process.wait()
        if stopping or not is_failure(code, unit):
            break
        write_state(folder, ActiveState="activating", SubState="auto-restart", supervisor=os.getpid(), code=code)
        time.sleep(unit.restart_s)
    write_state(folder, ActiveState="inactive", SubState="dead")


def stop_running(folder: Path) -> None:
    """Stop what runs, and wait for it."""
    supervisor = read_state(folder).get("supervisor")
    if not isinstance(supervisor, int):
        return
    with contextlib.suppress(OSError):
        os.kill(supervisor, signal.SIGTERM)
    stop = time.monotonic() + STOP_S
    while read_state(folder).get("ActiveState") in {"active", "activating"} and time.monotonic() < stop:
        time.sleep(0.05)


def start(file: Path, folder: Path) -> None:
    """Start a unit in a process that outlives this one."""
    environment = {**os.environ, "SUPERVISOR_UNIT": str(file)}
    subprocess.Popen(
        [sys.executable, __file__, "supervise"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stop = time.monotonic() + STOP_S
    while read_state(folder).get("ActiveState") != "active" and time.monotonic() < stop:
        time.sleep(0.02)


def main(words: Sequence[str]) -> int:
    """Carry out one command of `systemctl --user`."""
    folder = Path(os.environ["SUPERVISOR_STATE"])
    folder.mkdir(parents=True, exist_ok=True)
    if words == ["supervise"]:
        supervise(Path(os.environ["SUPERVISOR_UNIT"]), folder)
        return 0
    with (folder / "commands").open("a", encoding="utf-8") as log:
        log.write(" ".join(words) + "\n")
    verb, *rest = [word for word in words if word != "--user"]
    names = [word for word in rest if not word.startswith("-")]
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    file = Path(config, "systemd", "user", *names[:1])
    match verb:
        case "start" | "restart":
            stop_running(folder)
            write_state(folder)
            start(file, folder)
        case "stop":
            stop_running(folder)
        case "disable" if "--now" in rest:
            stop_running(folder)
        case "show":
            state = read_state(folder)
            sys.stdout.write(f"ActiveState={state.get('ActiveState', 'inactive')}\n")
            sys.stdout.write(f"SubState={state.get('SubState', 'dead')}\n")
        case "show-environment" | "daemon-reload" | "enable" | "disable":
            pass
        case _:
            sys.stderr.write(f"this stand-in has no '{verb}'\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
