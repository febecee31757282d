"""Shorten the definitions of the essential tools: whatever they hold takes room in a model's context."""

from collections.abc import Mapping
from typing import Final, cast

from knapper.jsontypes import JSONValue

_VAULT: Final = "vault"
_SAYS_NOTHING: Final = ("", 0, None)
"""Defaults that stand for what isn't given; False is one of them."""


def shortened(parameters: Mapping[str, JSONValue], *, names_vaults: bool) -> dict[str, JSONValue]:
    """Leave out of a schema what a model can do without.

    Args:
        parameters: The schema of a tool's arguments, which stays as it is.
        names_vaults: Tell which vaults there are; one definition that does is enough.
    """
    known = cast("dict[str, dict[str, JSONValue]]", parameters["properties"])
    properties: dict[str, JSONValue] = {name: _parameter(one) for name, one in known.items()}
    if _VAULT in properties:
        names = known[_VAULT]["enum"]
        properties[_VAULT] = {"type": "string", **({"enum": names} if names_vaults else {})}
    kept = {name: value for name, value in parameters.items() if name != "additionalProperties"}
    return {**kept, "properties": properties}


def _parameter(shown: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    made = dict(shown)
    if made.get("default", ...) in _SAYS_NOTHING:
        del made["default"]
    kinds = [kind for kind in cast("list[dict[str, JSONValue]]", made.get("anyOf", [])) if kind != {"type": "null"}]
    if len(kinds) == 1:
        del made["anyOf"]
        made |= kinds[0]
    return made
