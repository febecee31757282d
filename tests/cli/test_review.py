"""Review: what each key does, and what a terminal shows and takes."""

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.writer import SubmitOptions
from knapper.cli import main, output, review
from knapper.cli.render import changes
from knapper.cli.review import Decisions, ReviewTerminal
from knapper.tools import files, proposals
from knapper.tools.shapes.write import ProposalAnswer
from tests.cli import terminals
from tests.cli.terminals import Key, Line
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "# Garden\n\nOne.\n\nTwo.\n\nThree.\n"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Garden.md": NOTE, "Link.md": "[[Garden]]\n"})


def propose(vault: Opener) -> ProposalAnswer:
    """Propose three hunks for Garden.md; gives the proposal as it is shown."""
    with vault.open(asked=SubmitOptions(propose=True)) as context:
        text = NOTE.replace("One.", "1.").replace("Two.", "2.").replace("Three.", "3.")
        done = files.write_file(context, "Garden.md", text, context.view.read("Garden.md").hash)
        return proposals.show_proposal(context, str(done["proposal_id"]))


def answer(shown: ProposalAnswer, keys: str, *, new: str | None = None) -> tuple[Decisions, list[str]]:
    """Review with a person who presses these keys; gives what was decided, and what was shown."""
    left, printed = list(keys), list[str]()

    def key(question: str) -> str:
        printed.append(question)
        return left.pop(0)

    made = review.ask_decisions(shown, ReviewTerminal(show=printed.append, read_key=key, edit_text=lambda _: new))
    assert left == []
    return made, printed


def names(parts: Sequence[review.ReviewPart]) -> list[str]:
    return [part.hunk_id or ",".join(part.paths) for part in parts]


@pytest.mark.parametrize(
    ("keys", "accepted", "rejected", "skipped"),
    [
        ("yns", ["1.1"], ["1.2"], 1),
        ("YNS", ["1.1"], ["1.2"], 1),
        ("a", ["1.1", "1.2", "1.3"], [], 0),
        ("yd", ["1.1"], ["1.2", "1.3"], 0),
        ("nq", [], ["1.1"], 2),
        ("q", [], [], 3),
        ("?x\r" + "sss", [], [], 3),
    ],
)
def test_a_key_decides_one_part_or_all_that_follow(
    vault: Opener, keys: str, accepted: list[str], rejected: list[str], skipped: int
) -> None:
    made, _ = answer(propose(vault), keys)

    assert (names(made.accepted), names(made.rejected), made.skipped_count) == (accepted, rejected, skipped)


def test_an_unknown_key_shows_the_help_and_asks_again(vault: Opener) -> None:
    _, printed = answer(propose(vault), "xq")

    assert printed.count(review.REVIEW_HELP) == 1
    assert printed[1] == "(1/3) accept? [y,n,e,s,a,d,q,?] "


def test_an_edited_hunk_is_accepted_with_its_new_text(vault: Opener) -> None:
    shown = propose(vault)

    made, _ = answer(shown, "eq", new="uno.\n")
    with vault.open() as context:
        lines = review.apply_decisions(context, shown, made)

    assert vault.text("Garden.md") == NOTE.replace("One.", "uno.")
    assert lines[-1] == "1 accepted, 2 left waiting"


def test_an_edit_that_was_left_is_asked_about_again(vault: Opener) -> None:
    made, printed = answer(propose(vault), "eq", new=None)

    assert (made.edited, made.accepted) == ({}, [])
    assert "the text is as it was" in printed


def test_what_was_decided_is_done(vault: Opener) -> None:
    shown = propose(vault)
    made, _ = answer(shown, "yns")

    with vault.open() as context:
        review.apply_decisions(context, shown, made)
        left = proposals.show_proposal(context, shown["id"])

    assert vault.text("Garden.md") == NOTE.replace("One.", "1.")
    assert [one["state"] for one in left["files"][0]["hunks"]] == ["accepted", "rejected", "open"]


def test_a_dry_run_tells_what_the_answers_would_do(vault: Opener) -> None:
    shown = propose(vault)
    made, _ = answer(shown, "yen", new="zwei.\n")

    with vault.open(asked=SubmitOptions(dry_run=True)) as context:
        lines = review.apply_decisions(context, shown, made)
        left = proposals.show_proposal(context, shown["id"])

    said = "\n".join(lines)
    assert (vault.text("Garden.md"), left) == (NOTE, shown)
    assert all(part in said for part in ("hunk 1.2 would get the text", "zwei.", "1.", "dry run"))
    assert lines[-1] == "2 would be accepted, 1 would be rejected"


def test_a_move_is_asked_about_with_all_that_follows_it(vault: Opener) -> None:
    with vault.open(asked=SubmitOptions(propose=True)) as context:
        name = str(files.move_file(context, "Garden.md", "Yard.md")["proposal_id"])
        shown = proposals.show_proposal(context, name)

    made, printed = answer(shown, "y")
    with vault.open() as context:
        review.apply_decisions(context, shown, made)

    assert printed[1] == "(1/1) accept? [y,n,s,a,d,q,?] "
    assert vault.text("Link.md") == "[[Yard]]\n"
    assert vault.text("Yard.md") == NOTE


def test_what_is_settled_or_stale_is_not_asked_about(vault: Opener) -> None:
    shown = propose(vault)
    with vault.open() as context:
        proposals.reject_proposal(context, shown["id"], hunks=["1.2"])
        files.edit_file(context, "Garden.md", "# Garden", "# Yard")
        now = proposals.show_proposal(context, shown["id"])

    assert names(list(review.reviewable_parts(now))) == ["1.3"]


