import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.vault import attachments
from knapper.vault.attachments import Names
from knapper.vault.paths import NotePath
from knapper.vault.settings import ObsidianSettings

SOURCE = NotePath("Work/Calls/note.md")


def find(files: list[str], target: str, folder: str = "/", source: NotePath = SOURCE) -> str | None:
    names = Names.of(NotePath(file) for file in files)
    return attachments.find(names, target, source=source, settings=ObsidianSettings(attachment_folder_path=folder))


@pytest.mark.parametrize(
    ("files", "folder", "expected"),
    [
        (["x.m4a", "Work/Calls/x.m4a", "Attachments/x.m4a"], "Attachments", "x.m4a"),
        (["Work/Calls/x.m4a", "Attachments/x.m4a"], "Attachments", "Work/Calls/x.m4a"),
        (["A/x.m4a", "Long folder/Attachments/x.m4a"], "Long folder/Attachments", "Long folder/Attachments/x.m4a"),
        (["A/x.m4a", "Work/Calls/files/x.m4a"], "./files", "Work/Calls/files/x.m4a"),
        (["A/x.m4a", "Work/Calls/x.m4a"], "./", "Work/Calls/x.m4a"),
        (["A/B/x.m4a", "Longer/x.m4a", "C/D/E/x.m4a"], "/", "Longer/x.m4a"),
        (["B/x.m4a", "A/x.m4a"], "/", "A/x.m4a"),
        (["x.mp3", "xx.m4a"], "/", None),
        ([], "../../outside", None),
    ],
)
def test_a_name_is_looked_for_where_obsidian_looks(files: list[str], folder: str, expected: str | None) -> None:
    assert find(files, "x.m4a", folder) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("Audio/x.m4a", "Audio/x.m4a"),
        ("AUDIO/X.M4A", "Audio/x.m4a"),
        ("/Audio/x.m4a", "Audio/x.m4a"),
        ("/x.m4a", None),
        ("../x.m4a", "Work/x.m4a"),
        ("./sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("Calls/sub/x.m4a", "Work/Calls/sub/x.m4a"),
        ("alls/sub/x.m4a", None),
        ("./x.m4a", None),
        ("../../../../etc/x.m4a", None),
        ("Audio/../../Audio/x.m4a", None),
        ("cafe\u0301.m4a", "Audio/caf\u00e9.m4a"),
        ("", None),
        ("/", None),
        ("..", None),
    ],
)
def test_a_path_counts_from_the_vault_or_the_note(target: str, expected: str | None) -> None:
    files = ["Audio/x.m4a", "Work/x.m4a", "Work/Calls/sub/x.m4a", "Audio/caf\u00e9.m4a"]

    assert find(files, target) == expected


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

    assert attachments.folder_for(NotePath(source), settings) == folder


@pytest.mark.parametrize("path", ["a.m4a", "b/A.MP3", "x.webm", "x.wav", "x.ogg", "x.flac", "x.mp4", "x.3gp"])
def test_an_ending_tells_speech(path: str) -> None:
    assert attachments.is_audio(path)


@pytest.mark.parametrize("path", ["a.md", "m4a", ".mp3", "a.mp3.md"])
def test_other_files_hold_none(path: str) -> None:
    assert not attachments.is_audio(path)


@given(st.lists(st.sampled_from(["x", "y", "..", ".", "", "Work", "Calls"]), max_size=6).map("/".join))
def test_what_is_found_is_a_file_that_may_be_found(target: str) -> None:
    files = ["x", "Work/x", "Work/Calls/y", "y/x"]

    assert find(files, target, "../..") in {None, *files}
