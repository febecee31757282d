"""Tell where the server's token lies, and make new ones."""

import click

from knapper.cli import options, output, setup
from knapper.cli.codes import ExitCode
from knapper.cli.options import GlobalOptions
from knapper.server import credentials


@click.group(
    "token",
    invoke_without_command=True,
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap token", "where the token lies; it is made if there is none"),
        ("knap token rotate", "put a new one in its place"),
        ("knap token page", "an address that signs a browser in to the page"),
        ("knap token new", "one for a client with rights of its own, and the line for the configuration"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Return where the server's token lies, and make new ones."""
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
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap token rotate", "then start the server anew, and give programs the new token")),
)
@options.shared_options
@click.pass_obj
def rotate(said: GlobalOptions) -> ExitCode:
    """Make new tokens in the place of the old ones.

    There is one for programs and one for the page. A server that runs takes them when it is started again.
    """
    config = setup.read_settings(said)
    for name in ("api", "page"):
        _ = credentials.replace_token(config.state_dir, name)
    output.note(said, "the old tokens are good until the server is started again")
    return _print_field(said, {"file": str(credentials.token_path(config.state_dir, "api"))}, "file")


@command.command(
    "page",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(
        ("knap token page", "open what it prints in a browser; the server has to run"),
        ("knap token page --port 9000", "where it listens at another port"),
    ),
)
@click.option("--port", type=click.IntRange(1, 65_535), help="Where the server listens.  [default: as configured]")
@options.shared_options
@click.pass_obj
def page(said: GlobalOptions, port: int | None) -> ExitCode:
    """Make an address that signs a browser in to the page.

    It does so once, within an hour.
    """
    from knapper.server import credentials  # noqa: PLC0415 - what serves is heavy, and the other commands need it not

    config = setup.read_settings(said)
    code = credentials.open_browser_sessions(config.state_dir).new_code()
    host = f"[{config.server.host}]" if ":" in config.server.host else config.server.host
    address = credentials.sign_in_url(f"http://{host}:{port or config.server.port}", code)
    return _print_field(said, {"address": address}, "address")


@command.command(
    "new",
    context_settings=options.CONTEXT_SETTINGS,
    epilog=options.examples(("knap token new", "then put the line into [clients.NAME] of the configuration")),
)
@options.shared_options
@click.pass_obj
def new(said: GlobalOptions) -> ExitCode:
    """Make a token that is kept nowhere.

    With it comes the line that lets a client of the configuration use it.
    """
    token = credentials.make_token()
    line = f'token_hash = "{credentials.hash_token(token)}"'
    output.note(said, f"for the client: the token below. For [clients.NAME] in the configuration:\n  {line}")
    return _print_field(said, {"token": token, "token_hash": credentials.hash_token(token)}, "token")


def _print_field(options: GlobalOptions, answer: dict[str, object], shown: str) -> ExitCode:
    return output.print_result(options, answer, str(answer[shown]))
