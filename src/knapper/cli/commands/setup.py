"""Set up a vault, a model, the service, MCP clients and the plugin, one step after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from knapper.cli import onboarding, options, output
from knapper.cli import setup as commands_setup
from knapper.cli.onboarding import StepReport
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.server.mcp import clients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from knapper.cli.onboarding import Surroundings
    from knapper.config.declarations import SettingValue
    from knapper.config.editing import SettingName
    from knapper.server.mcp.clients import McpClient


_NONE: Final = "none"
_MAX_CHOICES: Final = 9
_NEEDED: Final = frozenset({"vault", "settings", "index"})
"""Steps without which the others can't be done."""
_MARKS: Final = {"done": "✓", "unchanged": "✓", "skipped": "-", "failed": "✗"}
_MODEL_HINT: Final = "to choose one later: knap setup --model NAME"


class SetupOptions(TypedDict):
    """The command's own options."""

    model: str
    service: bool | None
    clients: tuple[str, ...]
    no_clients: bool
    plugin: bool | None
    e5: bool
    port: int | None
    interval: int | None
    state_dir: Path | None
    yes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChoices:
    """What is to be set up."""

    vault: Path
    model: str
    """Empty for none."""
    service: bool
    clients: Sequence[McpClient]
    plugin: bool
    e5: bool
    """Whether to search by meaning with multilingual-e5-small."""
    settings: Mapping[SettingName, SettingValue]
    """Those of the server and the index that were named, by their names."""


@click.command(
    "setup",
    epilog=options.examples(
        ("knap setup", "asks for the vault, the model, and whether to start at login"),
        ("knap setup --yes", "asks nothing: the vault that is open in Obsidian, a model of this machine"),
        ("knap setup --vault ~/Notes --model none --no-service", "that vault alone"),
        ("knap setup --model ollama:qwen3:8b --yes", "another model, later"),
        ("knap setup --port 9000 --interval 15 --state-dir /data/knapper", "another port, interval and place"),
    ),
)
@click.option(
    "--model", default="", metavar="NAME|none", help="Model that answers; it is tried with one short question."
)
@click.option("--service/--no-service", default=None, help="Start the server when you log in.")
@click.option("--client", "clients", multiple=True, metavar="NAME", help="MCP client to connect; may be repeated.")
@click.option("--no-clients", is_flag=True, help="Connect no MCP client.")
@click.option("--plugin/--no-plugin", default=None, help="Install the Obsidian plugin into the vault, and pair it.")
@click.option("--e5", is_flag=True, help="Search by meaning with multilingual-e5-small, which is made here.")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port of the server.")
@click.option("--interval", type=click.IntRange(min=1), metavar="MINUTES", help="How often all notes are compared.")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where index, journal and proposals are kept.",
)
@click.option("-y", "--yes", is_flag=True, help="Ask nothing: the first vault, a model of this machine.")
@options.pass_options
def command(global_options: GlobalOptions, **own: Unpack[SetupOptions]) -> ExitCode:
    """Set up Knapper in one go.

    Finds your vaults, indexes one, tries a model, and offers to start the server at login, to connect your MCP
    clients and to install the Obsidian plugin. Every step can be run again without harm. Your notes aren't changed, and
    no key is asked for. What nobody can be asked about is left out: name it with --service, --client or --plugin.
    """
    machine = clients.detect_machine()
    named, global_options.vault = global_options.vault, ""
    settings = commands_setup.read_settings(global_options)
    configured = next((vault.path for vault in settings.vaults if vault.name == named), None)
    surroundings = onboarding.look_around(settings, machine, Path.cwd())
    is_asking = output.can_ask() and not own["yes"] and not global_options.as_json
    chosen_folder = configured or (Path(named) if named else None)
    choices = _choose(surroundings, chosen_folder, own, is_asking=is_asking)
    reports: list[StepReport] = []
    for step in _list_steps(global_options, choices, surroundings):
        report = step()
        reports.append(report)
        if not global_options.as_json:
            colour = {"failed": "red", "skipped": "yellow"}.get(report.state, "green")
            output.write(
                global_options, f"{click.style(_MARKS[report.state], fg=colour)} {output.one_line(report.text)}"
            )
            if report.hint:
                output.note(global_options, f"    {output.one_line(report.hint)}")
            if report.undo and report.state == "done":
                output.note(global_options, f"    to undo: {output.one_line(report.undo)}")
        if report.state == "failed" and report.step in _NEEDED:
            break
    failed = list(dict.fromkeys(report.step for report in reports if report.state == "failed"))
    if global_options.as_json:
        output.write_json({"success": not failed, "steps": [report.as_dict() for report in reports]})
    elif _NEEDED.isdisjoint(failed):
        but = f", but for what failed: {', '.join(failed)}" if failed else ""
        output.write(global_options, f'\nready{but}. Try: knap search "…", or knap ask "…"')
    return ExitCode.SETUP if failed else ExitCode.OK


