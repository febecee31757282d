"""Check the installation and the vault, and report what to do."""

import contextlib
import math
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, Literal

import click
import watchfiles

from knapper import app, extras
from knapper.agents import stages, work_store
from knapper.agents.model import names
from knapper.agents.model.names import ModelName
from knapper.app import clients, e5_model, models
from knapper.changes.disk import apply, storage
from knapper.changes.disk import repair as database_repair
from knapper.changes.disk.journal import JOURNAL_FILE
from knapper.changes.disk.repair import BackupGap
from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode, format_size, plain, pluralize
from knapper.codemode.sandbox import machine_code
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import Settings, Vault, loading
from knapper.errors import KnapError
from knapper.extras import ExtraName
from knapper.index import refresh
from knapper.index.documents import Filter
from knapper.index.postgres.connection import UNREACHABLE
from knapper.index.status import WatchFailure, find_damage, find_watch_failure
from knapper.server import addresses
from knapper.system import private

CheckState = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check, with the next step."""

    name: str
    state: CheckState
    text: str
    hint: str = ""
    """The next step; empty where nothing is to be done."""


Check = Callable[[Settings], CheckResult]

_STEPS_TABLE: Final = "nodes"
_STEPS: Final = "the steps of runs"
_NEXT_BACKUP: Final = "a copy is made with the first change or conversation of a day"
_LOW_SPACE_BYTES = 200_000_000
_LOW_VAULT_BYTES = 20_000_000


_REPAIR = "stop servers and watchers, then run `knap doctor --repair`"
_NEXT_STEPS: Final = {
    "damaged": f"{_REPAIR}: it saves what can be read, and keeps the damaged file",
    UNREACHABLE: "start that server, or let index.engine name another in the configuration: `knap config edit`",
    "no_sandbox": "free about 1 GB of memory and try again; if it stays so, delete the state folder's 'sandbox', which"
    " is made anew",
    "storage": "see the line 'data' for what is damaged; if nothing is, it is the index: `knap index --full`",
}
"""By an error's code, what to do where its own hint leads here."""


def failed_check(name: str, error: KnapError) -> CheckResult:
    """Turn an error into a failed check."""
    hint = _NEXT_STEPS.get(error.code, error.hint) if "`knap doctor`" in error.hint else error.hint
    return CheckResult(name=name, state="fail", text=error.message, hint=hint)


def check_configuration(settings: Settings) -> CheckResult:
    """Report the configuration file, and warn if a vault's tools could write it."""
    where = settings.config_file
    for vault in settings.vaults:
        if loading.holds(vault.path, where):
            hint = "move it out of the vault and name it with KNAP_CONFIG: what can write notes could change it"
            return CheckResult(name="config", state="warn", text=f"{where} lies in the vault '{vault.name}'", hint=hint)
    text = f"{where} is fine" if where.exists() else f"{where} isn't there, and not needed"
    return CheckResult(name="config", state="ok", text=text)


def check_vault(settings: Settings) -> CheckResult:
    """Check that a vault is chosen, exists and is readable."""
    try:
        chosen = settings.vault
    except KnapError as error:
        return failed_check("vault", error)
    if not chosen.has_files:
        return CheckResult(name="vault", state="ok", text=f"{chosen.name}: its files are on another machine")
    try:
        with os.scandir(chosen.path) as entries:
            next(entries, None)
    except OSError as error:
        text = f"{chosen.path} can't be read: {error.strerror}"
        return CheckResult(name="vault", state="fail", text=text, hint="check its permissions")
    return CheckResult(name="vault", state="ok", text=f"{chosen.name}: {chosen.path}")


def check_state(settings: Settings) -> CheckResult:
    """Check that the state folder lies outside the vault and can be written."""
    try:
        folder = loading.state_folder(settings) if isinstance(settings.choice, Vault) else settings.state_dir
    except KnapError as error:
        return failed_check("state", error)
    try:
        private.make_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"can be written")
    except OSError as error:
        text = f"{folder} can't be written: {error.strerror}"
        return CheckResult(name="state", state="fail", text=text, hint="check its permissions, or set KNAP_STATE_DIR")
    return CheckResult(name="state", state="ok", text=str(folder))


