from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.vault import obsidian, paths
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.paths import NotePath, base_name

SOURCE = NotePath("Work/Calls/note.md")


def places(files: Sequence[str], target: str, folder: str = "/", source: NotePath = SOURCE) -> tuple[str, ...]:
    def lookup(key: str) -> list[NotePath]:
        return [NotePath(file) for file in files if paths.lookup_key(base_name(file)) == key]

    settings = ObsidianSettings(attachment_folder_path=folder)
    return obsidian.list_attachment_paths(target, source=source, settings=settings, lookup=lookup)


@pytest.mark.parametrize(
    ("files", "folder", "expected"),
    [
        (["x.m4a", "Work/Calls/x.m4a", "Attachments/x.m4a"], "Attachments", "x.m4a"),
        (["Work/Calls/x.m4a", "Attachments/x.m4a"], "Attachments", "Work/Calls/x.m4a"),
        (["A/B/x.m4a", "Longer/x.m4a", "C/D/E/x.m4a"], "/", "A/B/x.m4a"),
        (["B/x.m4a", "A/x.m4a"], "/", "A/x.m4a"),
        ([], "Attachments", "Attachments/x.m4a"),
        ([], "./files", "Work/Calls/files/x.m4a"),
        ([], "./", "Work/Calls/x.m4a"),
        ([], "../../outside", "x.m4a"),
    ],
)
def test_a_file_is_looked_for_first_where_its_link_leads(files: list[str], folder: str, expected: str) -> None:
    assert places(files, "x.m4a", folder)[0] == expected


def test_a_new_file_may_be_in_the_folder_for_attachments_beside_the_note_or_at_the_root() -> None:
    assert places([], "x.m4a", "Files") == ("Files/x.m4a", "Work/Calls/x.m4a", "x.m4a")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("Audio/x.m4a", "Audio/x.m4a"),
        ("AUDIO/X.M4A", "Audio/x.m4a"),
        ("/Audio/x.m4a", "Audio/x.m4a"),
        ("../x.m4a", "Work/x.m4a"),
        ("./sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("Calls/sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("caf\u00e9.m4a", "Audio/cafe\u0301.m4a"),
    ],
)
def test_a_path_counts_from_the_vault_or_the_note(target: str, expected: str) -> None:
    files = ["Audio/x.m4a", "Work/x.m4a", "Work/Calls/sub/x.m4a", "Audio/cafe\u0301.m4a"]

    assert places(files, target)[0] == expected


@pytest.mark.parametrize("target", ["../../../../etc/x.m4a", "", "/", ".."])
def test_what_leaves_the_vault_is_nowhere(target: str) -> None:
    assert all(not place.startswith("..") for place in places([], target))


@pytest.mark.parametrize(
    ("setting", "source", "folder"),
    [
        ("/", "Work/a.md", ""),
        ("./", "Work/a.md", "Work"),
        ("./", "a.md", ""),
        ("./files", "Work/a.md", "Work/files"),
        ("./files", "a.md", "files"),
        ("Attachments", "Work/a.md", "Attachments"),
        ("Attachments/", "Work/a.md", "Attachments"),
        ("../../x", "Work/a.md", ""),
    ],
)
def test_new_attachments_go_where_the_settings_say(setting: str, source: str, folder: str) -> None:
    settings = ObsidianSettings(attachment_folder_path=setting)

    assert obsidian.attachment_folder(NotePath(source), settings) == folder


@pytest.mark.parametrize(
    "path", ["a.m4a", "b/A.MP3", "x.webm", "x.wav", "x.ogg", "x.flac", "x.mp4", "x.3gp", "x.opus", "x.aac"]
)
def test_an_ending_tells_speech(path: str) -> None:
    assert obsidian.is_audio(path)


@pytest.mark.parametrize("path", ["a.md", "m4a", ".mp3", "a.mp3.md"])
def test_other_files_hold_none(path: str) -> None:
    assert not obsidian.is_audio(path)


@given(st.lists(st.sampled_from(["x", "y", "..", ".", "", "Work", "Calls"]), max_size=6).map("/".join))
def test_no_place_is_out_of_the_vault(target: str) -> None:
    found = places(["x", "Work/x", "Work/Calls/y", "y/x"], target, "../..")

    assert all(".." not in place.split("/") and not place.startswith("/") for place in found)
