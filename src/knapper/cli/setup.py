"""Read the settings and open the vault that a command works with."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.cli import output
from knapper.cli.options import GlobalOptions
from knapper.config import Settings, Vault, loading
from knapper.system import private
from knapper.vault import access

if TYPE_CHECKING:
    from knapper.tools.context import Context

_MIGRATION_LOG: Final = "knapper.agents.work_store"
_EARLIER_FILES: Final = ("sessions.db", "task_runs.db", "paused.db", "presets.db")
"""As in that module, which only some commands need; those of clients lie in folders below ``chats``."""


def read_settings(options: GlobalOptions) -> Settings:
    """Read the configuration.

    Raises:
        SetupError: It can't be read, or contains an unknown setting.
    """
    settings = loading.load({"default_vault": options.vault}, config_file=options.config, env_file=options.env_file)
    _note_unused(options, settings)
    _show_long_migration(options, settings)
    return settings


def _show_long_migration(options: GlobalOptions, settings: Settings) -> None:
    """Show a person at a terminal what is logged while files of earlier versions are migrated."""
    is_shown = output.stderr_is_terminal() and not (options.quiet or options.as_json)
    if not is_shown or not isinstance(settings.choice, Vault):
        return
    if loading.holds(settings.choice.path, settings.state_dir):  # which is an error of its own
        return
    folder = loading.state_folder(settings)
    stored = (*folder.glob("*.db"), *folder.glob("chats/*/*.db"))
    if not any(path.name in _EARLIER_FILES for path in stored):
        return
    import logging  # noqa: PLC0415 - 15 ms that only such a vault should cost

    handler = logging.StreamHandler()
    # Not twice where this process is a server, which logs it itself.
    handler.addFilter(lambda _: not logging.getLogger("knapper").handlers)
    log = logging.getLogger(_MIGRATION_LOG)
    log.setLevel(logging.INFO)
    log.handlers[:] = [handler]


def read_vault_settings(options: GlobalOptions) -> Settings:
    """Read the configuration for a command that opens several vaults and works on the chosen one.

    Raises:
        SetupError: As for `read_settings`, or no vault is chosen, or its folder isn't there.
    """
    settings = read_settings(options)
    # A hub of several vaults takes the first one where none is chosen.
    _ = settings.vault
    return settings


def _note_unused(options: GlobalOptions, settings: Settings) -> None:
    """Say once which variables mean nothing here; `knap config` says so each time."""
    names = sorted(each.name for each in settings.unused)
    if not names or options.quiet:
        return
    record = settings.state_dir / private.TOLD_VARIABLES_NAME
    # A state folder that can't be read or written leads to the same remark again, and to its own error.
    with contextlib.suppress(OSError):
        if set(names) <= set(record.read_text(encoding="utf-8").split()):
            return
    for each in settings.unused:
        output.note(options, f"note: {output.plain(each.message)}")
    if isinstance(settings.choice, Vault) and loading.holds(settings.choice.path, settings.state_dir):
        return
    with contextlib.suppress(OSError):
        private.make_folder(record.parent)
        private.write_text(record, "\n".join(names))


def note_unknown_client(options: GlobalOptions, settings: Settings, name: str) -> None:
    """Say that a client has no rules of its own where others have, as its name may be mistyped."""
    configured = sorted(client.name for client in settings.clients)
    is_known = name in configured or name in access.CLIENT_KINDS or settings.paired.find(name) is not None
    if configured and not is_known:
        output.note(
            options,
            f"note: no client '{output.plain(name)}' is configured, so the rules for any other client hold;"
            f" configured: {', '.join(configured)}",
        )


def config_path(options: GlobalOptions) -> Path:
    """Return the configuration file's path, without reading the file."""
    return loading.locate(options.config)


def open_vault(options: GlobalOptions, *, writes: bool = False) -> Context:
    """Open the chosen vault; the command closes it.

    Args:
        options: Which one, among others.
        writes: Whether the command changes notes; then a remark says if the current folder is in another vault.

    Raises:
        SetupError: No vault is chosen, or its state can't be kept.
    """
    config = read_settings(options)
    if writes and config.passed_by is not None:
        text = f"note: this is about the vault '{config.vault.name}' ({config.vault.path}), not the one of this folder"
        output.note(options, f"{text}, which `--vault '{output.one_line(str(config.passed_by))}'` names")
    from knapper import app  # noqa: PLC0415 - 100 ms that commands which only read settings needn't pay

    context = app.open_vault(config)
    for notice in context.notices:
        output.warn(notice)
    # As text they have been said; a program finds them in the answer.
    return context if options.as_json else replace(context, notices=())


def note_if_busy(options: GlobalOptions, *, is_busy: bool) -> None:
    """Print a remark if the command has to wait for another process that is writing the index."""
    if is_busy:
        output.note(options, "another process is writing the index; waiting for it")