_MAX_NAMED_OPEN = 3


def check_privacy(settings: Settings) -> CheckResult:
    """Check that others can't read the state, after closing what an earlier version left open to them."""
    private.tighten(settings.state_dir, thorough=True)
    if not private.has_modes():
        text = "the state has the access list of its folder, as Windows gives it"
        return CheckResult(name="privacy", state="ok", text=text)
    open_paths = private.find_open(settings.state_dir)
    if not open_paths:
        return CheckResult(name="privacy", state="ok", text="nobody else can read the state")
    names = ", ".join(str(path) for path in open_paths[:_MAX_NAMED_OPEN])
    more = f" and {len(open_paths) - _MAX_NAMED_OPEN} more" if len(open_paths) > _MAX_NAMED_OPEN else ""
    hint = f"take from others what they may: `chmod -R go= {settings.state_dir}`, as the files' owner"
    return CheckResult(name="privacy", state="warn", text=f"open to others: {names}{more}", hint=hint)


def check_disk(settings: Settings) -> CheckResult:
    """Check the space that is left for the state and the vault, and whether the vault can be written."""
    state = next(folder for folder in (settings.state_dir, *settings.state_dir.parents) if folder.exists())
    free = shutil.disk_usage(state).free
    if free < _LOW_SPACE_BYTES:
        hint = "make room, or set KNAP_STATE_DIR to another disk"
        return CheckResult(name="disk", state="warn", text=f"only {format_size(free)} free at {state}", hint=hint)
    vault = settings.choice.path if isinstance(settings.choice, Vault) else None
    if vault is not None and vault.is_dir():
        if not os.access(vault, os.W_OK):
            hint = "reading still works; to change notes, mount its disk for writing, or check the folder's permissions"
            return CheckResult(name="disk", state="warn", text=f"the vault {vault} can't be written", hint=hint)
        room = shutil.disk_usage(vault).free
        if room < _LOW_VAULT_BYTES:
            hint = "make room before you change notes"
            text = f"only {format_size(room)} free for the vault {vault}"
            return CheckResult(name="disk", state="warn", text=text, hint=hint)
    return CheckResult(name="disk", state="ok", text=f"{format_size(free)} free")


_OLDEST_PYTHON = (3, 11)
_OLDEST_SQLITE = (3, 38)
_MODEL_FILES = ("table.safetensors", "pieces.safetensors")
_REINSTALL = "install Knapper again, as you did before"


def check_python(settings: Settings) -> CheckResult:
    """Check Python's version."""
    del settings
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        return CheckResult(name="python", state="fail", text=version, hint="install Python 3.11 or newer")
    return CheckResult(name="python", state="ok", text=version)


def check_sqlite(settings: Settings) -> CheckResult:
    """Check SQLite's version, and its search by words and by parts of words."""
    del settings
    version = sqlite3.sqlite_version
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute(
                "CREATE VIRTUAL TABLE a USING fts5 (t, tokenize = 'porter unicode61 remove_diacritics 2')"
            )
            connection.execute("CREATE VIRTUAL TABLE b USING fts5 (t, tokenize = 'trigram')")
        connection.close()
    except sqlite3.Error as error:
        hint = "use a Python whose SQLite is 3.38 or newer and has FTS5, such as python.org's or your system's"
        return CheckResult(name="sqlite", state="fail", text=f"{version}: {error}", hint=hint)
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        return CheckResult(name="sqlite", state="warn", text=f"{version} is old", hint="use a newer Python")
    return CheckResult(name="sqlite", state="ok", text=f"{version}, with FTS5 and trigrams")


def check_model_files(settings: Settings) -> CheckResult:
    """Check that the built-in embedder's files are there."""
    folder = resources.files("knapper") / "data" / "embeddings"
    missing = [name for name in _MODEL_FILES if not (folder / name).is_file()]
    if not missing:
        return CheckResult(name="embedder", state="ok", text="the built-in table is there")
    needed = settings.embeddings.kind == "static"
    text = f"{', '.join(missing)} of the built-in embedder isn't there"
    return CheckResult(name="embedder", state="fail" if needed else "warn", text=text, hint=_REINSTALL)


