"""Messages to sessions: routed by the open note, answered one at a time, kept however they end."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.usage import RunUsage

from knapper.agents import events as agent_events
from knapper.agents.chat.conversations import BEGINNING_LEFT_OUT, MAX_MESSAGE_CHARS, Conversations
from knapper.agents.chat.turn import ChatConfig, Message
from knapper.agents.events import BaseEvent, Done, Event, Text, TurnJob
from knapper.agents.model import names, usage
from knapper.agents.model.usage import Meter, SpendingLimits, open_meter
from knapper.agents.sessions.store import SessionStore, identify_file
from knapper.agents.work_store import WORK_FILE, open_work
from knapper.changes.disk.storage import open_shared_database
from knapper.changes.writer import SubmitOptions
from knapper.codemode.tasks import ModelSpend
from knapper.errors import BadInput, ConflictError, NotFound, StorageError
from knapper.tools import files
from knapper.tools.context import Context
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply
from tests.agents.scripted import NOW, Call, Model
from tests.tools import opened

NOTES = {"A.md": "# A\n\nAlpha.\n", "B.md": "# B\n\nBeta. [[A]]\n"}


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES)


@pytest.fixture
def talks(vault: opened.Opener) -> Generator[Conversations]:
    context = vault.open("agent")
    folder = vault.state / "chats"
    folder.mkdir(parents=True)
    work = open_work(folder)
    kept = SessionStore(work, lambda: NOW)

    def open_context(run: str) -> Context:
        return replace(context, submit_options=SubmitOptions(run=run))

    yield Conversations(store=kept, context_of=open_context, wait_s=0.3)
    work.shut()
    context.close()


def say(talks: Conversations, chat: ChatConfig, session: str, text: str = "hello", *, note: str = "") -> list[Event]:
    events: list[Event] = []
    _ = asyncio.run(talks.reply(chat, session, Message(text=text, active_file=note), events.append))
    return events


def talk_at_length(talks: Conversations) -> str:
    """Have a conversation of two long answers, and return its session."""
    session, long = talks.route(None).id, Model([["answer " * 400]])
    for text in ("one", "two"):
        _ = say(talks, scripted.chat(long), session, text)
    return session


def prompts(model: Model) -> list[str]:
    last = [one for one in model.asked[-1] if isinstance(one, ModelRequest)]
    return [str(part.content) for one in last for part in one.parts if isinstance(part, UserPromptPart)]


def test_each_note_has_its_session_and_any_spelling_finds_it(talks: Conversations) -> None:
    a, b, none = talks.route("A.md"), talks.route("B.md"), talks.route(None)

    assert len({a.id, b.id, none.id}) == 3
    assert talks.route("a.MD").id == a.id
    assert talks.route("").id == none.id
    assert talks.route("  ").id == none.id


def test_a_model_that_writes_halves_of_characters_is_answered_kept_and_asked_again(talks: Conversations) -> None:
    session = talks.route("A.md").id
    replies = [Reply(parts=["Smile \ud83d", "\ude00, half \ud83d."]), Reply(parts=["Again."])]
    with protocol.serving(*replies) as server:
        chat = scripted.chat(usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: ""))
        first, second = say(talks, chat, session, "one"), say(talks, chat, session, "two")

    assert scripted.done(first).answer == "Smile \U0001f600, half \ufffd."
    assert scripted.done(second).answer == "Again."
    assert [turn.outcome["state"] for turn in talks.store.turns(session)] == ["complete", "complete"]


def test_a_note_that_is_not_there_has_a_session_by_its_path(talks: Conversations) -> None:
    assert talks.route("Nowhere.md").id == talks.route("Nowhere.md").id
    assert talks.route("../../etc/passwd").id != talks.route("Nowhere.md").id


def test_a_session_remembers_and_another_one_does_not(talks: Conversations) -> None:
    model = Model([["First."], ["Second."], ["Third."]])
    chat = scripted.chat(model)
    a, b = talks.route("A.md").id, talks.route("B.md").id

    _ = say(talks, chat, a, "one")
    _ = say(talks, chat, b, "two")
    events = say(talks, chat, a, "three")

    assert prompts(model) == ["one", "three"]
    assert scripted.done(events).session_id == a
    assert [turn.outcome["answer"] for turn in talks.store.turns(a)] == ["First.", "Third."]


def test_a_note_renamed_by_us_keeps_its_session(talks: Conversations, vault: opened.Opener) -> None:
    session = talks.route("A.md")
    with vault.open("cli") as context:
        context.index.refresh()
        _ = files.move_file(context, "A.md", "Archive/Alpha.md")

    assert talks.route("Archive/Alpha.md").id == session.id
    assert talks.store.get(session.id).file == "Archive/Alpha.md"


def test_a_note_renamed_elsewhere_keeps_its_session_even_if_it_is_edited_too(
    talks: Conversations, vault: opened.Opener
) -> None:
    session = talks.route("A.md")
    Path(vault.root / "A.md").rename(vault.root / "Alpha.md")
    with (vault.root / "Alpha.md").open("a", encoding="utf-8") as note:
        note.write("More.\n")

    assert talks.route("Alpha.md").id == session.id


def test_a_new_note_is_no_deleted_one_though_the_disk_gives_it_the_same_number(
    talks: Conversations, vault: opened.Opener
) -> None:
    session = talks.route("A.md")
    was = identify_file(talks.context_of("").view, "A.md")
    (vault.root / "A.md").unlink()
    (vault.root / "New.md").write_text("Something else.\n", encoding="utf-8")
    if was.node.endswith(":0"):
        pytest.skip("this disk doesn't tell files of one number apart")

    assert talks.route("New.md").id != session.id


def test_empty_notes_are_not_taken_for_each_other(talks: Conversations, vault: opened.Opener) -> None:
    (vault.root / "Old.md").write_text("\n", encoding="utf-8")
    session = talks.route("Old.md")
    (vault.root / "New.md").write_text("\n", encoding="utf-8")
    (vault.root / "Old.md").unlink()

    assert talks.route("New.md").id != session.id


def test_nothing_is_summed_up_once_the_limits_are_reached(talks: Conversations, tmp_path: Path) -> None:
    meter = open_meter(tmp_path, SpendingLimits(run_tokens=10), lambda: NOW)
    model = Model([["A long answer. " * 200]])
    session = talks.route(None).id
    _ = say(talks, scripted.chat(model, meter=meter), session, "one")
    before = len(model.asked)

    events = say(talks, scripted.chat(model, meter=meter, context_tokens=50), session, "two")

    assert len(model.asked) == before
    assert scripted.done(events).state == "limit"
    meter.shut()


class Torn(Meter):
    """Have no place to write down what is used."""

    def record(self, run: str, model: str, spent: ModelSpend, *, usage: RunUsage | None = None) -> None:
        del run, model, spent, usage
        raise StorageError("the disk is full", hint="make room")


def test_an_answer_is_kept_and_told_though_its_cost_cannot_be_written_down(
    talks: Conversations, tmp_path: Path
) -> None:
    open_meter(tmp_path, SpendingLimits(), lambda: NOW).shut()
    meter = Torn(
        open_shared_database(tmp_path / usage.USAGE_FILE, "", usage.USAGE_VERSION), SpendingLimits(), lambda: NOW
    )
    session = talks.route(None).id

    events = say(talks, scripted.chat(Model([["Hello there."]]), meter=meter), session)

    assert scripted.done(events).answer == "Hello there."
    assert [event.kind for event in events][-2:] == ["error", "done"]
    assert [turn.outcome["answer"] for turn in talks.store.turns(session)] == ["Hello there."]
    meter.shut()


def test_what_an_answer_cost_is_written_down_though_it_cannot_be_kept(talks: Conversations, tmp_path: Path) -> None:
    meter = open_meter(tmp_path, SpendingLimits(), lambda: NOW)
    chat = scripted.chat(Model([["Hello there."]]), meter=meter)
    session = talks.route(None).id
    told: list[Event] = []

    def tell(event: Event) -> None:
        told.append(event)
        if event.kind == "text":
            with closing(sqlite3.connect(talks.store.folder / WORK_FILE)) as database:
                database.execute("DROP TABLE turns")

    _ = asyncio.run(talks.reply(chat, session, Message(text="hello"), tell))

    assert [event.kind for event in told][-2:] == ["error", "done"]
    assert meter.of_run(session).requests == 1
    meter.shut()


def test_what_cannot_be_answered_is_refused_before_anything_is_kept(talks: Conversations) -> None:
    chat = scripted.chat(Model([["Hi."]]))
    session = talks.route(None).id

    with pytest.raises(NotFound):
        say(talks, chat, "nobody")
    with pytest.raises(BadInput):
        say(talks, chat, session, "   ")
    with pytest.raises(BadInput):
        say(talks, chat, session, "x" * (MAX_MESSAGE_CHARS + 1))
    assert talks.store.get(session).turns == 0


def test_a_failed_turn_is_kept_and_the_session_goes_on(talks: Conversations) -> None:
    session = talks.route(None).id
    with protocol.serving(Reply(status=500), Reply(parts=["Better."])) as server:
        from knapper.agents.model.usage import ModelTimeouts  # noqa: PLC0415

        wanted = [names.parse_model_name(f"tiny@{server.base_url}")]
        chat = scripted.chat(usage.open_model(wanted, lambda _: "", ModelTimeouts(retries=0)))
        first = say(talks, chat, session, "one")
        second = say(talks, chat, session, "two")

    assert scripted.done(first).state == "failed"
    assert scripted.done(second).answer == "Better."
    assert [turn.outcome["state"] for turn in talks.store.turns(session)] == ["failed", "complete"]


def test_two_messages_to_one_session_are_answered_one_after_the_other(talks: Conversations) -> None:
    talks = replace(talks, wait_s=60)
    session = talks.route(None).id
    model = Model([["One."], ["Two."]])
    chat = scripted.chat(model)

    async def both() -> None:
        await asyncio.gather(
            *(talks.reply(chat, session, Message(text=text), lambda _: None) for text in ("first", "second"))
        )

    asyncio.run(both())

    assert [turn.number for turn in talks.store.turns(session)] == [1, 2]
    assert len(prompts(model)) == 2


def test_a_session_that_stays_busy_refuses(talks: Conversations) -> None:
    session = talks.route(None).id

    async def clash(chat: ChatConfig) -> None:
        answers = asyncio.Event()
        first = asyncio.create_task(talks.reply(chat, session, Message(text="slow"), lambda _: answers.set()))
        await answers.wait()
        try:
            with pytest.raises(ConflictError) as told:
                await talks.reply(chat, session, Message(text="quick"), lambda _: None)
            assert told.value.code == "session_busy"
        finally:
            first.cancel()
            await asyncio.wait([first])

    with protocol.serving(Reply(parts=["a", "b"], hang_s=20)) as server:
        asyncio.run(
            clash(scripted.chat(usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: "")))
        )

    assert [turn.outcome["state"] for turn in talks.store.turns(session)] == ["cancelled"]


def test_a_long_conversation_is_summed_up_between_turns(talks: Conversations) -> None:
    session = talks.route(None).id
    model = Model([["answer " * 400]])
    chat = scripted.chat(model, context_tokens=2_000)

    for number in range(8):
        _ = say(talks, chat, session, f"Question {number}")

    assert talks.store.history(session)[0].upto > 0
    assert "Question 0" not in str(prompts(model))
    assert talks.store.get(session).turns == 8


def test_a_model_that_is_asked_again_for_a_summary_is_told_of(talks: Conversations) -> None:
    session = talks.route(None).id
    long = Model([["answer " * 400]])
    for text in ("one", "two", "three"):
        _ = say(talks, scripted.chat(long), session, text)
    replies = [Reply(status=429, headers={"retry-after-ms": "1"}), Reply(parts=["Summary."]), Reply(parts=["Well."])]
    with protocol.serving(*replies) as server:
        model = usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: "")
        events = say(talks, scripted.chat(model, context_tokens=1_600), session, "four")

    assert [event.as_dict()["text"] for event in scripted.of(events, "notice")] == [
        f'trying again in 1 s (1 of 2): t@{server.base_url}: too many requests; it says: "status 429"'
    ]
    assert scripted.done(events).answer == "Well."
    assert len(server.asked) == 3


def test_a_beginning_that_cannot_be_summed_up_is_left_out_with_a_word(talks: Conversations) -> None:
    session = talk_at_length(talks)
    with protocol.serving(Reply(status=400), Reply(parts=["Well."])) as server:
        model = usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: "")
        failed = scripted.done(say(talks, scripted.chat(model, context_tokens=500), session, "three"))
    after_failure = talks.store.history(session)[0].upto
    useless = Model([["word " * 1_000], ["Well."]])
    unusable = scripted.done(say(talks, scripted.chat(useless, context_tokens=500), session, "four"))

    assert (failed.answer, unusable.answer) == ("Well.", "Well.")
    assert len(failed.notes) == 1
    assert str(failed.notes[0]).startswith(f"{BEGINNING_LEFT_OUT}: scripted: ")
    assert unusable.notes == [BEGINNING_LEFT_OUT]
    assert (after_failure, talks.store.history(session)[0].upto) == (0, 3)  # the server may answer the next time


def test_a_beginning_that_is_too_long_for_the_model_is_left_out_once(talks: Conversations) -> None:
    session = talk_at_length(talks)
    with protocol.serving(Reply(status=413), Reply(parts=["Well."])) as server:
        model = usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: "")
        first = scripted.done(say(talks, scripted.chat(model, context_tokens=500), session, "three"))

    assert str(first.notes[0]).startswith(f"{BEGINNING_LEFT_OUT}: scripted: ")
    assert talks.store.history(session)[0].upto == 2


def test_a_summary_that_cannot_be_stored_is_paid_for(talks: Conversations, tmp_path: Path) -> None:
    meter = open_meter(tmp_path, SpendingLimits(), lambda: NOW)
    session = talks.route(None).id
    model = Model([["answer " * 400]])
    _ = say(talks, scripted.chat(model, meter=meter), session, "one")
    _ = say(talks, scripted.chat(model, meter=meter), session, "two")
    with closing(sqlite3.connect(talks.store.folder / WORK_FILE)) as database:
        database.execute("CREATE TRIGGER full BEFORE UPDATE ON sessions BEGIN SELECT RAISE(FAIL, 'full'); END")

    with pytest.raises(StorageError):
        _ = say(talks, scripted.chat(model, meter=meter, context_tokens=500), session, "three")

    assert meter.of_run(session).requests == len(model.asked) == 3
    meter.record(session, "m", ModelSpend(requests=1))
    assert meter.of_run(session).requests == 4
    meter.shut()


def test_a_cleared_session_forgets(talks: Conversations) -> None:
    session = talks.route(None).id
    model = Model([["Hi."]])
    chat = scripted.chat(model)

    _ = say(talks, chat, session, "secret")
    _ = talks.store.clear(session)
    _ = say(talks, chat, session, "next")

    assert prompts(model) == ["next"]


def test_limits_hold_for_turns_runs_and_days(talks: Conversations, tmp_path: Path) -> None:
    session, other = talks.route("A.md").id, talks.route("B.md").id
    meter = open_meter(tmp_path, SpendingLimits(run_tokens=80, day_tokens=1_000), lambda: NOW)
    chat = scripted.chat(Model([["Hello there."]]), meter=meter)

    first = say(talks, chat, session)
    second = say(talks, chat, session)
    third = say(talks, chat, session)
    elsewhere = say(talks, chat, other)

    assert scripted.done(first).state == "complete"
    assert "limit" in {scripted.done(second).state, scripted.done(third).state}
    assert scripted.done(elsewhere).state == "complete"
    assert meter.of_run(session).tokens > 0
    assert meter.today().tokens == meter.of_run(session).tokens + meter.of_run(other).tokens
    meter.shut()


def test_a_deleted_session_is_gone(talks: Conversations) -> None:
    session = talks.route("A.md").id
    _ = say(talks, scripted.chat(Model([["Hi."]])), session)

    talks.store.delete(session)

    with pytest.raises(NotFound):
        talks.store.get(session)
    assert talks.route("A.md").id != session


def test_a_proposal_of_a_turn_is_an_object_that_a_person_can_accept(talks: Conversations, vault: opened.Opener) -> None:
    session = talks.route("A.md").id
    call = Call("edit_file", {"path": "A.md", "old_text": "Alpha.", "new_text": "Omega."})
    model = Model([[call], ["It waits for your word."]])

    events = say(talks, scripted.chat(model), session)

    (event,) = scripted.of(events, "proposal")
    proposal = cast("dict[str, object]", event.as_dict()["proposal"])
    assert vault.text("A.md") == NOTES["A.md"]
    assert scripted.done(events).proposals == [proposal["id"]]
    assert proposal["run"] == session
    with vault.open("cli") as context:
        from knapper.tools import proposals  # noqa: PLC0415

        _ = proposals.accept_proposal(context, str(proposal["id"]), str(proposal["digest"]))
    assert vault.text("A.md") == "# A\n\nOmega.\n"


async def numbers(turn: TurnJob, after: int = 0) -> list[tuple[int, str]]:
    async with aclosing(turn.follow(after)) as events:
        return [(number, event.kind) async for number, event in events]


def test_a_listener_may_leave_and_come_back_and_misses_nothing(talks: Conversations) -> None:
    session = talks.route(None).id

    async def listen() -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        turns = agent_events.BackgroundJobs(agent_events.TURN_END)
        chat = scripted.chat(Model([["a ", "b ", "c"]]))
        turn = turns.start(session, lambda tell: talks.reply(chat, session, Message(text="hi"), tell))
        early: list[tuple[int, str]] = []
        async with aclosing(turn.follow()) as events:
            async for number, event in events:
                early.append((number, event.kind))
                break
        late = await numbers(turns.find(turn.id), after=early[-1][0])
        return early, late

    early, late = asyncio.run(listen())

    assert [number for number, _ in early + late] == list(range(1, len(early + late) + 1))
    assert [kind for _, kind in early + late] == ["text", "text", "text", "usage", "usage", "done"]


def test_a_turn_goes_on_when_nobody_listens_and_is_found_by_its_session(talks: Conversations) -> None:
    session = talks.route(None).id

    async def leave() -> Done:
        turns = agent_events.BackgroundJobs(agent_events.TURN_END)
        chat = scripted.chat(Model([["Said to nobody."]]))
        _ = turns.start(session, lambda tell: talks.reply(chat, session, Message(text="hi"), tell))
        return await turns.find(session).wait()

    assert asyncio.run(leave()).answer == "Said to nobody."


def test_a_cancelled_turn_ends_its_stream_and_is_kept(talks: Conversations) -> None:
    session = talks.route(None).id

    async def stop(chat: ChatConfig) -> list[BaseEvent]:
        turns = agent_events.BackgroundJobs(agent_events.TURN_END)
        turn = turns.start(session, lambda tell: talks.reply(chat, session, Message(text="hi"), tell))
        async with aclosing(turn.follow()) as events:
            async for _, event in events:
                if isinstance(event, Text):
                    assert turn.cancel()
        assert not turn.cancel()
        return turn.events

    with protocol.serving(Reply(parts=["Half ", "never"], hang_s=20)) as server:
        chat = scripted.chat(usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: ""))
        events = asyncio.run(stop(chat))

    assert scripted.done(events).state == "cancelled"
    assert [turn.outcome["answer"] for turn in talks.store.turns(session)] == ["Half "]


def test_an_error_that_nobody_foresaw_ends_the_stream_without_its_text() -> None:
    async def fail() -> TurnJob:
        async def work(_: object) -> None:
            raise ZeroDivisionError("a note's text")

        turn = agent_events.BackgroundJobs(agent_events.TURN_END).start("s", work)
        _ = await turn.wait()
        return turn

    turn = asyncio.run(fail())

    assert [event.kind for event in turn.events] == ["error", "done"]
    assert "a note's text" not in str(turn.events)
    assert isinstance(turn.failure, ZeroDivisionError)


def test_turns_that_ended_are_forgotten_after_a_while_and_too_many_are_refused() -> None:
    async def run() -> None:
        turns = agent_events.BackgroundJobs(agent_events.TURN_END, kept_s=0, max_running=1)
        gate = asyncio.Event()

        async def work(_: object) -> None:
            await gate.wait()

        turn = turns.start("s", work)
        with pytest.raises(ConflictError):
            turns.start("t", work)
        gate.set()
        _ = await turn.wait()
        await asyncio.sleep(0.01)
        with pytest.raises(NotFound):
            turns.find(turn.id)

    asyncio.run(run())
    assert agent_events.KEPT_S > 0


def test_shutting_down_keeps_what_there_is(talks: Conversations) -> None:
    session = talks.route(None).id

    async def shut(chat: ChatConfig) -> None:
        turns = agent_events.BackgroundJobs(agent_events.TURN_END)
        turn = turns.start(session, lambda tell: talks.reply(chat, session, Message(text="hi"), tell))
        async with aclosing(turn.follow()) as events:
            async for _, event in events:
                if isinstance(event, Text):
                    break
        await turns.shut()

    with protocol.serving(Reply(parts=["Half ", "never"], hang_s=20)) as server:
        asyncio.run(
            shut(scripted.chat(usage.open_model([names.parse_model_name(f"t@{server.base_url}")], lambda _: "")))
        )

    assert [turn.outcome["answer"] for turn in talks.store.turns(session)] == ["Half "]