def test_words_that_differ_stand_out() -> None:
    shown = output.render_word_diff([("same", "a "), ("removed", "b"), ("added", "c\nd"), ("same", "\n")])

    plain = shown.replace("\x1b[0m", "")
    assert "\x1b[31m\x1b[1m\x1b[4mb" in plain
    assert "\x1b[32m\x1b[1m\x1b[4mc" in plain
    assert len(shown.split("\n")) == 3


@pytest.mark.parametrize("text", ["x", "", "x\n"])
def test_a_missing_last_line_ending_is_shown(text: str) -> None:
    shown = output.render_word_diff([("removed", text)] if text else [])

    assert ("No newline" in shown) == (text == "x")


def test_what_a_terminal_would_obey_is_taken_out() -> None:
    shown = output.render_word_diff([("added", "\x1b[2J\r\nb\u202e\n")]) + output.colour_diff("+\x1b]0;x\x07\n")

    assert "\x1b[2J" not in shown
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown


def test_no_name_and_no_reason_looks_like_lines_of_the_program(vault: Opener) -> None:
    forged = "nothing to see\n\n1  edit  Harmless.md\n1.1  line 1"
    (vault.root / "A\nchange 1 is taken back.md").write_text("a\n", encoding="utf-8")
    with vault.open("mcp") as context:
        asked = replace(context, submit_options=SubmitOptions(reason=forged, propose=True))
        name = str(files.edit_file(asked, "A\nchange 1 is taken back.md", "a", "b")["proposal_id"])
    with vault.open() as context:
        shown = changes.render_proposal(proposals.show_proposal(context, name))
        listed = changes.render_proposals(proposals.list_proposals(context))
        done = changes.render_outcome(files.edit_file(context, "A\nchange 1 is taken back.md", "a", "c"))

    begins = [row.strip() for text in (shown, listed, done) for row in text.split("\n")]
    assert not [row for row in begins if row.startswith(("1  edit  Harmless", "1.1  line 1 ", "change 1 "))]
    assert "nothing to see  1  edit  Harmless.md" in shown


pytestmark_terminal = pytest.mark.skipif(sys.platform == "win32", reason="terminals are another thing there")


def waiting(vault: Path) -> str:
    """Let an edit wait; gives its id."""
    return str(json.loads(_printed(["edit", "Garden.md", "One.", "1.", "--propose", "--json"], vault))["proposal_id"])


def _printed(args: Sequence[str], vault: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main.run(["-v", str(vault), *args])
    return printed.getvalue()


@pytestmark_terminal
def test_a_person_reviews_at_a_terminal(vault: Opener) -> None:
    waiting(vault.root)

    ended = terminals.run(["-v", str(vault.root), "edits", "review"], [Key(name="?"), Key(name="y")])

    assert ended.code == 0
    assert "y  accept this" in ended.printed
    assert "\x1b[31m" in ended.printed
    assert vault.text("Garden.md") == NOTE.replace("One.", "1.")


@pytestmark_terminal
def test_a_review_takes_the_newest_of_which_something_can_be_decided(vault: Opener) -> None:
    first = waiting(vault.root)
    stale = json.loads(_printed(["edit", "Garden.md", "Three.", "3.", "--propose", "--json"], vault.root))[
        "proposal_id"
    ]
    _printed(["edit", "Garden.md", "Three.", "III."], vault.root)

    ended = terminals.run(["-v", str(vault.root), "edits", "review"], [Key(name="y")])

    assert ended.code == 0
    assert first in ended.printed
    assert stale not in ended.printed
    assert vault.text("Garden.md") == NOTE.replace("One.", "1.").replace("Three.", "III.")


@pytestmark_terminal
def test_what_cannot_be_decided_is_shown_once(vault: Opener) -> None:
    stale = waiting(vault.root)
    _printed(["edit", "Garden.md", "One.", "I."], vault.root)

    ended = terminals.run(["-v", str(vault.root), "edits", "review"], [])

    assert ended.code == 0
    assert ended.printed.count(stale) == 1


@pytestmark_terminal
@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_in_a_review_changes_nothing(vault: Opener, key: str) -> None:
    waiting(vault.root)

    ended = terminals.run(["-v", str(vault.root), "edits", "review"], [Key(name=key)])

    assert ended.code == 130
    assert "interrupted" in ended.printed
    assert vault.text("Garden.md") == NOTE


@pytestmark_terminal
@pytest.mark.parametrize(("typed", "code", "is_done"), [("y\n", 0, True), ("\n", 1, False), ("\x03", 130, False)])
def test_accepting_at_a_terminal_asks_first(vault: Opener, typed: str, code: int, is_done: bool) -> None:
    name = waiting(vault.root)

    ended = terminals.run(["-v", str(vault.root), "edits", "accept", name], [Line(after="[y/N]: ", text=typed)])

    assert (ended.code, vault.text("Garden.md") != NOTE) == (code, is_done)
    assert "1.1  line 3" in ended.printed


@pytestmark_terminal
@pytest.mark.parametrize(("typed", "code", "is_done"), [("y\n", 0, True), ("n\n", 1, False), ("\x03", 130, False)])
def test_replacing_a_note_at_a_terminal_shows_the_difference_and_asks(
    vault: Opener, tmp_path: Path, typed: str, code: int, is_done: bool
) -> None:
    draft = tmp_path / "draft.md"
    draft.write_text("new\n", encoding="utf-8")

    ended = terminals.run(
        ["-v", str(vault.root), "write", "Garden.md", str(draft)], [Line(after="[y/N]: ", text=typed)]
    )

    assert (ended.code, vault.text("Garden.md")) == (code, "new\n" if is_done else NOTE)
    assert "-# Garden" in ended.printed
