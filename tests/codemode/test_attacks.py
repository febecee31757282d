"""Attack the sandbox, and judge by what came of it outside."""

import json
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from knapper import app
from knapper.codemode import bridge
from knapper.codemode.bridge import Bridge, result_answer, script_inputs
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config.sections import ScriptSettings
from knapper.errors import KnapError
from knapper.tools.context import Context, ScriptLimits, ScriptResult
from tests.codemode.attacks import ATTACKS, Attack
from tests.tools import opened

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="judges by what POSIX systems tell")
TOKEN = "canary-3f9a71c2d84e"
LIMITS = ScriptLimits(timeout_s=0.8, memory_mb=128, calls=200)
PATIENT = replace(LIMITS, timeout_s=60)
"""For scripts that do no harm, on a machine that may be busy."""
SLOW_S = 40
"""What a busy machine may take beyond the script's time."""
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{key}: &{key} [{','.join([f'*{before}'] * 9)}]\n" for before, key in zip("abcdefgh", "bcdefghi", strict=True)
)
KINDS = (
    "1: 2\nn: .nan\ni: -.inf\nb: !!binary aGk=\ns: !!set {a, b}\n? [x, y]\n: z\nl: 1"
    + "0" * 99
    + "\no: !!python/name:os.system"
)
FRAMES = 'frames D\x05\x00\x00\x00hello\n{"kind": "ok", "result": 1}\nT\x07\x00\x00\x00timeout\n[more was printed]'
ODD = {
    "Bomb.md": f"---\n{BOMB}---\nx\n",
    "Circle.md": "---\na: &a [*a]\n---\nx\n",
    "Deep.md": f"---\na: {'[' * 5000}{']' * 5000}\n---\nx\n",
    "Kinds.md": f"---\n{KINDS}\n---\nx\n",
    "Frames.md": FRAMES,
    "new\nline.md": "odd",
    'quote".md': "odd",
    '{"kind": "ok", "result": 1}.md': "odd",
    "\u202egnp.md": "odd",
    "C:drive.md": "odd",
    "back\\slash.md": "odd",
    "]] [[..|x.md": "odd",
    "-rf ..md": "odd",
}
"""Notes with hostile names and contents."""
NEXT = (
    "import json, re\n"
    "assert 'POISON' not in globals() and not hasattr(json, 'POISON') and not hasattr(obsidian, 'POISON')\n"
    "assert json.dumps([len('ab')]) == '[2]' and re.findall('a', 'aa') == ['a', 'a']\n"
    "__result__ = obsidian.read_note('A.md')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold what an attack could reach."""

    folder: Path
    context: Context
    secret: Path
    target: Path
    port: int
    visits: list[str]

    def files(self) -> dict[str, bytes]:
        state = self.folder / "state"
        found = (path for path in self.folder.rglob("*") if path.is_file() and state not in path.parents)
        return {str(path): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def listener() -> Iterator[tuple[int, list[str]]]:
    visits: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                visits.append("came")
                connection.close()

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], visits
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, listener: tuple[int, list[str]]) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    secret = folder / "secret.txt"
    _ = secret.write_text(TOKEN, encoding="utf-8")
    vault = opened.vault(
        folder,
        {"A.md": "a note", "Folder/B.md": "another note", "Private/Hidden.md": f"hidden {TOKEN}"},
        hidden=("Private/",),
    )
    odd = vault.root / "Odd"
    odd.mkdir()
    for name, content in ODD.items():
        _ = (odd / name).write_text(content, encoding="utf-8")
    _ = (vault.root / "Big.md").write_text("big " * 100_000, encoding="utf-8")
    (vault.root / "Out.md").symlink_to(secret)
    (vault.root / "Outside").symlink_to(folder)
    (vault.root / "Loop.md").symlink_to("Loop.md")
    with app.open_hub(vault.settings()) as hub:
        context = hub.context(client="script")
        _ = context.index.refresh()
        yield World(
            folder=folder, context=context, secret=secret, target=folder / "made", port=listener[0], visits=listener[1]
        )