def _choose(
    surroundings: Surroundings, chosen_folder: Path | None, own: SetupOptions, *, is_asking: bool
) -> SetupChoices:
    """Return what is to be set up; asks at most three questions."""
    vault = chosen_folder or _choose_vault(surroundings, is_asking=is_asking)
    model = own["model"] or onboarding.suggested_model(surroundings)
    if is_asking and not own["model"]:
        fetched = "; for another, packages are fetched" if onboarding.missing_extras("any") else ""
        keys = onboarding.describe_keys(surroundings)
        question = f"Model that answers (none: search and edit without one{keys}{fetched})"
        model = click.prompt(question, default=model or _NONE, err=True)
    chosen = [] if own["no_clients"] else [clients.find_client(name) for name in own["clients"]]
    service, plugin = own["service"], own["plugin"]
    if is_asking and service is None:
        offered = [] if own["no_clients"] or own["clients"] else list(surroundings.clients)
        offers_plugin = plugin is None and onboarding.can_install_plugin(vault)
        parts = ["Start the server when you log in"]
        parts += [f"connect {', '.join(client.title for client in offered)}"] if offered else []
        parts += ["install the Obsidian plugin"] if offers_plugin else []
        question = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
        service = click.confirm(question, default=True, err=True)
        chosen += offered if service else []
        plugin = plugin or (offers_plugin and service)
    state_dir = own["state_dir"]
    values: dict[SettingName, SettingValue | None] = {
        ("server", "port"): own["port"],
        ("index", "interval_minutes"): own["interval"],
        ("state_dir",): str(state_dir.expanduser().absolute()) if state_dir else None,
    }
    return SetupChoices(
        vault=vault,
        model="" if model == _NONE else model,
        service=bool(service),
        clients=chosen,
        plugin=bool(plugin),
        e5=own["e5"],
        settings={name: value for name, value in values.items() if value is not None},
    )


def _choose_vault(surroundings: Surroundings, *, is_asking: bool) -> Path:
    folder = surroundings.notes_folder
    if not is_asking:
        if not surroundings.vaults:
            hint = "this folder has notes: knap setup --vault ." if folder else "name one: knap setup --vault FOLDER"
            raise BadInput("no vault was found", hint=hint, code="no_vault")
        return surroundings.vaults[0]
    vaults = [*surroundings.vaults[: _MAX_CHOICES - 1], folder] if folder else surroundings.vaults
    for number, path in enumerate(vaults[:_MAX_CHOICES], 1):
        click.echo(f"  {number}  {output.one_line(str(path))}", err=True)
    question = "Vault (a number, or a folder)" if vaults else "Folder of your notes"
    while True:
        answer: str = click.prompt(question, default="1" if vaults else "", show_default=bool(vaults), err=True)
        if answer.isdigit() and 1 <= int(answer) <= min(len(vaults), _MAX_CHOICES):
            return vaults[int(answer) - 1]
        if answer.strip() and Path(answer).expanduser().is_dir():
            return Path(answer)
        problem = f"there is no folder {Path(answer).expanduser().absolute()}; " if answer.strip() else ""
        click.echo(output.one_line(f"{problem}give one that is there, such as ~/Notes; Ctrl-C ends"), err=True)


def _list_steps(
    options: GlobalOptions, choices: SetupChoices, surroundings: Surroundings
) -> Iterator[Callable[[], StepReport]]:
    """Yield the steps in their order; each reports its own failure."""
    run = onboarding.run_step
    folder = choices.vault.expanduser().absolute()
    yield lambda: run("vault", lambda: onboarding.add_vault(options, folder))
    if choices.settings:  # before the index, whose place may be among them
        yield lambda: run("settings", lambda: onboarding.set_settings(options, choices.settings))
    yield lambda: run("index", lambda: onboarding.fill_index(options, str(folder)))
    missing = onboarding.missing_extras(choices.model, e5=choices.e5)
    if missing:
        yield lambda: run("extras", lambda: onboarding.add_extras(missing, onboarding.run_installer))
    if choices.model:
        yield lambda: run("model", lambda: onboarding.choose_model(options, choices.model))
    else:
        yield lambda: _no_model(surroundings, commands_setup.read_settings(options).model.name)
    e5_step = onboarding.use_e5 if choices.e5 else onboarding.offer_e5
    yield lambda: run("e5", lambda: e5_step(options, str(folder)))
    yield lambda: run("prompt", lambda: onboarding.write_prompt_example(options))
    yield lambda: run("server", lambda: onboarding.show_server(options))
    if choices.service:
        yield lambda: run("service", lambda: onboarding.install_service(options))
    else:
        yield lambda: StepReport(step="service", state="skipped", text="no service", hint="later: knap service install")
    machine = clients.detect_machine()
    for client in choices.clients:
        yield lambda client=client: run("client", lambda: onboarding.connect_client(options, client, machine))
    unconnected = [client.name for client in surroundings.clients if client not in choices.clients]
    if unconnected:
        text = f"not connected: {', '.join(unconnected)}"
        yield lambda: StepReport(step="client", state="skipped", text=text, hint="later: knap mcp install NAME")
    if choices.plugin:  # last, as the code that pairs it is good for two minutes
        yield lambda: run("plugin", lambda: onboarding.install_plugin(options, str(folder)))
    elif onboarding.can_install_plugin(folder):
        yield lambda: run("plugin", lambda: onboarding.report_plugin(options, str(folder)))
    yield from (lambda remark=remark: remark for remark in onboarding.list_remarks())


def _no_model(surroundings: Surroundings, configured: str) -> StepReport:
    if configured:
        text = f"{configured} is configured, and wasn't tried"
        hint = "`knap models` asks whether it answers; knap config unset model.name takes it out"
        return StepReport(step="model", state="unchanged", text=text, hint=hint)
    text = f"no model{onboarding.describe_keys(surroundings)}"
    return StepReport(step="model", state="skipped", text=text, hint=_MODEL_HINT)
