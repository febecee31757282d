"""Types of JSON values."""

from typing import TypeAlias

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
"""What ``json.loads`` returns; also the values of a note's frontmatter."""
