"""What clients try so as to do more than they may; none of it works, on whichever way it is tried."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.drafts import (
    AddText,
    Create,
    EditProperty,
    EditText,
    Move,
    RenameHeading,
    RenameTag,
    Request,
    Trash,
)
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import SubmitOptions, Writer
from knapper.errors import RefusedError
from knapper.vault import access
from knapper.vault.access import Grants
from tests.changes import desks
from tests.changes.desks import World

NOTES: Mapping[str, str] = {f"N{number}.md": f"---\nn: {number}\n---\n# N #x\n[[N0]]\n" for number in range(7)}
BOLD = replace(access.default_grants("mcp"), large="apply", guarded=("Preferences.md",))
"""The boldest that an owner can make a client that is no person."""


def as_client(world: World, own: Grants) -> Writer:
    return replace(world.writer, grants=own)


@pytest.mark.parametrize("client", ["agent", "script", "unheard-of"])
@pytest.mark.parametrize(
    "request_",
    [
        EditProperty(path="N1.md", word="set", name="n", value="8"),
        RenameTag(old="x", new="y", paths=("N1.md",)),
        RenameTag(old="x", new="y"),
        Move(source="N1.md", destination="Sub/N1.md"),
        RenameHeading(path="N1.md", heading="N #x", title="M"),
        Trash(path="N1.md"),
        Create(path="New.md", content="x"),
        AddText(path="N1.md", content="x", where="end"),
        EditText(path="N1.md", old="[[N0]]", new="x"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else one,
)
def test_property_tag_and_move_writes_do_not_pass_by_the_review(tmp_path: Path, client: str, request_: Request) -> None:
    with desks.world(tmp_path, dict(NOTES), client=client) as world:
        before = world.tree()
        done = world.submit(request_)

        assert (done.status, world.tree()) == ("proposed", before)


def test_no_client_accepts_what_it_would_have_to_propose(tmp_path: Path) -> None:
    many: list[Request] = [EditProperty(path=path, word="set", name="n", value="x") for path in list(NOTES)[:6]]
    with desks.world(tmp_path, dict(NOTES)) as world:
        bold = as_client(world, BOLD)
        agent = as_client(world, access.default_grants("agent"))
        before = world.tree()
        for made in (bold.submit(many), agent.submit(many), agent.submit([RenameTag(old="x", new="y")])):
            digest = Reviewer(writer=bold).refit(made.proposal_id).digest
            with pytest.raises(RefusedError, match="only a person can accept this"):
                Reviewer(writer=bold).accept(made.proposal_id, digest)

        assert world.tree() == before


def test_what_a_bold_client_may_do_itself_it_accepts_too(tmp_path: Path) -> None:
    with desks.world(tmp_path, dict(NOTES)) as world:
        bold = as_client(world, BOLD)
        made = as_client(world, access.default_grants("agent")).submit([Move(source="N1.md", destination="Sub/N1.md")])
        done = Reviewer(writer=bold).accept(made.proposal_id, Reviewer(writer=bold).refit(made.proposal_id).digest)

        assert (done.status, (world.root / "Sub/N1.md").exists()) == ("applied", True)


def test_who_has_read_foreign_text_puts_none_of_it_into_what_is_trusted(tmp_path: Path) -> None:
    with desks.world(tmp_path, dict(NOTES)) as world:
        mcp = as_client(world, access.default_grants("mcp"))
        clean = mcp.submit([EditText(path="N1.md", old="[[N0]]", new="x")], SubmitOptions(propose=True)).proposal_id
        reviewer = Reviewer(writer=mcp)
        mcp.taints.mark("mcp", "r1", "Clippings/Web.md")
        digest = reviewer.refit(clean).digest
        with pytest.raises(RefusedError, match="before text was read"):
            reviewer.edit(clean, digest, "1.1", "do as they say", run="r1")
        edited = reviewer.edit(clean, digest, "1.1", "y", run="r2").proposal

        assert edited.files[0].hunks[0].edited


def test_nobody_but_a_person_gives_a_persons_word(tmp_path: Path) -> None:
    with desks.world(tmp_path, dict(NOTES)) as world:
        for own in (
            BOLD,
            access.default_grants("agent"),
            access.default_grants("script"),
            access.default_grants("http"),
        ):
            with pytest.raises(RefusedError, match="no person"):
                as_client(world, own).submit([Trash(path="N1.md")], SubmitOptions(approved_by_person=True))


@pytest.mark.parametrize("path", ["Preferences.md", "PREFERENCES.md", "./Preferences.md", "Sub/../Preferences.md"])
def test_preferences_wait_for_a_persons_word_in_any_spelling(tmp_path: Path, path: str) -> None:
    with desks.world(tmp_path, {**NOTES, "Preferences.md": "- be short\n"}) as world:
        bold = as_client(world, BOLD)
        requests: list[Request] = [
            AddText(path=path, content="- obey", where="end"),
            EditProperty(path=path, word="set", name="a", value="b"),
            Move(source=path, destination="Old.md"),
            Trash(path=path),
        ]
        for one in requests:
            assert bold.submit([one]).status == "proposed"

        assert world.text("Preferences.md") == "- be short\n"


def test_nothing_becomes_the_preferences_by_a_move(tmp_path: Path) -> None:
    with desks.world(tmp_path, dict(NOTES)) as world:
        bold = as_client(world, BOLD)

        assert bold.submit([Move(source="N1.md", destination="Preferences.md")]).status == "proposed"
        assert bold.submit([Create(path="preferences.md", content="- obey")]).status == "proposed"
