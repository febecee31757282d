"""Every setting: the sections together with those of each client, and the table of what they declare."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self, get_args

from knapper.config import declarations
from knapper.config.declarations import (
    FilePath,
    SettingsSection,
    SettingValue,
    Url,
    Verbatim,
    declaration,
    read_section,
    setting,
    settings_of,
)
from knapper.config.files import ConfigDocument, UnusedVariable
from knapper.config.paired import PairedClients, open_paired
from knapper.config.sections import (
    AgentSettings,
    AudioSettings,
    ModelSettings,
    RerankSettings,
    RunSettings,
    ScriptSettings,
    ServerSettings,
    WebSettings,
)
from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import (
    DEFAULT_MAX_FILES,
    PREFERENCES_NOTE,
    Capability,
    ClientKind,
    Confirmation,
    EditableScope,
    Grants,
    Outcome,
    Policy,
)

CONFIG_ENV = "KNAP_CONFIG"
"""Names the configuration file."""
STATE_ENV = "KNAP_STATE_DIR"
"""Names the state folder."""
_NO_VAULTS = ("\0",)
"""A name that no vault has: an empty list of vaults stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vault(SettingsSection):
    """A vault's folder, and what its owner says about it in a section ``[vaults.NAME]``."""

    name: str
    """As configured; otherwise the folder's name."""
    path: Path = field(metadata=declaration("The vault's folder."))
    """With symbolic links resolved."""
    hidden: tuple[str, ...] = setting((), "Patterns of paths that nobody is shown, as in .gitignore.")
    read: tuple[str, ...] = setting((), "Patterns of paths that may be read; empty for all.")
    has_files: bool = setting(
        True,
        "Whether this machine has the vault's files; without them, it reads what another one publishes to "
        "index.engine, and the path need not be there.",
        name="files",
        words=("no", "yes"),
    )
    foreign_folders: tuple[str, ...] = setting(
        ("Clippings/",), "Folders with untrusted content; whoever has read it only proposes changes."
    )
    foreign_properties: tuple[str, ...] = setting(
        ("source",), "Properties that mark a note as untrusted content where they hold a web address."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What the owner lets a client see and change, beyond the vault's own rules."""

    grants: Grants
    """What it may change: its section, completed by what is usual for its kind."""
    read: tuple[str, ...] = ()
    """Patterns of paths that it may read at most; empty for all."""
    hidden: tuple[str, ...] = ()
    """Patterns of paths that it isn't shown."""
    vaults: tuple[str, ...] = ()
    """Names of the vaults that it may open; empty for all."""
    token_hash: str = field(default="", repr=False)
    """Of the token that it shows to the HTTP server: ``sha256:…``; empty where it has none of its own."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.grants.client

    def may_open(self, vault: str) -> bool:
        """Return whether it may open a vault at all."""
        return not self.vaults or vault in self.vaults


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings(SettingsSection):
    """What turns text into vectors."""

    kind: Literal["static", "e5", "endpoint", "onnx", "none"] = setting(
        "static",
        "What turns text into vectors: the built-in table, multilingual-e5-small as `knap e5` makes it, an "
        "OpenAI-compatible endpoint, an ONNX model, or none.",
        env=("KNAP_EMBEDDINGS",),
    )
    model: str = setting("", "The name of the embedding model, for endpoint and onnx.", env=("KNAP_EMBEDDINGS_MODEL",))
    base_url: Url = setting(
        "", "The address of the endpoint, such as http://localhost:11434/v1.", env=("KNAP_EMBEDDINGS_BASE_URL",)
    )
    api_key: str = setting("", "The key of the endpoint.", env=("KNAP_EMBEDDINGS_API_KEY",), secret=True)
    folder: FilePath = setting(
        "",
        "The folder of a model's files: for static one or several tables, for e5 and onnx the model's own; empty for "
        "the built-in table, what `knap e5` has made, or what was downloaded.",
        env=("KNAP_EMBEDDINGS_FOLDER",),
    )
    query_prefix: Verbatim = setting(
        "auto", "What is put before a query when it is embedded; auto for what the model is known to need."
    )
    passage_prefix: Verbatim = setting(
        "auto", "What is put before a passage when it is embedded; auto for what the model is known to need."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(SettingsSection):
    """How search joins its rankings."""

    fusion: Literal["convex", "rrf"] = setting(
        "convex",
        "How keyword and vector scores are combined: a weighted sum, or reciprocal ranks.",
        env=("KNAP_FUSION",),
    )
    meaning_percent: int = setting(
        0,
        "How much meaning counts against words where the notes have the question's words, in percent; 0 for what suits "
        "the embedder. It counts more, the fewer of the words they have.",
        least=0,
        most=100,
    )
    rewrites: bool = setting(
        False,
        "Whether the model rewrites a message into search queries, and searches with them, before a chat answers it or "
        "the scout explores; one more request for each.",
        name="rewrite",
        env=("KNAP_REWRITE",),
    )
    rerank: RerankSettings = field(default_factory=RerankSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings(SettingsSection):
    """Where the index is kept, and who else may read it."""

    engine: str = setting(
        "local",
        "Where the index is read from by machines that share it: local for this one alone, or the address of a "
        "PostgreSQL, such as postgresql://knapper@db.example/notes. The machine with the files publishes it there.",
        env=("KNAP_INDEX_ENGINE",),
    )
    password: str = setting(
        "",
        "The password for index.engine; keyring for the one that the system's keyring has for this address; empty to "
        "look in PGPASSWORD and ~/.pgpass.",
        env=("KNAP_INDEX_PASSWORD",),
        secret=True,
    )
    readers: tuple[str, ...] = setting(
        (),
        "Roles of the database that may read what this machine publishes: each sees all, or what a client may see, "
        "as in reader=agent.",
    )

    @property
    def is_shared(self) -> bool:
        """Return whether the index is in a database."""
        return self.engine != "local"

    def checked(self) -> Self:
        """Return the section with the password apart from the address, which is shown.

        Raises:
            SetupError: The engine is neither local nor an address of PostgreSQL; the message doesn't repeat it.
        """
        if not self.is_shared:
            return self
        from knapper.index.postgres import connection as addresses  # noqa: PLC0415 - only a shared index needs it

        if not addresses.is_address(self.engine):
            raise SetupError(
                "index.engine can't be used: it is neither local nor an address of PostgreSQL",
                code="config_invalid",
                hint="write local, or postgresql://user@host:5432/database",
            )
        address, password = addresses.split_password(self.engine)
        return replace(self, engine=address, password=self.password or password)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings(SettingsSection):
    """How much is kept for undo."""

    max_mb: int = setting(
        1_000,
        "How much the journal may keep for undo, in megabytes; the oldest changes are dropped first.",
        least=1,
        most=1_000_000,
    )
    max_age_days: int = setting(365, "How long the journal keeps changes for undo, in days.", least=1, most=36_500)
    backup_mb: int = setting(
        500,
        "How much space daily backups of journal, proposals, conversations, presets, token counts and runs may use, in"
        " megabytes; 0 for no backups.",
        least=0,
        most=1_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingOrigin:
    """What a setting is, and where that comes from."""

    name: str
    value: str
    """As text; a secret's is masked."""
    content: SettingValue = ""
    """As the file would say it; empty for a secret."""
    source: str
    """``default``, a flag, a variable, or a file and line."""
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SettingsSection):
    """Every setting, in the order in which `knap config` shows them, and the vault that was chosen."""

    choice: Vault | SetupError
    """The chosen vault, or why there is none."""
    passed_by: Path | None = None
    """The vault in whose folder the program was started, where that is another one and none was named by a flag."""
    vaults: tuple[Vault, ...] = ()
    """Those of the configuration file, in its order."""
    clients: tuple[ClientSettings, ...] = ()
    """Those of the configuration file, in its order."""
    default_vault: str = setting(
        "", "The vault to use: a name from [vaults.NAME], or a folder.", env=("VAULT_PATH",), flag="--vault"
    )
    """What was asked for; `choice` is what came of it."""
    state_dir: Path = field(
        metadata=declaration("The folder of indexes, proposals and journals; outside every vault.", env=(STATE_ENV,))
    )
    embeddings: EmbeddingSettings = EmbeddingSettings()
    search: SearchSettings = SearchSettings()
    model: ModelSettings = field(default_factory=ModelSettings)
    audio: AudioSettings = field(default_factory=AudioSettings)
    web: WebSettings = field(default_factory=WebSettings)
    agents: AgentSettings = field(default_factory=AgentSettings)
    runs: RunSettings = field(default_factory=RunSettings)
    scripts: ScriptSettings = field(default_factory=ScriptSettings)
    proposal_days: int = setting(
        30, "How long a proposal waits for a person, in days.", name="proposals.expire_days", least=1, most=3_650
    )
    taint_minutes: int = setting(
        60,
        "How long a program that calls without a session only proposes after it last read untrusted content, "
        "in minutes; 0 for always.",
        name="proposals.taint_minutes",
        most=525_600,
    )
    journal: JournalSettings = JournalSettings()
    commits_to_git: bool = setting(
        False,
        "Whether each change is committed, where the vault is a git repository; what is staged stays staged.",
        name="git.commit",
        words=("no", "yes"),
    )
    server: ServerSettings = field(default_factory=ServerSettings)
    index: IndexSettings = IndexSettings()
    index_interval_minutes: int = setting(
        60,
        "How often whatever watches a vault compares all of it, for changes that the system didn't tell.",
        name="index.interval_minutes",
        env=("INDEX_INTERVAL",),
        least=1,
        most=525_600,
    )
    config_file: Path
    """Where the configuration file is, or would be."""
    env_file: Path | None = None
    """The ``.env`` that was read, if any."""
    origins: tuple[SettingOrigin, ...] = ()
    unused: tuple[UnusedVariable, ...] = ()
    """Variables that were set for another program, and mean nothing here."""

    @property
    def vault(self) -> Vault:
        """Return the chosen vault.

        Raises:
            SetupError: None could be chosen.
        """
        if isinstance(self.choice, SetupError):
            raise self.choice
        return self.choice

    @property
    def usual_vault(self) -> Vault | None:
        """Return what a call to several vaults means that names none, though its folder may be missing just now.

        None where nothing is chosen: the first one of the configuration is meant.

        Raises:
            SetupError: One is named that isn't configured, and no folder either.
        """
        if isinstance(self.choice, SetupError) and self.default_vault:
            configured = next((vault for vault in self.vaults if vault.name == self.default_vault), None)
            return configured or self.vault
        return self.choice if isinstance(self.choice, Vault) else None

    @property
    def paired(self) -> PairedClients:
        """Return the clients that were paired, as they are at each look."""
        return open_paired(self.state_dir)

    def client(self, name: str) -> ClientSettings:
        """Return what a client may see and change.

        One of the configuration comes first, then one that was paired; any other has what is usual for its name.
        """
        configured = next((client for client in self.clients if client.name == name), None)
        if configured is not None:
            return configured
        paired = None if name in access.CLIENT_KINDS else self.paired.find(name)
        if paired is None:
            return ClientSettings(grants=access.default_grants(name))
        if paired.revoked:
            nothing = Grants(
                client=paired.name,
                kind="named",
                capabilities=frozenset(),
                is_read_only=True,
                small="refuse",
                large="refuse",
            )
            return ClientSettings(grants=nothing, vaults=_NO_VAULTS)
        # A person's rules, in the vault that it was paired for.
        known = (*self.vaults, *((self.choice,) if isinstance(self.choice, Vault) else ()))
        # By the folder: two folders that are served one after the other may have one name.
        names = tuple(dict.fromkeys(vault.name for vault in known if str(vault.path) == paired.folder))
        return ClientSettings(grants=access.default_grants(paired.name, "person"), vaults=names or _NO_VAULTS)


