"""Every setting: the table of them all, and the values as the rest of the program gets them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from knapper.config.declarations import Setting
from knapper.config.sections import agents, models, network
from knapper.config.sections.agents import AgentSettings, RunSettings, ScriptSettings
from knapper.config.sections.models import AudioSettings, ModelSettings
from knapper.config.sections.network import ServerSettings, WebSettings
from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import Grants

CONFIG_ENV = "KNAP_CONFIG"
"""Names the configuration file."""
STATE_ENV = "KNAP_STATE_DIR"
"""Names the state folder."""

SETTINGS = (
    Setting(
        name="default_vault",
        doc="The vault to use: a name from [vaults.NAME], or a folder.",
        env=("VAULT_PATH",),
        flag="--vault",
    ),
    Setting(
        name="state_dir",
        doc="The folder of indexes, proposals and journals; outside every vault.",
        kind="path",
        env=(STATE_ENV,),
    ),
    Setting(
        name="embeddings.kind",
        doc="What turns text into vectors: built-in weights, an OpenAI-compatible endpoint, an ONNX model, or none.",
        kind="choice",
        default="static",
        env=("KNAP_EMBEDDINGS",),
        choices=("static", "endpoint", "onnx", "none"),
    ),
    Setting(
        name="embeddings.model",
        doc="The name of the embedding model, for endpoint and onnx.",
        env=("KNAP_EMBEDDINGS_MODEL",),
    ),
    Setting(
        name="embeddings.base_url",
        doc="The address of the endpoint, such as http://localhost:11434/v1.",
        kind="url",
        env=("KNAP_EMBEDDINGS_BASE_URL",),
    ),
    Setting(
        name="embeddings.api_key",
        doc="The key of the endpoint.",
        env=("KNAP_EMBEDDINGS_API_KEY",),
        secret=True,
    ),
    Setting(
        name="search.fusion",
        doc="How keyword and vector scores are joined: a weighted sum, or reciprocal ranks.",
        kind="choice",
        default="convex",
        env=("KNAP_FUSION",),
        choices=("convex", "rrf"),
    ),
    *models.MODEL_SETTINGS,
    *models.AUDIO_SETTINGS,
    *network.WEB_SETTINGS,
    *agents.AGENT_SETTINGS,
    *agents.RUN_SETTINGS,
    *agents.SCRIPT_SETTINGS,
    Setting(
        name="proposals.expire_days",
        doc="How long a proposal waits for a person, in days.",
        kind="count",
        default=30,
        least=1,
        most=3_650,
    ),
    Setting(
        name="journal.max_mb",
        doc="How much the journal may keep for undo, in megabytes; the oldest changes go first.",
        kind="count",
        default=1_000,
        least=1,
        most=1_000_000,
    ),
    Setting(
        name="journal.max_age_days",
        doc="How long the journal keeps changes for undo, in days.",
        kind="count",
        default=365,
        least=1,
        most=36_500,
    ),
    Setting(
        name="git.commit",
        doc="Whether each change is committed, where the vault is a git repository; what is staged stays staged.",
        kind="choice",
        default="no",
        choices=("no", "yes"),
    ),
    *network.SERVER_SETTINGS,
    Setting(
        name="index.interval_minutes",
        doc="How often whatever watches a vault compares all of it, for changes that the system didn't tell.",
        kind="count",
        default=60,
        env=("INDEX_INTERVAL",),
        least=1,
        most=525_600,
    ),
)
"""Settings of the program, in the order in which `knap config` shows them."""

VAULT_SETTINGS = (
    Setting(name="path", doc="The vault's folder.", kind="path"),
    Setting(name="hidden", doc="Patterns of paths that nobody is shown, as in .gitignore.", kind="texts", default=()),
    Setting(name="read", doc="Patterns of paths that may be read; empty for all.", kind="texts", default=()),
    Setting(
        name="foreign_folders",
        doc="Folders with other people's text; whoever has read it only proposes changes.",
        kind="texts",
        default=("Clippings/",),
    ),
    Setting(
        name="foreign_properties",
        doc="Properties that mark a note as other people's text where they hold a web address.",
        kind="texts",
        default=("source",),
    ),
)
"""Settings of one vault, in its section ``[vaults.NAME]``."""

CLIENT_SETTINGS = (
    Setting(
        name="kind",
        doc="What the client is; for a name of your own, not for cli, page, mcp, http, agent and script.",
        kind="choice",
        choices=("mcp", "http", "agent", "script"),
    ),
    Setting(
        name="token_hash",
        doc="The hash of the token that it shows to the HTTP server; `knap token new` makes both.",
        secret=True,
    ),
    Setting(name="read", doc="Patterns of paths that it may read at most; empty for all.", kind="texts", default=()),
    Setting(name="hidden", doc="Patterns of paths that it isn't shown.", kind="texts", default=()),
    Setting(name="write", doc="Patterns of paths that it may change; empty for all.", kind="texts", default=()),
    Setting(name="read_only", doc="Patterns of paths that it may not change.", kind="texts", default=()),
    Setting(
        name="access",
        doc="Whether it may change anything: write, or only read.",
        kind="choice",
        default="write",
        choices=("write", "read"),
    ),
    Setting(
        name="capabilities",
        doc="What it may do to files.",
        kind="texts",
        default=("add", "delete", "create", "navigate", "move", "properties"),
        choices=("add", "delete", "create", "navigate", "move", "properties"),
    ),
    Setting(
        name="scope",
        doc="Which notes it may change: all, the current one, that and those it links to, or those given as context.",
        kind="choice",
        default="all",
        choices=("all", "current", "linked", "context"),
    ),
    Setting(
        name="small",
        doc="What becomes of a change to one exact place that overwrites, moves and trashes nothing.",
        kind="choice",
        choices=("apply", "propose", "refuse"),
    ),
    Setting(
        name="large",
        doc="What becomes of any other change; of more than 5 files it is a proposal at most.",
        kind="choice",
        choices=("apply", "propose", "refuse"),
    ),
    Setting(
        name="guarded",
        doc="Patterns of paths that change only with a person's word.",
        kind="texts",
        default=("Preferences.md",),
    ),
)
"""Settings of one client, in its section ``[clients.NAME]``; without *small* and *large* its kind tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vault:
    """Name a vault's folder, and what its owner says about it."""

    name: str
    """As configured; otherwise the folder's name."""
    path: Path
    """With symbolic links resolved."""
    hidden: tuple[str, ...] = ()
    """Patterns of paths that nobody is shown."""
    read: tuple[str, ...] = ()
    """Patterns of paths that may be read; empty allows all."""
    foreign_folders: tuple[str, ...] = ("Clippings/",)
    foreign_properties: tuple[str, ...] = ("source",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Say what the owner lets a client see and change, beyond the vault's own rules."""

    grants: Grants
    """What it may change."""
    read: tuple[str, ...] = ()
    """Patterns of paths that it may read at most; empty for all."""
    hidden: tuple[str, ...] = ()
    """Patterns of paths that it isn't shown."""
    token_hash: str = field(default="", repr=False)
    """Of the token that it shows to the HTTP server: ``sha256:…``; empty where it has none of its own."""

    @property
    def name(self) -> str:
        """Give its name."""
        return self.grants.client


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """Say what turns text into vectors."""

    kind: Literal["static", "endpoint", "onnx", "none"] = "static"
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Say how search joins its rankings."""

    fusion: Literal["convex", "rrf"] = "convex"


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """Say how much is kept for undo."""

    max_mb: int = 1_000
    max_age_days: int = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingOrigin:
    """Say what a setting is, and where that comes from."""

    name: str
    value: str
    """As text; a secret's is masked."""
    source: str
    """``default``, a flag, a variable, or a file and line."""
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Hold every setting, and the vault that was chosen."""

    choice: Vault | SetupError
    """The chosen vault, or why there is none."""
    passed_by: Path | None = None
    """The vault in whose folder the program was started, where that is another one and none was named by a flag."""
    vaults: tuple[Vault, ...] = ()
    """Those of the configuration file, in its order."""
    clients: tuple[ClientSettings, ...] = ()
    """Those of the configuration file, in its order."""
    state_dir: Path
    embeddings: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    model: ModelSettings = field(default_factory=ModelSettings)
    audio: AudioSettings = field(default_factory=AudioSettings)
    web: WebSettings = field(default_factory=WebSettings)
    scripts: ScriptSettings = field(default_factory=ScriptSettings)
    agents: AgentSettings = field(default_factory=AgentSettings)
    runs: RunSettings = field(default_factory=RunSettings)
    proposal_days: int = 30
    """How long a proposal waits."""
    journal: JournalSettings = JournalSettings()
    commits_to_git: bool = False
    """Each change is committed, where the vault is a git repository."""
    server: ServerSettings = field(default_factory=ServerSettings)
    index_interval_minutes: int = 60
    config_file: Path
    """Where the configuration file is, or would be."""
    env_file: Path | None = None
    """The ``.env`` that was read, if any."""
    origins: tuple[SettingOrigin, ...] = ()

    @property
    def vault(self) -> Vault:
        """Give the chosen vault.

        Raises:
            SetupError: None could be chosen.
        """
        if isinstance(self.choice, SetupError):
            raise self.choice
        return self.choice

    def client(self, name: str) -> ClientSettings:
        """Give what a client may see and change; one that isn't configured has what is usual for its name."""
        configured = (client for client in self.clients if client.name == name)
        return next(configured, None) or ClientSettings(grants=access.default_grants(name))
