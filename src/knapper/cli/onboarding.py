"""The steps of `knap setup`: vault, index, model, service, MCP clients and plugin, each of which can be run again."""

from __future__ import annotations

import asyncio
import importlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from knapper import app, extras
from knapper.agents import prompting
from knapper.agents.model import names
from knapper.agents.model.names import ModelName, Provider
from knapper.app import e5_model, models
from knapper.cli import launching, plugin, setup
from knapper.cli.output import pluralize
from knapper.cli.plugin import VaultPlugin
from knapper.cli.render import indexing
from knapper.config import declarations, editing
from knapper.errors import BadInput, KnapError, SetupError, StorageError
from knapper.extras import ExtraName
from knapper.index.documents import Filter
from knapper.jsontypes import Record
from knapper.server.mcp import clients, install
from knapper.system import private
from knapper.vault import obsidian

if TYPE_CHECKING:
    from knapper.cli.options import GlobalOptions
    from knapper.config import Settings
    from knapper.config.declarations import SettingValue
    from knapper.config.editing import SettingName
    from knapper.server.mcp.clients import MachinePaths, McpClient


StepState = Literal["done", "unchanged", "skipped", "failed"]
_LOCAL_SERVERS: Final = (
    ("Ollama", ModelName(provider="ollama", name="*")),
    ("LM Studio", ModelName(provider="compatible", name="*", base_url="http://localhost:1234/v1")),
    ("llama.cpp", ModelName(provider="compatible", name="*", base_url="http://localhost:8080/v1")),
)
"""Model servers of this machine, at their usual ports, in the order in which they are offered."""
_HOSTED: Final[Mapping[Provider, str]] = {
    "anthropic": "anthropic:claude-sonnet-4-5",
    "openai": "openai:gpt-5",
    "fireworks": "fireworks",
    "openrouter": "openrouter:openai/gpt-5",
}
"""Providers of hosted models, each with a name as an example."""
_LOOK_S: Final = 1.0
_PAGE_FOLDER: Final = Path(__file__).parents[1] / "data" / "page"
_NOT_FOR_CHAT: Final = ("embed", "bge", "minilm", "rerank", "whisper")
"""Parts of the names of models that don't answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport(Record):
    """What a step came to."""

    step: str
    state: StepState
    text: str
    undo: str = ""
    """The command that takes it back; empty where there is nothing to take back."""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModels:
    """A model server of this machine that answers."""

    title: str
    names: tuple[str, ...]
    """Its models, as `knap` names them: ``ollama:qwen3:8b``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was found on this machine."""

    vaults: Sequence[Path]
    """The configured ones, the current folder if it is one, then those that Obsidian knows."""
    local_models: Sequence[LocalModels]
    keys: Sequence[Provider]
    """Providers whose key is known."""
    clients: Sequence[McpClient] = field(default_factory=tuple)
    """MCP clients that are installed."""
    notes_folder: Path | None = None
    """The current folder if it has notes and isn't one of the vaults; offered, and never taken unasked."""


def look_around(settings: Settings, machine: MachinePaths, folder: Path) -> Surroundings:
    """Return what is on this machine; model servers are asked for their lists, and nothing else is sent."""
    known = obsidian.find_vaults(obsidian.registry_files(machine.system, home=machine.home, config=machine.config))
    here = [folder] if (folder / ".obsidian").is_dir() else []
    vaults = dict.fromkeys([*(vault.path for vault in settings.vaults), *here, *(vault.path for vault in known)])
    keys = models.configured_keys(settings)
    # Home and the root never count.
    has_notes = folder not in {*vaults, machine.home, folder.parent} and any(
        path.is_file() for pattern in ("*.md", "*/*.md") for path in folder.glob(pattern)
    )
    local_models: list[LocalModels] = []
    for title, usual in _LOCAL_SERVERS:
        is_ollama = usual.provider == "ollama"
        server = replace(usual, base_url=settings.model.ollama_url) if is_ollama else usual
        status = names.check_server(server, "", timeout_s=_LOOK_S)
        if status.state != "ok":
            continue
        chat_models = [name for name in status.models if not any(part in name.casefold() for part in _NOT_FOR_CHAT)]
        full_names = (f"ollama:{name}" if is_ollama else f"{name}@{server.base_url}" for name in chat_models)
        local_models.append(LocalModels(title=title, names=tuple(full_names)))
    return Surroundings(
        vaults=list(vaults),
        local_models=local_models,
        keys=[provider for provider in _HOSTED if keys.find(ModelName(provider=provider, name="*"))],
        clients=[client for client in clients.CLIENTS if client.is_installed(machine)],
        notes_folder=folder if has_notes else None,
    )


