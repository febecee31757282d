"""Whoever can put links into a vault while it is read gets nothing of what lies outside it."""

import contextlib
import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pytest

from knapper.agents.sessions import store
from knapper.changes import reviewer
from knapper.changes.disk.files import Files
from knapper.codemode import evidence
from knapper.errors import KnapError
from knapper.vault import files, obsidian, parser
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs links that anybody may make")
PATH: Final = NotePath("Area/Topic/Note.md")
CANARY: Final = "canary-71c2"
Read = Callable[[Path], object]
_SECONDS: Final = 1.5
_SWAP: Final = """
import os, sys
from pathlib import Path
from knapper.changes.disk.files import native_rename
folder, away, outside = map(Path, sys.argv[1:])
exchange = native_rename()
if exchange:
    away.symlink_to(outside)
print(flush=True)
while exchange:
    exchange(folder, away, "swap")
while True:
    folder.rename(away)
    folder.symlink_to(outside)
    folder.unlink()
    away.rename(folder)
"""


def view(root: Path) -> View:
    return View.open(root, Policy(client="owner"))


def _open_in_pieces(root: Path) -> bytes:
    with view(root).open_bytes(PATH) as opened:
        return opened.read()


def _settings(root: Path) -> object:
    return obsidian.read_settings(root)


def _stored(root: Path) -> bytes:
    """Read as a change does: where the path was found to lie."""
    return Files().read(files.find_path(root, PATH).file)


def _fingerprint(root: Path) -> str:
    return Files().fingerprint(files.find_path(root, PATH).file)


def _settled(root: Path) -> str | None:
    return Files().settled_hash(files.find_path(root, PATH).file)


WAYS: Final[dict[str, Read]] = {
    "a note": lambda root: view(root).read(PATH).raw,
    "properties": lambda root: view(root).read_head(PATH).raw,
    "bytes": lambda root: view(root).read_bytes(PATH),
    "in pieces": _open_in_pieces,
    "without a policy": lambda root: parser.read_note(root, PATH).raw,
    "a proposal's note": lambda root: reviewer.read_note(root, PATH),
    "a script's file": lambda root: evidence.read_allowed_file((root,), PATH),
    "identity": lambda root: store.identify_file(view(root), PATH),
    "before a change": _stored,
    "hash before a change": _fingerprint,
    "hash after a change": _settled,
    "settings": _settings,
    "list": lambda root: [(file.path, file.size, file.inode) for file in view(root).list_files()],
    "list of a folder": lambda root: [(file.path, file.inode) for file in view(root).list_files_at(root / "Area")[1]],
    "similar names": lambda root: _nearest(root),
}


def _nearest(root: Path) -> str:
    try:
        _ = files.resolve_path(root, NotePath("Area/Topic/Canery.md"))
    except KnapError as error:
        return error.hint
    return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {"vault": "mine", "outside": CANARY}.items():
        folder = tmp_path / name / "Area" / "Topic"
        folder.mkdir(parents=True)
        (folder / "Note.md").write_text(text * 100, encoding="utf-8")
    (tmp_path / "outside" / "Area" / "Topic" / "Canary.md").write_text(CANARY, encoding="utf-8")
    for name, folder in (("vault", "Daily"), ("outside", CANARY)):
        settings = tmp_path / name / ".obsidian"
        settings.mkdir()
        (settings / "daily-notes.json").write_text(f'{{"folder": "{folder}"}}', encoding="utf-8")
    return (tmp_path / "vault").resolve()


def outside(root: Path) -> Path:
    return root.parent / "outside"


def secrets(root: Path, way: str) -> set[object]:
    """Tell what a way gives where the whole vault is the folder outside, and not here."""
    return _facts(WAYS[way](outside(root))) - _facts(WAYS[way](root))


def _facts(answer: object) -> set[object]:
    return set(cast("list[object]", answer)) if isinstance(answer, list) else {str(answer)}


@contextmanager
def _swapping_after_resolution(monkeypatch: pytest.MonkeyPatch, root: Path, folder: str) -> Generator[None]:
    """Make a folder a link to the one outside once it was found that no link lies on the way."""
    find, swapped = files.find_path, list[bool]()

    def found(*args: object, **more: object) -> files.ResolvedFile:
        place = find(*args, **more)  # pyright: ignore[reportArgumentType] - handed on as they come
        if not swapped and PATH in args:
            swapped.append(True)
            (root / folder).rename(root.parent / "away")
            (root / folder).symlink_to(outside(root) / folder)
        return place

    with monkeypatch.context() as patch:
        patch.setattr(files, "find_path", found)
        yield
    assert swapped