def check_extras(settings: Settings) -> CheckResult:
    """Check that the extras which the configuration needs are installed."""
    wanted = models.wanted_extras(settings)
    absent: dict[ExtraName, str] = {name: setting for name, setting in wanted if not extras.is_installed(name)}
    if absent:
        text = "; ".join(
            f"{setting} needs the extra '{name}', which isn't installed" for name, setting in absent.items()
        )
        hint = f"run: {extras.find_installation().shown_command(*absent)}"
        return CheckResult(name="extras", state="fail", text=text, hint=hint)
    present = [name for name in extras.NAMES if extras.is_installed(name)]
    unneeded = [name for name in extras.NAMES if name not in present]
    text = f"installed: {', '.join(present) or 'none'}" + (f"; not needed: {', '.join(unneeded)}" if unneeded else "")
    return CheckResult(name="extras", state="ok", text=text)


_MODEL_HINTS = {
    "no_key": "store one: `knap models key PROVIDER`",
    "refused": "check the key, then store it again: `knap models key PROVIDER`",
    "unknown_model": "`knap models --json` lists those that are there",
}


def check_language_model(settings: Settings) -> CheckResult:
    """Contact the configured model's server, without a paid request."""
    if not settings.model.name:
        return CheckResult(name="model", state="ok", text="none is set: `knap ask` shows passages")
    try:
        model_name = models.resolve_models(settings)[0]
        reply = names.check_server(model_name, models.configured_keys(settings).find(model_name))
    except KnapError as error:
        return failed_check("model", error)
    if reply.state == "ok":
        return CheckResult(name="model", state="ok", text=f"{model_name}: {reply.text}")
    hint = _MODEL_HINTS.get(reply.state, "start its server, or check its address; `knap models` shows all")
    return CheckResult(name="model", state="warn", text=f"{model_name}: {reply.text}", hint=hint)


def check_agents(settings: Settings) -> CheckResult | None:
    """Name the owner's agents whose files have mistakes; None where there are none of the owner's."""
    with app.open_hub(settings) as hub:
        known = clients.open_stages(hub)
        own = set(known.names()) - set(stages.built_in_names())
        problems = known.all()[1]
    if not own:
        return None
    if not problems:
        return CheckResult(name="agents", state="ok", text=f"{pluralize(len(own), 'agent')} of your own can be used")
    text = "; ".join(f"{error.message} ({error.hint})" for _, error in sorted(problems.items()))
    return CheckResult(name="agents", state="warn", text=text, hint="mend it, or delete its file")


def check_embedder(settings: Settings) -> CheckResult:
    """Check the embedder: its files, or an endpoint's server, which needn't list its models."""
    embeddings = settings.embeddings
    if embeddings.kind == "e5":
        folder = e5_model.model_folder(settings)
        try:
            record = e5_model.read_record(folder)
        except KnapError as error:
            return failed_check("embedder", error)
        text = f"multilingual-e5-small is there, with a cosine of {record.cosine:.3f} to its weights"
        return CheckResult(name="embedder", state="ok", text=text)
    if embeddings.kind != "endpoint":
        return check_model_files(settings)
    if not embeddings.base_url or not embeddings.model:
        hint = "set both below [embeddings], or embeddings.kind to static"
        return CheckResult(name="embedder", state="fail", text="base_url or model of the endpoint isn't set", hint=hint)
    name = ModelName(provider="compatible", name="*", base_url=embeddings.base_url)
    reply = names.check_server(name, embeddings.api_key)
    if reply.state in {"unreachable", "refused"}:
        hint = "start its server, or check address and key below [embeddings]; until then search goes by words"
        return CheckResult(name="embedder", state="warn", text=reply.text, hint=hint)
    return CheckResult(
        name="embedder", state="ok", text=f"{embeddings.model}@{embeddings.base_url}: its server answers"
    )


_WATCH_TIMEOUT_MS = 3_000


