"""Mend the arguments of tool calls that small models get wrong; what is right stays as it is."""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

import json_repair

from knapper.jsontypes import JSONValue

Arguments = dict[str, JSONValue]
Schema = Mapping[str, JSONValue]

_CONTROL: Final = re.compile(r"^(?:\s*<\|[^|<>\n]{0,40}\|>)+|(?:<\|[^|<>\n]{0,40}\|>\s*|</s>\s*|\[/?TOOL_CALLS\]\s*)+$")
_WRAPPERS: Final = ("arguments", "parameters", "args", "input", "kwargs")
_NOTHING: Final = frozenset({"none", "null", "undefined"})
_TEXTS: Final = frozenset({"answer", "content", "full_response", "task", "value"})
"""Parameters that hold what somebody says, of whom *none* may be the very word."""
_TRUE: Final = frozenset({"true", "yes", "1"})
_FALSE: Final = frozenset({"false", "no", "0"})
_DEEPEST: Final = 50
"""Levels of lists and objects; no tool takes as many, and what is deeper ends in an error of Python's."""
_SPACES: Final = re.compile("[\u00a0\u2007\u202f]")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def read(raw: object) -> Arguments:
    """Read arguments as a model sent them: JSON, broken JSON, JSON in JSON, a Python literal, or nothing.

    Anything that is no object, or nests too deep, gives no arguments, and the tool's own check says what is missing.
    """
    for _ in range(3):
        if not isinstance(raw, str | bytes | bytearray):
            break
        raw = _decoded(raw if isinstance(raw, str) else raw.decode(errors="replace"))
    if isinstance(raw, list):
        raw = next((cast("object", one) for one in cast("list[object]", raw) if isinstance(one, dict)), None)
    if not isinstance(raw, dict) or is_deep(cast("object", raw)):
        return {}
    return {_bare(str(name)): value for name, value in cast("dict[object, JSONValue]", raw).items()}


def fit(given: Arguments, schema: Schema) -> Arguments:
    """Fit arguments to a tool's schema where their meaning is plain.

    ``{"paths": "['a', 'b']", "limit": "5"}`` becomes ``{"paths": ["a", "b"], "limit": 5}``.

    Args:
        given: By name; unknown names are kept, for the tool to refuse or to understand.
        schema: The JSON Schema of the whole.
    """
    known = _mapping(schema.get("properties"))
    given = _unwrapped(given, known)
    required = schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set[str]()
    fitted: Arguments = {}
    for name, value in given.items():
        wanted = _mapping(known.get(name))
        if name not in needed and wanted and _says_nothing(name, value, wanted, schema):
            continue
        fitted[name] = _value(value, wanted, schema)
    return fitted


def is_cut(raw: object) -> bool:
    """Tell whether arguments as a model sent them end in the middle; what `read` makes of them may lack a part then.

    ``{"path": "a.md", "content": "Half of`` does, ``{"path": "a.md",}`` doesn't.
    """
    for _ in range(4):
        if isinstance(raw, dict):
            raw = _wrapped(cast("dict[object, object]", raw))
        if not isinstance(raw, str | bytes | bytearray):
            return False
        text = _bare(raw if isinstance(raw, str) else raw.decode(errors="replace"))
        try:
            raw = cast("object", json.loads(text))
        except (ValueError, RecursionError):
            return not isinstance(_literal(text), dict | list) and _ends_open(text)
    return False


def _wrapped(given: Mapping[object, object]) -> object:
    """Give the arguments that a call holds as a text of their own; None where it doesn't."""
    texts = (given.get(name) for name in _WRAPPERS)
    return next((one for one in texts if isinstance(one, str) and one.lstrip().startswith("{")), None)


def _ends_open(text: str) -> bool:
    rest = _STRING.sub("", text)
    return '"' in rest or rest.count("{") + rest.count("[") > rest.count("}") + rest.count("]")


def is_deep(value: object) -> bool:
    """Tell whether lists and objects lie in each other more often than in anything that is meant."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[object, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list | tuple) else ()


def plain_spaces(path: str) -> str:
    """Write a path with plain spaces; models copy other ones from what they read."""
    return _SPACES.sub(" ", path)


def _decoded(text: str) -> object:
    text = _bare(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    literal = _literal(text)
    if isinstance(literal, dict | list):
        return cast("object", literal)
    try:
        return cast("object", json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError):
        return {}


def _literal(text: str) -> object:
    try:
        return cast("object", ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _bare(text: str) -> str:
    """Take a model's control tokens off the ends of a text; ``<s>gone</s>`` is HTML, and stays."""
    return text if "<s>" in text.casefold() and text.rstrip().endswith("</s>") else _CONTROL.sub("", text)


