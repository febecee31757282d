"""Raise the second wall in processes of their own, and see what they can't do; other systems by faked facts."""

import ctypes
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from knapper.app import tables
from knapper.app.hub import ScriptRuntime
from knapper.cli.commands import doctor
from knapper.codemode import bridge
from knapper.codemode.sandbox import confinement, machine_code, pool
from knapper.codemode.sandbox.machine_code import MachineCode, PlatformInfo
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import Settings, Vault
from knapper.config.sections import ScriptSettings, ScriptWalls
from knapper.errors import SetupError
from knapper.jsontypes import JSONValue

LINUX = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in confinement.SYSCALL_TABLES, reason="walls of Linux"
)
TRIES = {
    "open_file": "open('/etc/hostname').read()",
    "open_own_code": "open(sys.executable, 'rb').read(1)",
    "list_folder": "os.listdir('/')",
    "write_file": "open('/dev/shm/knapper-wall', 'w')",
    "make_socket": "__import__('_socket').socket()",
    "start_process": "os.fork()",
    "run_program": "os.execv(sys.executable, [sys.executable])",
    "kill_parent": "os.kill(os.getppid(), 0)",
    "executable_memory": "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
    "memory_made_executable": "check(libc.mprotect(page(), 4096, 5))",
    "read_other_descriptor": "os.read(9, 1)",
    "write_other_descriptor": "os.write(2, b'x')",
    "trace": "check(libc.ptrace(16, os.getppid(), 0, 0))",
    "memory_of_others": "check(libc.process_vm_readv(os.getppid(), None, 0, None, 0, 0))",
    "shared_memory_file": "os.memfd_create('x')",
    "user_namespace": "check(libc.unshare(0x10000000))",
    "change_folder": "os.chdir('/')",
    "io_uring": "check(libc.syscall(425, 1, None))",
    "bpf": "check(libc.syscall(321, 0, None, 0))",
}
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import ctypes, json, mmap, os, threading, _socket
from knapper.codemode.sandbox import confinement
libc = ctypes.CDLL(None, use_errno=True)
def check(code):
    if code < 0:
        raise OSError(ctypes.get_errno(), "refused")
def page():
    return ctypes.addressof(ctypes.c_char.from_buffer(mmap.mmap(-1, 8192)))
report = confinement.limit_resources(512) | confinement.raise_before_threads()
threading.Thread(target=threading.Event().wait, daemon=True).start()
report |= confinement.raise_after_threads()
try:
    TRY
    told = "done"
except OSError as error:
    told = "refused"
