"""Tell where the server's token lies, and make new ones."""

from urllib.parse import urlsplit

import click

from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config.paired import hash_token
from knapper.server import addresses, credentials


@click.group(
    "token",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap token", "path of the token, created if missing"),
        ("knap token rotate", "replace it"),
        ("knap token page", "an address that signs a browser in to the page"),
        ("knap token new", "one for a client with rights of its own, and the line for the configuration"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Show where the server's token is stored, and create tokens."""
    if ctx.invoked_subcommand:
        return None
    global_options = ctx.ensure_object(GlobalOptions)
    config = setup.read_settings(global_options)
    _ = credentials.read_or_make_token(config.state_dir, "api")
    if config.server.token:
        output.note(
            global_options, "server.token in the configuration is the server's token: it doesn't look at this file"
        )
    return _print_field(global_options, {"file": str(credentials.token_path(config.state_dir, "api"))}, "file")


@command.command(
    "rotate",
    epilog=options.examples(("knap token rotate", "then restart the server, and give programs the new token")),
)
@options.pass_options
def rotate(global_options: GlobalOptions) -> ExitCode:
    """Replace the tokens with new ones.

    Replaces the token for programs and the one for the web page. A running server uses them after a restart.
    """
    config = setup.read_settings(global_options)
    for name in ("api", "page"):
        _ = credentials.replace_token(config.state_dir, name)
    output.note(global_options, "the old tokens are good until the server is started again")
    return _print_field(global_options, {"file": str(credentials.token_path(config.state_dir, "api"))}, "file")


@command.command(
    "page",
    epilog=options.examples(
        ("knap token page", "open what it prints in a browser; the server has to run"),
        ("knap token page --port 9000", "for a server that this command can't find, such as one in a container"),
    ),
)
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Port that the server listens on.  [default: the running server's]"
)
@options.pass_options
def page(global_options: GlobalOptions, port: int | None) -> ExitCode:
    """Print an address that signs a browser in to the web page.

    The address works once, within an hour.
    """
    config = setup.read_settings(global_options)
    host, number = config.server.host, port or config.server.port
    if port is None:
        record = addresses.find_server(config.state_dir)
        if record is None:
            output.note(global_options, "no server runs: `knap serve` or `knap service install` starts it")
        else:
            own = urlsplit(record.url)
            host, number = own.hostname or host, own.port or number
    code = credentials.open_browser_sessions(config.state_dir).new_code()
    address = credentials.sign_in_url(addresses.client_url(host, number), code)
    return _print_field(global_options, {"address": address}, "address")


@command.command(
    "new",
    epilog=options.examples(("knap token new", "then put the line into [clients.NAME] of the configuration")),
)
@options.pass_options
def new(global_options: GlobalOptions) -> ExitCode:
    """Create a token without storing it.

    Also prints the configuration line that lets a client use it.
    """
    token = credentials.make_token()
    line = f'token_hash = "{hash_token(token)}"'
    output.note(global_options, f"for the client: the token below. For [clients.NAME] in the configuration:\n  {line}")
    return _print_field(global_options, {"token": token, "token_hash": hash_token(token)}, "token")


def _print_field(options: GlobalOptions, answer: dict[str, object], shown: str) -> ExitCode:
    return output.print_result(options, answer, str(answer[shown]))