@pytest.mark.parametrize("folder", ["Area", "Area/Topic", PATH])
@pytest.mark.parametrize("way", [way for way in WAYS if not way.startswith(("list", "similar", "settings"))])
def test_what_became_a_link_after_it_was_looked_at_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch, way: str, folder: str
) -> None:
    told = secrets(root, way)
    answer: object = None
    with _swapping_after_resolution(monkeypatch, root, folder):
        try:
            answer = WAYS[way](root)
        except (KnapError, OSError) as error:
            answer = error

    assert not _facts(answer) & told
    assert CANARY not in str(answer)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_is_read_while_a_folder_is_swapped_again_and_again(root: Path, way: str) -> None:
    told = secrets(root, way)
    folder = ".obsidian" if way == "settings" else "Area"
    command = [sys.executable, "-c", _SWAP, root / folder, root.parent / "away", outside(root) / folder]
    tries, leaks = 0, set[object]()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapping:
        try:
            assert swapping.stdout
            _ = swapping.stdout.readline()
            until = time.monotonic() + _SECONDS
            while time.monotonic() < until:
                try:
                    leaks |= _facts(WAYS[way](root)) & told
                except (KnapError, OSError) as error:
                    leaks |= {str(error)} if CANARY in str(error) else set()
                tries += 1
        finally:
            swapping.kill()

    assert leaks == set()
    assert tries > 20


@pytest.mark.parametrize("way", [way for way in WAYS if way not in {"settings", "similar names"}])
def test_links_inside_the_vault_are_followed_as_before(root: Path, way: str) -> None:
    before = _facts(WAYS[way](root))
    (root / "Area" / "Topic" / "Note.md").rename(root / "Kept.md")
    (root / "Area" / "Topic" / "Note.md").symlink_to(root / "Kept.md")
    after = _facts(WAYS[way](root))

    assert after >= before or way in {"identity", "list", "list of a folder"}
    assert after


def _stage(folder: Path) -> None:
    Files().stage(folder / ".knap-tmp-a-0", b"new", like=None, mode=None)


def _exchange(folder: Path) -> None:
    (folder.parents[1] / "staged.md").write_bytes(b"new")
    Files().swap(folder.parents[1] / "staged.md", folder / "Note.md")


def _create(folder: Path) -> None:
    (folder.parents[1] / "staged.md").write_bytes(b"new")
    Files().place(folder.parents[1] / "staged.md", folder / "New.md")


