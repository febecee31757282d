"""Tool specifications: their schemas, checked calls by name, and the table of tools."""

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from itertools import islice, pairwise
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Protocol,
    Required,
    get_args,
    get_origin,
    get_type_hints,
)

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict, is_typeddict

from knapper import extras
from knapper.errors import BadInput, CallerError, KnapError, NotFound
from knapper.index import database
from knapper.index.database import DAMAGE_ERRORS
from knapper.jsontypes import JSONValue, is_list, is_object, object_or_empty, objects_in
from knapper.tools import answers
from knapper.tools.context import Context, ToolSelection
from knapper.tools.shapes import Answer

ToolEffect = Literal["read", "write", "destructive"]
"""What a call does to the vault: nothing, adds to it, or replaces or removes what was there."""
ToolProfile = Literal["essential", "standard", "full"]
"""The smallest selection that lists a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool: a typed function whose first parameter is the context.

    Its signature is the schema, its docstring the description, its name the tool's.
    """

    function: Callable[..., Mapping[str, object]]
    """Its return type is a TypedDict, or ``Annotated[Answer, Shape]`` where it passes on JSON that others made."""
    effect: ToolEffect = "read"
    profile: ToolProfile = "full"
    alias: str = ""
    """The tool's name, where one function stands in the table under several."""
    is_twin: bool = False
    """Whether another row lists the same function; this one can be called, and isn't listed."""
    shown: tuple[str, ...] = ()
    """The parameters that the essential selection lists; empty for all. A call may pass the others too."""
    rare: tuple[str, ...] = ()
    """The parameters that the standard selection doesn't list; a call may pass them too."""
    open_world: bool = False
    """Whether it reaches beyond the vault."""
    takes_long: bool = False
    """Whether a call may run for a minute or more; it then doesn't block other tools."""
    has_submit_options: bool = True
    """Whether a tool that writes takes a reason, and has a dry run."""
    repeatable: bool = False
    """Whether a second call of a tool that writes, with the same arguments, changes nothing more."""

    @property
    def name(self) -> str:
        """Return the tool's name."""
        return self.alias or self.function.__name__

    @property
    def title(self) -> str:
        """Return the name as a person reads it: ``Find backlinks``."""
        return self.name.replace("_", " ").capitalize()

    @property
    def takes_submit_options(self) -> bool:
        """Return whether a call may carry a reason, and be a dry run."""
        return self.has_submit_options and self.effect != "read"


class SelectableTool(Protocol):
    """What decides in which selections a tool is listed."""

    @property
    def effect(self) -> ToolEffect:
        """Return what a call does to the vault."""
        ...

    @property
    def profile(self) -> ToolProfile:
        """Return the smallest selection that lists it."""
        ...

    @property
    def is_twin(self) -> bool:
        """Return whether another row lists the same function."""
        ...


def is_listed(tool: SelectableTool, choice: ToolSelection) -> bool:
    """Return whether a selection lists a tool."""
    if tool.is_twin or not is_callable(tool, choice):
        return False
    return choice in {"full", "read-only", tool.profile} or tool.profile == "essential"


def is_callable(tool: SelectableTool, choice: ToolSelection) -> bool:
    """Return whether a selection lets a tool be called: a small one lists few tools, but excludes none."""
    return choice != "read-only" or tool.effect == "read"


_ANY_JSON_REF: Final = "#/$defs/JsonValue"
"""How pydantic refers to any JSON."""
_RECURSIVE_TYPES: Final = {"JSONValue": JsonValue}
"""Recursive types, by the name that annotations call them by."""
_SUBMIT_OPTIONS: Final[Mapping[str, tuple[type, object, str]]] = {
    "reason": (str, "", "Why this change is made; kept in the journal."),
    "dry_run": (bool, False, "Report what would happen, and change nothing."),
}


_WRITE_RESULT_TEXT: Final = (
    "`status` is applied; or proposed: then nothing has changed yet, and `message` says how a person accepts it; "
    "or refused, by a person who was asked."
)
"""What the description of every tool that writes says of its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameters:
    """The parameters of a tool."""

    model: type[BaseModel]
    """Checks the arguments of a call."""
    submit_options: tuple[str, ...]
    """Those that say how a change is submitted; the function doesn't receive them."""
    optional: frozenset[str]
    """Those that the function receives only where they are given."""