def check_index(settings: Settings) -> CheckResult:
    """Open the index, and check the whole file."""
    try:
        with app.open_vault(settings) as context:
            damage = context.index.damage or find_damage(context.index.store.database)
            if damage:
                return _damaged_index(damage)
            status = context.index.status(context.restrict(Filter()))
            is_being_written = context.index.is_being_written
            freshness = context.index.check_freshness(context.view.policy)
    except KnapError as error:
        return failed_check("index", error)
    except sqlite3.DatabaseError as error:
        return _damaged_index(str(error))
    hint = "it is being filled right now; look again later" if is_being_written else "run `knap index`"
    if not status.complete:
        return CheckResult(name="index", state="warn", text="it isn't complete yet", hint=hint)
    lacks = [f"{status.pending} waiting for embedding"] if status.pending else []
    if freshness.stale and not freshness.emptied:
        lacks.append(f"{pluralize(freshness.stale, 'changed file')} not in it yet")
    text = ", ".join([pluralize(status.notes, "note"), pluralize(status.chunks, "chunk"), *lacks])
    if freshness.emptied:
        text += ", but the vault's folder is empty"
        return CheckResult(name="index", state="warn", text=text, hint=refresh.EMPTIED_HINT)
    if freshness.unchecked and settings.vault.has_files:
        text += "; not every file could be checked for changes in the time of a search"
    if status.pending and not settings.vault.has_files:
        hint = "the machine with the files makes and publishes them, with the same model: run `knap index` there"
    elif not (freshness.is_current or is_being_written):
        hint = "run `knap index`; `knap watch`, `knap serve` or `knap service install` takes changes in by itself"
    hint = hint if lacks or freshness.unchecked else ""
    return CheckResult(name="index", state="warn" if lacks else "ok", text=text, hint=hint)


def _damaged_index(why: str) -> CheckResult:
    return CheckResult(
        name="index", state="fail", text=f"it is damaged: {why}", hint="rebuild it from the notes: `knap index`"
    )


def check_engine(settings: Settings) -> CheckResult | None:
    """Ask the database that machines share, and compare what it holds; None where the index is local."""
    if not settings.index.is_shared:
        return None
    try:
        with app.open_vault(settings) as context:
            text = context.index.check_source()
    except KnapError as error:
        return failed_check("engine", error)
    return CheckResult(name="engine", state="ok", text=text)


def check_databases(settings: Settings) -> CheckResult:
    """Check every database of the state that can't be derived from the notes, and migrate those of earlier versions."""
    paths = _find_databases(settings)
    damages = {path: damage for path in paths if (damage := storage.find_damage(path))}
    if damages:
        text = "; ".join(f"{path.name} is damaged: {damage}" for path, damage in damages.items())
        newest = [saved[0].name for path in damages if (saved := storage.list_backups(path))]
        filled = f", adds what {' and '.join(newest)} still has" if newest else " (there is no backup)"
        folders = dict.fromkeys(str(path.parent / private.ASIDE_NAME) for path in damages)
        kept = f"keeps the damaged file in {' and '.join(folders)}"
        hint = f"{_REPAIR}: it saves what can be read{filled}, and {kept}"
        return CheckResult(name="data", state="fail", text=text, hint=hint)
    try:
        work_store.migrate(loading.state_folder(settings))
    except KnapError as error:
        return failed_check("data", error)
    if not paths:
        return CheckResult(name="data", state="ok", text="there is none yet")
    text = f"{pluralize(len(paths), 'database')} without damage"
    if settings.journal.backup_mb == 0:
        return CheckResult(name="data", state="ok", text=text)
    return _check_backups(settings, text)


