"""Run scripts over the vault: the tool for clients whose own model writes them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NotRequired

from typing_extensions import TypedDict

from knapper.codemode.bridge import Bridge
from knapper.errors import BadInput
from knapper.tools.context import (
    Context,
    ProposalRef,
    ScriptExit,
    ScriptInputs,
    ScriptLimits,
    ScriptProfile,
    ScriptResult,
)

_EXIT_HINTS: Final[Mapping[ScriptExit, str]] = {
    "syntax": "write it as Python 3, and correct the line that is named",
    "error": "correct the line that is named, and run the script again",
    "refused": "do without that: a script has `obsidian`, and the modules that the tool's description lists",
    "result": "set `__result__` to less, and to lists, dicts, texts, numbers, booleans and None alone",
    "timeout": "do less in one script; a longer timeout_s helps where the owner allows it",
    "memory": "keep less at once: read notes one by one, and keep of each what is needed",
    "crash": "nest calls and data less deeply",
}
"""What to try next, by how a script ended."""


_PROPOSED_MESSAGE: Final = (
    "nothing has changed yet: each of the proposals waits for a person's yes, which its review_command takes"
)


class ScriptProposal(TypedDict):
    """A proposal, and the vault that it is for."""

    id: str
    vault: str
    review_command: str
    """With which a person decides on it."""
    review_url: NotRequired[str]
    """The page's address of it, where a server runs."""


class ScriptAnswer(TypedDict):
    """The outcome of a script."""

    success: bool
    ok: bool
    kind: str
    result: object
    stdout: str
    error: str
    wall_s: float
    peak_mb: float
    calls: int
    proposals: list[ScriptProposal]
    message: NotRequired[str]
    """That nothing has changed yet, where there are proposals."""
    walls: list[str]
    notes: NotRequired[list[str]]
    """That a part of the second wall didn't stand, and why."""
    code: NotRequired[str]
    """``script_`` and the kind, where it failed."""
    hint: NotRequired[str]


def run_script(
    context: Context, code: str, profile: ScriptProfile = "strict", timeout_s: float | None = None
) -> ScriptAnswer:
    """Run a Python script over the vault in a sandbox: many searches and reads in one call; only its result comes back.

    The script has `obsidian` with search(query, limit), read_note(path), read_notes(paths), list_notes(directory,
    recursive), get_frontmatter(path), get_hash(path), create_wikilink(path), write_note(path, content), which only
    proposes, and the reading tools as obsidian.tools.NAME(...). It sets `__result__` to JSON of at most 200 KB. It may
    import json, re, datetime, collections, itertools, functools, math, hashlib, pathlib, typing, dataclasses, enum and
    yaml.

    Args:
        context: The vault, as the client sees it.
        code: The script, in Python 3: ``obsidian.search(query, limit)``, ``obsidian.read_note(path)``, reading tools
            as ``obsidian.tools.NAME(...)``; it sets ``__result__``.
        profile: What else it may read, where the owner allows any: local for files, extended for files and pages.
        timeout_s: How long it may take, in seconds; never longer than the owner allows.

    Returns:
        ``ok``, ``result``, ``stdout``, ``error`` with line and cause, and ``hint``; ``proposals`` that wait for a
        person's decision; ``walls``, the parts of the system's confinement that stood.

    Raises:
        BadInput: The script is empty, or the time isn't positive.
        SetupError: Scripts can't be run here.
    """
    return result_answer(execute_script(context, code, profile, timeout_s))


def execute_script(
    context: Context, code: str, profile: ScriptProfile = "strict", timeout_s: float | None = None
) -> ScriptResult:
    """Run a script as `run_script` does, and return its typed outcome."""
    if not code.strip():
        raise BadInput("the script is empty", hint="give Python that sets `__result__`")
    if timeout_s is not None and not timeout_s > 0:
        raise BadInput(f"timeout_s is {timeout_s:g}", hint="give more than 0")
    sandbox = context.open_sandbox()
    script_limits = sandbox.limits if timeout_s is None else ScriptLimits(timeout_s=timeout_s).within(sandbox.limits)
    bridge = Bridge(context, profile)
    outcome = sandbox.run(
        code, bridge, limits=script_limits, given=script_inputs(context, bridge), on_cancel=context.on_cancel
    )
    return replace(outcome, proposals=bridge.proposals)


def script_inputs(context: Context, bridge: Bridge) -> ScriptInputs:
    """Return the inputs of a script besides its text."""
    now = context.now()
    offset = now.utcoffset()
    return ScriptInputs(
        now=now.timestamp(),
        offset_s=int(offset.total_seconds()) if offset else 0,
        methods=bridge.methods,
    )


def result_answer(outcome: ScriptResult) -> ScriptAnswer:
    """Return an outcome as every surface shows it."""
    fields: ScriptAnswer = {
        "success": outcome.ok,
        "ok": outcome.ok,
        "kind": outcome.kind,
        "result": outcome.result,
        "stdout": outcome.stdout,
        "error": outcome.error,
        "wall_s": outcome.wall_s,
        "peak_mb": outcome.peak_mb,
        "calls": outcome.calls,
        "proposals": [_proposal_row(one) for one in outcome.proposals],
        "walls": list(outcome.walls),
    }
    if outcome.proposals:
        fields["message"] = _PROPOSED_MESSAGE
    if outcome.wall_notice:
        fields["notes"] = [outcome.wall_notice]
    if not outcome.ok:
        fields["code"], fields["hint"] = f"script_{outcome.kind}", _EXIT_HINTS[outcome.kind]
    return fields


def _proposal_row(proposal: ProposalRef) -> ScriptProposal:
    row: ScriptProposal = {
        "id": proposal.id,
        "vault": proposal.vault,
        "review_command": proposal.review.command(proposal.id),
    }
    if url := proposal.review.url(proposal.id):
        row["review_url"] = url
    return row