@pytest.fixture(scope="module")
def walled(code_folder: Path) -> Iterator[WorkerPool]:
    with WorkerPool(code_folder, PATIENT, workers=1) as made:
        yield made


def attack(world: World, sandbox: WorkerPool, script: str, limits: ScriptLimits = LIMITS) -> ScriptResult:
    bridge = Bridge(world.context)
    return sandbox.run(aimed(world, script), bridge, limits=limits, given=script_inputs(world.context, bridge))


def aimed(world: World, script: str) -> str:
    for word, value in {"SECRET": world.secret, "TARGET": world.target, "PORT": world.port}.items():
        script = script.replace(word, str(value))
    return script


@pytest.mark.parametrize("tried", ATTACKS, ids=lambda one: one.name)
def test_an_attack_has_no_effect_with_the_first_wall_alone(
    tried: Attack, world: World, code_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one worker is a session, and so a process group, of its own, under resource limits."""
    processes = children()
    with WorkerPool(code_folder, PATIENT, workers=1, walls=False) as own:
        judge(tried, world, own, monkeypatch)

    assert children() == processes


@pytest.mark.parametrize("tried", [one for one in ATTACKS if one.kind != "limits"], ids=lambda one: one.name)
def test_an_attack_has_no_effect_with_both_walls_in_a_worker_that_others_attacked_before(
    tried: Attack, world: World, walled: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(tried, world, walled, monkeypatch)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost.", "LOCALHOST"])
def test_a_host_on_this_machine_is_not_reached_though_the_owner_named_it(world: World, host: str) -> None:
    vault = opened.Opener(root=world.context.view.root, state=world.folder / "state")
    named = ScriptSettings(net_allow=("localhost", "127.0.0.1", "::1", "2130706433"))
    with app.open_hub(replace(vault.settings(), scripts=named)) as hub:
        bridge = Bridge(hub.context(client="script"), "extended")
        with pytest.raises(KnapError):
            _ = bridge("http_get", {"url": f"http://{host}:{world.port}/"})

    assert not world.visits


def judge(tried: Attack, world: World, own_sandbox: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", TOKEN)
    before = world.files()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, computed = time.monotonic(), time.process_time()

    outcome = attack(world, own_sandbox, tried.script)

    told = json.dumps(result_answer(outcome))
    assert time.monotonic() - start < LIMITS.timeout_s + SLOW_S
    assert time.process_time() - computed < SLOW_S
    assert TOKEN not in told
    assert not [word for word in host_details(world) if word in told and word not in aimed(world, tried.script)]
    assert world.files() == before
    assert not world.visits
    assert outcome.peak_mb < LIMITS.memory_mb + 320
    assert len(told) < LIMITS.result_bytes + LIMITS.stdout_bytes * 6 + 10_000
    assert grown_mb(held) < 150
    following = attack(world, own_sandbox, NEXT, PATIENT)
    assert (following.kind, following.result) == ("ok", "a note")


def test_the_judge_sees_what_a_script_without_walls_could_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", TOKEN)
    before = world.files()

    world.target.write_text("made", encoding="utf-8")
    with socket.create_connection(("127.0.0.1", world.port)):
        pass
    until = time.monotonic() + 30
    while not world.visits and time.monotonic() < until:
        time.sleep(0.01)

    assert world.files() != before
    assert world.visits
    world.target.unlink()
    world.visits.clear()


def children() -> set[str]:
    """Name the processes that this one has started and that are still there."""
    if not sys.platform.startswith("linux"):
        return set()
    listed = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    return set(listed.read_text(encoding="ascii").split()) if listed.exists() else set()


def host_details(world: World) -> tuple[str, ...]:
    package = Path(bridge.__file__).parents[2]
    return (str(world.folder), str(package), sys.prefix, sys.executable, "site-packages", "CANARY")


def grown_mb(before: int) -> float:
    unit = 1_024 if sys.platform.startswith("linux") else 1_048_576
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit
