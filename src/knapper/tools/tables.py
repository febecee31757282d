"""Find and call the tools of a table by name, in any of several vaults."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from knapper.errors import BadInput, KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import calls, schema
from knapper.tools.context import Context
from knapper.tools.profiles import Choice
from knapper.tools.rows import Row
from knapper.tools.shapes import Answer

Open = Callable[[str], Context]
"""Opens a vault by name for whoever calls; empty for the usual one."""
_VAULT: Final = "vault"
CALL: Final = "call_tool"
"""The tool that calls others."""
_INNER: Final = "arguments"
"""Those of the other tool."""


class Table:
    """Hold the tools of all layers; what every surface offers is derived from here."""

    def __init__(self, rows: Iterable[Row], vaults: Sequence[str] = ()) -> None:
        """Take the rows.

        Args:
            rows: In the order in which they're shown.
            vaults: Names of the vaults; where there are several, every tool takes one.

        Raises:
            ValueError: Two rows have one name.
        """
        given = tuple(rows)
        self._rows = {row.name: row for row in given}
        if len(self._rows) != len(given):
            raise ValueError("two tools have one name")
        self._vaults = tuple(vaults)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Give every row."""
        return tuple(self._rows.values())

    def callable(self, choice: Choice) -> tuple[Row, ...]:
        """Give the rows that can be called: a small choice lists few, and leaves out none."""
        return self.chosen("read-only" if choice == "read-only" else "full")

    def chosen(self, choice: Choice) -> tuple[Row, ...]:
        """Give the rows that are listed."""
        if choice == "read-only":
            return tuple(row for row in self.rows if row.effect == "read")
        return tuple(row for row in self.rows if row.profile == "essential" or choice == "full")

    def find(self, name: str) -> Row:
        """Give a tool's row.

        Raises:
            NotFound: There is no such tool; the hint tells the nearest.
        """
        row = self._rows.get(name)
        if row is None:
            raise NotFound(f"there is no tool '{name}'", hint=_nearest(name, self._rows), code="no_tool")
        return row

    def parameters(self, row: Row, *, brief: bool = False) -> dict[str, JSONValue]:
        """Give the JSON Schema of a tool's arguments, the vault's name among them where there are several.

        Args:
            row: Which tool.
            brief: Leave out those that a model can do without.
        """
        shown = schema.parameters(row, brief=brief)
        if len(self._vaults) < 2:
            return shown
        names: list[JSONValue] = [*self._vaults]
        vault: dict[str, JSONValue] = {
            "type": "string",
            "enum": names,
            "default": self._vaults[0],
            "description": "Name of the vault to work in.",
        }
        properties: dict[str, JSONValue] = {**cast("dict[str, JSONValue]", shown["properties"]), _VAULT: vault}
        return {**shown, "properties": properties}

    def call(self, name: str, arguments: Mapping[str, object], open_vault: Open) -> Answer:
        """Call a tool.

        Raises:
            KnapError: There is no such tool or vault, an argument can't be used, or the tool fails.
        """
        row = self.find(name)
        given = dict(arguments)
        vault = self._take_vault(name, given)
        inner = given.get(_INNER)
        if name == CALL and isinstance(inner, Mapping):  # models put it beside the tool's own arguments, too
            given[_INNER] = within = dict(cast("Mapping[str, object]", inner))
            vault = self._take_vault(str(given.get("name", name)), within) or vault
        return calls.call(row, open_vault(vault), given)

    def _take_vault(self, name: str, given: dict[str, object]) -> str:
        vault = given.pop(_VAULT, None) if self._vaults else None
        if vault is None:
            return ""
        if not isinstance(vault, str):
            hint = f"there are: {', '.join(self._vaults)}"
            raise BadInput(f"{name} can't be called so: vault: it should be a text", hint=hint, code="bad_arguments")
        return vault

    def answer(self, name: str, arguments: Mapping[str, object], open_vault: Open) -> Answer:
        """Call a tool; an error is an answer too."""
        try:
            return self.call(name, arguments, open_vault)
        except KnapError as error:
            return cast("Answer", error.as_dict())


def _nearest(name: str, known: Iterable[str]) -> str:
    from rapidfuzz import process  # noqa: PLC0415 - only a mistyped name costs it

    found = process.extractOne(name, list(known), score_cutoff=60)
    return f"did you mean '{found[0]}'?" if found else "find_tool finds tools by what they do"
