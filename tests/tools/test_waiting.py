"""What waits for a person's yes says that nothing has changed, and where the yes is given."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper import app
from knapper.config import Vault
from tests.index import worlds
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {"A.md": "# A\n\nOne.\n", "B.md": "See [[A]].\n"}

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "an edit": ("edit_file", {"path": "A.md", "old_text": "One", "new_text": "Two"}),
    "a new note": ("create_file", {"path": "New.md", "content": "x"}),
    "a move": ("move_file", {"source": "A.md", "destination": "Sub/A.md"}),
    "a batch": ("batch_move_files", {"moves": [{"source": f"{n}.md", "destination": f"S/{n}.md"} for n in "AB"]}),
    "a preference": ("save_preference", {"preference": "Be brief."}),
    "a day's note": ("daily_note", {"create": True}),
    "the trash": ("delete_file", {"path": "A.md"}),
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.mark.parametrize("what", CALLS)
def test_a_proposed_answer_says_that_nothing_has_changed_and_how_it_is_accepted(vault: Opener, what: str) -> None:
    name, arguments = CALLS[what]
    with vault.open("agent") as context:
        answer = opened.call(context, name, **arguments)

    command = f"knap edits review {answer['proposal_id']}"
    assert (answer["status"], answer["review_command"]) == ("proposed", command)
    assert "nothing has changed yet" in answer["message"]
    assert command in answer["message"]
    assert "review_url" not in answer
    assert vault.text("A.md") == NOTES["A.md"]


@pytest.mark.parametrize("client", ["mcp", "http"])
@pytest.mark.parametrize("what", CALLS)
def test_what_names_its_files_is_done_at_once_for_a_program_and_can_be_taken_back(
    vault: Opener, what: str, client: str
) -> None:
    name, arguments = CALLS[what]
    with vault.open(client) as context:
        answer = opened.call(context, name, **arguments)
        done = files(vault)
        undone = opened.call(context, "undo_change", change_id=answer["change_id"])

    assert answer["status"] == "applied"
    assert done != files(vault) == NOTES
    assert undone["success"]


def files(vault: Opener) -> dict[str, str]:
    """Return the text of every file, by its path; those of the trash aside."""
    names = [path.relative_to(vault.root).as_posix() for path in vault.root.rglob("*.md") if ".trash" not in path.parts]
    return {name: vault.text(name) for name in names}


def test_a_batch_still_counts_what_it_proposes(vault: Opener) -> None:
    moves = [{"source": "A.md", "destination": "S/A.md"}, {"source": "Gone.md", "destination": "S/G.md"}]
    with vault.open("agent") as context:
        answer = opened.call(context, "batch_move_files", moves=moves)

    assert answer["message"].startswith("proposed: 1 of 2; nothing has changed yet")


def test_what_is_applied_says_nothing_of_the_kind(vault: Opener) -> None:
    with vault.open() as context:
        answer = opened.call(context, "append_to_file", path="A.md", content="More.")

    assert answer["status"] == "applied"
    assert not answer.keys() & {"review_command", "review_url", "message"}


def _several(base: Path, names: Mapping[str, str]) -> list[Vault]:
    return [Vault(name=name, path=worlds.fill(base / folder, NOTES).resolve()) for name, folder in names.items()]


def test_the_command_names_the_vault_where_there_are_several(vault: Opener, tmp_path: Path) -> None:
    vaults = _several(tmp_path, {"Work": "w", "My notes; rm": "m"})
    settings = replace(vault.settings(), choice=vaults[1], vaults=tuple(vaults))
    with app.open_vault(settings, client="agent") as context:
        answer = opened.call(context, "delete_file", path="A.md")

    assert answer["review_command"] == f"knap edits review {answer['proposal_id']} -v 'My notes; rm'"
    assert answer["review_command"] in answer["message"]


def test_on_a_server_the_answer_has_the_pages_address_of_it(vault: Opener, tmp_path: Path) -> None:
    vaults = _several(tmp_path, {"Work": "w", "My notes&": "m"})
    with app.open_hub(vault.settings()) as one, app.open_hub(replace(vault.settings(), vaults=tuple(vaults))) as many:
        one.page_address = many.page_address = "http://127.0.0.1:25627"
        alone = opened.call(one.context(client="agent"), "delete_file", path="A.md")
        among = opened.call(many.context(client="agent", vault="My notes&"), "delete_file", path="A.md")

    assert alone["review_url"] == f"http://127.0.0.1:25627/#proposal={alone['proposal_id']}"
    assert among["review_url"] == f"http://127.0.0.1:25627/#vault=My%20notes%26&proposal={among['proposal_id']}"
    assert alone["review_url"] in alone["message"]


def test_who_may_not_accept_is_told_what_a_person_does(vault: Opener) -> None:
    with vault.open("agent") as context:
        name = opened.call(context, "delete_file", path="A.md")["proposal_id"]
        shown = opened.call(context, "show_proposal", proposal_id=name)
        refused = opened.call(context, "accept_proposal", proposal_id=name, digest=shown["digest"])

    assert shown["review_command"] == f"knap edits review {name}"
    assert (refused["success"], refused["code"]) == (False, "person_needed")
    assert "nothing has changed yet" in refused["hint"]
    assert refused["review_command"] == f"knap edits review {name}"
    assert refused["review_command"] in refused["hint"]
