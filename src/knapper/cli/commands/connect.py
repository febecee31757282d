"""Make a code that pairs Obsidian, on this computer or a phone, with the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from knapper.cli import launching, options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence


_DARK_HALVES = {"11": "█", "10": "▀", "01": "▄", "00": " "}


@click.command(
    "connect",
    epilog=options.examples(
        ("knap connect", "a code to type into the plugin, and a link that opens it"),
        ("knap connect --open", "open the link here, in Obsidian"),
        ("knap connect --address https://box.example", "and a QR code, for a phone"),
        ("knap clients list", "which devices are paired"),
    ),
)
@click.option("--name", default="", metavar="NAME", help="Name of the client.  [default: what the device says]")
@click.option(
    "--address", default="", metavar="URL", help="Where the device finds the server.  [default: the running server]"
)
@click.option("--open", "opens", is_flag=True, help="Open the link in Obsidian on this computer.")
@options.pass_options
def command(global_options: GlobalOptions, name: str, address: str, *, opens: bool) -> ExitCode:
    """Make a code that pairs Obsidian with the server.

    The code is good once, within two minutes, for one vault. Type it into the plugin, or open the link. The device gets
    a token of its own and acts as you in that vault, until `knap clients revoke`. A QR code needs an address
    with HTTPS. The server needn't run yet.
    """
    from knapper.server import addresses, credentials  # noqa: PLC0415 - `--help` needn't pay for it

    settings = setup.read_settings(global_options)
    invitation = launching.make_pairing_code(settings, settings.vault, name=name, address=address)
    is_running = addresses.find_server(settings.state_dir) is not None
    if global_options.as_json:
        if opens:
            launching.open_link(invitation.link)
        return output.print_result(global_options, {**invitation.as_dict(), "is_running": is_running}, "")
    lines = [
        f"code     {click.style(invitation.code, bold=True)}   (once, within two minutes)",
        f"vault    {output.one_line(invitation.offer.vault)}",
        f"address  {invitation.address}",
        f"link     {invitation.link}",
    ]
    if rows := invitation.qr:
        lines += ["", *render_qr(rows, has_colours=output.wants_colour(global_options))]
    output.write(global_options, "\n".join(lines))
    if not is_running:
        output.note(global_options, "no server runs: `knap serve` or `knap service install` starts it")
    if not address and not (settings.vault.path / ".obsidian" / "plugins" / "knapper").is_dir():
        output.note(global_options, "the plugin isn't in this vault: `knap plugin install` puts it there")
    if problem := credentials.why_no_qr(invitation.address):
        output.note(global_options, problem)
    if opens:  # last, since the code is of use although nothing here opens the link
        launching.open_link(invitation.link)
    return ExitCode.OK


def render_qr(rows: Sequence[str], *, has_colours: bool) -> list[str]:
    """Return a QR code as lines of text, two rows a line.

    Without colours, light modules are drawn, which fits a dark terminal; most phones read it on a light one, too.
    """
    blank = "0" * len(rows[0])
    pairs = [(rows[number], rows[number + 1] if number + 1 < len(rows) else blank) for number in range(0, len(rows), 2)]
    if has_colours:
        drawn = ("".join(_DARK_HALVES[upper + lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs)
        return [click.style(line, fg="black", bg="bright_white") for line in drawn]
    inverted = str.maketrans("01", "10")
    return [
        "".join(_DARK_HALVES[(upper + lower).translate(inverted)] for upper, lower in zip(*pair, strict=True))
        for pair in pairs
    ]
