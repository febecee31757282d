"""Serve vaults over HTTP."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar, Unpack

import click

from knapper.cli import options, output, setup, start
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config import files, loading
from knapper.errors import SetupError, StorageError
from knapper.system import private

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Mapping, Sequence

    from knapper.config import Settings
    from knapper.server.addresses import ServerRecord


_AGAIN_S: Final = 2.0
_Result = TypeVar("_Result")


class ServeOptions(TypedDict):
    """The command's own options."""

    host: str
    port: int | None
    watch: bool
    as_service: bool
    log_file: str


@click.command(
    "serve",
    epilog=options.examples(
        ("knap serve", "all configured vaults, for programs on this machine"),
        ("knap --vault ~/Notes serve --port 9000", "one vault, on another port"),
        ("knap serve --no-watch", "if `knap watch` is already running"),
        ("knap serve --json --port 0", "for programs: on any free port, which the first line names"),
    ),
)
@click.option("--host", default="", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Port to listen on, or 0 for any free one.  [default: 25627]"
)
@click.option("--watch/--no-watch", default=True, help="Keep the indexes up to date while serving.  [default: watch]")
@click.option(
    "--as-service",
    is_flag=True,
    help="Wait for a port, an address or a vault's folder that isn't there yet, as `knap service` has it.",
)
@click.option(
    "--log-file", default="", metavar="FILE", help="File for the log, replaced at 5 MB.  [default: the error stream]"
)
@options.pass_options
def command(global_options: GlobalOptions, **own: Unpack[ServeOptions]) -> ExitCode:
    """Serve vaults over HTTP to browsers, programs and MCP clients.

    Open the printed address to sign one browser in to the web page; it works once, within an hour. MCP clients connect
    to /mcp. Without --vault, all configured vaults are served. Programs authenticate with a token; the command prints
    where it is stored. Press Ctrl-C to stop.
    """
    files.keep_libraries_to_one_thread()
    from knapper.server import addresses  # noqa: PLC0415 - `--help` needn't pay for what serves

    log_file = _prepare_log(own["log_file"]) if own["log_file"] else None
    settings = addresses.override_address(_read_settings(global_options, own, log_file), own["host"], own["port"])
    addresses.check_guarded(settings.server)
    # Before the imports, which take seconds: a port that is taken is told at once.
    bound_socket = _bind_socket(settings, own, log_file)
    with start.exiting_at_once():
        from knapper.app import open_hub  # noqa: PLC0415 - as above
        from knapper.server import lifecycle, logs  # noqa: PLC0415 - the same

    start.collect_garbage_as_usual()
    logs.configure(log_file)
    with open_hub(settings, only=bool(global_options.vault)) as hub:

        def announce(record: ServerRecord, page_url: str) -> None:
            _announce(global_options, settings, record, page_url, sorted(hub.vaults))

        lifecycle.serve_vaults(
            hub,
            settings,
            bound_socket,
            watch=own["watch"],
            service=own["as_service"],
            on_start=announce,
        )
    if global_options.as_json:
        _print_event({"event": "stopped"})
    output.note(global_options, "stopped")
    return ExitCode.OK


def _read_settings(global_options: GlobalOptions, own: ServeOptions, log_file: Path | None) -> Settings:
    """Return the settings; a service waits for its vault's folder, such as one on a drive that is mounted later."""

    def read() -> Settings:
        settings = setup.read_settings(global_options)
        _ = settings.vault if global_options.vault else settings.usual_vault  # raises if it isn't there
        return settings

    return _wait_for(read, {"no_vault", "vault_missing"}, log_file) if own["as_service"] else read()


def _bind_socket(settings: Settings, own: ServeOptions, log_file: Path | None) -> socket.socket:
    """Return the server's socket; a service waits for its address and its port.

    Raises:
        SetupError: The port is taken, or the machine has no such address.
    """
    from knapper.server import addresses  # noqa: PLC0415 - `--help` needn't pay for what serves

    server = settings.server

    def bind() -> socket.socket:
        return addresses.bind_socket(server.host, server.port, settings.state_dir)

    def bind_again() -> socket.socket:  # asks whoever has the port nothing
        return addresses.bind_socket(server.host, server.port)

    return _wait_for(bind, addresses.MAY_PASS, log_file, again=bind_again) if own["as_service"] else bind()


def _wait_for(
    call: Callable[[], _Result],
    may_pass: Collection[str],
    log_file: Path | None,
    *,
    again: Callable[[], _Result] | None = None,
) -> _Result:
    """Return what a call returns; while it fails for what may pass, log that once, and repeat it every `_AGAIN_S`.

    Args:
        call: What is tried first.
        may_pass: Codes of errors that are waited out.
        log_file: Where the log goes; see `logs.configure`.
        again: What is tried from the second time on; None for the same.

    Raises:
        SetupError: It fails with another code.
    """
    is_logged = False
    while True:
        try:
            return again() if again and is_logged else call()
        except SetupError as error:
            if error.code not in may_pass:
                raise
            if not is_logged:
                import logging  # noqa: PLC0415 - only a service that waits should cost it

                from knapper.server import logs  # noqa: PLC0415 - likewise, a second

                logs.configure(log_file)
                logging.getLogger("knapper.server").warning("%s; waiting until that has changed", error.message)
            is_logged = True
        time.sleep(_AGAIN_S)


def _announce(
    options: GlobalOptions, settings: Settings, record: ServerRecord, page_url: str, vaults: Sequence[str]
) -> None:
    """Print where the server answers: a line of JSON for a program, some sentences for a person."""
    from knapper.server import credentials  # noqa: PLC0415 - `--help` needn't pay for it
    from knapper.server.http import page  # noqa: PLC0415 - likewise

    if options.as_json:
        _print_event({"event": "serving", **asdict(record), "vaults": vaults})
    file = credentials.token_path(settings.state_dir, "api")
    output.note(options, f"serving {', '.join(vaults)} at {record.url}; Ctrl-C ends it")
    output.note(
        options, f"programs show the token of {'server.token in the configuration' if settings.server.token else file}"
    )
    # What isn't a terminal is kept, as a log is: an address that signs in doesn't belong there.
    output.note(options, f"the page: {page_url if sys.stderr.isatty() else '`knap token page` prints its address'}")
    for vault in settings.vaults:
        checked = loading.check_vault_folder(vault)
        if vault.name in vaults and isinstance(checked, SetupError):
            output.note(options, f"{checked.message}: it is served once it is there, or once its path is corrected")
    if not page.PageFiles().is_built:
        output.note(
            options, f"the page wasn't built when Knapper was installed; in a clone, {page.BUILD_COMMAND} builds it"
        )


def _print_event(fields: Mapping[str, object]) -> None:
    """Print an event as one line of JSON, at once: who reads it waits for it."""
    click.echo(json.dumps(fields, ensure_ascii=False))
    sys.stdout.flush()


def _prepare_log(name: str) -> Path:
    """Return the log's absolute path, and make its folder.

    Raises:
        StorageError: The folder can't be made, or the file not be written.
    """
    file = Path(name).expanduser().absolute()
    try:
        private.make_folder(file.parent)
        private.create_file(file)
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise StorageError(
            f"the log {file} can't be written: {error.strerror or error}", hint="give --log-file another file"
        ) from error
    return file