def _unwrapped(given: Arguments, known: Mapping[str, JSONValue]) -> Arguments:
    """Take arguments out of a single envelope, such as ``{"arguments": {…}}``."""
    if len(given) != 1:
        return given
    name, value = next(iter(given.items()))
    if name in known or name not in _WRAPPERS:
        return given
    return read(value)


def _says_nothing(name: str, value: JSONValue, wanted: Schema, whole: Schema) -> bool:
    kinds = _kinds(wanted, whole)
    if value is None:
        return bool(kinds) and "null" not in kinds  # none: a value of any type
    return isinstance(value, str) and name not in _TEXTS and value.strip().lower() in _NOTHING


def _value(value: JSONValue, wanted: Schema, whole: Schema) -> JSONValue:
    kinds = _kinds(wanted, whole)
    if isinstance(value, str):
        value = _bare(value)
        return value if not kinds or "string" in kinds else _from_text(value, kinds, wanted, whole)
    if isinstance(value, list):
        return _from_list(value, kinds, wanted, whole)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if kinds == {"string"} else _from_object(value, wanted, whole)
    return _from_number(value, kinds)


def _from_text(value: str, kinds: set[str], wanted: Schema, whole: Schema) -> JSONValue:
    word = value.strip().lower()
    if "boolean" in kinds and word in _TRUE | _FALSE:
        return word in _TRUE
    if kinds & {"integer", "number"} and (number := _number(word)) is not None:
        return number
    if kinds & {"array", "object"}:
        decoded = _decoded(value) if value.strip()[:1] in {"[", "{", "("} else value
        decoded = value if is_deep(decoded) else decoded
        if isinstance(decoded, tuple):
            decoded = list(cast("tuple[object, ...]", decoded))
        if isinstance(decoded, list) and "array" in kinds:
            return _from_list(cast("list[JSONValue]", decoded), kinds, wanted, whole)
        if isinstance(decoded, dict) and "object" in kinds:
            return cast("JSONValue", decoded)
        if "array" in kinds:
            return [cast("JSONValue", decoded)] if decoded or decoded == 0 else []
    return value


def _from_list(value: list[JSONValue], kinds: set[str], wanted: Schema, whole: Schema) -> JSONValue:
    if "array" in kinds:
        item = _mapping(_array(wanted, whole).get("items"))
        return [_value(one, item, whole) for one in value]
    if kinds == {"string"}:
        return value[0] if len(value) == 1 and isinstance(value[0], str) else json.dumps(value, ensure_ascii=False)
    return value


def _from_object(value: dict[str, JSONValue], wanted: Schema, whole: Schema) -> JSONValue:
    if "array" in _kinds(wanted, whole) and "object" not in _kinds(wanted, whole):
        return [cast("JSONValue", value)]
    known = _mapping(_resolved(wanted, whole).get("properties"))
    return {name: _value(one, _mapping(known.get(name)), whole) for name, one in value.items()}


def _from_number(value: JSONValue, kinds: set[str]) -> JSONValue:
    if isinstance(value, bool) or value is None or not kinds:
        return value
    if isinstance(value, float) and "number" not in kinds and "integer" in kinds and value.is_integer():
        return int(value)
    if isinstance(value, int | float) and kinds == {"string"}:
        return str(value)
    if isinstance(value, int | float) and "array" in kinds and not kinds & {"integer", "number"}:
        return [value]
    return value


def _number(word: str) -> int | float | None:
    if re.fullmatch(r"[+-]?\d{1,15}(?:\.0+)?", word):
        return int(word.partition(".")[0])
    return float(word) if re.fullmatch(r"[+-]?\d{1,15}\.\d{1,15}", word) else None


def _kinds(wanted: Schema, whole: Schema) -> set[str]:
    """Name the JSON types that a schema takes; empty where it says none."""
    wanted = _resolved(wanted, whole)
    if isinstance(wanted.get("type"), str):
        return {str(wanted["type"])}
    options = wanted.get("anyOf")
    if isinstance(options, list):
        return {kind for one in options for kind in _kinds(_mapping(one), whole)}
    return {"string"} if "enum" in wanted or isinstance(wanted.get("const"), str) else set()


def _array(wanted: Schema, whole: Schema) -> Schema:
    wanted = _resolved(wanted, whole)
    options = wanted.get("anyOf")
    every = [_resolved(_mapping(one), whole) for one in options] if isinstance(options, list) else [wanted]
    return next((one for one in every if one.get("type") == "array"), wanted)


def _resolved(wanted: Schema, whole: Schema) -> Schema:
    reference = wanted.get("$ref")
    if not isinstance(reference, str):
        return wanted
    return _mapping(_mapping(whole.get("$defs")).get(reference.rpartition("/")[2]))


def _mapping(value: object) -> Mapping[str, JSONValue]:
    return cast("Mapping[str, JSONValue]", value) if isinstance(value, Mapping) else {}