os.write(1, json.dumps([told, report]).encode())
os._exit(0)
"""


def attempt(action: str) -> tuple[str, dict[str, str]]:
    source = str(Path(machine_code.__file__).parents[3])
    command = [sys.executable, "-I", "-c", PROGRAM.replace("TRY", action), source]
    done = subprocess.run(command, capture_output=True, check=False, timeout=30)
    told, report = json.loads(done.stdout or '["killed", {}]')
    return told, report


@LINUX
@pytest.mark.parametrize("name", TRIES)
def test_behind_the_wall_a_process_cant(name: str) -> None:
    told, _ = attempt(TRIES[name])

    assert told in {"refused", "killed"}


@LINUX
def test_behind_the_wall_a_process_can_do_what_scripts_need() -> None:
    told, report = attempt("bytearray(50_000_000); sum(range(1000)); __import__('time').sleep(0.01); os.read(0, 1)")

    assert told == "done"
    assert set(report) == {"limits", "landlock", "seccomp"}


@LINUX
@pytest.mark.timeout(60)  # 600 MB are much to fill on a busy machine
def test_memory_is_bounded_behind_the_wall() -> None:
    assert attempt("bytearray(600 << 20)")[0] == "done"
    assert attempt("bytearray(1 << 30)")[0] == "killed"


@LINUX
def test_workers_tell_which_parts_of_the_wall_stand(sandbox: WorkerPool) -> None:
    assert set(sandbox.warm()) == {"limits", "landlock", "seccomp"}


@LINUX
def test_a_kernel_without_landlock_and_seccomp_is_told_with_a_reason() -> None:
    class Old:
        def syscall(self, *_: object) -> int:
            ctypes.set_errno(38)
            return -1

    old = Old()

    assert confinement.restrict_files(old) == "this kernel has no Landlock: ENOSYS"  # pyright: ignore[reportArgumentType]
    assert confinement.restrict_calls(old, "x86_64") == "this kernel takes no filter: ENOSYS"  # pyright: ignore[reportArgumentType]
    assert confinement.restrict_calls(old, "riscv64") == "there is no filter for riscv64"  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("version", "scopes"), [(1, 0), (3, 0), (5, 0), (6, 3), (9, 3)])
def test_each_version_of_landlock_is_asked_only_for_what_it_knows(version: int, scopes: int) -> None:
    rules = confinement.ruleset_for(version)

    assert rules.scopes == scopes
    assert bool(rules.network) == (version >= 4)
    assert rules.files.bit_length() == {1: 13, 3: 15}.get(version, 16)


@pytest.mark.parametrize("machine", confinement.SYSCALL_TABLES)
def test_the_filter_refuses_by_default_and_allows_by_name(machine: str) -> None:
    known = confinement.SYSCALL_TABLES[machine]

    def verdict(number: int, first: int = 0, third: int = 0, architecture: int = known.architecture) -> int:
        return interpret(confinement.build_filter(known), {0: number, 4: architecture, 16: first, 32: third})

    allow, kill = 0x7FFF0000, 0x80000000
    assert verdict(known.read, first=0) == allow
    assert verdict(known.write, first=1) == allow
    assert all(verdict(number) == allow for number in known.plain)
    assert all(verdict(number, third=3) == allow for number in known.mapping)
    assert verdict(known.read, first=0, architecture=1) == kill
    refused = [
        verdict(known.read, first=3),
        verdict(known.write, first=2),
        *(verdict(n, third=7) for n in known.mapping),
    ]
    named = {known.read, known.write, *known.mapping, *known.plain}
    refused += [verdict(number) for number in range(600) if number not in named]
    assert set(refused) == {0x00050001}


def interpret(code: list[confinement.Instruction], data: dict[int, int]) -> int:
    """Run a filter as the kernel does."""
    at, held = 0, 0
    while True:
        kind, if_true, if_false, value = code[at]
        at += 1
        if kind == 0x20:
            held = data[value]
        elif kind == 0x15:
            at += if_true if held == value else if_false
        elif kind == 0x45:
            at += if_true if held & value else if_false
        else:
            return value


def test_a_worker_has_no_environment_and_no_site() -> None:
    command = machine_code.worker_command(
        Path("/x/y.code"), 512, PlatformInfo(system="linux", executable="/usr/bin/python3"), walls=True
    )

    assert command[:3] == ["/usr/bin/python3", "-I", "-S"]
    assert command[-3:] == ["walls", "/x/y.code", "512"]
    assert machine_code.worker_environment(PlatformInfo(system="linux")) == {}
    assert machine_code.worker_environment(PlatformInfo(system="win32", system_root="C:\\W")) == {"SYSTEMROOT": "C:\\W"}


def test_on_macos_the_command_is_held_by_its_sandbox() -> None:
    facts = PlatformInfo(
        system="darwin", executable="/Users/a/venv/bin/python", prefixes=("/Users/a/venv", "/opt/python")
    )
    command = machine_code.worker_command(Path("/Users/a/state/x.code"), 512, facts, walls=True)

    assert command[:2] == [confinement.SEATBELT_TOOL, "-p"]
    assert command[3] == facts.executable
    rules = command[2]
    assert "(deny network*)" in rules
    assert "(deny file-write*)" in rules
    assert "(deny process-fork)" in rules
    last = rules.splitlines()[-1]
    assert last.startswith("(allow file-read* ")
    assert all(f'(subpath "{folder}")' in last for folder in ("/Users/a/venv", "/opt/python", "/Users/a/state"))
    assert machine_code.worker_command(Path("/x"), 1, facts, walls=False)[0] == facts.executable


def test_a_profile_quotes_folders() -> None:
    assert '(subpath "/a \\"b\\" \\\\c")' in confinement.seatbelt_profile(['/a "b" \\c'])


class Kernel:
    """Be kernel32, as far as jobs go."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.set: dict[int, int] = {}
        self.held: list[int] = []

    def CreateJobObjectW(self, security: None, name: None) -> int:  # noqa: N802 - its name
        assert (security, name) == (None, None)
        return 0 if self.fails == "create" else 77

    def SetInformationJobObject(self, job: int, kind: int, data: object, size: int) -> int:  # noqa: N802 - its name
        assert job == 77
        assert data is not None
        self.set[kind] = size
        return 0 if self.fails == "set" else 1

    def AssignProcessToJobObject(self, job: int, process: int) -> int:  # noqa: N802 - its name
        self.held.append(process)
        return job


def test_on_windows_the_process_is_put_into_a_job() -> None:
    kernel = Kernel()

    assert confinement.assign_process(kernel, 5, 512) == "on"
    assert kernel.held == [5]
    assert kernel.set == {9: ctypes.sizeof(confinement.ExtendedLimits), 4: 4}
    assert confinement.JOB_FLAGS & 0x2000