def _check_backups(settings: Settings, text: str) -> CheckResult:
    """Tell what the latest backups lack; *text* is what was found out before."""
    folder, limit = loading.state_folder(settings), settings.journal.backup_mb * 1_000_000
    gaps = database_repair.find_backup_gaps(folder, limit)
    warned = [gap for gap in gaps if gap.problem or _STEPS_TABLE in gap.left_out]
    if warned:
        text = "; ".join([text, *(_describe_gap(gap, folder / gap.name, limit) for gap in warned)])
        hint = f"free some space; {_NEXT_BACKUP}"
        if unfit := [gap for gap in warned if not gap.problem or not gap.fits]:
            taken = limit - min(gap.room for gap in unfit)
            wanted_mb = math.ceil((taken + sum(gap.size for gap in unfit)) / 1_000_000)
            hint = f"`knap config set journal.backup_mb {wanted_mb}`, or more as they grow; {_NEXT_BACKUP}"
        return CheckResult(name="data", state="warn", text=text, hint=hint)
    journal = folder / JOURNAL_FILE
    if not journal.exists():
        return CheckResult(name="data", state="ok", text=text)
    backups = storage.list_backups(journal)
    if not backups:
        hint = f"raise journal.backup_mb or free some space; {_NEXT_BACKUP}"
        return CheckResult(name="data", state="warn", text=f"{text}; the journal has no backup", hint=hint)
    lacking = "".join(f", of {gap.name} without what runs can look up again" for gap in gaps)
    return CheckResult(name="data", state="ok", text=f"{text}; last backup {backups[0].suffix[1:]}{lacking}")


def _describe_gap(gap: BackupGap, path: Path, limit: int) -> str:
    """Return a sentence about a database that isn't backed up, or not wholly."""
    backups = storage.list_backups(path)
    if gap.problem and gap.fits:
        sentence = f"{gap.name} couldn't be backed up on {gap.day} ({gap.problem})"
    else:
        size = f"its {format_size(gap.size)} don't fit into the {format_size(gap.room)} that are left for it"
        state = "isn't backed up" if gap.problem else f"is backed up without {_STEPS}"
        sentence = f"{gap.name} {state}: {size} of {format_size(limit)} (journal.backup_mb)"
    if not gap.problem:
        return sentence
    return f"{sentence}; its last backup is of {backups[0].suffix[1:]}" if backups else f"{sentence}; it has no backup"


def _find_databases(settings: Settings) -> list[Path]:
    own = storage.find_databases(loading.state_folder(settings))
    return [*own, *sorted(settings.state_dir.glob("*.db")), *sorted(settings.state_dir.glob("server/*.db"))]


def repair_index(options: GlobalOptions) -> list[CheckResult]:
    """Build a damaged index anew, and repair every damaged database; return what was done."""
    try:
        settings = setup.read_settings(options)
        folder = loading.state_folder(settings)
    except KnapError as error:
        return [failed_check("repair", error)]
    if refresh.is_watched(folder / "index"):
        hint = "stop `knap serve`, `knap watch` and editors that run `knap mcp`, then repair"
        return [CheckResult(name="repair", state="fail", text="a server or watcher is running", hint=hint)]
    results = [_repair_database(path) for path in _find_databases(settings) if storage.find_damage(path)]
    return [*results, *_repair_index(settings)] or [CheckResult(name="repair", state="ok", text="nothing is damaged")]


def _repair_database(path: Path) -> CheckResult:
    try:
        repaired = database_repair.repair(path)
    except KnapError as error:
        return failed_check("repair", error)
    except (OSError, sqlite3.Error) as error:
        return CheckResult(name="repair", state="fail", text=f"{path.name}: {error}", hint="see the lines below")
    rows = {
        "saved": f"{pluralize(repaired.rows, 'row')} saved",
        "restored": "nothing of it could be read",
        "new": "nothing of it could be read, and there is no backup: it starts over",
    }[repaired.outcome]
    lacks = repaired.backup and _STEPS_TABLE in database_repair.find_left_out(
        path.parent / storage.BACKUP_FOLDER / repaired.backup
    )
    without = f", which has no {_STEPS.removeprefix('the ')}" if lacks else ""
    backup = f"; the rest is from {repaired.backup}{without}" if repaired.backup else ""
    loss = "" if repaired.is_whole or repaired.backup else "; some of it is lost"
    text = f"{path.name}: {rows}{backup}{loss}; the damaged file is kept in {repaired.aside}"
    return CheckResult(name="repair", state="ok" if repaired.is_whole else "warn", text=text)


