"""Whatever is done can be taken back, for effects that nobody thought of."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from knapper.changes.disk import apply, undo
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.plan import Effect, MakeFolder, MoveToTrash, Remove, RemoveFolder, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.changes.disk.undo import One, Since
from knapper.vault.paths import NotePath
from tests.changes.disks import META, opened, picture
from tests.properties import scaled

NAMES = ("a.md", "b.md", "é ü.md", "pic.png")
FOLDERS = ("", "x", "x/y", "z")
PATHS = [NotePath(f"{folder}/{name}".lstrip("/")) for folder in FOLDERS for name in NAMES]
contents = st.one_of(
    st.sampled_from([b"", b"\xef\xbb\xbfone\r\ntwo", b"no last newline", b"a\rb\n", b"\x00\xff"]),
    st.binary(max_size=40),
)
start = st.dictionaries(st.sampled_from(PATHS), st.tuples(contents, st.sampled_from([0o644, 0o600, 0o755])), max_size=8)


class Model:
    """What a vault holds: bytes for a file, None for a folder."""

    def __init__(self, held: dict[str, bytes | None]) -> None:
        self.held = held

    def files(self) -> list[str]:
        return sorted(path for path, content in self.held.items() if content is not None)

    def folders(self) -> list[str]:
        return sorted(path for path, content in self.held.items() if content is None)

    def free(self) -> list[NotePath]:
        return [path for path in PATHS if path not in self.held and not self._blocked(path)]

    def _blocked(self, path: str) -> bool:
        return any(self.held.get(above) is not None for above in parents(path))

    def put(self, path: str, content: bytes | None) -> None:
        self.held |= dict.fromkeys(parents(path))
        self.held[path] = content

    def move(self, source: str, target: str) -> None:
        self.held |= dict.fromkeys(parents(target))
        for path in list(self.held):
            if path == source or path.startswith(source + "/"):
                self.held[target + path[len(source) :]] = self.held.pop(path)

    def is_empty(self, folder: str) -> bool:
        return not any(path.startswith(folder + "/") for path in self.held)


def parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def draw_effect(data: st.DataObject, model: Model) -> Effect | None:
    """Make up an effect that fits the model, and do it there; None where nothing of the kind fits."""
    kind = data.draw(st.sampled_from(["write", "create", "rename", "folder", "trash", "remove", "mkdir", "rmdir"]))
    files, folders, free = model.files(), model.folders(), model.free()
    if kind == "create" and free:
        path, content = data.draw(st.sampled_from(free)), data.draw(contents)
        model.put(path, content)
        return Write(path=path, content=content)
    if kind == "mkdir":
        folder = data.draw(st.sampled_from(["new", "x/new", "z"]))
        if model.held.get(folder) is None:
            model.put(folder, None)
            return MakeFolder(path=NotePath(folder))
    if kind in {"folder", "rmdir"} and folders:
        return draw_folder(data, model, folder=data.draw(st.sampled_from(folders)), move=kind == "folder")
    if kind in {"write", "rename", "trash", "remove"} and files:
        return draw_file(data, model, kind, NotePath(data.draw(st.sampled_from(files))))
    return None


def draw_folder(data: st.DataObject, model: Model, *, folder: str, move: bool) -> Effect | None:
    if not move and model.is_empty(folder):
        del model.held[folder]
        return RemoveFolder(path=NotePath(folder))
    target = data.draw(st.sampled_from(["moved", "q/moved", "x/moved"]))
    if not move or target in model.held or target.startswith(folder + "/") or folder.startswith(".trash"):
        return None
    model.move(folder, target)
    return Rename(source=NotePath(folder), target=NotePath(target))


def draw_file(data: st.DataObject, model: Model, kind: str, path: NotePath) -> Effect | None:
    before = model.held[path] or b""
    if kind == "write":
        model.held[path] = content = data.draw(contents)
        return Write(path=path, base=hash_content(before), content=content)
    if kind == "remove":
        del model.held[path]
        return Remove(path=path, base=hash_content(before))
    if kind == "rename" and model.free():
        target = data.draw(st.sampled_from(model.free()))
        model.move(path, target)
        return Rename(source=path, target=target, base=hash_content(before))
    if kind == "trash" and not path.startswith(".trash/") and f".trash/{path}" not in model.held:
        model.move(path, f".trash/{path}")
        return MoveToTrash(path=path)
    return None


@contextmanager
def vault(files: dict[NotePath, tuple[bytes, int]]) -> Generator[tuple[Path, State, Model]]:
    top = Path(tempfile.mkdtemp())
    root = top / "vault"
    state = opened(root)
    model = Model({})
    for path, (content, mode) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(mode)
        model.put(path, content)
    try:
        yield root, state, model
    finally:
        state.journal.shut()
        shutil.rmtree(top)


def held(root: Path) -> dict[str, bytes | None]:
    return {path: content if kind == "file" else None for path, (kind, _, content) in picture(root).items()}


@pytest.mark.slow
@given(files=start, data=st.data())
@settings(max_examples=scaled(60))
def test_apply_then_undo_is_the_identity_and_undo_of_undo_is_apply(
    files: dict[NotePath, tuple[bytes, int]], data: st.DataObject
) -> None:
    with vault(files) as (root, state, model):
        before = picture(root)
        drawn = [draw_effect(data, model) for _ in range(data.draw(st.integers(1, 6)))]
        effects = [effect for effect in drawn if effect is not None]

        applied = apply.apply_effects(state, effects, META)
        after = picture(root)

        assert held(root) == model.held
        if not applied.change_id:
            assert after == before
            return
        undone = undo.undo(state, One(change_id=applied.change_id), META)
        assert picture(root) == before
        undo.undo(state, One(change_id=undone.applied.change_id), META)
        assert picture(root) == after


@pytest.mark.slow
@given(files=start, data=st.data())
@settings(max_examples=scaled(30))
def test_all_changes_since_the_beginning_are_taken_back_at_once(
    files: dict[NotePath, tuple[bytes, int]], data: st.DataObject
) -> None:
    with vault(files) as (root, state, model):
        before = picture(root)
        made = False
        for _ in range(data.draw(st.integers(1, 4))):
            drawn = [draw_effect(data, model) for _ in range(data.draw(st.integers(1, 3)))]
            applied = apply.apply_effects(state, [effect for effect in drawn if effect is not None], META)
            made |= bool(applied.change_id)
        if not made:
            return
        since = min(change.at for change in state.journal.select("1"))

        undo.undo(state, Since(at=since), META)

        assert picture(root) == before
