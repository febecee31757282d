"""Show models."""

import getpass
import sys

import click

from knapper.agents.model import names
from knapper.agents.model.names import ModelName
from knapper.app import models
from knapper.cli import inputs, options, output, setup
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.config.sections import KEY_PROVIDERS
from knapper.errors import BadInput, SetupError
from knapper.jsontypes import strings_in

_PROBE_NAME = "nobody"
"""A name that no key is stored under."""
_MAX_SHOWN = 20
_NO_MODEL = (
    "no model is set: `knap config set model.name NAME` sets one, such as ollama:qwen3; `knap setup` tries it first"
)


@click.group(
    "models",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap models", "what is configured, and what is reachable"),
        ("knap models key openai", "store a key in the system's keyring"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Show which language models are configured and reachable.

    Asks each server for its list of models; no prompt is sent.
    """
    if ctx.invoked_subcommand:
        return None
    global_options = ctx.ensure_object(GlobalOptions)
    config = setup.read_settings(global_options)
    rows: list[dict[str, object]] = []
    for model in models.resolve_models(config) if config.model.name else []:
        secret = models.configured_keys(config).find(model)
        reply = names.check_server(model, secret).as_dict()
        rows.append({"model": str(model), "key": "set" if secret else "none", **reply})
    # Check for an Ollama server, whether or not one is configured.
    ollama = ModelName(provider="ollama", name="*", base_url=config.model.ollama_url)
    local = {"address": config.model.ollama_url, **names.check_server(ollama, "", timeout_s=2.0).as_dict()}
    answer: dict[str, object] = {"success": True, "results": rows, "ollama": local}
    if global_options.as_json:
        output.write_json(answer)
    else:
        lines = [f"{_state_mark(str(row['state']))} {output.plain(str(row['model']))}  {row['text']}" for row in rows]
        model_names = strings_in(local["models"])
        if local["state"] == "ok":
            lines.append(f"{_state_mark('ok')} Ollama at {local['address']}: {len(model_names)} models")
            lines += [f"    ollama:{output.plain(name)}" for name in model_names[:_MAX_SHOWN]]
        else:
            lines.append(f"- Ollama isn't running at {local['address']}")
        output.write(global_options, "\n".join(lines))
        if not rows:
            output.note(global_options, _NO_MODEL)
    return ExitCode.OK if any(row["state"] == "ok" for row in rows) else ExitCode.NOTHING


@command.command(
    "key",
    epilog=options.examples(
        ("knap models key openai", "asks for the key without showing it"),
        ("knap models key openai --remove", "removes it from the keyring"),
    ),
)
@click.argument("provider", metavar="PROVIDER|ADDRESS", type=options.TEXT)
@click.option("--remove", is_flag=True, help="Remove the key from the keyring.")
@options.pass_options
def key(global_options: GlobalOptions, provider: str, *, remove: bool) -> ExitCode:
    """Store a key in the system's keyring.

    The key belongs to a provider, or to the server at an address.
    """
    if provider not in KEY_PROVIDERS and not provider.startswith(("http://", "https://")):
        raise BadInput(
            f"'{provider}' is no provider", hint=f"give {', '.join(KEY_PROVIDERS)}, or an address like http://host/v1"
        )
    secret = ""
    if not remove:
        try:  # a key is asked for once it is known that it can be stored
            names.store_key(_PROBE_NAME, "")
        except SetupError as error:
            raise names.no_keyring_error(provider) from error
        if output.can_ask():
            secret = getpass.getpass(f"Key for {provider}: ").strip()
        else:
            secret = inputs.strip_bom(sys.stdin.readline()).strip()
        if not secret:
            raise BadInput("no key was given", hint="paste it at the prompt, or pipe it in")
    names.store_key(provider.rstrip("/"), secret)
    output.note(global_options, "removed" if remove else "stored in the system's keyring")
    return ExitCode.OK


def _state_mark(state: str) -> str:
    return click.style("ok", fg="green") if state == "ok" else click.style("no", fg="red")
