"""Install the Obsidian plugin into a vault, remove it, and tell what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from knapper.cli import launching, options, output, plugin, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.plugin import VaultPlugin
from knapper.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from knapper.cli.plugin import PluginChange
    from knapper.config import Settings

_DONE: Final[dict[PluginChange, str]] = {
    "installed": "the plugin is installed",
    "updated": "the plugin is updated; its settings stayed",
    "unchanged": "the plugin is there already",
    "enabled": "it is in Obsidian's list of enabled plugins",
    "disabled": "it is out of Obsidian's list of enabled plugins",
    "removed": "the plugin is removed",
    "kept": "its settings stayed (data.json); --data removes them, too",
}
_RESTART: Final = (
    "best while Obsidian isn't running: it finds the plugin when it starts, and has no older list of plugins to save; "
    "in restricted mode, turn on community plugins first"
)


@click.group(
    "plugin",
    no_args_is_help=True,
    epilog=options.examples(
        ("knap plugin install --enable --open", "install it, switch it on, and pair it"),
        ("knap plugin status", "which version is where"),
        ("knap plugin uninstall", "take it away; its settings stay"),
    ),
)
@options.shared_options
def command() -> None:
    """Install the Obsidian plugin into a vault."""


@command.command(
    "install",
    epilog=options.examples(
        ("knap plugin install", "into .obsidian/plugins/knapper of the vault"),
        ("knap plugin install --vault ~/Notes --enable", "and switch it on"),
        ("knap plugin install --dry-run", "what would be done"),
    ),
)
@click.option("--enable", is_flag=True, help="Add it to Obsidian's list of enabled plugins.")
@click.option("--open", "opens", is_flag=True, help="Open Obsidian with a link that pairs the plugin.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@options.pass_options
def install(global_options: GlobalOptions, *, enable: bool, opens: bool, dry_run: bool) -> ExitCode:
    """Install or update the plugin in a vault.

    Copies manifest.json, main.js and styles.css into .obsidian/plugins/knapper, all or nothing. The plugin's settings
    stay. Obsidian should not be running, or be reloaded afterwards.
    """
    settings = setup.read_settings(global_options)
    place = _place(settings)
    built = plugin.load_built()
    changes = place.install(built, enable=enable, dry_run=dry_run)
    answer: dict[str, object] = {"changes": changes, "dry_run": dry_run, **place.status(built).as_dict()}
    link, text = "", _render(changes, dry_run=dry_run)
    if opens and not dry_run:
        invitation = launching.make_pairing_code(settings, settings.vault)
        link = invitation.link
        answer |= {"code": invitation.code, "link": link}
        text += f"\nthe code {invitation.code} pairs it, within two minutes"
    if link and global_options.as_json:
        launching.open_link(link)
    _ = output.print_result(global_options, answer, f"{text}\n{output.one_line(str(place.folder))}")
    output.note(global_options, _RESTART)
    if not enable and not answer["enabled"]:
        output.note(global_options, "switch it on in Obsidian under Community plugins, or with --enable")
    if link and not global_options.as_json:  # last, since the plugin is there although nothing here opens the link
        launching.open_link(link)
    return ExitCode.OK


@command.command(
    "uninstall",
    epilog=options.examples(
        ("knap plugin uninstall", "its settings stay"), ("knap plugin uninstall --data", "its settings, too")
    ),
)
@click.option("--data", "with_data", is_flag=True, help="Remove the plugin's settings (data.json), too.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@options.pass_options
def uninstall(global_options: GlobalOptions, *, with_data: bool, dry_run: bool) -> ExitCode:
    """Remove the plugin from a vault.

    Takes away the files that `knap plugin install` put there and the entry in Obsidian's list. Devices stay paired:
    `knap clients revoke` ends that.
    """
    settings = setup.read_settings(global_options)
    place = _place(settings)
    changes = place.uninstall(with_data=with_data, dry_run=dry_run)
    answer: dict[str, object] = {"changes": changes, "dry_run": dry_run, "folder": str(place.folder)}
    # The uninstaller calls this for one vault after the other.
    if changes:
        text = f"{_render(changes, dry_run=dry_run)}\n{output.one_line(str(place.folder))}"
    else:
        text = f"the plugin isn't in the vault {output.one_line(str(settings.vault.path))}"
    return output.print_result(global_options, answer, text)


@command.command("status", epilog=options.examples(("knap plugin status", "installed, enabled, and which version")))
@options.pass_options
def status(global_options: GlobalOptions) -> ExitCode:
    """Show whether the plugin is in a vault, and which version.

    The exit code is 1 if it isn't installed.
    """
    settings = setup.read_settings(global_options)
    place = _place(settings)
    try:
        built = plugin.load_built()
    except SetupError:
        built = None
    status_now = place.status(built)
    paired = [one.name for one in settings.paired.list_all() if one.folder == str(settings.vault.path)]
    shipped = (
        f"this installation has {status_now.shipped}" if status_now.shipped else "this installation has none built"
    )
    states = {
        "absent": f"not installed; {shipped}",
        "current": f"version {status_now.version} is installed",
        "changed": f"version {status_now.version} is installed, with other files than this installation's",
        "other_version": f"version {status_now.version} is installed; {shipped}",
    }
    lines = [
        states[status_now.state],
        "enabled in Obsidian" if status_now.enabled else "not enabled in Obsidian",
        f"paired: {', '.join(paired) or 'no device'}",
    ]
    text = "\n".join(map(output.one_line, lines))
    _ = output.print_result(global_options, {**status_now.as_dict(), "paired": paired}, text)
    return ExitCode.NOTHING if status_now.state == "absent" else ExitCode.OK


def _place(settings: Settings) -> VaultPlugin:
    return VaultPlugin(root=settings.vault.path, lock_folder=settings.state_dir / "server")


def _render(changes: Sequence[PluginChange], *, dry_run: bool) -> str:
    lines = [_DONE[change] for change in changes]
    if lines and dry_run:
        lines.insert(0, "nothing was changed: this is a dry run; without --dry-run:")
    return "\n".join(lines)