def run_step(step: str, action: Callable[[], StepReport]) -> StepReport:
    """Carry out a step; its error becomes a report, so that the steps after it are still carried out."""
    try:
        return action()
    except KnapError as error:
        return StepReport(step=step, state="failed", text=error.message, hint=error.hint)
    except ImportError as error:
        problem = extras.explain_import(error)
        if problem is None:
            raise
        return StepReport(step=step, state="failed", text=problem.message, hint=problem.hint)


def add_vault(options: GlobalOptions, folder: Path) -> StepReport:
    """Enter a vault into the configuration, by its folder's name; the first one is the default.

    Raises:
        BadInput: It isn't a folder.
        SetupError: The configuration can't be changed.
    """
    folder = folder.expanduser().absolute()
    if ".." in folder.parts:
        folder = folder.resolve()
    if not folder.is_dir():
        raise BadInput(f"{folder} isn't a folder", hint="give --vault the folder of your notes", code="no_folder")
    settings = setup.read_settings(options)
    present = next((vault for vault in settings.vaults if vault.path.resolve() == folder.resolve()), None)
    if present is not None:
        return StepReport(step="vault", state="unchanged", text=f"{folder} is configured as '{present.name}'")
    name = declarations.free_name(folder.name or "notes", {vault.name for vault in settings.vaults})
    values: dict[editing.SettingName, SettingValue | None] = {("vaults", name, "path"): str(folder)}
    if not settings.vaults:
        values["default_vault",] = name
    editing.set_values(settings.config_file, values)
    setting_name = editing.dotted(("vaults", name, "path"))
    return StepReport(
        step="vault",
        state="done",
        text=f"{folder} is the vault '{name}' in {settings.config_file}",
        undo=f"knap config unset default_vault; knap config unset '{setting_name}'"
        if len(values) > 1
        else f"knap config unset '{setting_name}'",
    )


def fill_index(options: GlobalOptions, vault: str) -> StepReport:
    """Index a vault, with a progress bar.

    Raises:
        KnapError: It can't be read, or its index not be written.
    """
    from knapper.config import loading  # noqa: PLC0415 - beside `setup`, which reads it for one command

    settings = _settings_for(options, vault)
    with app.open_vault(settings) as context:
        with indexing.show_progress(options) as on_progress:
            outcome = context.index.refresh(progress=on_progress)
            _ = context.index.embed(progress=on_progress)
        status = context.index.status(context.restrict(Filter()))
    return StepReport(
        step="index",
        state="done" if outcome.indexed else "unchanged",
        text=f"{pluralize(status.notes, 'note')} can be searched",
        undo=f"delete the folder {loading.state_folder(settings, settings.vault) / 'index'}" if outcome.indexed else "",
        hint=f"{pluralize(status.problems, 'file')} with problems: `knap status` lists them" if status.problems else "",
    )


def use_e5(options: GlobalOptions, vault: str) -> StepReport:
    """Make multilingual-e5-small, and have it embed from now on; the index gets its vectors in the background.

    Raises:
        KnapError: The extra isn't installed, or the model can't be made.
    """
    settings = _settings_for(options, vault)
    record, _ = e5_model.make_model(settings)
    with app.open_vault(settings) as context:
        time = e5_model.measure_time(context.index.store, e5_model.model_folder(settings))
    is_changed = editing.set_values(settings.config_file, {("embeddings", "kind"): "e5"})
    duration = f"; {indexing.describe_embed_time(time)}" if time else ""
    return StepReport(
        step="e5",
        state="done" if is_changed else "unchanged",
        text=f"multilingual-e5-small is there, with a cosine of {record.cosine:.3f} to its weights{duration}",
        undo="knap config unset embeddings.kind" if is_changed else "",
        hint="the server makes the new vectors by itself, `knap index` does at once; until then search goes by words",
    )


def offer_e5(options: GlobalOptions, vault: str) -> StepReport:
    """Say how long this vault would take with multilingual-e5-small, where it has the built-in table."""
    settings = _settings_for(options, vault)
    if settings.embeddings.kind != "static" or settings.embeddings.folder:
        return StepReport(step="e5", state="unchanged", text=f"embeddings.kind is {settings.embeddings.kind}")
    with app.open_vault(settings) as context:
        time = e5_model.estimate_time(context.index.store)
    what = "the built-in table; multilingual-e5-small does better across languages"
    return StepReport(
        step="e5",
        state="skipped",
        text=f"search by meaning has {what}" + (f"; with it, {indexing.describe_embed_time(time)}" if time else ""),
        hint="later: knap setup --e5",
    )