WRITES: Final[dict[str, Callable[[Path], object]]] = {
    "stage": _stage,
    "exchange": _exchange,
    "create": _create,
    "delete": lambda folder: Files().unlink(folder / "Note.md"),
    "make a folder": lambda folder: Files().mkdir(folder / "New", mode=None),
    "remove a folder": lambda folder: Files().rmdir(folder / "Empty"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are exchanged by their paths")
@pytest.mark.parametrize("folder", ["Area", "Area/Topic"])
@pytest.mark.parametrize("way", WRITES)
def test_nothing_is_written_where_a_folder_became_a_link(root: Path, way: str, folder: str) -> None:
    (outside(root) / "Area" / "Topic" / "Empty").mkdir()
    before = {path: path.read_bytes() for path in outside(root).rglob("*") if path.is_file()}
    folders = {path for path in outside(root).rglob("*") if path.is_dir()}
    (root / folder).rename(root.parent / "away")
    (root / folder).symlink_to(outside(root) / folder)

    with pytest.raises(OSError, match=f"{os.strerror(errno.ELOOP)}|{os.strerror(errno.ENOTDIR)}"):
        WRITES[way](root / "Area" / "Topic")
    assert {path: path.read_bytes() for path in outside(root).rglob("*") if path.is_file()} == before
    assert {path for path in outside(root).rglob("*") if path.is_dir()} == folders


WITHOUT_NATIVE: Final = Files(native=None, wait_s=0)
METADATA: Final[dict[str, Callable[[Path], object]]] = {
    "sync": lambda folder: WITHOUT_NATIVE.sync(folder / "a.md"),
    "sync_folder": WITHOUT_NATIVE.sync_folder,
    "sync_subfolder": lambda folder: WITHOUT_NATIVE.sync_folder(folder / "sub"),
    "stage_with_mode": lambda folder: WITHOUT_NATIVE.stage(folder / "t", b"x", like=None, mode=0o600),
    "stage_like": lambda folder: WITHOUT_NATIVE.stage(folder.parent / "t", b"x", like=folder / "a.md", mode=None),
    "mkdir": lambda folder: WITHOUT_NATIVE.mkdir(folder / "sub", mode=0o755),
    "mkdir_new": lambda folder: WITHOUT_NATIVE.mkdir(folder / "new", mode=0o755),
    "place": lambda folder: WITHOUT_NATIVE.place(folder / "a.md", folder / "c.md"),
    "place_folder": lambda folder: WITHOUT_NATIVE.place(folder / "sub", folder / "other"),
    "place_there": lambda folder: WITHOUT_NATIVE.place(folder.parent / "mine.md", folder / "c.md"),
    "swap": lambda folder: WITHOUT_NATIVE.swap(folder / "a.md", folder / "b.md"),
    "swap_there": lambda folder: WITHOUT_NATIVE.swap(folder.parent / "mine.md", folder / "b.md"),
    "mend": lambda folder: WITHOUT_NATIVE.mend(folder / "kept"),
    "respell": lambda folder: WITHOUT_NATIVE.respell(folder / "a.md", folder / "A.md"),
    "link_hash": lambda folder: WITHOUT_NATIVE.link_hash(folder / "link"),
}


@pytest.mark.parametrize("operation", METADATA)
def test_no_operation_of_a_change_reaches_through_a_folder_that_became_a_link(tmp_path: Path, operation: str) -> None:
    root, outside = tmp_path / "vault", tmp_path / "outside"
    for place in (outside, outside / "sub", root):
        place.mkdir()
    for name in ("a.md", "b.md", "kept-old"):
        (outside / name).write_text(name, encoding="utf-8")
    (outside / "link").symlink_to("a.md")
    (outside / "a.md").chmod(0o600)
    (outside / "sub").chmod(0o700)
    (root / "mine.md").write_text("mine", encoding="utf-8")
    (root / "folder").symlink_to(outside)
    before = _places(outside)

    with pytest.raises(OSError) as refused:  # noqa: PT011 - its number is looked at
        METADATA[operation](root / "folder")

    assert refused.value.errno in {errno.ELOOP, errno.ENOTDIR}
    assert _places(outside) == before
    assert (root / "mine.md").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("operation", ["hash_now", "settled_hash"])
def test_of_what_lies_behind_a_link_no_kind_is_told(tmp_path: Path, operation: str) -> None:
    (tmp_path / "outside" / "sub").mkdir(parents=True)
    (tmp_path / "folder").symlink_to(tmp_path / "outside")

    with pytest.raises(OSError):  # noqa: PT011 - as above
        getattr(WITHOUT_NATIVE, operation)(tmp_path / "folder" / "sub")
    assert WITHOUT_NATIVE.hash_now(tmp_path / "outside" / "sub") == "folder"
    assert WITHOUT_NATIVE.hash_now(tmp_path / "outside" / "none") is None


def test_what_stands_in_for_a_file_gets_its_mode_and_attributes_though_its_name_is_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between writing the new text and giving it the mode of the old one, the folder becomes a link."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "folder" / "like").write_text("x", encoding="utf-8")
    (tmp_path / "folder" / "like").chmod(0o640)
    (tmp_path / "outside" / "t").write_text("theirs", encoding="utf-8")
    (tmp_path / "outside" / "t").chmod(0o600)
    fdopen: Any = os.fdopen

    def swap_then_write(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as the function has them
        if (tmp_path / "folder" / "t").exists() and not (tmp_path / "folder").is_symlink():
            (tmp_path / "folder").rename(tmp_path / "away")
            (tmp_path / "folder").symlink_to(tmp_path / "outside")
        return fdopen(*arguments, **options)

    monkeypatch.setattr(os, "fdopen", swap_then_write)
    with contextlib.suppress(OSError):
        WITHOUT_NATIVE.stage(tmp_path / "folder" / "t", b"mine", like=tmp_path / "folder" / "like", mode=None)

    assert (tmp_path / "outside" / "t").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "outside" / "t").read_text(encoding="utf-8") == "theirs"


def _places(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.lstat().st_ino, path.lstat().st_mode) for path in (folder, *folder.iterdir())}
