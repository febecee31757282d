"""Do what every decision on a proposal needs: find it, learn what became of it meanwhile, and write to its notes."""

from dataclasses import replace

from knapper.changes import grounds, rules, submissions
from knapper.changes.disk import apply as applying
from knapper.changes.disk import plan as plans
from knapper.changes.disk.effects import Meta
from knapper.changes.drafts import Draft
from knapper.changes.review import resolutions, sight
from knapper.changes.review.proposal_records import Proposal
from knapper.changes.submissions import Submission
from knapper.changes.writer import Writer
from knapper.errors import RefusedError


def check_person(writer: Writer, what: str) -> None:
    """See that the client is a person.

    Raises:
        RefusedError: It isn't.
    """
    if not writer.grants.is_person:
        raise RefusedError(f"only a person can {what}", hint="use `knap edits`, or accept the proposal itself")


def own(writer: Writer, proposal_id: str) -> Proposal:
    """Give a proposal that the client may decide on.

    Raises:
        NotFound: There is none, or it is about a file that the client may not know of.
        RefusedError: It is another client's, or an agent made it for another one, and the client is no person.
    """
    found = writer.proposals.show(proposal_id, visible=writer.desk.view.visible)
    who = writer.grants
    if not who.is_person and (found.client, found.behalf) != (who.client, who.behalf):
        raise RefusedError(f"the proposal {proposal_id} is another client's", hint="a person can decide on it")
    return found


def follow(writer: Writer, proposal_id: str) -> None:
    """Learn what became of blocks in notes meanwhile, of a proposal that the client may know of."""
    _ = writer.proposals.show(proposal_id, visible=writer.desk.view.visible)
    resolutions.follow(writer.proposals, writer.state.journal, writer.desk.view.root, proposal_id)


def apply(writer: Writer, draft: Draft, reason: str, run: str = "", *, proposal: str = "") -> Submission:
    """Write what only concerns blocks in notes; the rules hold for that, too."""
    draft = _permitted(writer, draft)
    return writer.apply(draft, Meta(client=writer.grants.client, run=run, reason=reason, proposal=proposal))


def plan(writer: Writer, draft: Draft) -> Submission:
    """Tell what `apply` would do; errors are the same."""
    return tell(writer, _permitted(writer, draft))


def tell(writer: Writer, draft: Draft) -> Submission:
    """Tell what applying a draft would do, once it is permitted."""
    with sight.veiling(sight.hidden_paths(draft.files, writer.desk.view.visible)):
        plans.check(applying.check(writer.state, list(draft.effects())))
    shown, hidden = submissions.reports(draft)
    told = Submission(status="planned", files=shown, hidden=hidden, notices=draft.notices)
    return replace(told, rewritten=draft.rewritten)


def _permitted(writer: Writer, draft: Draft) -> Draft:
    grants, ground = writer.grants, grounds.of(writer.desk.view)
    draft = sight.marked(draft, writer.desk.view.visible)
    rules.verdict(draft, replace(grants, editable="all"), ground, person_word=True).raise_if_refused()
    return draft
