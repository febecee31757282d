"""What somebody hears of, and can do to, the files of a proposal that are hidden from them."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.disk import undo
from knapper.changes.drafts import Move
from knapper.changes.proposals.store import ProposalFilter
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import Submission, SubmitOptions, Writer
from knapper.errors import KnapError, NotFound, RefusedError
from knapper.vault import access
from knapper.vault.access import Policy
from tests.changes import desks
from tests.changes.desks import World

NOTES = {"Zed.md": "z\n", "Page.md": "[[Zed]]\n", "Secret/Plan.md": "hush [[Zed]] hush\nmore [[Zed]]\n"}
GUEST = replace(access.default_grants("guest", "mcp"), small="apply", large="apply")
MOVE = Move(source="Zed.md", destination="Else/Zed 2.md")
PROPOSE = SubmitOptions(propose=True)


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    with desks.world(tmp_path, NOTES) as opened:
        yield opened


def guest(world: World) -> Writer:
    """Let a client write that may do anything but see one folder."""
    view = world.writer.context.view.with_policy(Policy(client="guest", hidden=("Secret/",)))
    return replace(world.writer, grants=GUEST, context=replace(world.writer.context, view=view))


def proposed(writer: Writer, request: Move = MOVE) -> tuple[str, str]:
    done = writer.submit([request], PROPOSE)
    return done.proposal_id, writer.proposals.show(done.proposal_id).digest


def named(reviewer: Reviewer, proposal: tuple[str, str], verb: str, name: str) -> object:
    """Name a file or hunk of a proposal."""
    number, digest = proposal
    match verb:
        case "accept a file":
            return reviewer.accept(number, digest, files=[name])
        case "accept a hunk":
            return reviewer.accept(number, digest, hunks=[name])
        case "plan":
            return reviewer.plan(number, digest, hunks=[name])
        case "reject a file":
            return reviewer.reject(number, files=[name])
        case "plan a rejection":
            return reviewer.plan_rejection(number, hunks=[name])
        case _:
            return reviewer.edit(number, digest, name, "mine\n")


@pytest.mark.parametrize(
    ("verb", "hidden", "missing"),
    [
        ("accept a file", "Secret/Plan.md", "Secret/Gone.md"),
        ("reject a file", "Secret/Plan.md", "Secret/Gone.md"),
        ("accept a hunk", "2.1", "9.1"),
        ("plan", "2.1", "9.1"),
        ("plan a rejection", "2.1", "9.1"),
        ("edit", "2.1", "9.1"),
    ],
)
def test_a_hidden_file_of_a_proposal_can_be_named_no_more_than_one_that_it_lacks(
    world: World, verb: str, hidden: str, missing: str
) -> None:
    writer = guest(world)
    proposal = proposed(writer)
    assert writer.proposals.show(proposal[0]).files[1].path == "Secret/Plan.md"
    told: list[str] = []

    for name in (hidden, missing):
        with pytest.raises(NotFound) as caught:
            named(Reviewer(writer=writer), proposal, verb, name)
        error = caught.value
        told.append(f"{error.code} {error.message} {error.hint}".replace(f"'{name}'", "NAME"))

    assert told[0] == told[1]


def test_no_text_of_a_clients_own_comes_into_a_hidden_note(world: World) -> None:
    writer = guest(world)
    number, digest = proposed(writer)
    with pytest.raises(NotFound):
        Reviewer(writer=writer).edit(number, digest, "2.1", "mine\n")

    done = Reviewer(writer=writer).accept(number, digest)

    assert (done.status, done.hidden) == ("applied", 1)
    assert world.text("Secret/Plan.md") == "hush [[Zed 2]] hush\nmore [[Zed 2]]\n"


def test_a_link_that_was_edited_into_text_follows_no_more(world: World) -> None:
    writer = replace(guest(world), grants=replace(GUEST, capabilities=frozenset({"move"})))
    number, digest = proposed(writer)
    assert writer.proposals.show(number).files[0].path == "Page.md"
    edited = Reviewer(writer=writer).edit(number, digest, "1.1", "anything at all\n").proposal

    with pytest.raises(RefusedError) as caught:
        Reviewer(writer=writer).accept(number, edited.digest)

    assert (caught.value.code, world.text("Page.md")) == ("capability", NOTES["Page.md"])


def test_what_a_hidden_note_holds_now_is_not_quoted_where_it_stands_in_the_way(world: World) -> None:
    writer = guest(world)
    number, _ = proposed(writer)
    (world.root / "Secret/Plan.md").write_text("quite [[Zed]] another\n", encoding="utf-8")
    reviewer = Reviewer(writer=writer)
    digest = reviewer.refit(number).digest

    with pytest.raises(KnapError) as caught:
        reviewer.accept(number, digest)

    said = str(caught.value.as_dict())
    assert caught.value.code == "stale"
    assert not [word for word in ("Secret", "Plan", "quite", "another") if word in said]


def test_a_hidden_file_that_cannot_be_written_is_not_named(world: World) -> None:
    (world.root / "Secret/Plan.md").chmod(0o444)

    for asked in (None, PROPOSE):
        with pytest.raises(KnapError) as caught:
            submitted_and_accepted(guest(world), asked)
        assert "Plan" not in str(caught.value.as_dict())
        assert caught.value.code == "read_only"
    assert (world.root / "Zed.md").exists()


def submitted_and_accepted(writer: Writer, asked: SubmitOptions | None) -> Submission:
    done = writer.submit([MOVE], asked)
    shown = writer.proposals.show(done.proposal_id)
    return Reviewer(writer=writer).accept(shown.id, shown.digest)


def test_neither_notices_nor_links_of_hidden_files_are_told_of_a_proposal(world: World) -> None:
    number, digest = proposed(world.writer, Move(source="Zed.md", destination="a]] b.md"))
    assert "Secret/Plan.md, line 1" in str(world.writer.proposals.show(number).notices)
    reviewer = Reviewer(writer=guest(world))

    shown = reviewer.refit(number)
    done = reviewer.accept(number, digest)

    assert any(notice.startswith("Page.md, line 1") for notice in shown.notices)
    assert "Secret" not in f"{shown}{done}"


def test_a_list_counts_and_finds_proposals_by_what_is_seen_of_them(world: World) -> None:
    proposed(world.writer, Move(source="Zed.md", destination="Zed 2.md"))
    view = guest(world).context.view
    find = world.writer.proposals.find

    [one] = find(ProposalFilter(visible=view.visible)).proposals
    by_hidden = find(ProposalFilter(visible=view.visible, path="Secret/Plan.md")).total

    assert (one.path, one.files, one.items["open"], by_hidden) == ("Page.md", 2, 2, 0)
    assert find(ProposalFilter(path="Secret/Plan.md")).total == 1


def test_what_was_cut_short_elsewhere_is_told_to_who_sees_all(world: World) -> None:
    told = "a change that was cut short was finished: Secret/Plan.md"
    writer = replace(world.writer, recovered=[told])
    client = replace(guest(world), recovered=writer.recovered)

    first, second = client.submit([MOVE]), writer.undo(undo.Last())

    assert told not in first.notices
    assert second.applied.change_id
    assert told in writer.submit([MOVE]).notices
