"""What a client can't find out by asking: where the vault lies, and what a link leads to that it may not see."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from knapper.errors import KnapError, RefusedError
from knapper.vault.access import Policy
from knapper.vault.view import View
from tests.index import worlds

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs links that anybody may make")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    notes = {"Area/Note.md": "mine", "Secret/Diary.md": "hidden", "Area/Other.md": "other"}
    notes |= {f"Area/Filler {number}.md": "x" for number in range(200)}
    return worlds.fill(tmp_path / "vault", notes).resolve()


def view(root: Path, client: str = "mcp") -> View:
    return View.open(root, Policy(client=client, hidden=("Secret/",)))


def told(call: Any, raw: str) -> str:  # noqa: ANN401 - any method that takes a path
    with pytest.raises(KnapError) as raised:
        call(raw)
    return str(raised.value.as_dict())


INSIDE = ("", "/", "/Area", "/Area/", "/Nothing.md", "/Area/Noet.md", "/Secret/Diary.md", "/../vault", "/area/none.md")
OUTSIDE = ("/etc/passwd", "/etc", "/", "//server/share/a.md", "/nowhere/at/all.md", "C:\\Notes\\a.md", "\\\\server\\a")


@pytest.mark.parametrize("client", ["mcp", "http", "agent", "script", "mine"])
def test_an_absolute_path_tells_others_nothing_of_where_the_vault_lies(root: Path, client: str) -> None:
    seen = view(root, client)
    spellings = [*(f"{root}{tail}" for tail in INSIDE), *(f"{root.parent}{tail}" for tail in INSIDE), *OUTSIDE]
    spellings += [f"{root}/a\0b.md", f"{root}/{'x' * 300}"]
    calls = (seen.path, seen.read, seen.new_path, seen.parse, seen.locate, partial(seen.locate, certain=True))
    answers = {told(call, raw) for raw in spellings for call in calls}

    assert len(answers) == 1
    assert str(root) not in str(answers)
    assert told(seen.new_path, f"{root}/New.md") == told(seen.new_path, f"{root.parent}/New.md")
    assert {told(seen.locate, f"[[{place}/Nothing|x]]") for place in (root, root.parent)} == answers


@pytest.mark.parametrize("client", ["mcp", "cli"])
def test_a_file_that_a_client_sees_may_be_named_by_a_whole_path(root: Path, client: str) -> None:
    seen = view(root, client)

    assert seen.read(f"{root}/Area/Note.md").raw == b"mine"
    assert seen.locate(f"{root}/Area/Note.md") == seen.locate(f"[[{root}/Area/Note.md]]") == "Area/Note.md"


def test_a_person_may_name_places_by_whole_paths(root: Path) -> None:
    seen = view(root, "cli")

    assert seen.new_path(f"{root}/Area/New.md") == "Area/New.md"
    assert seen.parse(f"{root}/Area") == "Area"
    with pytest.raises(KnapError, match=r"no file 'Area/Noet\.md'") as raised:
        seen.read(f"{root}/Area/Noet.md")
    assert "Area/Note.md" in raised.value.hint


def _work(call: Any, raw: str) -> tuple[int, dict[str, object]]:  # noqa: ANN401 - any method that takes a path
    """Count the calls that an answer takes: a time would depend on the machine."""
    counted = 0

    def count(*_: object) -> None:
        nonlocal counted
        counted += 1

    answer: dict[str, object] = {}
    for _ in range(2):  # the second time, nothing is imported or compiled any more
        counted = 0
        sys.setprofile(count)
        try:
            call(raw)
        except KnapError as error:
            answer = error.as_dict()
        finally:
            sys.setprofile(None)
    return counted, answer


@pytest.mark.parametrize(
    ("hidden", "nothing"),
    [
        ("Secret/Diary.md", "Secret/Nothing.md"),
        ("Secret/Diary.md", "Area/Nothing.md"),
        ("Secret/Diary.md", "Nothing/Nothing.md"),
    ],
)
def test_a_link_to_a_hidden_note_takes_as_much_work_as_one_to_nothing(root: Path, hidden: str, nothing: str) -> None:
    (root / "One.md").symlink_to(root / hidden)
    (root / "Two.md").symlink_to(root / nothing)
    seen = view(root)

    for call in (seen.path, seen.locate):
        (one, there), (two, gone) = _work(call, "One.md"), _work(call, "Two.md")
        assert str(there).replace("One", "Two") == str(gone)
        assert abs(one - two) <= 12 + one // 100


def test_a_link_to_a_hidden_folder_takes_as_much_work_as_one_to_nothing(root: Path) -> None:
    (root / "One").symlink_to(root / "Secret")
    (root / "Two").symlink_to(root / "Nothing")
    seen = view(root)

    for call in (seen.path, seen.locate):
        (one, there), (two, gone) = _work(call, "One/Diary.md"), _work(call, "Two/Diary.md")
        assert str(there).replace("One", "Two") == str(gone)
        assert abs(one - two) <= 12 + one // 100


def test_a_path_out_of_the_vault_is_still_named_as_such(root: Path) -> None:
    with pytest.raises(RefusedError, match="outside the vault"):
        view(root).read("../outside.md")
