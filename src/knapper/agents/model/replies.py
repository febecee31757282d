"""Get replies from models: retry failed requests, repair surrogates, arguments and call ids, and notice truncation."""

import ast
import asyncio
import json
import random
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import json_repair
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError, ModelQuotaExceededError
from pydantic_ai.messages import (
    AgentStreamEvent,
    FinishReason,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from knapper.jsontypes import JSONValue, is_list, is_object, is_sequence, loads, object_or_empty

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def join_surrogates(text: str) -> str:
    """Join surrogate pairs into characters, and replace lone surrogates by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def join_surrogates_in_json(value: JSONValue) -> JSONValue:
    """Join or replace surrogates in all texts of a value, keys included; JSON's escapes can spell lone ones."""
    if isinstance(value, str):
        return join_surrogates(value)
    if isinstance(value, list):
        return [join_surrogates_in_json(one) for one in value]
    return join_surrogates_in_object(value) if isinstance(value, dict) else value


def join_surrogates_in_object(fields: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Join or replace surrogates in all texts of an object, as `join_surrogates_in_json`."""
    return {join_surrogates(name): join_surrogates_in_json(one) for name, one in fields.items()}


def repair_response(response: ModelResponse) -> None:
    """Repair a streamed reply in place, since the next request and the stored history contain the same object."""
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part.content = join_surrogates(part.content)
        elif isinstance(part, ToolCallPart):
            _repair_call(part)
    # A server may send anything here, also what isn't text.
    if response.model_name:
        response.model_name = join_surrogates(str(response.model_name))
    if response.provider_response_id:
        response.provider_response_id = join_surrogates(str(response.provider_response_id))
    if response.provider_details is not None:
        response.provider_details = join_surrogates_in_object(response.provider_details)


def _repair_call(call: ToolCallPart) -> None:
    call.tool_name, call.tool_call_id = join_surrogates(str(call.tool_name)), join_surrogates(str(call.tool_call_id))
    if isinstance(call.args, str):
        # As JSON's escape, so that readers of the arguments still see that it is one.
        call.args = _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", call.args)


class SurrogateSafeModel(WrapperModel):
    """A model whose whole replies are repaired; streams are passed on, for `repair_response` to repair."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Request a reply and repair its texts."""
        response = await super().request(messages, model_settings, model_request_parameters)
        parts = [
            replace(part, content=join_surrogates(part.content)) if isinstance(part, TextPart | ThinkingPart) else part
            for part in response.parts
        ]
        return replace(response, parts=parts)


_FIRST_RETRY_S: Final = 0.5
_MAX_RETRY_S: Final = 8.0
_MAX_ASKED_S: Final = 120.0
"""The longest wait that a server may ask for; one that asks for more isn't asked again."""
_JITTER: Final = 0.25
_RETRIED_STATUSES: Final = frozenset({408, 409, 429})
_SERVER_ERROR: Final = 500


class RetryingModel(WrapperModel):
    """A model whose requests are sent again after a temporary failure, and that reports each wait.

    The libraries of the providers would do the same, but without a word: a person saw nothing for minutes.
    """

    def __init__(
        self,
        wrapped: Model,
        retries: int,
        describe: Callable[[Exception], str],
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Wrap a model whose own library retries nothing.

        Args:
            wrapped: The model.
            retries: How often a request is sent again.
            describe: Returns what a failure was, with the model's name.
            report: Receives a sentence before each wait.
        """
        super().__init__(wrapped)
        self._retries = retries
        self._describe = describe
        self._report = report

    def reporting(self, report: Callable[[str], None]) -> "RetryingModel":
        """Return the same model with another receiver of its reports."""
        return RetryingModel(self.wrapped, self._retries, self._describe, report)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Request a whole reply."""
        attempt = 0
        while True:
            try:
                return await super().request(messages, model_settings, model_request_parameters)
            except ModelAPIError as error:
                await self._wait(error, attempt)
            attempt += 1

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Request a streamed reply; a stream that has begun isn't requested again."""
        async with AsyncExitStack() as stack:
            attempt = 0
            while True:
                opened = super().request_stream(messages, model_settings, model_request_parameters, run_context)
                try:
                    stream = await stack.enter_async_context(opened)
                    break
                except ModelAPIError as error:
                    await self._wait(error, attempt)
                attempt += 1
            yield stream

    async def _wait(self, error: ModelAPIError, attempt: int) -> None:
        """Report a failure, and wait until the request may be sent again.

        Raises:
            ModelAPIError: It mayn't.
        """
        wait_s = error.retry_after or 0.0
        if attempt >= self._retries or wait_s > _MAX_ASKED_S or not _is_temporary(error):
            raise error
        if wait_s <= 0:
            wait_s = min(_FIRST_RETRY_S * 2**attempt, _MAX_RETRY_S)
            wait_s *= 1 - _JITTER * random.random()  # noqa: S311 - so that many clients don't come back at once
        count = f"{attempt + 1} of {self._retries}"
        # What to expect comes first: a terminal cuts a long quote of what the server says.
        self._report(f"trying again in {max(wait_s, 1):.0f} s ({count}): {self._describe(error)}")
        await asyncio.sleep(wait_s)


def report_retries(model: Model, report: Callable[[str], None]) -> Model:
    """Return a model, or one with others to fall back on, that reports its retries to one job."""
    if isinstance(model, RetryingModel):
        return model.reporting(report)
    if isinstance(model, FallbackModel):
        first, *others = (report_retries(one, report) for one in model.models)
        return FallbackModel(first, *others)
    return model


def _is_temporary(error: ModelAPIError) -> bool:
    """Return whether the same request may succeed later, as OpenAI's and Anthropic's libraries judge it."""
    if error.in_stream or isinstance(error, ModelQuotaExceededError):
        return False
    if not isinstance(error, ModelHTTPError):
        return isinstance(error, ModelConnectionError)
    if error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return error.status_code in _RETRIED_STATUSES or error.status_code >= _SERVER_ERROR


def added_text(event: AgentStreamEvent) -> str:
    """Return the text that an event adds; empty where it adds none."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


_TRUNCATION_NOTICES: Final[Mapping[FinishReason | None, str]] = {
    "length": "the answer ends where the model may write no more at once; ask it to continue",
    "error": "the answer broke off before its end; ask again, or ask the model to continue",
}


def truncation_notices(reply: ModelResponse) -> tuple[str, ...]:
    """Return notices for the person about a cut answer; empty where the answer is whole."""
    finish_reason = reply.finish_reason or (reply.provider_details or {}).get("finish_reason")
    # Anthropic always names a finish reason: a reply without one has broken off.
    is_broken_off = reply.provider_name == "anthropic" and not finish_reason
    notice = _TRUNCATION_NOTICES.get("error" if is_broken_off else reply.finish_reason)
    return (notice,) if notice else ()


_CALL_ID_LENGTH = 9
"""Letters and digits; some servers accept no other length."""


def collect_call_ids(messages: Sequence[ModelMessage]) -> set[str]:
    """Return the ids of all calls of a conversation."""
    return {call.tool_call_id for one in messages if isinstance(one, ModelResponse) for call in one.tool_calls}


def make_call_ids_unique(response: ModelResponse, known: set[str]) -> None:
    """Replace repeated call ids in place, since results and their events are found by these ids.

    Args:
        response: A streamed reply, which the next request contains.
        known: The ids of the conversation's earlier calls; the reply's ids are added.
    """
    # Some models number the calls of each reply from the start; results would then be matched to the wrong call.
    for call in response.tool_calls:
        if call.tool_call_id in known:
            call.tool_call_id = secrets.token_hex(_CALL_ID_LENGTH)[:_CALL_ID_LENGTH]
        known.add(call.tool_call_id)


Arguments = dict[str, JSONValue]
Schema = Mapping[str, JSONValue]

_CONTROL_TOKENS: Final = re.compile(
    r"^(?:\s*<\|[^|<>\n]{0,40}\|>)+|(?:<\|[^|<>\n]{0,40}\|>\s*|</s>\s*|\[/?TOOL_CALLS\]\s*)+$"
)
_ENVELOPE_NAMES: Final = ("arguments", "parameters", "args", "input", "kwargs")
_EMPTY_WORDS: Final = frozenset({"none", "null", "undefined"})
_TEXT_PARAMETERS: Final = frozenset({"answer", "content", "full_response", "task", "value"})
"""Parameters that hold a person's or model's text, where *none* may be meant literally."""
_TRUE_WORDS: Final = frozenset({"true", "yes", "1"})
_FALSE_WORDS: Final = frozenset({"false", "no", "0"})
_MAX_NESTING: Final = 50
"""Levels of lists and objects; no tool takes as many, and deeper values hit Python's recursion limit."""
_ODD_SPACES: Final = re.compile("[\u00a0\u2007\u202f]")
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.(?:\d{1,15}|0+))?")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read_arguments(raw: object) -> Arguments:
    """Parse arguments as a model sent them: JSON, broken JSON, JSON in JSON, a Python literal, or nothing.

    Anything but an object, or one nested too deep, gives no arguments; the tool then reports what is missing.
    """
    # JSON may be a string within JSON, and that once more; nothing deeper is unpacked.
    for _ in range(3):
        if not isinstance(raw, str | bytes | bytearray):
            break
        raw = _decode_text(raw if isinstance(raw, str) else raw.decode(errors="replace"))
    raw = next(filter(is_object, raw), None) if is_list(raw) else raw
    if not is_object(raw) or is_too_deep(raw):
        return {}
    return {_strip_control_tokens(str(name)): value for name, value in raw.items()}


def fit_arguments(arguments: Arguments, schema: Schema) -> Arguments:
    """Fit arguments to a tool's schema where their meaning is clear.

    ``{"paths": "['a', 'b']", "limit": "5"}`` becomes ``{"paths": ["a", "b"], "limit": 5}``.

    Args:
        arguments: Values by name; unknown names are kept, for the tool to refuse.
        schema: The JSON Schema of all parameters.
    """
    properties = object_or_empty(schema.get("properties"))
    if len(arguments) == 1:
        # The arguments of a tool may come inside a single envelope, such as ``{"arguments": {…}}``.
        envelope, inner = next(iter(arguments.items()))
        if envelope in _ENVELOPE_NAMES and envelope not in properties:
            arguments = read_arguments(inner)
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set[str]()
    fitted: Arguments = {}
    for name, value in arguments.items():
        parameter_schema = object_or_empty(properties.get(name))
        if name not in needed and parameter_schema:
            kinds = _schema_types(parameter_schema, schema)
            # Without types the parameter takes any value, null included.
            is_null = value is None and kinds and "null" not in kinds
            is_word = isinstance(value, str) and value.strip().lower() in _EMPTY_WORDS
            if is_null or (is_word and name not in _TEXT_PARAMETERS):
                continue
        fitted[name] = _fit_value(value, parameter_schema, schema)
    return fitted


def is_truncated(raw: object) -> bool:
    """Return whether raw arguments are cut off, so that `read_arguments` may lose a part of them.

    ``{"path": "a.md", "content": "Half of`` does, ``{"path": "a.md",}`` doesn't.
    """
    for _ in range(4):
        if is_object(raw):
            # The arguments that a call holds as JSON text; None where there are none.
            texts = (raw.get(name) for name in _ENVELOPE_NAMES)
            raw = next((one for one in texts if isinstance(one, str) and one.lstrip().startswith("{")), None)
        if not isinstance(raw, str | bytes | bytearray):
            return False
        text = _strip_control_tokens(raw if isinstance(raw, str) else raw.decode(errors="replace"))
        try:
            raw = loads(text)
        except (ValueError, RecursionError):
            if isinstance(_python_literal(text), dict | list):
                return False
            rest = _JSON_STRING.sub("", text)
            return '"' in rest or rest.count("{") + rest.count("[") > rest.count("}") + rest.count("]")
    return False


def is_too_deep(value: object) -> bool:
    """Return whether lists and objects are nested deeper than any tool needs."""
    # Level by level and not by recursion, which such a value would exhaust.
    level: list[object] = [value]
    for _ in range(_MAX_NESTING):
        below: list[object] = []
        for one in level:
            if is_object(one):
                below += one.values()
            elif is_sequence(one):
                below += one
        if not below:
            return False
        level = below
    return True


def plain_spaces(path: str) -> str:
    """Return a path with plain spaces; models copy other kinds from the text that they read."""
    return _ODD_SPACES.sub(" ", path)


def _decode_text(text: str) -> JSONValue:
    text = _strip_control_tokens(text)
    try:
        return loads(text)
    except (ValueError, RecursionError):
        pass
    literal = _python_literal(text)
    if isinstance(literal, dict | list):
        return literal
    try:
        return _as_json(json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError):
        return {}


def _python_literal(text: str) -> JSONValue:
    """Return a Python literal as JSON; None where the text is none, or one that JSON has nothing for."""
    try:
        return _as_json(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _as_json(value: object) -> JSONValue:
    """Return a value with tuples as lists and names as texts.

    Raises:
        TypeError: It holds what JSON has nothing for, such as a set.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if is_object(value):
        return {str(name): _as_json(each) for name, each in value.items()}
    if is_sequence(value):
        return [_as_json(each) for each in value]
    raise TypeError(f"JSON has no {type(value).__name__}")


def _strip_control_tokens(text: str) -> str:
    """Remove a model's control tokens from the ends of a text; ``<s>gone</s>`` is HTML and stays."""
    return text if "<s>" in text.casefold() and text.rstrip().endswith("</s>") else _CONTROL_TOKENS.sub("", text)


def _fit_value(value: JSONValue, parameter: Schema, whole: Schema) -> JSONValue:
    kinds = _schema_types(parameter, whole)
    if isinstance(value, str):
        value = _strip_control_tokens(value)
        return value if not kinds or "string" in kinds else _fit_text(value, kinds, parameter, whole)
    if isinstance(value, list):
        return _fit_list(value, kinds, parameter, whole)
    if isinstance(value, dict):
        if kinds == {"string"}:
            return json.dumps(value, ensure_ascii=False)
        if "array" in kinds and "object" not in kinds:
            return [value]
        properties = object_or_empty(_resolve_reference(parameter, whole).get("properties"))
        return {name: _fit_value(one, object_or_empty(properties.get(name)), whole) for name, one in value.items()}
    return _fit_number(value, kinds)


def _fit_text(value: str, kinds: set[str], parameter: Schema, whole: Schema) -> JSONValue:
    word = value.strip().lower()
    if "boolean" in kinds and word in _TRUE_WORDS | _FALSE_WORDS:
        return word in _TRUE_WORDS
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(word):
        digits, _, decimals = word.partition(".")
        return float(word) if decimals.strip("0") else int(digits)
    if kinds & {"array", "object"}:
        decoded = _decode_text(value) if value.strip()[:1] in {"[", "{", "("} else value
        decoded = value if is_too_deep(decoded) else decoded
        if isinstance(decoded, list) and "array" in kinds:
            return _fit_list(decoded, kinds, parameter, whole)
        if isinstance(decoded, dict) and "object" in kinds:
            return decoded
        if "array" in kinds:
            return [decoded] if decoded or decoded == 0 else []
    return value


def _fit_list(value: list[JSONValue], kinds: set[str], parameter: Schema, whole: Schema) -> JSONValue:
    if "array" in kinds:
        parameter = _resolve_reference(parameter, whole)
        options = parameter.get("anyOf")
        every = (
            [_resolve_reference(object_or_empty(one), whole) for one in options]
            if isinstance(options, list)
            else [parameter]
        )
        array = next((one for one in every if one.get("type") == "array"), parameter)
        item = object_or_empty(array.get("items"))
        return [_fit_value(one, item, whole) for one in value]
    if kinds == {"string"}:
        return value[0] if len(value) == 1 and isinstance(value[0], str) else json.dumps(value, ensure_ascii=False)
    return value


def _fit_number(value: JSONValue, kinds: set[str]) -> JSONValue:
    if isinstance(value, bool) or value is None or not kinds:
        return value
    if isinstance(value, float) and "number" not in kinds and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, int | float) and kinds == {"string"}:
        return str(value)
    if isinstance(value, int | float) and "array" in kinds and not kinds & {"integer", "number"}:
        return [value]
    return value


def _schema_types(parameter: Schema, whole: Schema) -> set[str]:
    """Return the JSON types that a schema accepts; empty where it names none."""
    parameter = _resolve_reference(parameter, whole)
    if isinstance(parameter.get("type"), str):
        return {str(parameter["type"])}
    options = parameter.get("anyOf")
    if isinstance(options, list):
        return {kind for one in options for kind in _schema_types(object_or_empty(one), whole)}
    return {"string"} if "enum" in parameter or isinstance(parameter.get("const"), str) else set()


def _resolve_reference(parameter: Schema, whole: Schema) -> Schema:
    reference = parameter.get("$ref")
    if not isinstance(reference, str):
        return parameter
    return object_or_empty(object_or_empty(whole.get("$defs")).get(reference.rpartition("/")[2]))


def format_conversation(messages: Sequence[ModelMessage]) -> str:
    """Return a conversation as text, each part under its kind, with JSON over several lines."""
    parts: list[str] = []
    instructions = ""
    for message in messages:
        if isinstance(message, ModelRequest) and message.instructions and message.instructions != instructions:
            instructions = message.instructions
            parts.append(f"--- instructions\n{instructions}")
        who = "model" if isinstance(message, ModelResponse) else "to the model"
        for part in message.parts:
            if isinstance(part, TextPart | UserPromptPart):
                parts.append(f"--- {who}\n{_format_json(str(part.content))}")
            elif isinstance(part, ToolCallPart):
                parts.append(f"--- {who} calls {part.tool_name}\n{_format_json(part.args_as_json_str())}")
            elif isinstance(part, ToolReturnPart):
                parts.append(f"--- {part.tool_name} answers\n{part.model_response_str()}")
    return "\n\n".join(parts)


def _format_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
