"""The sections on agents, runs and scripts."""

from dataclasses import dataclass
from typing import Literal

from knapper.agents.pipeline import scopes
from knapper.config.declarations import SettingsSection, setting

EditableNotes = Literal["current", "linked", "context"]
ScriptWalls = Literal["required", "best"]
TaskCapability = Literal["add", "delete", "create", "navigate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutAgentSettings(SettingsSection):
    """How the agent works that explores the vault."""

    rounds: int = setting(5, "How many rounds of looking the scout has.", least=2, most=10)
    notes: int = setting(20, "How many notes the scout may choose.", least=3, most=50)
    keyword_limit: int = setting(10, "How many notes a search by words gives the scout.", least=3, most=20)
    model: str = setting("", "The scout's model; empty for model.name.")
    tools: tuple[str, ...] = setting(
        scopes.OPTIONAL_SCOUT_TOOLS, "The scout's tools.", choices=scopes.OPTIONAL_SCOUT_TOOLS
    )
    show_tags: bool = setting(False, "Whether the scout is shown all tags of the vault at the beginning.")
    timeout_s: int = setting(
        300, "How long the scout may take, in seconds; its last choice counts then.", least=5, most=86_400
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(SettingsSection):
    """How tasks are done, and by which agents."""

    scout_on: bool = setting(
        False,
        "Whether an agent explores the vault for the notes that a task needs; a choice that was kept counts more.",
        name="scout",
    )
    web_on: bool = setting(
        False,
        "Whether an agent searches the web for a task, where web.access allows it; a choice that was kept counts more.",
        name="web",
    )
    task_on: bool = setting(
        True,
        "Whether an agent does the task, or the others only show what they found; a choice that was kept counts more.",
        name="task",
    )
    link_depth: int = setting(
        2, "How many links from the open note are followed for the notes that go with it; 0 for none.", most=3
    )
    same_folder: bool = setting(False, "Whether the notes of the open note's folder go with it.")
    excluded_folders: tuple[str, ...] = setting(
        (), "Folders whose notes are left out, and through which no link is followed."
    )
    editable: EditableNotes = setting(
        "context",
        "Which notes a task may change: the open one, that and those it links with, or all that it was given.",
    )
    can: tuple[TaskCapability, ...] = setting(("add", "delete", "create", "navigate"), "What a task may do to notes.")
    token_limit: int = setting(
        16_000,
        "How many tokens of notes a task is done with at most; what is over is left out, and told.",
        least=3_000,
        most=2_000_000,
    )
    linked_notes: int = setting(
        20,
        "How many notes go with the open one for links alone, the nearest first; the others are named; 0 for all.",
        most=10_000,
    )
    chat_history_length: int = setting(10, "How many earlier messages of the session a task is told of.", most=100)
    orchestrate: bool = setting(
        False, "Whether a model chooses which of the agents that are switched on work, and in which order."
    )
    orchestrator_steps: int = setting(4, "How often agents gather before the task is done.", least=1, most=8)
    orchestrator_tokens: int = setting(
        0,
        "How many tokens gathering may use before the task is done with what there is; 0 for no limit.",
        most=1_000_000_000,
    )
    scout: ScoutAgentSettings = ScoutAgentSettings()
    auto_search: bool = setting(
        True,
        "Whether the web agent searches by itself where notes don't answer, or only says that it would.",
        name="web.auto_search",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(SettingsSection):
    """How much a run may take, and how it retrieves."""

    strategy: str = setting(
        "auto",
        "How runs are split and done: a strategy's name, or auto to let the model choose.",
        env=("KNAP_RUNS_STRATEGY",),
    )
    code_mode: bool = setting(
        True,
        "Whether scripts retrieve what a run needs; otherwise search does.",
        env=("KNAP_RUNS_CODE_MODE",),
        words=("on", "off"),
    )
    depth: int = setting(3, "How many levels of subtasks a run may have.", env=("KNAP_RUNS_DEPTH",), most=8)
    nodes: int = setting(
        50,
        "How many nodes a run may have, the task itself among them.",
        env=("KNAP_RUNS_NODES",),
        least=1,
        most=500,
    )
    minutes: int = setting(
        20,
        "How long a run may take, in minutes; a quarter is kept for its answer.",
        env=("KNAP_RUNS_MINUTES",),
        least=1,
        most=1_440,
    )
    tokens: int = setting(
        1_000_000,
        "How many tokens a run may use; a quarter is kept for its answer; 0 for no limit.",
        env=("KNAP_RUNS_TOKENS",),
        most=1_000_000_000,
    )
    cents: int = setting(
        0,
        "How much a run may cost, in cents of a US dollar, where prices are known; 0 for no limit.",
        env=("KNAP_RUNS_CENTS",),
        most=1_000_000,
    )
    parallel: int = setting(
        4,
        "How many nodes of a run retrieve or write at the same time.",
        env=("KNAP_RUNS_PARALLEL",),
        least=1,
        most=64,
    )
    days: int = setting(90, "How long a run is kept after it was last worked on, in days.", least=1, most=36_500)
    min_context_chars: int = setting(
        2_000, "How many characters of context a script should retrieve; less lowers its score.", least=1, most=200_000
    )
    min_citations: int = setting(2, "How many places a script should cite; fewer lower its score.", least=1, most=1_000)
    low_score_percent: int = setting(
        45, "Below which score, in percent, what a script retrieved isn't good enough.", most=100
    )
    low_confidence_percent: int = setting(
        50, "Below which confidence of its own, in percent, a script's result isn't good enough.", most=100
    )
    regens_per_node: int = setting(1, "How often the script of a node is written anew.", most=20)
    regens_per_run: int = setting(5, "How often the scripts of a run are written anew.", most=1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings(SettingsSection):
    """What scripts in the sandbox may use."""

    timeout_s: int = setting(
        60,
        "How long a script may run, in seconds, with all that it asks for.",
        env=("KNAP_SCRIPTS_TIMEOUT_S",),
        least=1,
        most=3_600,
    )
    memory_mb: int = setting(
        512,
        "How much memory a script may use, in megabytes.",
        env=("KNAP_SCRIPTS_MEMORY_MB",),
        least=64,
        most=3_000,
    )
    result_kb: int = setting(
        200,
        "How large a script's result may be, in kilobytes of JSON.",
        env=("KNAP_SCRIPTS_RESULT_KB",),
        least=1,
        most=4_000,
    )
    workers: int = setting(
        4,
        "How many scripts may run at the same time; others wait.",
        env=("KNAP_SCRIPTS_WORKERS",),
        least=1,
        most=64,
    )
    walls: ScriptWalls = setting(
        "best",
        "Whether scripts are refused where a part of the system's own confinement can't be had (required), or run with"
        " what there is (best).",
        env=("KNAP_SCRIPTS_WALLS",),
    )
    fs_read: tuple[str, ...] = setting((), "Folders whose files scripts may read in the profiles local and extended.")
    """As written; ``~`` is the home folder."""
    net_allow: tuple[str, ...] = setting(
        (), "Hosts that scripts may get pages from in the profile extended: example.org, *.example.org."
    )