def _settings_for(options: GlobalOptions, vault: str) -> Settings:
    from knapper.config import loading  # noqa: PLC0415 - beside `setup`, which reads it for one command

    return loading.load({"default_vault": vault}, config_file=options.config, env_file=options.env_file)


def choose_model(options: GlobalOptions, name: str) -> StepReport:
    """Try a model with one real call, and enter it into the configuration if it answers.

    Raises:
        KnapError: The name can't be read, a key is missing, or the model doesn't answer.
    """
    settings = setup.read_settings(options)
    wanted = models.resolve_models(settings, name)
    from knapper.agents.model import usage  # noqa: PLC0415 - two seconds, which only a model should cost

    timeouts = usage.ModelTimeouts(timeout_s=usage.TRIAL_S, request_s=usage.TRIAL_S, retries=0)
    model = usage.open_model(wanted, models.configured_keys(settings).find, timeouts)
    text = asyncio.run(usage.try_model(model, str(wanted[0]))).text
    reply = f"'{text}'" if text else "(without words)"
    is_changed = editing.set_values(settings.config_file, {("model", "name"): name})
    return StepReport(
        step="model",
        state="done" if is_changed else "unchanged",
        text=f"{name} answers: {reply}",
        undo="knap config unset model.name" if is_changed else "",
        hint=launching.explain_variables(settings, "the service and MCP clients", section="model"),
    )


ExtraInstaller = Callable[[Sequence[str]], None]
"""Runs the command that installs extras; raises `SetupError` where that fails."""


def missing_extras(model: str, *, e5: bool = False) -> Sequence[ExtraName]:
    """Return the extras that aren't installed of those that a model needs, and search with *e5*; no name needs none."""
    needed: tuple[ExtraName, ...] = ("models", "anthropic") if model.startswith("anthropic:") else ("models",)
    wanted: list[ExtraName] = [*(needed if model else ()), *(["e5"] if e5 else [])]
    return [name for name in wanted if not extras.is_installed(name)]


def add_extras(names: Sequence[ExtraName], install: ExtraInstaller) -> StepReport:
    """Install extras, with the tool that installed Knapper.

    Raises:
        SetupError: They can't be installed; the hint is the command.
    """
    installation = extras.find_installation()
    shown = installation.shown_command(*names)
    if installation.system == "win32" and installation.installer in {"pipx", "uv tool"}:
        raise SetupError(
            f"{installation.installer} can't replace a program that is running",
            hint=f"run: {shown}; then knap setup again",
            code="extra_by_hand",
        )
    install(installation.command(*names))
    importlib.invalidate_caches()
    absent = [name for name in names if not extras.is_installed(name)]
    if absent:
        raise SetupError(f"the extra '{absent[0]}' isn't there after all", hint=f"run: {shown}", code="extra_failed")
    # A tool's environment is made anew without them; elsewhere others may need the packages.
    is_tool = installation.installer in {"pipx", "uv tool"}
    return StepReport(
        step="extras",
        state="done",
        text=f"installed by: {shown}",
        undo=installation.shown_command() if is_tool else "",
        hint="" if is_tool else "they stay until the environment of Knapper goes",
    )


def quiet_command(command: Sequence[str]) -> Sequence[str]:
    """Return a command so that pip doesn't list the packages that are there already: some hundred lines."""
    return [*command, "--quiet"] if tuple(command[1:4]) == ("-m", "pip", "install") else command


def run_installer(command: Sequence[str]) -> None:
    """Run a command that installs extras; its output goes to the error stream.

    Raises:
        SetupError: It failed.
    """
    click.echo("fetching packages, which takes a minute or two …", err=True)
    try:
        done = subprocess.run(quiet_command(command), stdout=sys.stderr, check=False)  # noqa: S603 - a command of our own
    except OSError as error:
        raise SetupError(
            f"{command[0]} can't be started: {error.strerror}", hint=f"run: {shlex.join(command)}", code="extra_failed"
        ) from error
    if done.returncode:
        raise SetupError(
            f"installing failed with code {done.returncode}", hint=f"run: {shlex.join(command)}", code="extra_failed"
        )


