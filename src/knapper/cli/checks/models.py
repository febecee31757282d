"""Check that language model and embedder answer, by the cheapest question: which models there are."""

from knapper.agents.model import servers
from knapper.agents.model.names import ModelName
from knapper.app import models
from knapper.cli.checks import program
from knapper.cli.checks.places import failed
from knapper.cli.finding import Finding
from knapper.config import Settings
from knapper.errors import KnapError

_HINTS = {
    "no_key": "store one: `knap models key PROVIDER`",
    "refused": "check the key, then store it anew: `knap models key PROVIDER`",
    "unknown_model": "`knap models --json` lists those that are there",
}


def language_model(settings: Settings) -> Finding:
    """Ask the server of the configured model; nothing is sent that costs."""
    if not settings.model.name:
        return Finding(name="model", state="ok", text="none is set: `knap ask` shows passages")
    try:
        wanted = models.resolve_models(settings)[0]
        found = servers.check_server(wanted, models.configured_keys(settings).find(wanted))
    except KnapError as error:
        return failed("model", error)
    if found.state == "ok":
        return Finding(name="model", state="ok", text=f"{wanted}: {found.text}")
    hint = _HINTS.get(found.state, "start its server, or check its address; `knap models` shows all")
    return Finding(name="model", state="warn", text=f"{wanted}: {found.text}", hint=hint)


def embedder(settings: Settings) -> Finding:
    """Check what embeds: the built-in files, or the server of an endpoint, which needn't say which models it has."""
    wanted = settings.embeddings
    if wanted.kind != "endpoint":
        return program.model_files(settings)
    if not wanted.base_url or not wanted.model:
        hint = "set both below [embeddings], or embeddings.kind to static"
        return Finding(name="embedder", state="fail", text="base_url or model of the endpoint isn't set", hint=hint)
    name = ModelName(provider="compatible", name="*", base_url=wanted.base_url)
    found = servers.check_server(name, wanted.api_key)
    if found.state in {"unreachable", "refused"}:
        hint = "start its server, or check address and key below [embeddings]; until then search goes by words"
        return Finding(name="embedder", state="warn", text=found.text, hint=hint)
    return Finding(name="embedder", state="ok", text=f"{wanted.model}@{wanted.base_url}: its server answers")
