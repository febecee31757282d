import os
import sys
from pathlib import Path

import pytest

from knapper.changes.disk import files


def test_a_temp_file_holds_all_of_the_content(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)

    files.stage_file(tmp_path / "t", content)

    assert (tmp_path / "t").read_bytes() == content


def test_a_temp_file_is_never_written_over_another_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"there")

    with pytest.raises(FileExistsError):
        files.stage_file(tmp_path / "t", b"new")

    assert (tmp_path / "t").read_bytes() == b"there"


@pytest.mark.skipif(os.name == "nt", reason="no such modes")
def test_a_temp_file_gets_the_mode_that_is_asked_for_or_the_default(tmp_path: Path) -> None:
    (tmp_path / "like").write_bytes(b"")
    (tmp_path / "like").chmod(0o604)
    mask = os.umask(0o027)
    try:
        files.stage_file(tmp_path / "new", b"")
    finally:
        os.umask(mask)
    files.stage_file(tmp_path / "asked", b"", mode=0o600)
    files.stage_file(tmp_path / "kept", b"", like=tmp_path / "like", mode=0o777)

    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("new", "asked", "kept")}
    assert modes == {"new": 0o640, "asked": 0o600, "kept": 0o604}


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")
def test_attributes_that_the_system_refuses_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def labels(_: Path) -> list[str]:
        return ["security.label"]

    def label(*_: object) -> bytes:
        return b"label"

    def refuse(*_: object) -> None:
        raise PermissionError

    (tmp_path / "like").write_bytes(b"")
    monkeypatch.setattr(os, "listxattr", labels)
    monkeypatch.setattr(os, "getxattr", label)
    monkeypatch.setattr(os, "setxattr", refuse)

    files.stage_file(tmp_path / "t", b"text", like=tmp_path / "like")

    assert (tmp_path / "t").read_bytes() == b"text"


def test_names_begin_with_a_dot_and_tell_the_change() -> None:
    assert files.temp_name("abc", 7) == ".knap-tmp-abc-7"


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_an_open_writer_is_seen_and_a_reader_isnt(tmp_path: Path) -> None:
    note = tmp_path / "n.md"
    note.write_bytes(b"text")

    with note.open("rb"):
        assert files.wait_for_writers(note, timeout_s=0)
    with note.open("ab"):
        assert not files.wait_for_writers(note, timeout_s=0.01)

    assert files.wait_for_writers(note, timeout_s=0)


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_where_no_lease_is_ever_granted_nobody_is_suspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: int) -> bool:
        return False

    (tmp_path / "n.md").write_bytes(b"text")
    monkeypatch.setattr(files, "_lease_granted", refused)

    assert files.wait_for_writers(tmp_path / "n.md", timeout_s=0)
    assert [path.name for path in tmp_path.iterdir()] == ["n.md"]
