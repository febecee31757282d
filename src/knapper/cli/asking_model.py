"""Have a model answer one question."""

import asyncio
import uuid
from typing import Final

from knapper import app
from knapper.agents.chat.turn import ChatTurn, EventSink, Message
from knapper.app import chats
from knapper.cli import conversing, output
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.config import Settings

_OWN: Final = frozenset({"type", "session_id"})


def answer(said: Options, found: Settings, question: str, *, model: str, note: str) -> ExitCode:
    """Answer a question in one turn, without a session.

    Args:
        said: The shared options.
        found: What the configuration says.
        question: The person's.
        model: The model's name; empty for the configured one.
        note: The note that it is about; empty for none.

    Raises:
        SetupError: The model can't answer.
        RefusedError: A limit is reached.
    """
    with app.open_hub(found, only=True) as hub, chats.open_chats(hub) as opened, asyncio.Runner() as runner:
        chat = opened.chat(model)
        run = str(uuid.uuid4())
        context = opened.conversations.context_of(run)
        turn = ChatTurn(chat, context, Message(text=question, run=run, active_file=note))
        shown = _quiet(said) if said.as_json else conversing.screen(said)
        if not said.as_json:
            shown.asking(chat.name)

        async def work(tell: EventSink) -> None:
            await turn.run(tell)

        try:
            finished = conversing.answer(runner, work, shown)
        finally:
            opened.meter.record(run, chat.name, turn.spent)
    error = conversing.failure(shown)
    if error is not None:
        raise error
    if said.as_json and shown.done is not None:
        told = shown.done.as_dict()
        output.write_json({"success": True, **{name: told[name] for name in told if name not in _OWN}})
    return ExitCode.OK if finished else ExitCode.INTERRUPTED


def _quiet(said: Options) -> conversing.Screen:
    return conversing.Screen(said=said, show=lambda _: None, flush=lambda: None)