@cache
def parse_parameters(row: ToolSpec) -> ToolParameters:
    """Build the model that checks a tool's arguments.

    Raises:
        TypeError: JSON can't express a parameter's type.
    """
    annotations = get_type_hints(row.function, None, _RECURSIVE_TYPES, include_extras=True)
    doc = docstring_parser.parse(_docstring(row.function), style=docstring_parser.DocstringStyle.GOOGLE)
    docs = {one.arg_name: _join_lines(one.description) for one in doc.params}
    fields: dict[str, Any] = {}
    optional: set[str] = set()
    for parameter in list(inspect.signature(row.function).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            # The keys of the TypedDict in ``**more: Unpack[…]``.
            (typed_dict,) = get_args(annotations[parameter.name])
            kinds = get_type_hints(typed_dict, None, _RECURSIVE_TYPES, include_extras=True)
            for name, kind in kinds.items():
                parameter_type = get_args(kind)[0] if get_origin(kind) in {NotRequired, Required} else kind
                fields[name] = (parameter_type, Field(default=None, description=docs.get(name)))
                optional.add(name)
        else:
            default: Any = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[parameter.name] = (annotations[parameter.name], Field(default, description=docs.get(parameter.name)))
    option_names = tuple(name for name in _SUBMIT_OPTIONS if row.takes_submit_options and name not in fields)
    for name in option_names:
        parameter_type, default, purpose = _SUBMIT_OPTIONS[name]
        fields[name] = (parameter_type, Field(default, description=purpose))
    model = create_model(row.name, __config__=ConfigDict(extra="forbid"), **fields)
    return ToolParameters(model=model, submit_options=option_names, optional=frozenset(optional))


@cache
def parameter_schema(row: ToolSpec, *, brief: bool = False) -> dict[str, JSONValue]:
    """Return the JSON Schema of a tool's arguments.

    Args:
        row: The tool.
        brief: Leave out those that a model can do without.
    """
    json_schema = parse_parameters(row).model.model_json_schema()
    simplified = _simplify_object(json_schema)
    properties = object_or_empty(simplified.get("properties"))
    # None stands for "not given" inside only; a client that reads it would take null for a value.
    for name in parse_parameters(row).optional:
        object_or_empty(properties[name]).pop("default", None)
    if brief:
        kept_names = set(row.shown or properties) - set(parse_parameters(row).submit_options)
        simplified["properties"] = {
            name: property_schema for name, property_schema in properties.items() if name in kept_names
        }
    return {"type": "object", "properties": {}, **simplified, "additionalProperties": False}


@cache
def answer_schema(row: ToolSpec) -> dict[str, JSONValue]:
    """Return the JSON Schema of what a tool answers when it succeeds."""
    return {"type": "object", **type_schema(answer_type(row))}


def type_schema(kind: Any, writer: type[GenerateJsonSchema] = GenerateJsonSchema) -> dict[str, JSONValue]:  # noqa: ANN401 - a type, or what stands for one
    """Return the JSON Schema of a type's values as JSON shows them.

    Args:
        kind: A TypedDict, a dataclass, or a type made of such: ``list[NotePreview]``.
        writer: Writes the schema.
    """
    return _simplify_object(TypeAdapter[Any](kind).json_schema(mode="serialization", schema_generator=writer))


@cache
def field_docs(shape: type) -> dict[str, str]:
    """Return the docstrings below the fields of a TypedDict or a dataclass, and of those that it extends.

    Raises:
        OSError: A module's source isn't there any more.
        SyntaxError: It is being replaced.
    """
    docs: dict[str, str] = {}
    for base in (*shape.__bases__, *getattr(shape, "__orig_bases__", ())):
        origin = get_origin(base) or base
        docs |= field_docs(origin) if is_typeddict(origin) or is_dataclass(origin) else {}
    return docs | _module_field_docs(shape.__module__).get(shape.__name__, {})


@cache
def _module_field_docs(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields by class; a module is parsed once, which takes longer than all else of it."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_find_field_docs(node.body)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _find_field_docs(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, below in pairwise(body):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, _join_lines(text)
            case _:
                pass


def answer_type(row: ToolSpec) -> Any:  # noqa: ANN401 - a type, which may be a TypedDict and so no class
    """Return the TypedDict that a tool declares as its answer."""
    return_type = get_type_hints(row.function, None, _RECURSIVE_TYPES, include_extras=True)["return"]
    shape = get_args(return_type)[1] if get_origin(return_type) is Annotated else return_type
    if not is_typeddict(shape):
        raise TypeError(f"the tool {row.name} doesn't say what it answers: -> Shape")
    return shape


@cache
def summarize(row: ToolSpec) -> str:
    """Return a sentence on what a tool does."""
    return _join_lines(docstring_parser.parse(_docstring(row.function)).short_description)


@cache
def describe(row: ToolSpec, *, brief: bool = False) -> str:
    """Return what a tool does, and what it answers; *brief* leaves out what each answer of a write says itself."""
    doc = docstring_parser.parse(_docstring(row.function), style=docstring_parser.DocstringStyle.GOOGLE)
    parts = [_join_lines(doc.short_description), _join_lines(doc.long_description)]
    if doc.returns is not None:
        return_parts = [part for part in (doc.returns.type_name, doc.returns.description) if part]
        text = _join_lines(": ".join(return_parts))
        parts.append(f"Returns {text}" if text.startswith("`") else f"Returns: {text}")
    if row.takes_submit_options and not brief:
        parts.append(_WRITE_RESULT_TEXT)
    return "\n\n".join(part for part in parts if part)


def _docstring(function: Callable[..., object]) -> str:
    return inspect.getdoc(function) or ""


def _join_lines(text: str | None) -> str:
    """Join a paragraph's lines, and mark code as Markdown does."""
    paragraphs = (text or "").replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def _simplify_schema(value: JSONValue) -> JSONValue:
    """Drop titles, which only repeat names, and replace pydantic's verbose schema of any JSON by an empty one."""
    if is_list(value):
        return [_simplify_schema(each) for each in value]
    if not is_object(value):
        return value
    return _simplify_object(value)


def _simplify_object(node: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    if node.get("$ref") == _ANY_JSON_REF:
        return {}
    named_nodes = {name: child for name in ("properties", "$defs") if is_object(child := node.get(name))}
    simplified: dict[str, JSONValue] = {
        name: _simplify_schema(child)
        for name, child in node.items()
        if name not in named_nodes
        and not (name == "title" and isinstance(child, str))
        and not (name in {"anyOf", "additionalProperties"} and _allows_any_json(child))
    }
    for name, nodes in named_nodes.items():
        children = {
            key: _simplify_schema(each) for key, each in nodes.items() if key != _ANY_JSON_REF.rpartition("/")[2]
        }
        if children or name == "properties":
            simplified[name] = children
    return simplified


def _allows_any_json(value: object) -> bool:
    """Return whether a schema, or its list of choices, accepts any JSON."""
    if is_object(value):
        return value.get("$ref") == _ANY_JSON_REF or _allows_any_json(value.get("anyOf"))
    return any(choice.get("items") == {"$ref": _ANY_JSON_REF} for choice in objects_in(value))


PARAMETER_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("q", "search", "search_query", "text"),
    "path": ("file", "file_path", "filepath", "filename", "note", "note_path"),
    "paths": ("files", "file_paths", "notes"),
    "content": ("new_content", "body", "markdown"),
    "old_text": ("old", "old_str", "old_string", "find"),
    "new_text": ("new", "new_str", "new_string", "replace", "replacement"),
    "n_results": ("limit", "top_k", "k", "max_results", "num_results"),
    "limit": ("n_results", "max_results", "top_k"),
    "folder": ("directory", "dir", "folder_path"),
    "source": ("from", "src", "old_path", "source_path"),
    "destination": ("to", "dest", "dst", "new_path", "destination_path"),
    "heading": ("section", "section_heading"),
    "field": ("property", "key"),
    "note_name": ("note", "name", "path"),
    "proposal_id": ("proposal", "id"),
    "change_id": ("change", "id"),
    "url": ("uri", "link", "address"),
    "expected_hash": ("hash", "base_hash"),
}
"""Names that are often guessed for a parameter; one counts only where the tool has no parameter of that name."""
_MAX_PROBLEMS: Final = 20
"""Most arguments that one error lists: a hundred thousand unknown ones would be megabytes."""
_MAX_NAME_LENGTH: Final = 200
"""Most characters of an argument's name in an error."""
_PROBLEM_TEXTS: Final[Mapping[str, str]] = {
    "missing": "it is needed",
    "extra_forbidden": "there is no such parameter",
    "sequence_str": 'input should be a list, such as ["a"]',
    "is_instance_of": "input should be a list",
    "dict_type": "input should be an object",
}
"""Problems in plain words, where pydantic's own words are Python's."""


def invoke_tool(row: ToolSpec, context: Context, arguments: Mapping[str, object]) -> Answer:
    """Call a tool.

    Args:
        row: The tool.
        context: The vault, as the client sees it.
        arguments: By name; names that are often guessed are understood, and null stands for an omitted one.

    Raises:
        BadInput: An argument is missing, unknown or of another type.
        StorageError: A file of the program's state is damaged, or can't be read.
        KnapError: As the tool says.
    """
    values = check_arguments(row, arguments)
    submit_options = {name: values.pop(name) for name in parse_parameters(row).submit_options}
    if any(submit_options.values()):
        from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - reading needn't pay for it

        context = replace(context, submit_options=replace(context.submit_options or SubmitOptions(), **submit_options))
    try:
        return answers.as_json(row.function(context, **values))
    except CallerError as error:
        given = {name: value for name, value in arguments.items() if value is not None}
        sent_names = _sent_names(parse_parameters(row).model.model_fields, given)
        # A message that begins with a parameter, ``n_results is 0``, names it as the caller did.
        name, _, rest = error.message.partition(" ")
        if name in sent_names:
            error.message = f"{sent_names[name]} {rest}"
            error.args = (error.message,)
        raise
    except ImportError as error:
        problem = extras.explain_import(error)
        if problem is None:
            raise
        raise problem from error
    # A damaged file of the state shows only when it is queried, deep inside a tool.
    except DAMAGE_ERRORS as error:
        failure = context.index.explain(error) or database.as_storage_error(error)
        if failure is None:
            raise
        raise failure from error


def invoke_or_error(row: ToolSpec, context: Context, arguments: Mapping[str, object]) -> Answer:
    """Call a tool, and return an error as its answer."""
    try:
        return invoke_tool(row, context, arguments)
    except KnapError as error:
        return answers.as_json(error.as_dict())


def check_arguments(row: ToolSpec, arguments: Mapping[str, object]) -> dict[str, object]:
    """Check a tool's arguments, and return all that its function takes.

    Many clients send null for what they leave out, whatever the schema says. Null counts as omitted, unless the
    parameter accepts null or is required.

    Raises:
        BadInput: One is missing, unknown or of another type.
    """
    tool_parameters = parse_parameters(row)
    _check_unicode(row, arguments)
    sent_names = _sent_names(tool_parameters.model.model_fields, arguments)
    own_names = {alias: name for name, alias in sent_names.items()}
    named = {own_names.get(name, str(name)): value for name, value in arguments.items()}
    try:
        model = tool_parameters.model.model_validate(named)
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False, include_context=False)
        refused = {str(entry["loc"][0]) for entry in entries if entry["loc"]}
        # Optional parameters that were refused for being null.
        own_fields = tool_parameters.model.model_fields
        nulls = {
            name
            for name in refused & set(own_fields)
            if named.get(name, "") is None and not own_fields[name].is_required()
        }
        if nulls:
            rest = {name: value for name, value in arguments.items() if own_names.get(name, name) not in nulls}
            return check_arguments(row, rest)
        raise _arguments_error(row, named, error, sent_names) from None
    unset = tool_parameters.optional - model.model_fields_set
    return {name: getattr(model, name) for name in type(model).model_fields if name not in unset}


def _check_unicode(row: ToolSpec, arguments: Mapping[str, object]) -> None:
    """Refuse unpaired surrogates, which JSON can hold and no file or database can."""
    try:
        json.dumps(arguments, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        hint = "escape sequences from \\ud800 to \\udfff are valid only in pairs"
        raise BadInput(f"{row.name} was given text that isn't valid Unicode", hint=hint, code="bad_arguments") from None
    except (ValueError, RecursionError) as error:
        hint = "give its arguments as one JSON object"
        raise BadInput(f"{row.name} was given what isn't JSON: {error}", hint=hint, code="bad_arguments") from None


def _sent_names(fields: Mapping[str, object], arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the parameters that were given under an alias, each with that; their own name wins."""
    sent_names: dict[str, str] = {}
    for name in fields:
        aliases = () if name in arguments else PARAMETER_ALIASES.get(name, ())
        for alias in aliases:
            if alias in arguments and alias not in fields and alias not in sent_names.values():
                sent_names[name] = alias
                break
    return sent_names


def _arguments_error(
    row: ToolSpec, arguments: Mapping[str, object], error: ValidationError, sent_names: Mapping[str, str]
) -> BadInput:
    messages: dict[str, list[str]] = {}
    for entry in error.errors(include_url=False, include_input=False, include_context=False):
        steps = [str(step) for step in _error_path(arguments, entry["loc"])]
        where = ".".join([*(sent_names.get(name, name) for name in steps[:1]), *steps[1:]])
        text = _PROBLEM_TEXTS.get(entry["type"]) or f"{entry['msg'][:1].lower()}{entry['msg'][1:]}"
        messages.setdefault(where, []).append(text)
    problems = [
        {"parameter": name[:_MAX_NAME_LENGTH], "problem": ", or ".join(dict.fromkeys(texts))}
        for name, texts in islice(messages.items(), _MAX_PROBLEMS)
    ]
    first = problems[0]
    parameter_names = ", ".join(row_name for row_name in parse_parameters(row).model.model_fields)
    return BadInput(
        f"{row.name} can't be called so: {first['parameter'] or 'arguments'}: {first['problem']}",
        hint=f"it takes {parameter_names}" if parameter_names else "it takes no arguments",
        code="bad_arguments",
        details={"problems": problems},
    )


def _error_path(value: object, location: Sequence[int | str]) -> Iterator[int | str]:
    """Yield the path from the arguments to the problem, without the types that pydantic tried on the way."""
    for number, step in enumerate(location):
        node: object = None
        if is_object(value) and step in value:
            node = value.get(str(step))
        elif is_list(value) and isinstance(step, int):
            node = value[step]
        elif number:
            return
        yield step
        value = node


class DescribedTool(TypedDict):
    """A tool as a program lists it."""

    name: str
    title: str
    description: str
    effect: ToolEffect
    profile: ToolProfile
    open_world: bool
    parameters: dict[str, JsonValue]
    """JSON Schema of the arguments."""
    returns: dict[str, JsonValue]
    """JSON Schema of the answer."""


VaultOpener = Callable[[str], Context]
"""Opens a vault by name for the client that calls; empty for the default one."""
_VAULT_PARAMETER: Final = "vault"
CALL_TOOL: Final = "call_tool"
"""The tool that calls others."""
_INNER_ARGUMENTS: Final = "arguments"
"""The parameter that holds those of the other tool."""


class ToolTable:
    """The tools of all layers, from which every surface derives what it offers."""

    def __init__(self, rows: Iterable[ToolSpec], vaults: Sequence[str] = ()) -> None:
        """Index the rows by name.

        Args:
            rows: The tools, in the order in which they are listed.
            vaults: Names of the vaults; where there are several, every tool takes one.

        Raises:
            ValueError: Two rows have one name.
        """
        specs = tuple(rows)
        self._specs = {row.name: row for row in specs}
        if len(self._specs) != len(specs):
            raise ValueError("two tools have one name")
        self._vaults = tuple(vaults)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return every row."""
        return tuple(self._specs.values())

    def listed_tools(self, choice: ToolSelection) -> tuple[ToolSpec, ...]:
        """Return the rows that a selection lists."""
        return tuple(row for row in self.specs if is_listed(row, choice))

    def find(self, name: str, choice: ToolSelection = "full") -> ToolSpec:
        """Return a tool's row.

        Args:
            name: The tool's name.
            choice: What the caller may use; the hint names no other tool.

        Raises:
            NotFound: There is no such tool; the hint names the nearest.
        """
        row = self._specs.get(name)
        if row is None:
            callable_names = (row.name for row in self.specs if is_callable(row, choice) and not row.is_twin)
            hint = suggest_tools(name, callable_names)
            raise NotFound(f"there is no tool '{name}'", hint=hint, code="no_tool")
        return row

    def parameters(
        self, row: ToolSpec, *, brief: bool = False, vaults: Sequence[str] | None = None
    ) -> dict[str, JSONValue]:
        """Return the JSON Schema of a tool's arguments, the vault's name among them where there are several.

        Args:
            row: The tool.
            brief: Leave out those that a model can do without.
            vaults: Names of those that the reader may open, the default one first; None for all.
        """
        return add_vault_parameter(parameter_schema(row, brief=brief), self._vaults if vaults is None else vaults)

    def describe(self, row: ToolSpec, vaults: Sequence[str] | None = None) -> DescribedTool:
        """Describe a tool for a program; *vaults* is as for `parameters`."""
        return {
            "name": row.name,
            "title": row.title,
            "description": describe(row),
            "effect": row.effect,
            "profile": row.profile,
            "open_world": row.open_world,
            "parameters": self.parameters(row, vaults=vaults),
            "returns": answer_schema(row),
        }

    def call(self, name: str, arguments: Mapping[str, object], open_vault: VaultOpener) -> Answer:
        """Call a tool.

        Raises:
            KnapError: There is no such tool or vault, an argument can't be used, or the tool fails.
        """
        row = self.find(name)
        values = dict(arguments)
        vault = self._take_vault(name, values)
        inner = values.get(_INNER_ARGUMENTS)
        # Models also put the vault among the inner tool's arguments.
        if name == CALL_TOOL and is_object(inner):
            values[_INNER_ARGUMENTS] = inner_values = dict[str, object](inner)
            vault = self._take_vault(str(values.get("name", name)), inner_values) or vault
        return invoke_tool(row, open_vault(vault), values)

    def _take_vault(self, name: str, arguments: dict[str, object]) -> str:
        vault = arguments.pop(_VAULT_PARAMETER, None) if self._vaults else None
        if vault is None:
            return ""
        if not isinstance(vault, str):
            hint = "give the vault's name, or leave it out"
            raise BadInput(f"{name} can't be called so: vault: it should be a text", hint=hint, code="bad_arguments")
        return vault

    def answer(self, name: str, arguments: Mapping[str, object], open_vault: VaultOpener) -> Answer:
        """Call a tool, and return an error as its answer."""
        try:
            return self.call(name, arguments, open_vault)
        except KnapError as error:
            return answers.as_json(error.as_dict())


def add_vault_parameter(parameters: Mapping[str, JSONValue], vaults: Sequence[str]) -> dict[str, JSONValue]:
    """Return the schema of a tool's arguments with the vault's name among them, where there are several vaults."""
    if len(vaults) < 2:
        return dict(parameters)
    names: list[JSONValue] = [*vaults]
    vault: dict[str, JSONValue] = {
        "type": "string",
        "enum": names,
        "default": vaults[0],
        "description": "Name of the vault to work in.",
    }
    properties: dict[str, JSONValue] = {
        **object_or_empty(parameters["properties"]),
        _VAULT_PARAMETER: vault,
    }
    return {**parameters, "properties": properties}


_MIN_LIKENESS: Final = 60
"""Least likeness of a name that is suggested, of 100."""
_LIKENESS_RANGE: Final = 15
"""How much less like the nearest name another one may be."""
_MAX_SUGGESTIONS: Final = 3


def suggest_tools(name: str, known: Iterable[str]) -> str:
    """Make a hint of the tool names that are most like *name*: ``did you mean 'find_tool' or 'find_notes'?``."""
    from rapidfuzz import process  # noqa: PLC0415 - only a mistyped name costs it

    matches = process.extract(name, list(known), score_cutoff=_MIN_LIKENESS, limit=_MAX_SUGGESTIONS)
    if not matches:
        return "find_tool finds tools by what they do"
    nearest = [f"'{match}'" for match, likeness, _ in matches if likeness >= matches[0][1] - _LIKENESS_RANGE]
    return f"did you mean {' or '.join([', '.join(nearest[:-1]), nearest[-1]] if nearest[1:] else nearest)}?"
