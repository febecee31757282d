"""The sections on agents, runs and scripts."""

from dataclasses import dataclass
from typing import Final, Literal, cast

from knapper.agents.pipeline import scopes
from knapper.config.declarations import Setting, SettingValues, get_count, get_text, get_texts

EditableNotes = Literal["current", "linked", "context"]
_OFF_ON: Final = ("off", "on")
_DEFAULT_CAPABILITIES: Final = ("add", "delete", "create", "navigate")

AGENT_SETTINGS = (
    Setting(
        name="agents.scout",
        doc="Whether an agent explores the vault for the notes that a task needs; what was set last counts.",
        kind="choice",
        default="off",
        choices=_OFF_ON,
    ),
    Setting(
        name="agents.web",
        doc="Whether an agent searches the web for a task, where web.access allows that; what was set last counts.",
        kind="choice",
        default="off",
        choices=_OFF_ON,
    ),
    Setting(
        name="agents.task",
        doc="Whether an agent does the task, or the others only show what they found; what was set last counts.",
        kind="choice",
        default="on",
        choices=_OFF_ON,
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
        choices=_OFF_ON,
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
    Setting(
        name="agents.can",
        doc="What a task may do to notes.",
        kind="texts",
        default=_DEFAULT_CAPABILITIES,
        choices=_DEFAULT_CAPABILITIES,
    ),
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
        choices=_OFF_ON,
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
        choices=_OFF_ON,
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
        choices=_OFF_ON,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutAgentSettings:
    """Say how the scout works."""

    rounds: int = 5
    notes: int = 20
    keyword_limit: int = 10
    model: str = ""
    tools: tuple[str, ...] = scopes.OPTIONAL_SCOUT_TOOLS
    show_tags: bool = False
    timeout_s: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Say how tasks are done."""

    scout_on: bool = False
    web_on: bool = False
    task_on: bool = True
    link_depth: int = 2
    same_folder: bool = False
    excluded_folders: tuple[str, ...] = ()
    editable: EditableNotes = "context"
    can: tuple[str, ...] = _DEFAULT_CAPABILITIES
    token_limit: int = 16_000
    chat_history_length: int = 10
    orchestrate: bool = False
    orchestrator_steps: int = 4
    orchestrator_tokens: int = 0
    auto_search: bool = True
    scout: ScoutAgentSettings = ScoutAgentSettings()


def read_agents(values: SettingValues) -> AgentSettings:
    """Give the sections."""
    return AgentSettings(
        scout_on=_is_on(values, "agents.scout"),
        web_on=_is_on(values, "agents.web"),
        task_on=_is_on(values, "agents.task"),
        link_depth=get_count(values, "agents.link_depth"),
        same_folder=_is_on(values, "agents.same_folder"),
        excluded_folders=get_texts(values, "agents.excluded_folders"),
        editable=cast("EditableNotes", get_text(values, "agents.editable")),
        can=get_texts(values, "agents.can"),
        token_limit=get_count(values, "agents.token_limit"),
        chat_history_length=get_count(values, "agents.chat_history_length"),
        orchestrate=_is_on(values, "agents.orchestrate"),
        orchestrator_steps=get_count(values, "agents.orchestrator_steps"),
        orchestrator_tokens=get_count(values, "agents.orchestrator_tokens"),
        auto_search=_is_on(values, "web.auto_search"),
        scout=ScoutAgentSettings(
            rounds=get_count(values, "scout.rounds"),
            notes=get_count(values, "scout.notes"),
            keyword_limit=get_count(values, "scout.keyword_limit"),
            model=get_text(values, "scout.model"),
            tools=get_texts(values, "scout.tools"),
            show_tags=_is_on(values, "scout.show_tags"),
            timeout_s=get_count(values, "scout.timeout_s"),
        ),
    )


def _is_on(values: SettingValues, name: str) -> bool:
    return get_text(values, name) == "on"


_ON_OFF: Final = ("on", "off")

RUN_SETTINGS = (
    Setting(
        name="runs.strategy",
        doc="How runs are split and done: a strategy's name, or auto to let the model choose.",
        default="auto",
        env=("KNAP_RUNS_STRATEGY",),
    ),
    Setting(
        name="runs.code_mode",
        doc="Whether scripts retrieve what a run needs; otherwise search does.",
        kind="choice",
        default="on",
        env=("KNAP_RUNS_CODE_MODE",),
        choices=_ON_OFF,
    ),
    Setting(
        name="runs.depth",
        doc="How many levels of subtasks a run may have.",
        kind="count",
        default=3,
        env=("KNAP_RUNS_DEPTH",),
        most=8,
    ),
    Setting(
        name="runs.nodes",
        doc="How many nodes a run may have, the task itself among them.",
        kind="count",
        default=50,
        env=("KNAP_RUNS_NODES",),
        least=1,
        most=500,
    ),
    Setting(
        name="runs.minutes",
        doc="How long a run may take, in minutes; a quarter is kept for its answer.",
        kind="count",
        default=20,
        env=("KNAP_RUNS_MINUTES",),
        least=1,
        most=1_440,
    ),
    Setting(
        name="runs.tokens",
        doc="How many tokens a run may use; a quarter is kept for its answer; 0 for no limit.",
        kind="count",
        default=1_000_000,
        env=("KNAP_RUNS_TOKENS",),
        most=1_000_000_000,
    ),
    Setting(
        name="runs.cents",
        doc="How much a run may cost, in cents of a US dollar, where prices are known; 0 for no limit.",
        kind="count",
        default=0,
        env=("KNAP_RUNS_CENTS",),
        most=1_000_000,
    ),
    Setting(
        name="runs.parallel",
        doc="How many nodes of a run retrieve or write at the same time.",
        kind="count",
        default=4,
        env=("KNAP_RUNS_PARALLEL",),
        least=1,
        most=64,
    ),
    Setting(
        name="runs.days",
        doc="How long a run is kept after it was last worked on, in days.",
        kind="count",
        default=90,
        least=1,
        most=36_500,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Say how much a run may take, and how it retrieves."""

    strategy: str = "auto"
    code_mode: bool = True
    depth: int = 3
    nodes: int = 50
    minutes: int = 20
    tokens: int = 1_000_000
    cents: int = 0
    parallel: int = 4
    days: int = 90


def read_runs(values: SettingValues) -> RunSettings:
    """Give the section."""
    return RunSettings(
        strategy=get_text(values, "runs.strategy"),
        code_mode=get_text(values, "runs.code_mode") == "on",
        depth=get_count(values, "runs.depth"),
        nodes=get_count(values, "runs.nodes"),
        minutes=get_count(values, "runs.minutes"),
        tokens=get_count(values, "runs.tokens"),
        cents=get_count(values, "runs.cents"),
        parallel=get_count(values, "runs.parallel"),
        days=get_count(values, "runs.days"),
    )


SCRIPT_SETTINGS = (
    Setting(
        name="scripts.timeout_s",
        doc="How long a script may run, in seconds, with all that it asks for.",
        kind="count",
        default=60,
        env=("KNAP_SCRIPTS_TIMEOUT_S",),
        least=1,
        most=3_600,
    ),
    Setting(
        name="scripts.memory_mb",
        doc="How much memory a script may use, in megabytes.",
        kind="count",
        default=512,
        env=("KNAP_SCRIPTS_MEMORY_MB",),
        least=64,
        most=3_000,
    ),
    Setting(
        name="scripts.result_kb",
        doc="How large a script's result may be, in kilobytes of JSON.",
        kind="count",
        default=200,
        env=("KNAP_SCRIPTS_RESULT_KB",),
        least=1,
        most=4_000,
    ),
    Setting(
        name="scripts.workers",
        doc="How many scripts may run at the same time; others wait.",
        kind="count",
        default=4,
        env=("KNAP_SCRIPTS_WORKERS",),
        least=1,
        most=64,
    ),
    Setting(
        name="scripts.fs_read",
        doc="Folders whose files scripts may read in the profiles local and extended.",
        kind="texts",
        default=(),
    ),
    Setting(
        name="scripts.net_allow",
        doc="Hosts that scripts may get pages from in the profile extended: example.org, *.example.org.",
        kind="texts",
        default=(),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """Say what scripts in the sandbox may use."""

    timeout_s: int = 60
    memory_mb: int = 512
    result_kb: int = 200
    workers: int = 4
    fs_read: tuple[str, ...] = ()
    """Folders, as written; ``~`` is the home folder."""
    net_allow: tuple[str, ...] = ()


def read_scripts(values: SettingValues) -> ScriptSettings:
    """Give the section."""
    return ScriptSettings(
        timeout_s=get_count(values, "scripts.timeout_s"),
        memory_mb=get_count(values, "scripts.memory_mb"),
        result_kb=get_count(values, "scripts.result_kb"),
        workers=get_count(values, "scripts.workers"),
        fs_read=get_texts(values, "scripts.fs_read"),
        net_allow=get_texts(values, "scripts.net_allow"),
    )