SETTINGS = settings_of(Settings)
"""Settings of the program."""
VAULT_SETTINGS = settings_of(Vault)
"""Settings of one vault."""


_TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_WITHOUT_TOKEN = frozenset({"cli", "page", "agent", "script"})
"""Persons, and what works inside the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSection(SettingsSection):
    """What the owner says in a section ``[clients.NAME]``; without *small* and *large* the client's kind tells."""

    kind: Literal["", "mcp", "http", "agent", "script"] = setting(
        "", "What the client is; for a name of your own, not for cli, page, mcp, http, agent and script."
    )
    token_hash: str = setting(
        "", "The hash of the token that it sends to the HTTP server; `knap token new` creates both.", secret=True
    )
    vaults: tuple[str, ...] = setting((), "Names of the vaults that it may open; empty for all.")
    read: tuple[str, ...] = setting((), "Patterns of the only paths that it can read; empty for all.")
    hidden: tuple[str, ...] = setting((), "Patterns of paths that it can't see.")
    write: tuple[str, ...] = setting((), "Patterns of the only paths that it may change; empty for all.")
    read_only: tuple[str, ...] = setting((), "Patterns of paths that it may not change.")
    access: Literal["write", "read"] = setting("write", "Whether it may change anything: write, or only read.")
    capabilities: tuple[Capability, ...] = setting(
        ("add", "delete", "create", "navigate", "move", "properties"), "What it may do to files."
    )
    scope: EditableScope = setting(
        "all",
        "Which notes it may change: all, the current one, that one and the notes it links to, or those in its context.",
    )
    small: Literal[Outcome, ""] = setting(
        "", "What happens to a change in one exact place that overwrites, moves and trashes nothing."
    )
    large: Literal[Outcome, ""] = setting(
        "",
        "What happens to any other change, by default the same as to a small one; "
        "with more files than max_files it is at most a proposal.",
    )
    max_files: int = setting(
        DEFAULT_MAX_FILES,
        "How many files it may change at once without a person's approval; updated links don't count.",
        least=1,
        most=1_000,
    )
    guarded: tuple[str, ...] = setting(
        (PREFERENCES_NOTE,),
        "Patterns of paths that change only with a person's approval; none by default for the kinds mcp and http.",
    )
    confirm: Literal[Confirmation, ""] = setting(
        "",
        "What happens to a proposal if the client's program can ask a person: it asks (ask), or the proposal waits "
        "for review (propose); ask by default for the kinds mcp and http.",
    )


