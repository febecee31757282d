"""The history: what belongs together, in which order it is told, what a page holds, and what it doesn't show."""

import asyncio
import datetime as dt
import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from knapper import config
from knapper.agents import stages, work_store
from knapper.agents.chat.turn import Message
from knapper.agents.events import Done
from knapper.agents.runs import executor
from knapper.agents.runs.model import RunOrder, RunRecord
from knapper.agents.stages import Schedule, ScheduledRun
from knapper.app import Hub, chats, history, schedules
from knapper.app.history import Entry, HistoryPage, HistoryQuery
from knapper.app.hub import local_now
from knapper.app.runs import open_runs
from knapper.changes.disk import storage
from knapper.changes.writer import SubmitOptions
from knapper.cli import main, output
from knapper.cli.render import changes as rendering
from knapper.config import ClientSettings
from knapper.errors import BadInput, RefusedError
from knapper.tools import files, journal, proposals
from knapper.vault import access
from tests.agents import earlier_files, protocol, scripted, scripts
from tests.agents.protocol import Reply
from tests.agents.run_world import Brain
from tests.agents.scripted import Call, Model
from tests.agents.scripted import Reply as Said
from tests.tools import opened

pytestmark = pytest.mark.timeout(30)
NOTES = {
    "Beds.md": "# Beds\n\nSee [[Roses]].\n",
    "Roses.md": "# Roses\n\nRed.\n",
    "Secret/Plan.md": "# Plan\n\nHush.\n",
}
ASK = "What colour are roses?"
ANSWER = "They are red. [[Roses]] (lines 3-3)"


def propose(path: str, text: str = "More.") -> Call:
    return Call("append_to_file", {"path": path, "content": text})


@dataclass
class World:
    """A vault, whose agents and persons do what a test says, by the ways that commands take."""

    vault: opened.Opener
    hub: Hub

    def say(self, *replies: Said, text: str = ASK, session: str = "") -> Done:
        with chats.open_chats(self.hub) as opened_chats:
            rows = opened_chats.hub.table.specs
            chat = scripted.chat(Model(replies), rows, meter=opened_chats.meter, now=local_now)
            session = session or opened_chats.store.begin().id
            message = Message(text=text)
            return asyncio.run(opened_chats.conversations.reply(chat, session, message, lambda _: None))

    def run(self, task: str, client: str = "cli") -> str:
        with open_runs(self.hub) as tasks:
            engine = tasks.engine_of(Brain().open(), "scripted")
            run = executor.create_run(engine, RunOrder(task=task, code_mode=False, client=client))
            return asyncio.run(executor.carry_out_run(engine, run.id, lambda _: None)).id

    def accept(self, proposal: str) -> str:
        context = self.hub.context(client="cli")
        shown = proposals.show_proposal(context, proposal)
        return str(proposals.accept_proposal(context, proposal, shown["digest"])["change_id"])

    def page(self, **query: Any) -> HistoryPage:  # noqa: ANN401 - any field of a query
        with history.open_at_terminal(self.hub) as sources:
            return history.read_page(sources, HistoryQuery(**query))

    def seen_by(self, client: str, **query: Any) -> HistoryPage:  # noqa: ANN401 - the same
        with history.open_for_client(self.hub, client) as sources:
            return history.read_page(sources, HistoryQuery(**query))


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    vault = opened.vault(tmp_path, NOTES)
    with Hub(vault.settings()) as hub:
        yield World(vault=vault, hub=hub)


def kinds(entries: Any) -> list[str]:  # noqa: ANN401 - a page's, or a group's
    return [entry.kind for entry in entries]


