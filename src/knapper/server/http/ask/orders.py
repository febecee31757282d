"""Say what routes of tasks take, and read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from knapper.agents.pipeline import scopes
from knapper.app.tasks.choices import Choice, Order
from knapper.config.sections import agents
from knapper.errors import BadInput
from knapper.server.http.arguments import VAULT, Take

if TYPE_CHECKING:
    from collections.abc import Mapping

    from knapper.server.http.arguments import Given


_MAX_ANSWER: Final = 20_000
_SETTINGS: Final = {one.name: one for one in agents.SETTINGS}


def _range(name: str) -> tuple[int, int]:
    setting = _SETTINGS[name]
    return setting.least, setting.most


RANGES: Final[Mapping[str, tuple[int, int]]] = {
    name: _range(f"agents.{name}") for name in ("link_depth", "token_limit", "chat_history_length")
}
"""The lowest and the highest of each number."""


def _number(name: str, doc: str) -> Take:
    least, most = RANGES[name]
    return Take(name=name, doc=doc, kind="count", least=least, most=most)


SWITCHES: Final = (
    Take(name="scout", doc="Look for the notes first, in the whole vault; as last where it is left out.", kind="flag"),
    Take(name="web", doc="Search the web where the notes don't answer; as last where it is left out.", kind="flag"),
    Take(name="task_agent", doc="Do the task, or only show what was found; as last where it is left out.", kind="flag"),
)
CHOICE: Final = (
    Take(name="note", doc="The note that it is about; without one, and with none added, the scout looks for notes."),
    VAULT,
    Take(name="preset", doc="A saved choice, by its name; what is said here counts more.", most=200),
    Take(name="add", doc="Paths of notes that go with it, beside those of the preset.", kind="texts"),
    *SWITCHES,
    _number("link_depth", "How many links from the note are followed, out and back."),
    Take(name="same_folder", doc="Whether the notes of its folder go with it.", kind="flag"),
    Take(
        name="excluded_folders",
        doc="Folders whose notes are left out, and through which no link is followed.",
        kind="texts",
    ),
    Take(name="editable", doc="Which notes may be edited.", choices=scopes.EDITABLE_SCOPES),
    Take(name="can", doc="What edits may do.", kind="texts", choices=scopes.ABILITIES),
    _number("token_limit", "Tokens of notes at most."),
    Take(name="orchestrate", doc="Let a model choose which agents work, and in which order.", kind="flag"),
)
ORDER: Final = (
    Take(name="task", doc="What is to be done; needed but where a run goes on.", most=200_000),
    Take(name="session_id", doc="The session that is gone on with, and keeps the turn; none where it is left out."),
    Take(name="model", doc="The model that works; one of the configuration, unless a person asks.", most=500),
    Take(name="run_id", doc="A run that asked the person something; it goes on as it was begun.", most=200),
    Take(name="answer", doc="What the person says to that; only with run_id.", most=_MAX_ANSWER),
    *CHOICE,
)
CONTEXT: Final = (
    Take(name="texts", doc="Whether the notes' texts come along, to be copied.", kind="flag"),
    *CHOICE,
)


def order(given: Given) -> Order:
    """Read what a client wants done."""
    return Order(
        task=given.text("task"),
        note=given.text("note"),
        session_id=given.text("session_id"),
        preset=given.text("preset"),
        choice=Choice(
            scout=given.flag("scout"),
            web=given.flag("web"),
            task=given.flag("task_agent"),
            link_depth=given.whole("link_depth"),
            same_folder=given.flag("same_folder"),
            excluded_folders=given.texts("excluded_folders"),
            editable=given.text("editable") or None,
            can=given.texts("can"),
            added=given.texts("add") or (),
        ),
        token_limit=given.whole("token_limit"),
        orchestrate=given.flag("orchestrate"),
    )


def check(given: Given) -> None:
    """See that there is a task to begin, or an answer to go on with.

    Raises:
        BadInput: There is neither, or half of it (code ``bad_arguments``).
    """
    run, answer = given.text("run_id"), given.text("answer")
    if run and not answer.strip():
        raise BadInput("'answer' is needed", hint="say what the person answers to the run", code="bad_arguments")
    if answer and not run:
        raise BadInput("'run_id' is needed", hint="name the run whose question is answered", code="bad_arguments")
    if not run and not given.text("task").strip():
        raise BadInput("'task' is needed", hint="say what is to be done", code="bad_arguments")