def _repair_index(settings: Settings) -> list[CheckResult]:
    try:
        with app.open_vault(settings) as context:
            if not (context.index.damage or find_damage(context.index.store.database)):
                return []
            outcome = context.index.refresh(full=True)
    except KnapError as error:
        return [failed_check("repair", error)]
    vectors = "; run `knap index` for its vectors" if settings.vault.has_files else ""
    text = f"the index was rebuilt from {pluralize(outcome.indexed, 'file')}{vectors}"
    return [CheckResult(name="repair", state="ok", text=text)]


def check_ignore_rules(settings: Settings) -> CheckResult | None:
    """Report ignore rules without effect; None if all are effective."""
    try:
        with app.open_vault(settings) as context:
            problems = (*context.view.settings.problems, *context.view.ignore.problems)
    except KnapError:
        return None  # and another check tells
    if not problems:
        return None
    hint = "mend them: what they should hide is shown"
    return CheckResult(name="rules", state="warn", text="; ".join(problems), hint=hint)


def check_watching(settings: Settings) -> CheckResult:
    """Save a file in a folder of our own beside the state, and check that the system reports it to a watch."""
    failure = _find_watch_failure(settings)
    if failure is not None:
        since = f"{failure.since:%Y-%m-%d %H:%M}"
        text = f"a server or `knap watch` can't follow the vault since {since} ({failure.reason})"
        hint = "it is tried again by itself; `knap index` takes changes in, or says what is wrong"
        return CheckResult(name="watch", state="warn", text=text, hint=hint)
    try:
        with tempfile.TemporaryDirectory(dir=settings.state_dir, prefix=private.WATCH_PREFIX) as folder:
            is_noticed = _notices_save(Path(folder))
    except OSError as error:
        return CheckResult(
            name="watch", state="warn", text=f"it can't be tried: {error.strerror}", hint="see the line 'state'"
        )
    if is_noticed:
        return CheckResult(name="watch", state="ok", text="changes are seen at once")
    hint = "search looks for changed files by itself; on network disks set WATCHFILES_FORCE_POLLING=true"
    return CheckResult(name="watch", state="warn", text="a saved file wasn't noticed", hint=hint)


def _find_watch_failure(settings: Settings) -> WatchFailure | None:
    try:
        index = loading.state_folder(settings) / "index"
    except KnapError:
        return None  # and another check tells
    failure = find_watch_failure(index)
    return failure if failure is not None and not refresh.is_watched(index) else None


def _notices_save(folder: Path) -> bool:
    stop = threading.Event()

    def save_repeatedly() -> None:  # the watcher may start late
        number = 0
        while not stop.wait(0.05):
            number += 1
            with contextlib.suppress(OSError):  # a full disk is told by the check of the disk
                private.write_text(folder / "note.md", str(number))

    writer = threading.Thread(target=save_repeatedly)
    writer.start()
    try:
        changes = watchfiles.watch(
            folder, debounce=50, step=10, rust_timeout=_WATCH_TIMEOUT_MS, yield_on_timeout=True, watch_filter=None
        )
        return bool(next(changes, None))
    finally:
        stop.set()
        writer.join()


_MAX_NAMED_FILES = 3


def check_leftovers(settings: Settings) -> CheckResult | None:
    """Report temporary files in the vault that the journal can't explain; None if there are none."""
    if not settings.vault.has_files:
        return None
    try:
        context = app.open_vault(settings)
    except KnapError:
        return None  # and another check tells
    with context:
        try:
            state = context.writer.state
            strays = [path.relative_to(state.root) for path in apply.find_stray_temp_files(state)]
        except KnapError as error:
            return failed_check("changes", error)
    if not strays:
        return None
    names = ", ".join(f"'{path.as_posix()}'" for path in strays[:_MAX_NAMED_FILES]) + (
        ", …" if len(strays) > _MAX_NAMED_FILES else ""
    )
    hint = "another machine, or a power cut, left them: see whether a note's text is missing, then delete them"
    return CheckResult(name="changes", state="warn", text=f"temp files lie in the vault: {names}", hint=hint)


