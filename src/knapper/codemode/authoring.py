"""Describe a vault to a model, and have the model write, repair and rewrite retrieval scripts."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final, Literal, get_args

from knapper.codemode import bridge
from knapper.codemode.guest import obsidian, rules
from knapper.codemode.tasks import AskModel, ModelSpend, Prompt, PromptData
from knapper.index.catalog import ListingQuery, SortOrder
from knapper.index.documents import Filter
from knapper.jsontypes import JSONValue, object_or_empty
from knapper.tools import answers
from knapper.tools.context import Context, ToolSignature

_MAX_FOLDERS: Final = 30
_MAX_SUBFOLDERS: Final = 8
"""Folders whose subfolders are named too."""
_MAX_TAGS: Final = 30
_MAX_PROPERTIES: Final = 15
_MAX_VALUES: Final = 5
"""Example values of a property; only those that several notes share."""
_SAMPLE_SIZE: Final = 400
"""Notes whose properties are counted."""
_MAX_LATEST: Final = 5
_MAX_NAME: Final = 80
"""Most characters of a name or value."""


def describe_vault(context: Context) -> dict[str, JSONValue]:
    """Describe a vault.

    Returns:
        ``{"vault": …, "notes": 120, "characters": {"usual": 900, "longest": 52000}, "folders": {"Projects/": 40, …},
        "tags": {"#plan": 12, …}, "properties": {"status": {"notes": 30, "values": ["open", …]}, …}, "latest": […]}``;
        nothing of what the policy hides, no text of notes, and no properties of notes that others wrote.
    """
    where = context.restrict(Filter(kinds=("note",)))
    catalog = context.index.catalog
    sample = catalog.find(
        ListingQuery(where=where, order=SortOrder(by="modified", descending=True), limit=_SAMPLE_SIZE)
    )
    sizes = sorted(entry.size for entry in sample.entries)
    largest = catalog.find(ListingQuery(where=where, order=SortOrder(by="size", descending=True), limit=1)).entries
    folders: dict[str, JSONValue] = {}
    top = sorted(catalog.folders(where, ""), key=lambda one: (-one.files, one.path))[:_MAX_FOLDERS]
    for number, folder in enumerate(top):
        folders[_shorten(f"{folder.path}/")] = folder.files
        inner = catalog.folders(where, folder.path) if number < _MAX_SUBFOLDERS else []
        for one in sorted(inner, key=lambda one: (-one.files, one.path))[:_MAX_SUBFOLDERS]:
            folders[_shorten(f"{one.path}/")] = one.files
    tags: dict[str, JSONValue] = {
        _shorten(f"#{tag.name}"): tag.notes for tag in catalog.tag_counts(where, limit=_MAX_TAGS).tags
    }
    latest: list[JSONValue] = [_shorten(entry.path) for entry in sample.entries[:_MAX_LATEST]]
    return {
        "vault": context.vault,
        "notes": sample.total,
        "bytes": {"usual": sizes[len(sizes) // 2] if sizes else 0, "longest": largest[0].size if largest else 0},
        "folders": folders,
        "tags": tags,
        "properties": _count_properties(
            # Property values of notes by others would enter the prompt.
            [one.properties for one in sample.entries if not answers.is_foreign_entry(context, one)]
        ),
        "latest": latest,
    }


def _count_properties(notes: Sequence[Mapping[str, JSONValue]]) -> dict[str, JSONValue]:
    """Count properties, with the values that several notes share as examples."""
    names: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    for properties in notes:
        for name, value in properties.items():
            names[name] += 1
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str | int | float) and not isinstance(one, bool) and str(one).strip():
                    values.setdefault(name, Counter())[str(one)] += 1
    described: dict[str, JSONValue] = {}
    for name, count in names.most_common(_MAX_PROPERTIES):
        shared: list[JSONValue] = [
            _shorten(value) for value, times in values.get(name, Counter()).most_common(_MAX_VALUES) if times > 1
        ]
        described[_shorten(name)] = {"notes": count, "values": shared}
    return described


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}\u2026"


MAX_REPLY: Final = 200_000
"""Most characters of a reply that are parsed."""
_CODE_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,200}|~{3,200})[ \t]*(\w{0,20})[^`\n]*")
_PYTHON_LANGUAGES: Final = frozenset({"", "python", "py", "python3"})
_MAX_ERROR: Final = 2_000

PromptKind = Literal["first", "mend", "again"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptDraft:
    """A script that a model wrote; it hasn't run."""

    script: str
    usage: ModelSpend


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptAuthor:
    """An author of scripts for tasks over one vault, which has a model write them.

    ``ScriptAuthor(ask=ask, shape=shape).write_first("Who pays for the fence?")`` returns a draft.
    """

    ask: AskModel
    shape: Mapping[str, JSONValue]
    """The vault, from `describe_vault`."""
    methods: tuple[str, ...] = ()
    """Optional methods that these scripts have."""
    tools: tuple[ToolSignature, ...] = ()
    """Tools that scripts can call."""

    def write_first(self, task: str) -> ScriptDraft:
        """Write a script.

        Raises:
            KnapError: The model doesn't answer.
        """
        return self._write("first", task)

    def repair(self, task: str, script: str, error: str) -> ScriptDraft:
        """Rewrite a script that couldn't be used.

        Args:
            task: What it is for.
            script: As it was.
            error: What went wrong, with the line.

        Raises:
            KnapError: The model doesn't answer.
        """
        return self._write(
            "mend",
            task,
            PromptData(source="script", value=script),
            PromptData(source="error", value=error[:_MAX_ERROR]),
        )

    def write_again(self, task: str, script: str, hints: Mapping[str, JSONValue]) -> ScriptDraft:
        """Write another script where one found too little.

        Args:
            task: What it is for.
            script: The one that found too little.
            hints: What was found, and what is missing.

        Raises:
            KnapError: The model doesn't answer.
        """
        findings = PromptData(source="what was found", value=dict(hints))
        return self._write("again", task, PromptData(source="script", value=script), findings)

    def _write(self, occasion: PromptKind, task: str, *more: PromptData) -> ScriptDraft:
        data = (PromptData(source="task", value=task), PromptData(source="vault", value=dict(self.shape)), *more)
        prompt = Prompt(instructions=self.instructions(), request=_prompt_text(occasion), data=data)
        reply = self.ask(prompt)
        return ScriptDraft(script=extract_script(reply.text), usage=reply.usage)

    def instructions(self) -> str:
        """Return the rules with the interface that scripts have here."""
        interface = interface_stub(self.methods, self.tools)
        return f"{_prompt_text('script')}\n\n## What a script has\n\n```python\n{interface}\n```"