def offer_extras() -> StepReport | None:
    """Return which extras aren't installed, and the commands for them; None if all are."""
    installation = extras.find_installation()
    absent: list[ExtraName] = [name for name in extras.NAMES if name not in installation.extras]
    if not absent:
        return None
    purposes = "; ".join(f"{name} ({extras.EXTRAS[name].purpose})" for name in absent)
    return StepReport(
        step="extras",
        state="skipped",
        text=f"not installed: {purposes}",
        hint=f"later, such as: {installation.shown_command(absent[0])}",
    )


def unbuilt_interfaces() -> Sequence[str]:
    """Return what this installation lacks, as npm couldn't be reached when it was built: the page, the plugin."""
    names = [] if (_PAGE_FOLDER / "index.html").is_file() else ["page"]
    try:
        _ = plugin.load_built()
    except SetupError:
        names.append("Obsidian plugin")
    return names


def list_remarks() -> Sequence[StepReport]:
    """Return what this installation lacks, which is told last."""
    return [report for report in (tell_unbuilt(), offer_extras()) if report is not None]


def tell_unbuilt() -> StepReport | None:
    """Return what wasn't built, which an installer of Python packages keeps to itself; None if all was."""
    names = unbuilt_interfaces()
    if not names:
        return None
    return StepReport(
        step="interfaces",
        state="skipped",
        text=f"this installation has no {' and no '.join(names)}: npm couldn't be reached when it was built",
        hint="to have it, name a registry of npm's packages that can be reached: npm_config_registry=URL ./install.sh; "
        "or install a wheel that another machine has built: ./install.sh --wheel=FILE. Everything else works",
    )


def write_prompt_example(options: GlobalOptions) -> StepReport:
    """Put the built-in instructions for the chat beside the configuration, as an example that nothing reads.

    Raises:
        StorageError: It can't be written.
    """
    folder = setup.read_settings(options).config_file.parent / "prompts"
    example = folder / "chat.md.example"
    report = StepReport(
        step="prompt",
        state="done",
        text=f"{example} has the chat's instructions",
        undo=f"delete {example}",
        hint=f"to give your own: copy it to {folder / 'chat.md'}, and change that",
    )
    text = prompting.read_built_in("chat")
    try:
        if example.exists() and example.read_text(encoding="utf-8", errors="replace") == text:
            return replace(report, state="unchanged", undo="")
        private.make_folder(folder)
        private.write_text(example, text)
    except OSError as error:
        raise StorageError(
            f"{example} can't be written: {error.strerror or error}",
            hint="Knapper works without it; `knap chat` has these instructions built in",
            code="prompt_unwritable",
        ) from error
    return report


def set_settings(options: GlobalOptions, values: Mapping[SettingName, SettingValue]) -> StepReport:
    """Enter settings of the server and the index into the configuration.

    Raises:
        SetupError: A value can't be used, such as a state folder inside a vault; nothing is changed then.
    """
    from knapper.config import loading  # noqa: PLC0415 - beside `setup`, which reads it for one command

    settings = setup.read_settings(options)
    place = values.get(("state_dir",))
    inside = next((vault for vault in settings.vaults if place and loading.holds(vault.path, Path(str(place)))), None)
    if inside is not None:
        raise SetupError(
            f"{place} lies inside the vault {inside.path}",
            hint="give --state-dir a folder outside of it",
            code="state_in_vault",
        )
    is_changed = editing.set_values(settings.config_file, values)
    names = [editing.dotted(name) for name in values]
    return StepReport(
        step="settings",
        state="done" if is_changed else "unchanged",
        text=f"set in {settings.config_file}: {', '.join(names)}",
        undo="; ".join(f"knap config unset {name}" for name in names) if is_changed else "",
        hint="what is in the state folder of before stays there"
        if is_changed and place and settings.state_dir.exists()
        else "",
    )


def show_server(options: GlobalOptions) -> StepReport:
    """Tell port, interval and place of the index, which hold unless somebody changes them."""
    settings = setup.read_settings(options)
    minutes = pluralize(settings.index_interval_minutes, "minute")
    return StepReport(
        step="server",
        state="unchanged",
        text=f"port {settings.server.port}; the whole vault is compared every {minutes}; "
        f"index and journal are in {settings.state_dir}",
        hint="to change them: knap setup --port N --interval MINUTES --state-dir FOLDER",
    )


