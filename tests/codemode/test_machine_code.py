"""Keep machine code where only its user can write; refuse it where others could have."""

import os
import sys
from pathlib import Path

import pytest

import hatch_build
from knapper.codemode.sandbox import machine_code
from knapper.codemode.sandbox.machine_code import MachineCode
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.errors import SetupError, StorageError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
ROOT = Path(__file__).parents[2]


def copied(code_folder: Path, folder: Path) -> MachineCode:
    """Give a folder of its own to a test, with machine code that was compiled before."""
    machine_code.make_private_folder(folder)
    made = MachineCode(folder=folder)
    os.link(MachineCode(folder=code_folder).file, made.file)
    return made


def test_the_component_is_built_from_the_guest_as_it_is() -> None:
    component = ROOT / hatch_build.COMPONENT
    stamp = (component.parent / hatch_build.STAMP).read_text(encoding="utf-8")

    assert stamp == hatch_build.stamped(component, hatch_build.sources_hash(ROOT / hatch_build.GUEST)), (
        "run scripts/setup: the guest was changed after the interpreter of scripts was built"
    )


def test_a_component_that_is_up_to_date_isnt_built_again() -> None:
    component = ROOT / hatch_build.COMPONENT
    before = component.stat().st_mtime_ns

    hatch_build.provide_interpreter(ROOT)

    assert component.stat().st_mtime_ns == before


def test_line_endings_of_a_checkout_dont_change_what_is_built(tmp_path: Path) -> None:
    for name, text in {"unix": b"a\nb\n", "dos": b"a\r\nb\r\n"}.items():
        (tmp_path / name).mkdir()
        _ = (tmp_path / name / "x.py").write_bytes(text)

    assert hatch_build.sources_hash(tmp_path / "unix") == hatch_build.sources_hash(tmp_path / "dos")


def test_what_is_built_holds_the_guest_and_the_pure_part_of_pyyaml(tmp_path: Path) -> None:
    hatch_build.stage(ROOT / hatch_build.GUEST, tmp_path)

    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"app/app.py", "wit/world.wit", "app/yaml/loader.py", "app/knapper/codemode/guest/obsidian.py"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyd"))]


@POSIX
def test_the_folder_is_its_users_alone(tmp_path: Path) -> None:
    machine_code.make_private_folder(tmp_path / "state" / "sandbox")

    assert (tmp_path / "state" / "sandbox").stat().st_mode & 0o777 == 0o700


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_a_folder_that_others_can_enter_is_refused(code_folder: Path, tmp_path: Path, mode: int) -> None:
    made = copied(code_folder, tmp_path / "sandbox")
    made.folder.chmod(mode)

    with pytest.raises(StorageError, match="others could have written"):
        _ = made.ensure_compiled()


@POSIX
def test_a_file_that_others_can_write_is_refused(code_folder: Path, tmp_path: Path) -> None:
    made = copied(code_folder, tmp_path / "sandbox")
    content = made.file.read_bytes()
    made.file.unlink()
    _ = made.file.write_bytes(content)
    made.file.chmod(0o666)

    with pytest.raises(StorageError, match="others could have written"), WorkerPool(made.folder) as sandbox:
        _ = sandbox.run("1", lambda _method, _given: None)


@POSIX
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_in_their_place_is_refused(code_folder: Path, tmp_path: Path, what: str) -> None:
    made = copied(code_folder, tmp_path / "real")
    if what == "folder":
        (tmp_path / "sandbox").symlink_to(made.folder)
        made = MachineCode(folder=tmp_path / "sandbox")
    else:
        _ = made.file.rename(tmp_path / "elsewhere")
        made.file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StorageError, match="others could have written"):
        _ = made.is_ready()


@POSIX
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(code_folder: Path, tmp_path: Path) -> None:
    made = copied(code_folder, tmp_path / "sandbox")
    content = made.file.read_bytes()
    made.file.unlink()
    _ = made.file.write_bytes(content)
    made.file.chmod(0o600)
    os.chown(made.file, 1_234, 1_234)

    with pytest.raises(StorageError, match="others could have written"):
        _ = made.is_ready()


def test_its_name_tells_the_component(tmp_path: Path) -> None:
    other = tmp_path / "interpreter.wasm"
    _ = (tmp_path / machine_code.STAMP_FILE).write_text("another", encoding="utf-8")

    assert MachineCode(folder=tmp_path).file.name != MachineCode(folder=tmp_path, component=other).file.name


def test_an_installation_without_interpreter_says_so(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no interpreter"):
        _ = MachineCode(folder=tmp_path / "x", component=tmp_path / "none.wasm").ensure_compiled()


def test_what_cant_be_compiled_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    component = tmp_path / "interpreter.wasm"
    _ = component.write_bytes(b"no component")
    _ = (tmp_path / machine_code.STAMP_FILE).write_text("x", encoding="utf-8")
    made = MachineCode(folder=tmp_path / "sandbox", component=component)

    with pytest.raises(SetupError, match="can't be prepared"):
        _ = made.ensure_compiled()

    assert not made.is_ready()
    assert [path.name for path in made.folder.iterdir()] == ["compile.lock"]


def test_compiling_in_the_background_fails_quietly(tmp_path: Path) -> None:
    made = MachineCode(folder=tmp_path / "sandbox", component=tmp_path / "none.wasm")
    _ = (tmp_path / machine_code.STAMP_FILE).write_text("x", encoding="utf-8")

    thread = made.compile_in_background()

    assert thread is not None
    thread.join()
    assert not made.is_ready()


def test_nothing_is_compiled_where_it_is_ready(code_folder: Path) -> None:
    assert MachineCode(folder=code_folder).compile_in_background() is None


@pytest.mark.slow
def test_machine_code_that_cant_be_loaded_is_made_anew(tmp_path: Path) -> None:
    with WorkerPool(tmp_path / "sandbox") as sandbox:
        machine_code.make_private_folder(sandbox.code.folder)
        descriptor = os.open(sandbox.code.file, os.O_WRONLY | os.O_CREAT, 0o600)
        _ = os.write(descriptor, b"cut off")
        os.close(descriptor)

        assert sandbox.run("__result__ = 3", lambda _method, _given: None).result == 3