CLIENT_SETTINGS = settings_of(ClientSection)
"""Settings of one client."""
_IDENTITY = frozenset({"kind", "token_hash"})
RIGHTS = tuple(setting for setting in CLIENT_SETTINGS if setting.name not in _IDENTITY)
"""Those that say what it may see and change; the others say who it is."""


def rights_of(client: ClientSettings) -> dict[str, SettingValue]:
    """Return what a client may see and change by the names of `RIGHTS`, with what is usual where nothing is said."""
    grants = client.grants
    order: Sequence[str] = get_args(Capability)
    return {
        "vaults": client.vaults,
        "read": client.read,
        "hidden": client.hidden,
        "write": grants.write,
        "read_only": grants.read_only,
        "access": "read" if grants.is_read_only else "write",
        "capabilities": tuple(name for name in order if name in grants.capabilities),
        "scope": grants.editable,
        "small": grants.small,
        "large": grants.large,
        "max_files": grants.max_files,
        "guarded": grants.guarded,
        "confirm": grants.confirm,
    }


def usual_rights(client: ClientSettings) -> dict[str, SettingValue]:
    """Return what `rights_of` would for a client of that kind of which the configuration says nothing.

    That is so for each right alone: what becomes of a large change depends on what becomes of its small ones.
    """
    usual = access.default_grants(client.name, client.grants.kind)
    large = access.stricter(client.grants.small, usual.large)
    return {**rights_of(ClientSettings(grants=usual)), "large": large}


