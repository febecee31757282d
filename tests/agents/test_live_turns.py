"""Turns that go on by themselves end once, however often and early they are stopped."""

import asyncio

from knapper.agents import events
from knapper.agents.chat.turn import EventSink
from knapper.agents.events import Done, Text, TurnJob


async def slowly(tell: EventSink) -> None:
    tell(Text(text="One.", step=1))
    try:
        await asyncio.sleep(60)
    finally:  # what keeps a turn takes a while, too
        await asyncio.sleep(0.05)
        tell(Done(state="cancelled", answer="One.", session_id="s"))


def end(turn: TurnJob) -> Done:
    done = turn.events[-1]
    assert isinstance(done, Done)
    return done


def test_a_turn_that_is_stopped_twice_is_kept_all_the_same() -> None:
    async def work() -> TurnJob:
        turn = events.BackgroundJobs(events.TURN_END).start("s", slowly)
        await asyncio.sleep(0)
        assert turn.cancel()
        await asyncio.sleep(0.01)
        assert turn.cancel()
        _ = await asyncio.wait_for(turn.wait(), 5)
        assert not turn.cancel()
        return turn

    turn = asyncio.run(work())

    assert (end(turn).state, end(turn).answer) == ("cancelled", "One.")
    assert sum(isinstance(event, Done) for event in turn.events) == 1


def test_a_turn_that_is_stopped_before_it_began_ends() -> None:
    async def work() -> TurnJob:
        turn = events.BackgroundJobs(events.TURN_END).start("s", slowly)
        assert turn.cancel()
        _ = await asyncio.wait_for(turn.wait(), 5)
        return turn

    assert end(asyncio.run(work())).state == "cancelled"


def test_only_turns_that_have_not_ended_go_on() -> None:
    async def work() -> tuple[int, int]:
        turns = events.BackgroundJobs(events.TURN_END)
        turn = turns.start("s", slowly)
        before = len(turns.running())
        _ = turn.cancel()
        _ = await asyncio.wait_for(turn.wait(), 5)
        return before, len(turns.running())

    assert asyncio.run(work()) == (1, 0)
