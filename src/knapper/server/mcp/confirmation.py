"""Ask a person at an MCP client whether a proposal is applied, where the client's program and the owner allow that."""

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from fastmcp.server.context import Context as McpContext
from fastmcp.server.dependencies import get_context
from fastmcp.tools.base import InputRequiredToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequests, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.tools import answers
from knapper.tools.context import Context
from knapper.tools.shapes import Answer

if TYPE_CHECKING:
    from knapper.changes.writer import Submission

LOG: Final = logging.getLogger(__name__)
WAIT_S: Final = 600.0
"""How long a person may take; the proposal waits on afterwards."""
_MAX_KEPT_CHARS: Final = 4_000
"""Of the fields of a tool's own that come back with the answer."""
_FIELD: Final = "apply"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        _FIELD: {
            "type": "string",
            "title": "Apply this change?",
            "description": "Yes applies exactly what is shown, no rejects it.",
            "enum": ["yes", "no"],
        }
    },
    "required": [_FIELD],
}
_REJECTION: Final = "the person whom the client asked said no"

Reply = Literal["yes", "no", "none"]
"""What the person said; none where the form was closed, or never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A proposal about which a person is asked."""

    vault: str
    proposal: str
    digest: str
    """Of what is shown; a yes applies this and nothing else."""
    text: str = ""
    kept: Mapping[str, JSONValue]
    """What a tool answers beside what it did, such as the preference that it saves."""

    @property
    def state(self) -> str:
        """Return what the client sends back with the reply; the library seals it."""
        return json.dumps(
            {"vault": self.vault, "proposal": self.proposal, "digest": self.digest, "kept": dict(self.kept)}
        )


def write_question(context: Context, proposal_id: str, answer: Mapping[str, JSONValue]) -> Question | None:
    """Return the question about a proposal; None where nobody may be asked through this client.

    Args:
        context: The vault, as the client sees it.
        proposal_id: The proposal.
        answer: What the tool answered.
    """
    from knapper.changes.proposals import presentation  # noqa: PLC0415 - the handshake needn't pay for it

    run = context.submit_options.run if context.submit_options else ""
    who = context.writer.current_grants(run)
    if not who.may_ask:
        return None
    proposal = context.reviewer.refit(proposal_id)
    # Nobody is asked in vain: a yes to another client's proposal, or to a tainted one, would be refused.
    if proposal.tainted or (proposal.client, proposal.behalf) != (who.client, who.behalf):
        return None
    described = presentation.describe(proposal)
    fence = "`" * max(3, _longest_run(described) + 1)
    text = (
        f"Apply this change in the vault '{presentation.one_line(context.vault)}'? "
        "Yes applies exactly this, no rejects it. "
        f"`{context.review.command(proposal_id)}` shows it with all details.\n\n{fence}\n{described}\n{fence}"
    )
    kept = {name: value for name, value in answer.items() if name not in answers.CHANGE_FIELDS}
    if len(json.dumps(kept)) > _MAX_KEPT_CHARS:
        kept = {name: value for name, value in kept.items() if isinstance(value, bool | int)}
    return Question(vault=context.vault, proposal=proposal_id, digest=proposal.digest, text=text, kept=kept)


def _longest_run(text: str) -> int:
    return max((len(run) for run in "".join(sign if sign == "`" else " " for sign in text).split()), default=0)


def read_reply() -> tuple[Question, Reply | None] | None:
    """Return what the client sends back of an earlier question, with the reply; None where this is a new call.

    The library has checked that this server sealed the state, for this very call.
    """
    context = get_context()
    state = context.request_state
    if state is None:
        return None
    fields = json.loads(state)
    question = Question(
        vault=fields["vault"], proposal=fields["proposal"], digest=fields["digest"], kept=fields["kept"]
    )
    response = (context.input_responses or {}).get(_FIELD)
    return question, _reply_of(response) if isinstance(response, ElicitResult) else None


async def ask(question: Question) -> Reply | InputRequiredToolResult:
    """Ask the person, or return what makes the client ask and call again, as its protocol has it.

    Returns:
        ``none`` where the client's program can't ask, or the person doesn't answer.
    """
    context = get_context()
    if not _can_ask(context):
        return "none"
    params = ElicitRequestFormParams(message=question.text, requested_schema=_SCHEMA)
    if _is_stateless(context):
        requests: InputRequests = {_FIELD: ElicitRequest(params=params)}
        return InputRequiredToolResult(InputRequiredResult(input_requests=requests, request_state=question.state))
    try:
        async with asyncio.timeout(WAIT_S):
            result = await context.session.elicit_form(question.text, _SCHEMA, related_request_id=context.request_id)
    except TimeoutError:
        LOG.info("nobody answered about the proposal %s within %.0f s", question.proposal, WAIT_S)
        return "none"
    except (MCPError, ValidationError) as error:
        LOG.warning("the client couldn't ask about the proposal %s: %s", question.proposal, type(error).__name__)
        return "none"
    return _reply_of(result)


def _is_stateless(context: McpContext) -> bool:
    request = context.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def _can_ask(context: McpContext) -> bool:
    """Return whether the client's program shows forms to a person, and can be reached."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return _is_stateless(context) or context.session.can_send_request


def _reply_of(result: ElicitResult) -> Reply:
    if result.action == "accept":
        return "yes" if (result.content or {}).get(_FIELD) == "yes" else "no"
    return "no" if result.action == "decline" else "none"


def carry_out(context: Context, question: Question, reply: Reply) -> Answer:
    """Apply or reject a proposal, as the person said, and answer as the tool would have.

    Args:
        context: The question's vault, as the client sees it.
        question: What was asked.
        reply: What the person said; without a reply the proposal goes on waiting.

    Raises:
        ConflictError: The proposal isn't what was shown any more, or a note changed meanwhile.
        RefusedError: The client's rules don't allow it even with a person's word.
    """
    if reply == "yes":
        return _accept(context, question)
    if reply == "no":
        _ = context.reviewer.reject(question.proposal, _REJECTION)
        message = f"the person said no: nothing has changed, and the proposal {question.proposal} is rejected"
        refused: dict[str, JSONValue] = {"success": False, "status": "refused", "message": message}
        return {**refused, "proposal_id": question.proposal, "reason": _REJECTION, **question.kept}
    waiting: dict[str, JSONValue] = {"success": True, "status": "proposed", "proposal_id": question.proposal}
    return {**waiting, **answers.review_fields(context, question.proposal), **question.kept}


def _accept(context: Context, question: Question) -> Answer:
    run = context.submit_options.run if context.submit_options else ""
    reviewer = replace(context.reviewer, is_confirmed=True)
    try:
        submission: Submission = reviewer.accept(question.proposal, question.digest, run=run)
    except KnapError as error:
        error.details.update(answers.review_fields(context, question.proposal))
        raise
    answer = answers.confirmed_answer(submission)
    created: dict[str, JSONValue] = {"created": True} if "created" in question.kept else {}
    return {**answer, **question.kept, **created}