def prompt_texts() -> list[str]:
    """Return every prompt text for writing scripts, without the vault's data."""
    return [_prompt_text(name) for name in ("script", *get_args(PromptKind))]


def extract_script(reply: str) -> str:
    """Return the script in a reply: its longest block of Python, or all of it where there is no block."""
    text = reply[:MAX_REPLY]
    blocks = [block for language, block in _fenced_blocks(text) if language in _PYTHON_LANGUAGES]
    return max(blocks, key=len).strip() if blocks else text.strip()


def _fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of fenced blocks; one that isn't closed extends to the end."""
    fence, language, block_lines = "", "", list[str]()
    for line in text.split("\n"):
        if fence and line.strip() == fence:
            yield language, "\n".join(block_lines)
            fence = ""
        elif fence:
            block_lines.append(line)
        elif match := _CODE_FENCE.fullmatch(line):
            fence, language, block_lines = match[1], match[2].casefold(), []
    if fence:
        yield language, "\n".join(block_lines)


def _prompt_text(name: str) -> str:
    return resources.files("knapper.codemode").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


_JSON_ANNOTATION: Final = str(obsidian.JSON)
_MODULE_PREFIX: Final = re.compile(r"\b(?:knapper\.codemode\.guest\.obsidian|collections\.abc)\.")
_FOUND_COMMENT: Final = "# Found: {path: str, content: str, score: float; vault: str where vaults were named}"
_OPTIONAL_METHODS: Final = ("read_file", "http_get")
_PYTHON_TYPES: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def interface_stub(methods: Iterable[str] = (), tools: Iterable[ToolSignature] = ()) -> str:
    """Return the Python stub of what a script has.

    Args:
        methods: The optional methods that it has.
        tools: The tools that it can call.
    """
    available = frozenset(methods)
    lines = [f"# imports: {', '.join(rules.ALLOWED)}", _FOUND_COMMENT, "class obsidian:"]
    for name, function in vars(obsidian.Obsidian).items():
        if (
            name.startswith("_")
            or not inspect.isfunction(function)
            or (name in _OPTIONAL_METHODS and name not in available)
        ):
            continue
        signature = str(inspect.signature(function)).replace("(self, ", "(").replace(_JSON_ANNOTATION, "object")
        signature = _MODULE_PREFIX.sub("", signature)
        summary = (function.__doc__ or "").partition("\n")[0]
        lines.append(f"    def {name}{signature}: ...  # {summary}")
    tool_lines: list[str] = []
    for tool in tools:
        properties, needed = object_or_empty(tool.parameters.get("properties")), bridge.required_names(tool)
        parameters: list[str] = []
        for name in bridge.parameter_names(tool):
            schema = properties[name]
            default = schema.get("default") if isinstance(schema, dict) else None
            typed = f"{name}: {_python_type(schema)}"
            parameters.append(typed if name in needed else f"{typed} = {default!r}")
        tool_lines.append(f"        def {tool.name}({', '.join(parameters)}) -> dict: ...  # {tool.summary}")
    return "\n".join([*lines, *(["    class tools:", *tool_lines] if tool_lines else [])])


def _python_type(schema: JSONValue) -> str:
    if not isinstance(schema, dict):
        return "object"
    choices = schema.get("enum")
    if isinstance(choices, list):
        return f"Literal[{', '.join(map(repr, choices))}]"
    several = schema.get("anyOf")
    if isinstance(several, list):
        return " | ".join(dict.fromkeys(map(_python_type, several)))
    items = schema.get("items")
    name = _PYTHON_TYPES.get(str(schema.get("type")), "object")
    return f"list[{_python_type(items)}]" if name == "list" and items else name
