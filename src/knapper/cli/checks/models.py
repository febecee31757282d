"""Check that the language model answers, by the cheapest question: which models there are."""

from knapper.agents import reach
from knapper.app import model_choice
from knapper.cli.checks.finding import Finding
from knapper.cli.checks.places import failed
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
        wanted = model_choice.wanted(settings)[0]
        found = reach.ask(wanted, model_choice.keys(settings).find(wanted))
    except KnapError as error:
        return failed("model", error)
    if found.state == "ok":
        return Finding(name="model", state="ok", text=f"{wanted}: {found.text}")
    hint = _HINTS.get(found.state, "start its server, or check its address; `knap models` shows all")
    return Finding(name="model", state="warn", text=f"{wanted}: {found.text}", hint=hint)