def install_service(options: GlobalOptions) -> StepReport:
    """Install the service for all configured vaults.

    Raises:
        KnapError: The system refuses it, or has no service manager.
    """
    settings = setup.read_settings(options)
    manager = launching.open_manager()
    definition = launching.define_service(options, settings)
    notes = [*manager.install(definition), *filter(None, [launching.explain_variables(settings, "the service")])]
    server = launching.wait_for_service(settings.state_dir, launching.service_address(settings))
    if server is None:
        raise SetupError(
            f"the service is installed, but {launching.explain_silence(settings.state_dir, manager)}",
            hint="`knap service uninstall` takes it away",
            code="service",
        )
    return StepReport(
        step="service",
        state="done",
        text=f"the server answers at {server.url}, and starts when you log in",
        undo="knap service uninstall",
        hint="; ".join(["knap service status, logs, restart and stop go with it", *notes]),
    )


def connect_client(options: GlobalOptions, client: McpClient, machine: MachinePaths) -> StepReport:
    """Enter the server into an MCP client's settings, with a backup beside them.

    Raises:
        KnapError: The settings can't be changed.
    """
    settings = setup.read_settings(options)
    request = install.InstallRequest(
        command=launching.server_command(options, settings, "standard"),
        environment=launching.server_environment(settings),
    )
    file = client.file(machine)
    report: dict[str, Any] = dict(install.install(client, request, file))
    if "problem" in report:
        raise SetupError(
            f"{file} can't be changed: {report['problem']}",
            hint=f"`knap mcp install {client.name} --dry-run` shows what to enter by hand",
            code="client_settings",
        )
    if not report["changed"]:
        return StepReport(step="client", state="unchanged", text=f"{client.title} knows the server")
    backup_note = f"; what was there is in {report['backup']}" if "backup" in report else ""
    return StepReport(
        step="client",
        state="done",
        text=f"{client.title} knows the server; restart it to see it{backup_note}",
        undo=f"knap mcp uninstall {client.name}",
        hint=launching.explain_variables(settings, client.title),
    )


def can_install_plugin(vault: Path) -> bool:
    """Return whether the built plugin is here, and Obsidian has opened the vault."""
    try:
        _ = plugin.load_built()
    except SetupError:
        return False
    return (vault.expanduser() / ".obsidian").is_dir()


def report_plugin(options: GlobalOptions, vault: str) -> StepReport:
    """Say whether the Obsidian plugin is in a vault; as nobody asked for it, it is no failure if that is unknown."""
    try:
        settings = _settings_for(options, vault)
        place = VaultPlugin(root=settings.vault.path, lock_folder=settings.state_dir / "server")
        state = place.status(plugin.load_built())
    except KnapError as error:
        return StepReport(step="plugin", state="skipped", text=error.message, hint=error.hint)
    if state.state == "absent":
        return StepReport(step="plugin", state="skipped", text="no plugin", hint="later: knap plugin install")
    if state.state != "current":
        text = f"the Obsidian plugin {state.version} is there, which isn't that of this installation, {state.shipped}"
        return StepReport(step="plugin", state="skipped", text=text, hint="`knap plugin install` updates it")
    return StepReport(
        step="plugin", state="unchanged", text="the Obsidian plugin is installed", undo="knap plugin uninstall"
    )


def install_plugin(options: GlobalOptions, vault: str) -> StepReport:
    """Install the Obsidian plugin into a vault, switch it on, and make a code that pairs it.

    Raises:
        KnapError: The plugin isn't built, or can't be put there, or the code not be stored.
    """
    settings = _settings_for(options, vault)
    place = VaultPlugin(root=settings.vault.path, lock_folder=settings.state_dir / "server")
    changes = place.install(plugin.load_built(), enable=True)
    invitation = launching.make_pairing_code(settings, settings.vault)
    return StepReport(
        step="plugin",
        state="unchanged" if changes == ["unchanged"] else "done",
        text="the Obsidian plugin is installed and switched on; restart Obsidian to see it",
        undo="knap plugin uninstall",
        hint=f"the code {invitation.code} pairs it within two minutes, in the plugin or by {invitation.link}; "
        "`knap connect` makes another",
    )


def describe_keys(surroundings: Surroundings) -> str:
    """Say for which hosted models there are keys, each by an example, behind another sentence; empty without a key."""
    examples = ", ".join(f"{provider} (such as {_HOSTED[provider]})" for provider in surroundings.keys)
    return f"; there are keys for {examples}" if examples else ""


def suggested_model(surroundings: Surroundings) -> str:
    """Return the model to suggest: the first of this machine's own; empty if there is none."""
    return next((name for server in surroundings.local_models for name in server.names), "")