def check_sandbox(settings: Settings) -> CheckResult:
    """Report whether the sandbox is prepared and starts, and which of its operating-system protections are active."""
    with WorkerPool(settings.state_dir / private.SANDBOX_NAME, workers=1) as pool:
        try:
            if not pool.code.is_ready():
                hint = "the first script does that, in about ten seconds"
                return CheckResult(name="scripts", state="ok", text="the sandbox isn't prepared yet", hint=hint)
            walls = pool.warm()
        except KnapError as error:
            return failed_check("scripts", error)
    missing_walls = [f"{name}: {why}" for name, why in machine_code.find_missing_walls(walls).items()]
    if missing_walls:
        text = f"the sandbox starts, but its second wall isn't whole: {'; '.join(missing_walls)}"
        if settings.scripts.walls == "required":
            hint = 'scripts are refused; scripts.walls = "best" runs them behind the first wall, WebAssembly'
            return CheckResult(name="scripts", state="fail", text=text, hint=hint)
        hint = 'scripts run all the same: WebAssembly is the first wall; scripts.walls = "required" refuses them'
        return CheckResult(name="scripts", state="warn", text=text, hint=hint)
    return CheckResult(
        name="scripts", state="ok", text=f"the sandbox starts; second wall: {', '.join(walls) or 'none'}"
    )


CHECKS: Final[tuple[Check, ...]] = (
    check_python,
    check_sqlite,
    check_embedder,
    check_extras,
    check_configuration,
    check_vault,
    check_state,
    check_privacy,
    check_disk,
    check_watching,
    check_sandbox,
    check_language_model,
)
"""Those that need no vault, and those that say it themselves."""


def run_checks(options: GlobalOptions) -> list[CheckResult]:
    """Run every check; if the configuration has errors, that is the only result."""
    try:
        config = setup.read_settings(options)
    except KnapError as error:
        return [failed_check("config", error)]
    findings = [check(config) for check in CHECKS]
    if all(each.state == "ok" for each in findings if each.name in {"vault", "state"}):
        checks = (check_ignore_rules, check_leftovers, check_index, check_engine, check_agents, check_server)
        findings += filter(None, (check(config) for check in checks))
        findings.append(check_databases(config))
    return findings


def check_server(settings: Settings) -> CheckResult | None:
    """Say where the server answers, and how many processes answer searches; None where none runs."""
    server = addresses.describe_server(settings.state_dir)
    return CheckResult(name="server", state="ok", text=server) if server else None


_STATE_COLOURS: dict[CheckState, str] = {"ok": "green", "warn": "yellow", "fail": "red"}


def render_checks(findings: Sequence[CheckResult]) -> str:
    """Format one line per check, with the next step below it."""
    lines: list[str] = []
    for each in findings:
        state = click.style(f"{each.state:<4}", fg=_STATE_COLOURS[each.state])
        lines.append(f"{state}  {each.name:<8}  {plain(each.text)}")
        if each.hint:
            lines.append(f"                {plain(each.hint)}")
    return "\n".join(lines)


def checks_as_dict(findings: Sequence[CheckResult]) -> dict[str, object]:
    """Return them to a program."""
    rows = [{"name": each.name, "state": each.state, "text": each.text, "hint": each.hint} for each in findings]
    return {"success": all(each.state != "fail" for each in findings), "checks": rows}


@click.command(
    "doctor",
    epilog=options.examples(
        ("knap doctor", "what works here, and what to do about the rest"),
        ("knap -v work doctor --json", "for programs"),
        ("knap doctor --repair", "mend what is damaged, when no server runs"),
    ),
)
@click.option("--repair", is_flag=True, help="First mend what is damaged of index, journal, proposals and sessions.")
@options.pass_options
def command(global_options: GlobalOptions, *, repair: bool) -> ExitCode:
    """Check the installation and the vault, and suggest fixes.

    The exit code is 1 if a check failed; warnings don't count as failures. With --repair, what comes from the notes is
    rebuilt; of the rest, what can be read is saved, and the damaged file is kept aside.
    """
    results = [*(repair_index(global_options) if repair else ()), *run_checks(global_options)]
    has_failure = any(each.state == "fail" for each in results)
    output.write_either(global_options, checks_as_dict(results), render_checks(results))
    return ExitCode.NOTHING if has_failure else ExitCode.OK
