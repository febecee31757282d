"""List every setting."""

from knapper.config.sections import agents, audio, model, runs, scripts, server, web
from knapper.config.setting import Setting

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
    *model.SETTINGS,
    *audio.SETTINGS,
    *web.SETTINGS,
    *agents.SETTINGS,
    *runs.SETTINGS,
    *scripts.SETTINGS,
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
    *server.SETTINGS,
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
