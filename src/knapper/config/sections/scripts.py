"""Say what scripts in the sandbox may use."""

from dataclasses import dataclass

from knapper.config.setting import Setting, Values, count, texts

SETTINGS = (
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
class Scripts:
    """Say what scripts in the sandbox may use."""

    timeout_s: int = 60
    memory_mb: int = 512
    result_kb: int = 200
    workers: int = 4
    fs_read: tuple[str, ...] = ()
    """Folders, as written; ``~`` is the home folder."""
    net_allow: tuple[str, ...] = ()


def read(values: Values) -> Scripts:
    """Give the section."""
    return Scripts(
        timeout_s=count(values, "scripts.timeout_s"),
        memory_mb=count(values, "scripts.memory_mb"),
        result_kb=count(values, "scripts.result_kb"),
        workers=count(values, "scripts.workers"),
        fs_read=texts(values, "scripts.fs_read"),
        net_allow=texts(values, "scripts.net_allow"),
    )
