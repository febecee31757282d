"""Show models."""

import getpass
import sys
from collections.abc import Mapping
from typing import cast

import click

from knapper.agents.model import names, servers
from knapper.agents.model.names import ModelName
from knapper.app import models
from knapper.cli import asking, options, output, settings, texts
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.config import Settings
from knapper.errors import BadInput

_KEYED = ("openai", "anthropic", "fireworks", "openrouter")
_NOBODY = "nobody"
"""A name that no key is stored under."""
_MAX_SHOWN = 20
_FIRST = "no model is set: give --model, or set KNAP_MODEL, or name below [model] in {file}"


@click.group(
    "models",
    invoke_without_command=True,
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap models", "what is set, and what answers"),
        ("knap models key openai", "store a key in the system's keyring"),
    ),
)
@options.shared
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """Show which language models are set up, and answer.

    Their servers are asked which models they have; no prompt is sent.
    """
    if ctx.invoked_subcommand:
        return None
    said = ctx.ensure_object(Options)
    found = settings.read(said)
    rows = [_configured(found, one) for one in _wanted(found)]
    local = _local(found)
    answer: dict[str, object] = {"success": True, "results": rows, "ollama": local}
    if said.as_json:
        output.write_json(answer)
    else:
        output.write(said, "\n".join(_lines(rows, local)))
        if not rows:
            output.note(said, _FIRST.format(file=found.config_file))
    return ExitCode.OK if any(row["state"] == "ok" for row in rows) else ExitCode.NOTHING


@command.command(
    "key",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ("knap models key openai", "asks for the key, and shows nothing of it"),
        ("knap models key openai --remove", "takes it out of the keyring"),
    ),
)
@click.argument("provider", metavar="PROVIDER|ADDRESS", type=options.TEXT)
@click.option("--remove", is_flag=True, help="Take the key out of the keyring.")
@options.shared
@click.pass_obj
def key(said: Options, provider: str, *, remove: bool) -> ExitCode:
    """Store a key in the system's keyring.

    It is that of a provider, or of a server at an address.
    """
    if provider not in _KEYED and not provider.startswith(("http://", "https://")):
        raise BadInput(
            f"'{provider}' is no provider", hint=f"give {', '.join(_KEYED)}, or an address like http://host/v1"
        )
    given = "" if remove else _ask(provider)
    if not remove and not given:
        raise BadInput("no key was given", hint="paste it at the prompt, or pipe it in")
    names.store_key(provider.rstrip("/"), given)
    output.note(said, "removed" if remove else "stored in the system's keyring")
    return ExitCode.OK


def _ask(provider: str) -> str:
    """Ask for a key, once it is known that it can be stored."""
    names.store_key(_NOBODY, "")
    if asking.is_possible():
        return getpass.getpass(f"Key for {provider}: ").strip()
    return texts.unmarked(sys.stdin.readline()).strip()


def _wanted(found: Settings) -> list[ModelName]:
    return models.resolve_models(found) if found.model.name else []


def _configured(found: Settings, one: ModelName) -> dict[str, object]:
    given = models.configured_keys(found).find(one)
    told = servers.check_server(one, given)
    return {"model": str(one), "key": "set" if given else "none", **told.as_dict()}


def _local(found: Settings) -> Mapping[str, object]:
    """Look for an Ollama server, whether one is set or not."""
    wanted = ModelName(provider="ollama", name="*", base_url=found.model.ollama_url)
    return {"address": found.model.ollama_url, **servers.check_server(wanted, "", timeout_s=2.0).as_dict()}


def _lines(rows: list[dict[str, object]], local: Mapping[str, object]) -> list[str]:
    lines = [f"{_mark(str(row['state']))} {output.plain(str(row['model']))}  {row['text']}" for row in rows]
    listed = cast("list[str]", local["models"])
    if local["state"] == "ok":
        lines.append(f"{_mark('ok')} Ollama at {local['address']}: {len(listed)} models")
        lines += [f"    ollama:{output.plain(name)}" for name in listed[:_MAX_SHOWN]]
    else:
        lines.append(f"- Ollama isn't running at {local['address']}")
    return lines


def _mark(state: str) -> str:
    return click.style("ok", fg="green") if state == "ok" else click.style("no", fg="red")
