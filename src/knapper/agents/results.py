"""Keep what tools answered in one turn, and give the model as much of it as it may read at once."""

from dataclasses import dataclass, field
from typing import Final

from knapper.agents import untrusted
from knapper.errors import BadInput, NotFound

MAX_CHARS: Final = 4_000
"""Characters of a tool's result that the model is given at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Hold what the model is given of a result."""

    text: str
    chars: int
    """Of the whole."""
    truncated: bool


@dataclass(slots=True, kw_only=True)
class Results:
    """Hold the results of one turn that were longer than the model may read at once."""

    mark: str
    """That of the turn's blocks."""
    max_chars: int = MAX_CHARS
    _kept: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def show(self, call_id: str, tool: str, answer: object) -> Shown:
        """Write an answer as the model is given it, cut where it is too long.

        Args:
            call_id: The call's.
            tool: The tool's name.
            answer: JSON.
        """
        whole = untrusted.escape(answer)
        if len(whole) > self.max_chars:
            self._kept[call_id] = (tool, whole)
        return self._stretch(call_id, tool, whole, 0)

    def more(self, call_id: str, offset: int) -> Shown:
        """Give a later stretch of a result that was cut.

        Raises:
            NotFound: No result of this turn with that id was cut.
            BadInput: The offset lies outside of it.
        """
        if call_id not in self._kept:
            known = ", ".join(self._kept)
            hint = f"results that were cut in this turn: {known}" if known else "no result was cut in this turn"
            raise NotFound(f"there is no cut result of the call '{call_id[:80]}'", hint=hint, code="no_such_result")
        tool, whole = self._kept[call_id]
        if not 0 <= offset < len(whole):
            raise BadInput(f"offset is {offset}", hint=f"give 0 to {len(whole) - 1}")
        return self._stretch(call_id, tool, whole, offset)

    def _stretch(self, call_id: str, tool: str, whole: str, offset: int) -> Shown:
        stop = min(offset + self.max_chars, len(whole))
        block = untrusted.enclose(tool, whole[offset:stop], self.mark)
        if offset == 0 and stop == len(whole):
            return Shown(text=block, chars=len(whole), truncated=False)
        told = f"[characters {offset} to {stop} of {len(whole)}, tool_call_id: {call_id}"
        more = (
            f"; get_continuation(tool_call_id, offset={stop}) reads on]" if stop < len(whole) else "; this is the end]"
        )
        return Shown(text=f"{block}\n{told}{more}", chars=len(whole), truncated=stop < len(whole))
