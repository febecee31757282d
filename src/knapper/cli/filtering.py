"""The options that filter the notes of a command."""

from collections.abc import Callable
from typing import Any, TypedDict

import click

from knapper.cli import options
from knapper.tools.arguments import NoteFilters


class FilterOptions(TypedDict):
    """The values of the filter options."""

    exclude_folder: tuple[str, ...]
    tag: tuple[str, ...]
    exclude_tag: tuple[str, ...]
    property_test: tuple[str, ...]
    since: str
    until: str
    created_since: str
    created_until: str


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the filter options, except the folder, of which some commands take one and some several."""
    texts: dict[str, Any] = {"type": options.TEXT, "multiple": True}
    day: dict[str, Any] = {"type": options.DAY, "default": "", "metavar": "DAY"}
    tests = "name, !name, name=value, name!=value, name~part or name!~part; repeatable."
    decorators = (
        click.option("--exclude-folder", metavar="FOLDER", help="Exclude this folder; repeatable.", **texts),
        click.option(
            "--tag", metavar="TAG", help="Only notes with this tag or one nested below it; repeatable.", **texts
        ),
        click.option("--exclude-tag", metavar="TAG", help="Exclude notes with this tag; repeatable.", **texts),
        click.option("--property", "property_test", metavar="TEST", help=tests, **texts),
        click.option("--since", help="Only notes modified on this day or later.", **day),
        click.option("--until", help="Only notes modified on this day or before.", **day),
        click.option("--created-since", help="Only notes created on this day or later.", **day),
        click.option("--created-until", help="Only notes created on this day or before.", **day),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def filter_arguments(filters: FilterOptions) -> NoteFilters:
    """Return the filter as tools take it."""
    return {
        "exclude_folders": filters["exclude_folder"],
        "tags": filters["tag"],
        "exclude_tags": filters["exclude_tag"],
        "properties": filters["property_test"],
        "modified_from": filters["since"],
        "modified_to": filters["until"],
        "created_from": filters["created_since"],
        "created_to": filters["created_until"],
    }
