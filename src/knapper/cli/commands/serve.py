"""Serve vaults over HTTP."""

import sys
from typing import TypedDict, Unpack

import click

from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.config import environment


class ServeOptions(TypedDict):
    """The command's own options."""

    host: str
    port: int | None
    watch: bool


@click.command(
    "serve",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap serve", "all configured vaults, for programs on this machine"),
        ("knap --vault ~/Notes serve --port 9000", "one vault, on another port"),
        ("knap serve --no-watch", "if `knap watch` is already running"),
    ),
)
@click.option("--host", default="", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 for any free port.  [default: 8000]")
@click.option("--watch/--no-watch", default=True, help="Keep the indexes up to date while serving.  [default: watch]")
@options.shared_options
@click.pass_obj
def command(said: GlobalOptions, **own: Unpack[ServeOptions]) -> ExitCode:
    """Serve vaults over HTTP to browsers, programs and MCP clients.

    Open the printed address to sign one browser in to the web page; it works once, within an hour. MCP clients connect
    to /mcp. Without --vault, all configured vaults are served. Programs authenticate with a token; the command prints
    where it is stored. Press Ctrl-C to stop.
    """
    environment.keep_numpy_to_one_thread()
    from knapper.app import open_hub  # noqa: PLC0415 - `--help` needn't pay for what serves
    from knapper.server import credentials, lifecycle  # noqa: PLC0415 - the same

    config = lifecycle.override_address(setup.read_settings(said), own["host"], own["port"])

    def tell(address: str, page: str) -> None:
        key = "server.token in the configuration"
        key = key if config.server.token else str(credentials.token_path(config.state_dir, "api"))
        output.note(said, f"serving {', '.join(hub.vaults)} at {address}; Ctrl-C ends it")
        output.note(said, f"programs show the token of {key}")
        # What isn't a terminal is kept, as a log is: an address that signs in doesn't belong there.
        output.note(said, f"the page: {page if sys.stderr.isatty() else '`knap token page` prints its address'}")

    with open_hub(config, only=bool(said.vault)) as hub:
        lifecycle.serve_vaults(hub, config, watch=own["watch"], on_start=tell)
    output.note(said, "stopped")
    return ExitCode.OK