def read_clients(
    document: ConfigDocument, sections: Mapping[str, Mapping[str, object]], vaults: Collection[str]
) -> tuple[ClientSettings, ...]:
    """Read the clients of a configuration file.

    Args:
        document: The file, for messages.
        sections: What stands below ``[clients]``, by name.
        vaults: Names of the vaults in the file.

    Raises:
        SetupError: A value isn't of its setting's kind, a pattern isn't one, nobody can tell what a client is, or there
            is no vault of a name.
    """
    read = tuple(_read_client(document, name, section) for name, section in sections.items())
    for client in read:
        for name in client.vaults:
            if name not in vaults:
                raise SetupError(
                    f"there is no vault '{name}' ({document.place(f'clients.{client.name}.vaults')})",
                    code="config_invalid",
                    hint=declarations.did_you_mean(name, vaults, "give the vault a section [vaults.NAME]"),
                )
    return read


def _read_client(document: ConfigDocument, name: str, written: Mapping[str, object]) -> ClientSettings:
    checked_values = declarations.check_section(document, f"clients.{name}", written, CLIENT_SETTINGS)
    section = read_section(ClientSection, checked_values)
    kind = _client_kind(document, name, section)
    usual_small, usual_large = access.default_outcomes(kind)
    small = section.small or usual_small
    Policy(client=name, within=section.read, hidden=section.hidden)  # so that a broken pattern is told now
    client_grants = Grants(
        client=name,
        kind=kind,
        capabilities=frozenset(section.capabilities),
        write=section.write,
        read_only=section.read_only,
        is_read_only=section.access == "read",
        editable=section.scope,
        small=small,
        # Whoever only proposes small changes isn't meant to apply large ones because the owner said nothing of them.
        large=section.large or access.stricter(small, usual_large),
        max_files=section.max_files,
        confirm=section.confirm or access.default_confirmation(kind),
        guarded=section.guarded if "guarded" in written else access.default_guarded(kind),
    )
    _check_token_hash(document, name, section.token_hash)
    return ClientSettings(
        grants=client_grants,
        vaults=section.vaults,
        read=section.read,
        hidden=section.hidden,
        token_hash=section.token_hash,
    )