@pytest.mark.parametrize("fails", ["create", "set"])
def test_a_job_that_cant_be_made_is_told_with_a_reason(fails: str) -> None:
    kernel = Kernel(fails)

    assert confinement.assign_process(kernel, 5, 512).startswith("a job object can't")
    assert kernel.held == []


def test_memory_of_a_process_that_isnt_there_is_unknown() -> None:
    pool.reset_peak_memory(2**30)

    assert pool.peak_memory_mb(2**30) == 0.0


def nothing(method: str, given: Mapping[str, JSONValue]) -> JSONValue:
    del method, given
    return None


@pytest.mark.parametrize(
    ("system", "report", "missing"),
    [
        ("linux", {"limits": "on", "landlock": "on", "seccomp": "on"}, set[str]()),
        ("linux", {"limits": "on", "landlock": "this kernel has no Landlock", "seccomp": "on"}, {"landlock"}),
        ("linux", {"limits": "on"}, {"landlock", "seccomp"}),
        ("linux", {}, {"limits", "landlock", "seccomp"}),
        ("darwin", {"limits": "on", "seatbelt": "on"}, set[str]()),
        ("darwin", {"limits": "on"}, {"seatbelt"}),
        ("win32", {"job object": "on"}, set[str]()),
        ("win32", {"job object": "it can't be made"}, {"job object"}),
        ("freebsd14", {"limits": "on"}, {"confinement"}),
    ],
)
def test_a_wall_that_a_system_should_have_is_missed(system: str, report: dict[str, str], missing: set[str]) -> None:
    assert set(machine_code.find_missing_walls(report, PlatformInfo(system=system))) == missing


@LINUX
def test_an_outcome_names_the_walls_that_stood(sandbox: WorkerPool) -> None:
    outcome = sandbox.run("__result__ = 1", nothing)

    assert set(outcome.walls) == {"limits", "landlock", "seccomp"}
    assert outcome.wall_notice == ""
    assert bridge.result_answer(outcome)["walls"] == list(outcome.walls)
    assert "notes" not in bridge.result_answer(outcome)


@LINUX
def test_a_script_that_ran_without_a_wall_says_so(code_folder: Path) -> None:
    with WorkerPool(code_folder, workers=1, walls=False) as bare:
        outcome = bare.run("__result__ = 1", nothing)
    answer = cast("dict[str, list[str]]", bridge.result_answer(outcome))

    assert outcome.ok
    assert outcome.walls == ("limits",)
    assert answer["walls"] == ["limits"]
    assert "landlock" in answer["notes"][0]
    assert "seccomp" in answer["notes"][0]


@LINUX
def test_scripts_are_refused_where_a_required_wall_does_not_stand(code_folder: Path) -> None:
    with (
        WorkerPool(code_folder, workers=1, walls=False, walls_required=True) as bare,
        pytest.raises(SetupError, match=r"landlock .*seccomp") as raised,
    ):
        bare.run("__result__ = 1", nothing)

    assert raised.value.code == "no_walls"
    assert MachineCode(folder=code_folder).is_ready()  # the code isn't to blame, and isn't compiled anew
    assert bare.idle == ()


@LINUX
def test_scripts_run_where_all_required_walls_stand(code_folder: Path) -> None:
    with WorkerPool(code_folder, workers=1, walls_required=True) as made:
        assert made.run("__result__ = 1", nothing).ok


def settings(base: Path, walls: ScriptWalls) -> Settings:
    vault = Vault(name="v", path=base)
    return Settings(choice=vault, state_dir=base, config_file=base / "c.toml", scripts=ScriptSettings(walls=walls))


@LINUX
@pytest.mark.parametrize(("said", "state"), [("best", "warn"), ("required", "fail")])
def test_doctor_tells_what_a_missing_wall_means(
    code_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: ScriptWalls, state: str
) -> None:
    class Bare(WorkerPool):
        def __init__(self, folder: Path, *, workers: int) -> None:
            del folder
            super().__init__(code_folder, workers=workers, walls=False)

    monkeypatch.setattr(doctor, "WorkerPool", Bare)
    found = doctor.check_sandbox(settings(tmp_path, said))

    assert found.state == state
    assert "landlock" in found.text


@pytest.mark.parametrize(("said", "required"), [("best", False), ("required", True)])
def test_the_setting_reaches_the_sandbox(tmp_path: Path, said: ScriptWalls, required: bool) -> None:
    runtime = ScriptRuntime(settings(tmp_path, said), tables.build_table)

    assert runtime.sandbox().walls_required is required
    runtime.close()
