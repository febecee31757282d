"""List the checks, and run them."""

from typing import Final

from knapper.cli import settings
from knapper.cli.checks import changes, indexes, models, places, program, scripts
from knapper.cli.finding import Check, Finding
from knapper.cli.options import Options
from knapper.errors import KnapError

CHECKS: Final[tuple[Check, ...]] = (
    program.python,
    program.sqlite,
    models.embedder,
    program.onnx,
    places.configuration,
    places.vault,
    places.state,
    places.disk,
    indexes.watching,
    scripts.sandbox,
    models.language_model,
)
"""Those that need no vault, and those that say it themselves."""


def run(options: Options) -> list[Finding]:
    """Run every check; where the configuration is broken, that is the only finding."""
    try:
        found = settings.read(options)
    except KnapError as error:
        return [places.failed("config", error)]
    findings = [check(found) for check in CHECKS]
    if all(each.state == "ok" for each in findings if each.name in {"vault", "state"}):
        findings += filter(None, (indexes.rules(found), changes.leftovers(found), indexes.integrity(found)))
    return findings
