"""List, show and revoke paired devices."""

from __future__ import annotations

from datetime import datetime

import click

from knapper.cli import options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode


@click.group(
    "clients",
    no_args_is_help=True,
    epilog=options.examples(
        ("knap clients list", "who is paired, since when, and when last there"),
        ("knap clients revoke Phone", "a lost phone: from now on it may nothing"),
    ),
)
@options.shared_options
def command() -> None:
    """List, show and revoke paired devices."""


@command.command(
    "list",
    epilog=options.examples(
        ("knap clients list", "who is paired"), ("knap clients list --all", "who was revoked lately, too")
    ),
)
@click.option("--all", "with_revoked", is_flag=True, help="Also those revoked in the last 90 days.")
@options.pass_options
def list_clients(global_options: GlobalOptions, *, with_revoked: bool) -> ExitCode:
    """List the paired devices.

    Says of each its name, device and vault, and when it was paired and last used.
    """
    stored = setup.read_settings(global_options).paired
    clients = stored.list_all(with_revoked=with_revoked)
    rows = [client.as_dict(stored.last_used(client)) for client in clients]
    lines: list[str] = []
    for client in clients:
        used = stored.last_used(client)
        device = ", ".join(filter(None, (client.device, f"vault {client.vault}")))
        line = f"{client.name}  ({device})  paired {_local(client.paired)}"
        if client.revoked:
            line += f"  revoked {_local(client.revoked)}"
        elif used:
            line += f"  last used {used.astimezone():%Y-%m-%d %H:%M}"
        lines.append(output.one_line(line))
    return output.print_listing(
        global_options,
        {"success": True, "results": rows, "total": len(rows)},
        "\n".join(lines),
        nothing="no device is paired; `knap connect` pairs one",
    )


@command.command("show", epilog=options.examples(("knap clients show Phone", "what is known of it")))
@click.argument("name", type=options.TEXT)
@options.pass_options
def show(global_options: GlobalOptions, name: str) -> ExitCode:
    """Show what is known of a paired device."""
    stored = setup.read_settings(global_options).paired
    client = stored.find(name)
    if client is None:
        raise stored.unknown_error(name)
    fields = client.as_dict(stored.last_used(client))
    text = "\n".join(f"{label:<10} {output.one_line(str(value))}" for label, value in fields.items() if value)
    return output.print_result(global_options, fields, text)


@command.command(
    "revoke",
    epilog=options.examples(("knap clients revoke Phone", "takes effect at once, also while the server runs")),
)
@click.argument("name", type=options.TEXT)
@options.pass_options
def revoke(global_options: GlobalOptions, name: str) -> ExitCode:
    """Take a paired device's rights away at once.

    Its token is good no more, and what it listens to ends. What it did before stays, and can be undone: `knap log`.
    """
    stored = setup.read_settings(global_options).paired
    client = stored.revoke(name)
    fields = client.as_dict(stored.last_used(client))
    return output.print_result(global_options, {"revoked": fields}, f"revoked: {output.one_line(client.name)}")


def _local(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return moment
