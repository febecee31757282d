"""Show and change the settings."""

import contextlib

import click

from knapper.cli import options, output, setup
from knapper.cli.commands.open import EDITOR_VARIABLES
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode, plain
from knapper.config import Settings, editing, files
from knapper.config.declarations import SettingValue
from knapper.config.editing import SettingName
from knapper.errors import SetupError

_NO_VALUE = "-"


def render_settings(settings: Settings) -> str:
    """Format settings in columns: name, value, origin."""
    rows = [(each.name, plain(each.value) or _NO_VALUE, plain(each.source)) for each in settings.origins]
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(max(len(value) for _, value, _ in rows), 40)
    lines = [f"{name:<{name_width}}  {value:<{value_width}}  {source}".rstrip() for name, value, source in rows]
    missing_note = "" if settings.config_file.exists() else " (missing; all settings have their defaults)"
    unused_lines = [f"note: {plain(each.message)}" for each in settings.unused]
    return "\n".join([*lines, "", f"configuration file: {settings.config_file}{missing_note}", *unused_lines])


@click.group(
    "config",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap config", "each setting, its value and its source"),
        ("knap config set model.name ollama:qwen3:8b", "write one into the file"),
        ("knap config edit", "open the file in your editor"),
        ("knap config path", "where the configuration file is, or would be"),
        ("knap config --json", "for programs"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Show every setting and where it comes from.

    Secrets are never shown. `set`, `unset` and `edit` change the configuration file.
    """
    if ctx.invoked_subcommand:
        return None
    global_options = ctx.ensure_object(GlobalOptions)
    config = setup.read_settings(global_options)
    if global_options.as_json:
        rows = {each.name: {"value": each.value, "source": each.source, "doc": each.doc} for each in config.origins}
        output.write_json(
            {
                "success": True,
                "config_file": str(config.config_file),
                "env_file": str(config.env_file) if config.env_file else "",
                "settings": rows,
                "unused": [
                    {"name": each.name, "source": each.source, "instead": each.instead} for each in config.unused
                ],
            }
        )
    else:
        output.write(global_options, render_settings(config))
    return ExitCode.OK


@command.command("path", epilog=options.examples(('$EDITOR "$(knap config path)"', "change the settings")))
@options.pass_options
def path(global_options: GlobalOptions) -> ExitCode:
    """Print the path of the configuration file.

    Also works if the file has errors. The folder is created if missing, so that an editor can save the file.
    """
    file = setup.config_path(global_options)
    with contextlib.suppress(OSError):  # then the editor says what is wrong there
        file.parent.mkdir(parents=True, exist_ok=True)
    return output.print_result(global_options, {"path": str(file), "exists": file.exists()}, str(file))


@command.command(
    "set",
    epilog=options.examples(
        ("knap config set model.name ollama:qwen3:8b", "the model that answers"),
        ("knap config set vaults.Notes.path ~/Notes", "a vault of that name"),
        ('knap config set model.fallbacks "ollama:qwen3, openai:gpt-5"', "several values, with commas between"),
    ),
)
@click.argument("name")
@click.argument("value")
@options.pass_options
def set_command(global_options: GlobalOptions, name: str, value: str) -> ExitCode:
    """Set a setting in the configuration file.

    Comments and everything else stay as written. The file is made if it is missing, and isn't changed if the value
    can't be used.
    """
    parts = editing.parse_name(name)
    editing.check_can_be_set(parts)
    return _change(global_options, name, parts, editing.parse_value(parts, value))


@command.command("unset", epilog=options.examples(("knap config unset model.name", "back to the default")))
@click.argument("name")
@options.pass_options
def unset_command(global_options: GlobalOptions, name: str) -> ExitCode:
    """Remove a setting from the configuration file."""
    return _change(global_options, name, editing.parse_name(name), None)


@command.command("edit", epilog=options.examples(("EDITOR=nano knap config edit", "in the editor of your choice")))
@options.pass_options
def edit(global_options: GlobalOptions) -> ExitCode:
    """Open the configuration file in your editor.

    The editor is the one of VISUAL or EDITOR. The file is checked when the editor ends.
    """
    file = setup.config_path(global_options)
    variables = files.environment_variables()
    if not output.can_ask() and not any(variables.get(name) for name in EDITOR_VARIABLES):
        # The system's own editor would wait for a person who can't reach it.
        hint = f"name an editor with a window in VISUAL, or use `knap config set`; the file is {file}"
        raise SetupError("there is no terminal to edit in", hint=hint, code="no_editor")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        click.edit(filename=str(file))
    except click.ClickException as error:
        hint = f"set VISUAL or EDITOR, such as EDITOR=nano; or change {file} yourself"
        raise SetupError(error.message, hint=hint, code="no_editor") from error
    _ = setup.read_settings(global_options)
    return output.print_result(global_options, {"path": str(file), "exists": file.exists()}, f"{file} can be read")


def _change(global_options: GlobalOptions, name: str, parts: SettingName, value: SettingValue | None) -> ExitCode:
    file = setup.config_path(global_options)
    is_changed = editing.set_values(file, {parts: value})
    if not is_changed and value is None:
        editing.check_name(parts)  # not before: a name that no setting has can be removed from the file
    fields = {"path": str(file), "name": name, "changed": is_changed}
    text = f"wrote {file}" if is_changed else f"{file} says so already"
    if is_changed:
        output.note(global_options, "a server that runs reads it when it is started again: knap service restart")
    return output.print_result(global_options, fields, text)
