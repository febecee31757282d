"""Say how the agents work that explore, search the web and do tasks."""

from dataclasses import dataclass
from typing import Final, Literal, cast

from knapper.agents.pipeline import scopes
from knapper.config.setting import Setting, Values, count, text, texts

Editable = Literal["current", "linked", "context"]
_ON_OFF: Final = ("off", "on")
_CAN: Final = ("add", "delete", "create", "navigate")

SETTINGS = (
    Setting(
        name="agents.scout",
        doc="Whether an agent explores the vault for the notes that a task needs; what was set last counts.",
        kind="choice",
        default="off",
        choices=_ON_OFF,
    ),
    Setting(
        name="agents.web",
        doc="Whether an agent searches the web for a task, where web.access allows that; what was set last counts.",
        kind="choice",
        default="off",
        choices=_ON_OFF,
    ),
    Setting(
        name="agents.task",
        doc="Whether an agent does the task, or the others only show what they found; what was set last counts.",
        kind="choice",
        default="on",
        choices=_ON_OFF,
    ),
    Setting(
        name="agents.link_depth",
        doc="How many links from the open note are followed for the notes that go with it; 0 for none.",
        kind="count",
        default=2,
        most=3,
    ),
    Setting(
        name="agents.same_folder",
        doc="Whether the notes of the open note's folder go with it.",
        kind="choice",
        default="off",
        choices=_ON_OFF,
    ),
    Setting(
        name="agents.excluded_folders",
        doc="Folders whose notes are left out, and through which no link is followed.",
        kind="texts",
        default=(),
    ),
    Setting(
        name="agents.editable",
        doc="Which notes a task may change: the open one, that and those it links with, or all that it was given.",
        kind="choice",
        default="context",
        choices=("current", "linked", "context"),
    ),
    Setting(name="agents.can", doc="What a task may do to notes.", kind="texts", default=_CAN, choices=_CAN),
    Setting(
        name="agents.token_limit",
        doc="How many tokens of notes a task is done with at most; what is over is left out, and told.",
        kind="count",
        default=16_000,
        least=3_000,
        most=2_000_000,
    ),
    Setting(
        name="agents.chat_history_length",
        doc="How many earlier messages of the session a task is told of.",
        kind="count",
        default=10,
        most=100,
    ),
    Setting(
        name="agents.orchestrate",
        doc="Whether a model chooses which of the agents that are switched on work, and in which order.",
        kind="choice",
        default="off",
        choices=_ON_OFF,
    ),
    Setting(
        name="agents.orchestrator_steps",
        doc="How often agents gather before the task is done.",
        kind="count",
        default=4,
        least=1,
        most=8,
    ),
    Setting(
        name="agents.orchestrator_tokens",
        doc="How many tokens gathering may use before the task is done with what there is; 0 for no limit.",
        kind="count",
        default=0,
        most=1_000_000_000,
    ),
    Setting(
        name="scout.rounds",
        doc="How many rounds of looking the scout has.",
        kind="count",
        default=5,
        least=2,
        most=10,
    ),
    Setting(name="scout.notes", doc="How many notes the scout may choose.", kind="count", default=20, least=3, most=50),
    Setting(
        name="scout.keyword_limit",
        doc="How many notes a search by words gives the scout.",
        kind="count",
        default=10,
        least=3,
        most=20,
    ),
    Setting(name="scout.model", doc="The scout's model; empty for model.name."),
    Setting(
        name="scout.tools",
        doc="The scout's tools.",
        kind="texts",
        default=scopes.OPTIONAL_SCOUT_TOOLS,
        choices=scopes.OPTIONAL_SCOUT_TOOLS,
    ),
    Setting(
        name="scout.show_tags",
        doc="Whether the scout is shown all tags of the vault at the beginning.",
        kind="choice",
        default="off",
        choices=_ON_OFF,
    ),
    Setting(
        name="scout.timeout_s",
        doc="How long the scout may take, in seconds; its last choice counts then.",
        kind="count",
        default=300,
        least=5,
        most=86_400,
    ),
    Setting(
        name="web.auto_search",
        doc="Whether the web agent searches by itself where notes don't answer, or only says that it would.",
        kind="choice",
        default="on",
        choices=_ON_OFF,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scout:
    """Say how the scout works."""

    rounds: int = 5
    notes: int = 20
    keyword_limit: int = 10
    model: str = ""
    tools: tuple[str, ...] = scopes.OPTIONAL_SCOUT_TOOLS
    show_tags: bool = False
    timeout_s: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """Say how tasks are done."""

    scout_on: bool = False
    web_on: bool = False
    task_on: bool = True
    link_depth: int = 2
    same_folder: bool = False
    excluded_folders: tuple[str, ...] = ()
    editable: Editable = "context"
    can: tuple[str, ...] = _CAN
    token_limit: int = 16_000
    chat_history_length: int = 10
    orchestrate: bool = False
    orchestrator_steps: int = 4
    orchestrator_tokens: int = 0
    auto_search: bool = True
    scout: Scout = Scout()


def read(values: Values) -> Agents:
    """Give the sections."""
    return Agents(
        scout_on=_is_on(values, "agents.scout"),
        web_on=_is_on(values, "agents.web"),
        task_on=_is_on(values, "agents.task"),
        link_depth=count(values, "agents.link_depth"),
        same_folder=_is_on(values, "agents.same_folder"),
        excluded_folders=texts(values, "agents.excluded_folders"),
        editable=cast("Editable", text(values, "agents.editable")),
        can=texts(values, "agents.can"),
        token_limit=count(values, "agents.token_limit"),
        chat_history_length=count(values, "agents.chat_history_length"),
        orchestrate=_is_on(values, "agents.orchestrate"),
        orchestrator_steps=count(values, "agents.orchestrator_steps"),
        orchestrator_tokens=count(values, "agents.orchestrator_tokens"),
        auto_search=_is_on(values, "web.auto_search"),
        scout=Scout(
            rounds=count(values, "scout.rounds"),
            notes=count(values, "scout.notes"),
            keyword_limit=count(values, "scout.keyword_limit"),
            model=text(values, "scout.model"),
            tools=texts(values, "scout.tools"),
            show_tags=_is_on(values, "scout.show_tags"),
            timeout_s=count(values, "scout.timeout_s"),
        ),
    )


def _is_on(values: Values, name: str) -> bool:
    return text(values, name) == "on"