def test_a_piece_of_work_is_told_from_the_question_to_the_undo(world: World) -> None:
    done = world.say([propose("Roses.md")], [ANSWER])
    (proposal,) = map(str, done.proposals)
    change = world.accept(proposal)
    undone = journal.undo_change(world.hub.context(client="cli"), change)

    ((work, steps),) = history.group_by_work(world.page().entries)

    assert work == done.session_id
    assert kinds(steps) == ["asked", "found", "proposed", "accepted", "undone"]
    assert [step.client for step in steps] == ["cli", "agent", "agent", "cli", "cli"]
    asked, found, proposed, accepted, taken_back = steps
    assert (asked.text, asked.session_id) == (ASK, done.session_id)
    assert (found.text, found.state, found.notes) == ("They are red. [[Roses]] (lines 3-3)", "complete", ("Roses.md",))
    assert (found.proposals, found.model, found.tokens) == ((proposal,), "scripted", done.usage["total_tokens"])
    assert (proposed.id, proposed.notes, proposed.state) == (proposal, ("Roses.md",), "accepted, undone")
    assert (accepted.change_id, accepted.proposal_id, accepted.state) == (change, proposal, "undone")
    assert (taken_back.change_id, taken_back.changes) == (undone.get("change_id"), (change,))


def test_a_run_is_asked_and_found_and_its_work_is_its_own(world: World) -> None:
    run = world.run("What is to be done?")
    _ = world.say(["Nothing."])

    steps = dict(history.group_by_work(world.page().entries))[run]

    assert kinds(steps) == ["asked", "found"]
    assert (steps[0].text, steps[0].client, steps[1].state) == ("What is to be done?", "cli", "complete")
    assert steps[1].text == "answer of What is to be done?."
    assert steps[1].tokens > 0
    assert list(world.page(work=run).entries) == steps[::-1]


def test_a_rejection_is_told_with_its_reason_its_time_and_its_person(world: World) -> None:
    (proposal,) = map(str, world.say([propose("Roses.md")], ["Done."]).proposals)
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    _ = proposals.reject_proposal(world.hub.context(client="page"), proposal, "not now")

    (rejected,) = world.page(kinds=frozenset({"rejected"})).entries

    assert (rejected.text, rejected.client, rejected.proposal_id) == ("not now", "page", proposal)
    assert (rejected.at > before, rejected.undated, rejected.notes) == (True, False, ("Roses.md",))
    ((_, steps),) = history.group_by_work(world.page().entries)
    assert kinds(steps) == ["asked", "found", "proposed", "rejected"]
    assert world.page(client="page").entries == [rejected]
    assert "later" not in rendering.render_history(world.page())


def test_rejections_stand_where_they_happened_and_each_part_has_its_own(world: World) -> None:
    first, second = (str(world.say([propose(name)], ["Done."]).proposals[0]) for name in ("Roses.md", "Beds.md"))
    context = world.hub.context(client="cli")
    _ = proposals.reject_proposal(context, second, "no beds")
    _ = proposals.reject_proposal(context, first, "no roses")
    whole = world.page(limit=100).entries
    rejected = world.page(kinds=frozenset({"rejected"})).entries

    assert [entry.proposal_id for entry in rejected] == [first, second]
    assert list(rejected) == [entry for entry in whole if entry.kind == "rejected"]
    assert [entry.key for entry in whole] == sorted((entry.key for entry in whole), reverse=True)
    assert len({(entry.kind, entry.id) for entry in whole}) == len(whole)
    assert list(world.page(since=rejected[1].at.isoformat()).entries) == list(rejected)


def test_a_rejection_of_an_earlier_version_comes_after_its_proposal(world: World) -> None:
    (proposal,) = map(str, world.say([propose("Roses.md")], ["Done."]).proposals)
    _ = proposals.reject_proposal(world.hub.context(client="cli"), proposal, "not now")
    with closing(sqlite3.connect(world.hub.open().folder / "proposals.db")) as database:
        _ = database.execute("DELETE FROM decisions")
        database.commit()

    (rejected,) = world.page(kinds=frozenset({"rejected"})).entries

    assert (rejected.text, rejected.undated, rejected.client, rejected.id) == ("not now", True, "", proposal)
    ((_, steps),) = history.group_by_work(world.page().entries)
    assert kinds(steps) == ["asked", "found", "proposed", "rejected"]
    assert "later" in rendering.render_history(world.page())


