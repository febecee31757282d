"""The service under the real `systemd --user`, in namespaces of its own: no stand-in, and nothing of the person's."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from knapper import config

ROOT = Path(__file__).parents[2]
SYSTEMD = next((path for path in ("/lib/systemd/systemd", "/usr/lib/systemd/systemd") if Path(path).exists()), "")
READY = "systemd is ready"
IN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--mount-proc")
SCRIPT = """
set -e
all=$1/cgroups own=$1/cgroups/knapper-test-$RANDOM # a control group of its own, which is taken away again
mkdir "$all"
mount -t cgroup2 none "$all"
mkdir "$own"
echo $$ >"$own/cgroup.procs"
code=0
unshare --cgroup bash -c "$3" bash "$1" "$2" || code=$?
kill -9 -1 2>/dev/null || true # all but this shell, which is the first process of its namespace
echo $$ >"$all/cgroup.procs"
for attempt in $(seq 50); do
  ! find "$own" -depth -type d -exec rmdir {} + 2>/dev/null || break
  sleep 0.1
done
exit $code
"""
UNDER_SYSTEMD = f"""
set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/user/0 # the first says that systemd booted the machine
chmod 700 /run/user/0
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
export XDG_RUNTIME_DIR=/run/user/0
dbus-daemon --session --address=unix:path=/run/user/0/bus --nofork >"$1/bus.log" 2>&1 &
{SYSTEMD} --user --unit=basic.target >"$1/systemd.log" 2>&1 &
for attempt in $(seq 100); do
  ! systemctl --user is-system-running >/dev/null 2>&1 || break
  sleep 0.1
done
systemctl --user is-system-running >/dev/null
echo "{READY}" >&2
"$2" -m tests.service.real_cycle "$1"
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (sys.platform == "linux" and os.geteuid() == 0 and SYSTEMD),
        reason="there is no systemd, or no root",
    ),
    pytest.mark.skipif(
        not all(map(shutil.which, ("unshare", "dbus-daemon", "systemctl"))), reason="unshare or dbus-daemon is missing"
    ),
]


def live_under_systemd(folder: Path) -> dict[str, Any] | str:
    """Return what `real_cycle` saw, in an empty folder; or why no systemd of a user can be started here."""
    environment = {
        "HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "home" / ".config"),
        "KNAP_CONFIG": str(folder / "config.toml"),
        "KNAP_STATE_DIR": str(folder / "state"),
        "PATH": config.environment_variables()["PATH"],
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    (folder / "home" / ".config").mkdir(parents=True)
    done = subprocess.run(
        [*IN_NAMESPACES, "bash", "-c", SCRIPT, "bash", str(folder), sys.executable, UNDER_SYSTEMD],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
        timeout=250,
    )
    if READY not in done.stderr:
        return f"no systemd of a user can be started here: {done.stderr.strip()[-300:]}"
    assert done.returncode == 0, done.stderr + (folder / "systemd.log").read_text(encoding="utf-8", errors="replace")
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def seen(disk: Path) -> dict[str, Any]:
    result = live_under_systemd(Path(tempfile.mkdtemp(prefix="systemd-", dir=disk)))
    if isinstance(result, str):
        pytest.skip(result)
    return result


def test_it_is_installed_and_runs(seen: dict[str, Any]) -> None:
    installed, running = seen["installed"], seen["running"]

    assert (installed["code"], running["code"], running["detail"]) == (0, 0, "active (running)")
    assert running["url"] == installed["url"] != ""


def test_a_killed_server_comes_back_and_tears_no_change(seen: dict[str, Any]) -> None:
    killed = seen["killed"]

    print("back after", [f"{wait:.1f} s" for wait in killed["waits"]], "cut short:", killed["cut_short"])  # noqa: T201 - shown with -s
    assert killed["rounds"] == [killed["last"]]
    assert killed["unit"] == [str(len(killed["waits"])), "100ms"]
    assert killed["cut_short"], "no kill came in the middle of a change"


def test_it_is_restarted_stopped_and_started_at_login(seen: dict[str, Any]) -> None:
    stopped, status, state = seen["stopped"]

    assert (seen["restarted"]["code"], seen["is_another"]) == (0, True)
    assert (stopped["code"], status["code"], status["running"], state) == (0, 1, False, "inactive")
    assert seen["at_login"] == "active"


def test_a_wrong_configuration_is_not_tried_again(seen: dict[str, Any]) -> None:
    assert seen["misconfigured"] == ["0", "3"]


def test_a_vault_can_be_watched_without_a_server(seen: dict[str, Any]) -> None:
    watching = seen["watching"]

    assert (watching["code"], watching["watch_only"], watching["url"]) == (0, True, "")


def test_nothing_is_left_of_it(seen: dict[str, Any]) -> None:
    removed, status = seen["removed"]

    assert (removed["code"], len(removed["removed"])) == (0, 1)
    assert (status["installed"], status["code"]) == (False, 1)
    assert seen["left"] == []
