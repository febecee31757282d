"""Call tools by name, with arguments as programs and models send them."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, cast

from pydantic import BaseModel, ValidationError

from knapper.errors import BadInput, KnapError
from knapper.index import database
from knapper.tools import schema
from knapper.tools.context import Context
from knapper.tools.rows import Row
from knapper.tools.shapes import Answer

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
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
_TOLD: Final = 20
"""Arguments that are told of at once: a hundred thousand unknown ones would be megabytes."""
_NAME: Final = 200
"""Characters of an argument's name that are told."""
_PROBLEMS: Final[Mapping[str, str]] = {
    "missing": "it is needed",
    "extra_forbidden": "there is no such parameter",
    "sequence_str": 'input should be a list, such as ["a"]',
    "is_instance_of": "input should be a list",
    "dict_type": "input should be an object",
}
"""What is wrong, where pydantic's own words are those of Python."""


def call(row: Row, context: Context, arguments: Mapping[str, object]) -> Answer:
    """Call a tool.

    Args:
        row: Which.
        context: The vault, as the client sees it.
        arguments: By name; names that are often guessed are understood, and null stands for left out.

    Raises:
        BadInput: An argument is missing, unknown or of another type.
        StorageError: A file of the program's state is damaged, or can't be read.
        KnapError: As the tool says.
    """
    given = check(row, arguments)
    asked = {name: given.pop(name) for name in schema.taken(row).asked}
    if any(asked.values()):
        from knapper.changes.writer import SubmitOptions  # noqa: PLC0415 - reading needn't pay for it

        context = replace(context, asked=replace(context.asked or SubmitOptions(), **asked))
    try:
        return row.function(context, **given)
    except sqlite3.DatabaseError as error:
        found = database.as_storage_error(error)
        if found is None:
            raise
        raise found from error


def answer(row: Row, context: Context, arguments: Mapping[str, object]) -> Answer:
    """Call a tool; an error is an answer too."""
    try:
        return call(row, context, arguments)
    except KnapError as error:
        return cast("Answer", error.as_dict())


def check(row: Row, arguments: Mapping[str, object]) -> dict[str, object]:
    """Check a tool's arguments, and give all that its function takes.

    Many clients send null for what they leave out, whatever the schema says: it is taken so, unless null is a value
    that the parameter can have, or the parameter is needed.

    Raises:
        BadInput: One is missing, unknown or of another type.
    """
    taken = schema.taken(row)
    _check_text(row, arguments)
    known = _renamed(taken.model.model_fields, arguments)
    try:
        model = taken.model.model_validate(known)
    except ValidationError as error:
        left_out = _left_out(taken.model, known, error)
        if left_out:
            return check(row, {name: value for name, value in known.items() if name not in left_out})
        raise _refusal(row, known, error) from None
    unsaid = taken.optional - model.model_fields_set
    return {name: getattr(model, name) for name in type(model).model_fields if name not in unsaid}


def _check_text(row: Row, arguments: Mapping[str, object]) -> None:
    """Refuse halves of characters, which JSON can hold and no file or database can."""
    try:
        json.dumps(arguments, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        hint = "a \\ud800 to \\udfff needs its other half"
        raise BadInput(f"{row.name} was given text that isn't valid Unicode", hint=hint, code="bad_arguments") from None
    except (ValueError, RecursionError) as error:
        hint = "give its arguments as one JSON object"
        raise BadInput(f"{row.name} was given what isn't JSON: {error}", hint=hint, code="bad_arguments") from None


def _renamed(known: Mapping[str, object], arguments: Mapping[str, object]) -> dict[str, object]:
    """Give arguments their right names; what is given under its right name wins."""
    given = {str(name): value for name, value in arguments.items()}
    for name in known:
        if name in given:
            continue
        guess = next((one for one in ALIASES.get(name, ()) if one in given and one not in known), None)
        if guess is not None:
            given[name] = given.pop(guess)
    return given


def _left_out(model: type[BaseModel], given: Mapping[str, object], error: ValidationError) -> set[str]:
    """Name the parameters that needn't be given and were refused for being null."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    refused = {str(one["loc"][0]) for one in found if one["loc"]}
    fields = model.model_fields
    return {name for name in refused & set(fields) if given.get(name, "") is None and not fields[name].is_required()}


def _refusal(row: Row, given: Mapping[str, object], error: ValidationError) -> BadInput:
    found: dict[str, list[str]] = {}
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(map(str, _place(given, one["loc"])))
        found.setdefault(where, []).append(_problem(one["type"], one["msg"]))
    problems = [
        {"parameter": name[:_NAME], "problem": ", or ".join(dict.fromkeys(said))}
        for name, said in islice(found.items(), _TOLD)
    ]
    first = problems[0]
    known = ", ".join(row_name for row_name in schema.taken(row).model.model_fields)
    return BadInput(
        f"{row.name} can't be called so: {first['parameter'] or 'arguments'}: {first['problem']}",
        hint=f"it takes {known}" if known else "it takes no arguments",
        code="bad_arguments",
        details={"problems": problems},
    )


def _place(given: object, where: Sequence[int | str]) -> Iterator[int | str]:
    """Give the steps from the arguments to what is wrong, without the types that pydantic tried on the way."""
    for number, step in enumerate(where):
        node: object = None
        if isinstance(given, Mapping) and step in given:
            node = cast("Mapping[object, object]", given)[step]
        elif isinstance(given, list) and isinstance(step, int):
            node = cast("list[object]", given)[step]
        elif number:
            return
        yield step
        given = node


def _problem(kind: str, message: str) -> str:
    return _PROBLEMS.get(kind) or f"{message[:1].lower()}{message[1:]}"
