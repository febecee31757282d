import hashlib
import os
import socket
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knapper.errors import BadInput, KnapError, NotFound, RefusedError, StorageError
from knapper.system import opening
from knapper.vault import files, parser
from knapper.vault.paths import NotePath


def test_a_note_is_its_bytes_with_their_hash_and_outline(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbf# Title\r\n\r\n[[Other]]"
    (tmp_path / "Note.md").write_bytes(raw)

    note = parser.read_note(tmp_path, NotePath("note.md"))

    assert note.path == "Note.md"
    assert note.raw == raw
    assert note.hash == f"sha256:{hashlib.sha256(raw).hexdigest()}"
    assert note.outline == parser.parse_note(raw)
    assert note.outline.links[0].target == "Other"


def test_an_empty_note_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "empty.md").touch()

    assert parser.read_note(tmp_path, NotePath("empty.md")).raw == b""


def test_a_missing_note_is_told_with_the_nearest_names(tmp_path: Path) -> None:
    (tmp_path / "Meeting.md").touch()

    with pytest.raises(NotFound) as error:
        parser.read_note(tmp_path, NotePath("Meting.md"))

    assert "'Meeting.md'" in error.value.hint


def test_a_note_that_vanished_after_it_was_found_is_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as error:
        files.read_bytes(tmp_path / "a.md", shown_as="a.md")

    assert str(tmp_path) not in str(error.value.as_dict())


def test_a_note_outside_the_vault_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("not ours", encoding="utf-8")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").symlink_to(tmp_path / "outside.md")

    with pytest.raises(RefusedError):
        parser.read_note(vault, NotePath("a.md"))


def test_a_link_put_in_a_files_place_after_the_check_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("not ours", encoding="utf-8")
    (tmp_path / "a.md").symlink_to("secret")

    with pytest.raises(NotFound):
        files.read_bytes(tmp_path / "a.md", shown_as="a.md")


def test_a_folder_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()

    with pytest.raises(BadInput) as error:
        parser.read_note(tmp_path, NotePath("folder.md"))

    assert error.value.code == "not_a_file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.timeout(5)
def test_a_pipe_is_no_note_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    with pytest.raises(BadInput) as error:
        parser.read_note(tmp_path, NotePath("pipe.md"))

    assert error.value.code == "not_a_file"


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")
def test_what_the_system_refuses_to_open_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.md")

        with pytest.raises(StorageError) as error:
            parser.read_note(tmp_path, NotePath("s.md"))

    assert "'s.md'" in error.value.message


def test_a_note_larger_than_the_limit_is_refused_and_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"12345")

    assert parser.read_note(tmp_path, NotePath("a.md"), max_bytes=5).raw == b"12345"
    with pytest.raises(BadInput) as error:
        parser.read_note(tmp_path, NotePath("a.md"), max_bytes=4)
    assert error.value.code == "too_large"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        ("naïve 🗂️\n".encode(), "naïve 🗂️\n"),
        (b"\xef\xbb\xbfa", "a"),
        ("é\n".encode("utf-16"), "é\n"),
        (b"\xfe\xff" + "é\n".encode("utf-16-be"), "é\n"),
        (b"\xff\xfea", "\ufffd"),
        ("good é\n".encode() + b"old \x93quote\x94\r\n", "good é\nold “quote”\r\n"),
        (b"gap \x81\n", "gap \x81\n"),
        (b"a\rb\xe9\rc", "a\rbé\rc"),
        (b"nul \0 stays", "nul \0 stays"),
    ],
)
def test_any_bytes_have_a_text(raw: bytes, text: str) -> None:
    assert parser.decode_text(raw) == text


@given(st.binary())
@example(b"\xff\xfe\x00\xd8")
def test_a_text_has_the_lines_of_its_bytes(raw: bytes) -> None:
    text = parser.decode_text(raw)

    if not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert text.count("\n") == raw.count(b"\n")
        assert text.count("\r") == raw.count(b"\r")


@given(st.text())
def test_the_text_of_utf8_is_that_text(text: str) -> None:
    assert parser.decode_text(text.encode(errors="replace")) == text.encode(errors="replace").decode().removeprefix(
        "\ufeff"
    )


def test_errors_are_those_that_people_know(tmp_path: Path) -> None:
    for name in ("a.md", "x/y.md"):
        with pytest.raises(KnapError) as error:
            parser.read_note(tmp_path, NotePath(name))
        assert error.value.hint


def test_on_windows_a_note_is_read_though_it_is_replaced_just_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = (tmp_path / "note.md").write_text("Rain.")
    open_stream, errors = opening.open_stream, [FileNotFoundError(), PermissionError()]

    def open_late(path: Path) -> BinaryIO:
        if errors:
            raise errors.pop()
        return open_stream(path)

    monkeypatch.setattr(opening, "open_stream", open_late)
    windows = opening.System(is_windows=True)

    with files.open_found(tmp_path / "note.md", system=windows) as opened:
        assert opened.read()
    with pytest.raises(FileNotFoundError):
        files.open_found(tmp_path / "nope.md", system=windows)


def test_a_folder_that_windows_refuses_to_open_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "shut.md").touch()

    def refuse(path: Path) -> BinaryIO:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(opening, "open_stream", refuse)

    with pytest.raises(BadInput, match=r"'folder.md' isn't a file"):
        files.read_bytes(tmp_path / "folder.md", shown_as="folder.md")
    with pytest.raises(StorageError, match=r"'shut.md' can't be read"):
        files.read_bytes(tmp_path / "shut.md", shown_as="shut.md")