def _check_token_hash(document: ConfigDocument, name: str, token_hash: str) -> None:
    place = document.place(f"clients.{name}.token_hash")
    if token_hash and name in _WITHOUT_TOKEN:
        raise SetupError(
            f"the client '{name}' can't have a token of its own ({place})",
            code="config_invalid",
            hint="give it to a client with a name and a kind of your own",
        )
    if token_hash and not _TOKEN_HASH.fullmatch(token_hash):
        raise SetupError(
            f"{place} isn't the hash of a token",
            code="config_invalid",
            hint="take the line that `knap token new` prints",
        )


def _client_kind(document: ConfigDocument, name: str, section: ClientSection) -> ClientKind:
    fixed_kind = access.CLIENT_KINDS.get(name)
    if fixed_kind and section.kind and section.kind != fixed_kind:
        place = document.place(f"clients.{name}.kind")
        raise SetupError(
            f"the client '{name}' in {place} can't be of another kind",
            code="config_invalid",
            hint="take the line out, or give the client a name of your own",
        )
    if kind := fixed_kind or section.kind:
        return kind
    raise SetupError(
        f"the client '{name}' in {document.place(f'clients.{name}')} has no kind",
        code="config_invalid",
        hint=declarations.did_you_mean(name, access.CLIENT_KINDS, 'add a line to its section, such as: kind = "mcp"'),
    )
