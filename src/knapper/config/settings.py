"""Hold the settings as the rest of the program gets them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from knapper.config.sections.agents import Agents
from knapper.config.sections.audio import Audio
from knapper.config.sections.model import Model
from knapper.config.sections.runs import Runs
from knapper.config.sections.scripts import Scripts
from knapper.config.sections.server import Server
from knapper.config.sections.web import Web
from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import Grants


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
class Client:
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
class Embeddings:
    """Say what turns text into vectors."""

    kind: Literal["static", "endpoint", "onnx", "none"] = "static"
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Say how search joins its rankings."""

    fusion: Literal["convex", "rrf"] = "convex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """Say how much is kept for undo."""

    max_mb: int = 1_000
    max_age_days: int = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
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
    clients: tuple[Client, ...] = ()
    """Those of the configuration file, in its order."""
    state_dir: Path
    embeddings: Embeddings = Embeddings()
    search: Search = Search()
    model: Model = field(default_factory=Model)
    audio: Audio = field(default_factory=Audio)
    web: Web = field(default_factory=Web)
    scripts: Scripts = field(default_factory=Scripts)
    agents: Agents = field(default_factory=Agents)
    runs: Runs = field(default_factory=Runs)
    proposal_days: int = 30
    """How long a proposal waits."""
    journal: Journal = Journal()
    commits_to_git: bool = False
    """Each change is committed, where the vault is a git repository."""
    server: Server = field(default_factory=Server)
    index_interval_minutes: int = 60
    config_file: Path
    """Where the configuration file is, or would be."""
    env_file: Path | None = None
    """The ``.env`` that was read, if any."""
    origins: tuple[Origin, ...] = ()

    @property
    def vault(self) -> Vault:
        """Give the chosen vault.

        Raises:
            SetupError: None could be chosen.
        """
        if isinstance(self.choice, SetupError):
            raise self.choice
        return self.choice

    def client(self, name: str) -> Client:
        """Give what a client may see and change; one that isn't configured has what is usual for its name."""
        configured = (client for client in self.clients if client.name == name)
        return next(configured, None) or Client(grants=access.default_grants(name))