def test_what_a_program_was_refused_is_told_to_persons_alone(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    narrow = ClientSettings(grants=replace(access.default_grants("mcp"), read_only=("Secret/", "Beds.md")))
    with Hub(vault.settings(narrow)) as hub:
        world = World(vault=vault, hub=hub)
        for name in ("Secret/Plan.md", "Beds.md", "Beds.md"):
            with pytest.raises(RefusedError):
                _ = files.append_to_file(hub.context(client="mcp"), name, "Hush hush.")
        entries = world.page().entries
        about = world.page(note="Secret").entries
        shown = rendering.render_history(world.page())
        by_client = world.seen_by("mcp").entries, world.page(client="cli").entries

    assert [(entry.kind, entry.client, entry.notes, entry.times) for entry in entries] == [
        ("refused", "mcp", ("Beds.md",), 2),
        ("refused", "mcp", ("Secret/Plan.md",), 0),
    ]
    assert (entries[0].state, "path rules of 'mcp'" in entries[0].text) == ("wanted to edit", True)
    assert list(about) == [entries[1]]
    assert "wanted to edit, 2 times" in shown
    assert "Hush hush" not in json.dumps([entry.as_dict() for entry in entries])
    assert by_client == ([], [])


def test_a_refusal_is_told_after_the_question_of_its_turn(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    narrow = ClientSettings(grants=replace(access.default_grants("agent"), read_only=("Beds.md",)))
    with Hub(vault.settings(narrow)) as hub:
        world = World(vault=vault, hub=hub)
        session = world.say([propose("Beds.md")], ["It was refused."]).session_id
        _ = world.say(["Red."], session=session)
        ((_, steps),) = history.group_by_work(world.page().entries)

    assert kinds(steps) == ["asked", "found", "refused", "asked", "found"]
    assert (steps[2].client, steps[2].notes) == ("agent", ("Beds.md",))


def test_an_undo_of_an_undo_belongs_to_the_same_work(world: World) -> None:
    context = world.hub.context(client="cli")
    change = str(files.append_to_file(context, "Roses.md", "x").get("change_id"))
    undo = str(journal.undo_change(context, change).get("change_id"))
    _ = journal.undo_change(context, undo)

    entries = world.page().entries

    assert {entry.work for entry in entries} == {change}
    assert kinds(entries) == ["undone", "undone", "changed"]
    assert world.page(work=change).entries == entries


def test_what_a_schedule_did_last_leads_to_its_session(world: World) -> None:
    session = world.say(["Nothing to do."], text="/weekly-review").session_id
    last = ScheduledRun(at=dt.datetime.now(), state="complete", session_id=session, tokens=7)  # noqa: DTZ005 - the clock on the wall
    made = Schedule(name="tidy", agent="weekly-review", cadence="daily", handled=last.at, last=last)
    _ = schedules.open_schedules(world.hub).add(made)

    (entry,) = world.page(kinds=frozenset({"scheduled"})).entries

    assert (entry.schedule, entry.client, entry.work, entry.tokens) == ("tidy", stages.DEFAULT_CLIENT, session, 7)


def test_pages_one_after_another_have_each_entry_once(world: World) -> None:
    for number in range(4):
        done = world.say([propose("Roses.md", f"More {number}.")], ["Done."])
        _ = world.accept(str(done.proposals[0])) if number % 2 else None
        _ = world.run(f"Task {number}")
    whole = world.page(limit=100)

    read, before = list[Entry](), ""
    while True:
        page = world.page(limit=3, before=before)
        read += page.entries
        if not (before := page.next):
            break

    assert read == list(whole.entries)
    assert len(read) == 4 * (3 + 2) + 2
    assert [entry.key for entry in read] == sorted((entry.key for entry in read), reverse=True)
    assert world.page(limit=3).as_dict()["more"] is True


def test_a_page_reads_little_more_of_the_journal_than_it_shows(world: World) -> None:
    context, statements = world.hub.context(client="cli"), list[str]()
    for number in range(120):
        _ = files.append_to_file(context, "Roses.md", f"{number}")
    with context.writer.state.journal.reading() as database:
        database.set_trace_callback(statements.append)
        page = world.page(limit=5)
        database.set_trace_callback(None)

    assert len(page.entries) == 5
    assert len([one for one in statements if "FROM steps" in one]) == 50


def test_filters_leave_only_what_was_asked_for(world: World) -> None:
    done = world.say([propose("Roses.md")], [ANSWER])
    files.append_to_file(world.hub.context(client="cli"), "Beds.md", "x")
    run = world.run("Else?")

    assert {entry.work for entry in world.page(note="Roses").entries} == {done.session_id}
    assert kinds(world.page(note="Beds.md").entries) == ["changed"]
    assert kinds(world.page(note="Secret").entries) == []
    assert {entry.client for entry in world.page(client="agent").entries} == {"agent"}
    assert {entry.work for entry in world.page(work=run).entries} == {run}
    assert kinds(world.page(kinds=frozenset({"changed", "proposed"})).entries) == ["changed", "proposed"]
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).isoformat()
    assert not world.page(since=soon).entries
    assert len(world.page(before=soon).entries) == len(world.page().entries)
    assert not world.page(before="2020-01-01").entries


@pytest.mark.parametrize(
    "query", [{"before": "soon"}, {"before": "2026-01-01T00:00:00Z/7/x"}, {"since": "x"}, {"limit": 0}]
)
def test_what_is_no_place_or_time_is_refused(world: World, query: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        _ = world.page(**query)


def test_turns_that_a_fork_took_over_are_told_once_until_their_original_is_gone(world: World) -> None:
    first = world.say(["One."], text="first").session_id
    with chats.open_chats(world.hub) as opened_chats:
        forked = opened_chats.store.fork(first).id
    _ = world.say(["Two."], text="second", session=forked)

    assert [entry.text for entry in world.page(kinds=frozenset({"asked"})).entries] == ["second", "first"]
    with chats.open_chats(world.hub) as opened_chats:
        opened_chats.store.delete(first)
    assert [entry.work for entry in world.page(kinds=frozenset({"asked"})).entries] == [forked, forked]


def test_turns_before_a_session_was_cleared_are_told_no_more(world: World) -> None:
    session = world.say(["One."]).session_id
    with chats.open_chats(world.hub) as opened_chats:
        _ = opened_chats.store.clear(session)

    assert not world.page().entries


def test_a_client_hears_of_no_path_that_is_hidden_from_it(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    narrow = ClientSettings(grants=access.default_grants("mcp"), hidden=("Secret/",))
    with Hub(vault.settings(narrow)) as hub:
        world = World(vault=vault, hub=hub)
        _ = world.say([propose("Secret/Plan.md")], ["Hush. [[Secret/Plan]] (lines 3-3)"], text="Secret/Plan?")
        _ = files.append_to_file(hub.context(client="cli"), "Secret/Plan.md", "x")
        _ = files.move_file(hub.context(client="cli"), "Roses.md", "Secret/Roses.md")
        _ = files.append_to_file(hub.context(client="cli"), "Beds.md", "x")
        _ = world.run("About Secret/Plan")
        everything = json.dumps(world.page().as_dict())
        seen = [world.seen_by("mcp").as_dict(), world.seen_by("mcp", note="Secret").as_dict()]
        seen.append(world.seen_by("mcp", note="Secret/Plan.md").as_dict())

    assert everything.count("Secret/Plan.md") > 1
    assert "Secret" not in json.dumps(seen)
    assert [len(page["results"]) for page in seen if isinstance(page["results"], list)] == [1, 0, 0]


def test_a_filter_tells_nothing_of_what_is_hidden(tmp_path: Path) -> None:
    texts = {"Beds.md": "See [[Plan]].\n", "Work/Secret/Plan.md": "Hush.\n", "Private/Day.md": "x\n"}
    vault = opened.vault(tmp_path, texts | {"Notes/Private/Day.md": "y\n"})
    narrow = ClientSettings(grants=access.default_grants("mcp"), hidden=("/Private/", "Work/Secret/"))
    with Hub(vault.settings(narrow)) as hub:
        world, person = World(vault=vault, hub=hub), hub.context(client="cli")
        _ = files.append_to_file(person, "Notes/Private/Day.md", "x")
        before = world.seen_by("mcp", note="Private/Day.md")
        _ = files.append_to_file(person, "Private/Day.md", "x")
        after = world.seen_by("mcp", note="Private/Day.md")
        _ = files.move_file(person, "Work/Secret/Plan.md", "Work/Secret/Idea.md")
        in_work, of_beds = world.seen_by("mcp", note="Work"), world.seen_by("mcp", note="Beds.md")
        listed = journal.list_changes(hub.context(client="mcp"), path="Work")
        own = world.page(note="Work")
        for note in ("Private/Day.md", "Nowhere.md"):
            with pytest.raises(BadInput):
                _ = world.seen_by("mcp", note=note, since="some day")

    assert before == after
    assert (len(in_work.entries), listed["total"], len(of_beds.entries), len(own.entries)) == (0, 0, 1, 1)


def test_what_an_undo_took_back_of_hidden_notes_is_not_told(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, NOTES)
    narrow = ClientSettings(grants=access.default_grants("mcp"), hidden=("Secret/",))
    with Hub(vault.settings(narrow)) as hub:
        world, person = World(vault=vault, hub=hub), hub.context(client="cli")
        hidden = str(files.append_to_file(person, "Secret/Plan.md", "x")["change_id"])
        seen = str(files.append_to_file(person, "Beds.md", "x")["change_id"])
        _ = journal.undo_change(person, since="2000-01-01")
        entries = world.seen_by("mcp").entries
        listed = journal.list_changes(hub.context(client="mcp"))["results"]
        everything = world.page().entries

    assert [(entry.kind, entry.work, entry.changes) for entry in entries] == [
        ("undone", seen, (seen,)),
        ("changed", seen, ()),
    ]
    assert listed[0].get("undoes") == [seen]
    assert hidden in everything[0].changes


@pytest.mark.parametrize("note", ["BEDS.md", "beds", "work", "WORK/b.md"])
def test_a_note_is_found_in_any_spelling_in_all_that_is_told_of_it(world: World, note: str) -> None:
    (world.vault.root / "Work").mkdir()
    (world.vault.root / "Work/B.md").write_text("x\n", encoding="utf-8")
    path = "Work/B.md" if "work" in note.lower() else "Beds.md"
    _ = world.say([propose(path)], ["Done."])
    _ = world.say([f"See [[{path.removesuffix('.md')}]]."])

    assert kinds(world.page(note=note).entries) == kinds(world.page(note=path).entries)
    assert len(world.page(note=path).entries) > 2


def test_an_undo_of_what_the_reader_does_not_see_is_told_by_its_own_id_alone() -> None:
    undone = Entry(at=dt.datetime.now(dt.UTC), kind="undone", id="c2", work="c2", client="cli", change_id="c2")

    shown = rendering.render_history(HistoryPage(entries=[undone], limit=20))

    assert (shown.count("\n"), shown.endswith("cli  c2")) == (1, True)


def test_a_program_is_shown_its_own_questions_and_no_answer_that_would_taint_it(world: World) -> None:
    _ = world.say(["Mine."])
    with ExitStack() as stack:
        shared = stack.enter_context(chats.open_chats(world.hub))
        own = stack.enter_context(chats.open_client_chats(shared, "mcp"))
        chat = scripted.chat(Model([["Theirs."]]), world.hub.table.specs, meter=shared.meter, now=local_now)
        message = Message(text="theirs?")
        _ = asyncio.run(own.conversations.reply(chat, own.store.begin().id, message, lambda _: None))

    entries = world.seen_by("mcp").entries

    assert [(entry.kind, entry.client, entry.text) for entry in entries] == [
        ("found", "agent", ""),
        ("asked", "mcp", "theirs?"),
    ]
    assert [entry.text for entry in world.page().entries] == ["Mine.", ASK]


def test_nothing_in_a_text_or_path_reaches_the_terminal_as_it_is(world: World) -> None:
    context = replace(world.hub.context(client="cli"), submit_options=SubmitOptions(reason="why\x1b[2J\nfake line"))
    _ = files.create_file(context, "A\u202eB.md", "x")
    _ = world.say(["Red\x1b]0;x\x07"], text="ask\x1b[31m\nmore")

    shown = rendering.render_history(world.page())

    assert not {"\x07", "\u202e"} & set(shown)
    assert "\x1b[2J" not in shown
    assert "\nfake line" not in shown
    assert "ask\ufffd[31m more" in shown


def test_the_command_shows_the_work_its_steps_and_the_next_page(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert root.is_dir()
    assert main.run(["history"]) == 0
    assert capsys.readouterr().err == "nothing was done\n"
    assert main.run(["history", "--run", "zzz", "--kind", "rejected"]) == 0
    assert capsys.readouterr().err == "nothing in the history matches --run zzz, --kind rejected\n"
    for _ in range(2):
        assert main.run(["edit", "Roses.md", "Red", "Red red"]) == 0
    _ = capsys.readouterr()

    assert main.run(["history", "-n", "1", "--note", "Roses"]) == 0
    head, step, note, _, more = capsys.readouterr().out.splitlines()
    assert main.run(["history", "-n", "1", "--before", more.split()[3].rstrip("`"), "--json"]) == 0
    page = json.loads(capsys.readouterr().out)

    assert head.startswith("change ")
    assert ("changed" in step, "cli" in step, note.strip()) == (True, True, "Roses.md")
    assert (page["more"], page["next"], len(page["results"])) == (False, "", 1)
    assert page["results"][0]["id"] not in head
    assert main.run(["history", "--kind", "rejected", "--since", "2h"]) == 0
    assert main.run(["history", "--before", "yesterday"]) == 2


@pytest.fixture
def root(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a vault that commands work on."""
    root = opened.vault(tmp_path, NOTES).root
    monkeypatch.setenv("VAULT_PATH", str(root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return root


def knap(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    _ = main.run([*words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_task_that_asks_is_told_and_what_it_proposes_belongs_to_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    select = scripts.select("Roses.md", confidence="exploring")
    question = Reply(parts=[select, Call("ask_user", {"question": "Which?"})])
    answer = Reply(parts=scripts.task("Red. [[Roses]] (lines 3-3)", ("Roses.md", "end", "More.")))
    with protocol.serving(question, Reply(parts=[select]), answer) as server:
        model = f"tiny@{server.base_url}"
        asked = knap(capsys, "ask", "colour?", "--scout", "--model", model)
        waiting = knap(capsys, "history")["results"]
        _ = knap(capsys, "ask", "--resume", asked["run_id"], "the red ones", "--model", model)
    told = knap(capsys, "history")["results"]

    assert [(row["kind"], row["text"], row["client"]) for row in waiting] == [
        ("found", "Which?", "agent"),
        ("asked", "colour?", "cli"),
    ]
    assert waiting[0]["state"] == "asked"
    assert {row["work"] for row in waiting} == {asked["run_id"]}
    assert [(row["kind"], row["work"]) for row in told] == [("proposed", asked["run_id"])]
    assert root.is_dir()


def test_a_task_in_the_session_of_a_note_is_work_of_its_own(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(Reply(parts=scripts.task("Red. [[Roses]] (lines 3-3)"))) as server:
        done = knap(capsys, "ask", "colour?", "--note", "Roses.md", "--model", f"tiny@{server.base_url}")
    rows = knap(capsys, "history", "--run", done["run_id"])["results"]
    assert main.run(["history"]) == 0
    shown = capsys.readouterr().out

    assert [(row["kind"], row["session_id"], row["notes"]) for row in rows] == [
        ("found", done["session_id"], ["Roses.md", "Beds.md"]),
        ("asked", done["session_id"], ["Roses.md"]),
    ]
    assert rows == knap(capsys, "history", "--run", done["session_id"])["results"]
    assert shown.startswith(f"task {done['run_id']} in the session {done['session_id']}\n")
    assert root.is_dir()


@pytest.mark.parametrize("name", ["task_runs.db", "sessions.db", "paused.db"])
def test_a_file_that_somebody_put_back_is_told_and_the_rest_is_shown(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main.run(["edit", "Roses.md", "Red", "Red red", "--quiet"]) == 0
    _ = capsys.readouterr()
    folder = config.state_folder(config.load({"default_vault": str(root)}))
    rows = write_run_and_session(folder)
    assert [row["id"] for row in knap(capsys, "history", "--kind", "asked")["results"]] == ["p1", "s1/000001", "r1"]
    earlier_files.write(folder / name, rows[name])

    told = knap(capsys, "history")
    assert main.run(["history"]) == 0
    shown = capsys.readouterr()

    assert [row["id"] for row in told["results"] if row["kind"] == "asked"] == ["p1", "s1/000001", "r1"]
    assert [row["kind"] for row in told["results"] if row["client"] == "cli"].count("changed") == 1
    [note] = told["notes"]
    assert f"'{folder / name}' has entries that are in 'work.db' already" in note
    assert "move it elsewhere" in note
    assert note in shown.err
    assert "Red red" not in shown.err
    (folder / name).unlink()
    assert knap(capsys, "history")["notes"] == []


def write_run_and_session(folder: Path) -> dict[str, dict[str, list[earlier_files.Row]]]:
    """Store a run, a session and a question that waits, and return the rows that an earlier version had of them."""
    at = dt.datetime(2026, 3, 14, 8, tzinfo=dt.UTC)
    run = RunRecord(id="r1", order=RunOrder(task="T"), model="m", state="complete", created=at, updated=at)
    row = ("r1", "complete", at.isoformat(), at.isoformat(), 0, TypeAdapter(RunRecord).dump_json(run).decode())
    waiting = ("p1", "cli", dt.datetime.now(dt.UTC).isoformat(), '{"question": "Which?"}', '{"task": "T"}', "{}")
    rows: dict[str, dict[str, list[earlier_files.Row]]] = {
        "task_runs.db": {"runs": [row]},
        "sessions.db": {"sessions": [earlier_files.session("s1")], "turns": [earlier_files.turn("s1")]},
        "paused.db": {"paused": [waiting]},
    }
    for name, tables in rows.items():
        earlier_files.write(folder / name, tables)
    return rows


@pytest.mark.parametrize(
    ("option", "is_terminal", "is_said"), [("", True, True), ("--json", True, False), ("", False, False)]
)
def test_a_person_at_a_terminal_is_told_that_files_are_migrated(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    *,
    is_terminal: bool,
    is_said: bool,
) -> None:
    assert main.run(["index", "--quiet"]) == 0
    folder = config.state_folder(config.load({"default_vault": str(root)}))
    _ = write_run_and_session(folder)
    monkeypatch.setattr(work_store, "_LONG_S", 0.05)
    monkeypatch.setattr(output, "stderr_is_terminal", lambda: is_terminal)
    monkeypatch.setattr(work_store.LOG, "handlers", [])
    find_version = storage.schema_version

    def find_slowly(database: sqlite3.Connection) -> int:
        time.sleep(0.1)
        return find_version(database)

    monkeypatch.setattr(storage, "schema_version", find_slowly)
    assert main.run(["history", *filter(None, [option])]) == 0

    assert capsys.readouterr().err.count("migrating 0.") == int(is_said)
