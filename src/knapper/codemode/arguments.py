"""Take the arguments of a script's call: nothing about them is known."""

from collections.abc import Collection, Mapping
from typing import Final

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

_PATH: Final = 4_096
_MANY: Final = 1_000


def check(method: str, given: Mapping[str, JSONValue], known: Collection[str]) -> None:
    """Refuse what a method doesn't take.

    Raises:
        BadInput: There is an argument of another name.
    """
    strange = next((name for name in given if name not in known), None)
    if strange is not None:
        raise BadInput(f"{method} takes no '{strange[:100]}'", hint=f"it takes {', '.join(known)}")


def text(given: Mapping[str, JSONValue], name: str, most: int = _PATH) -> str:
    """Give a text.

    Raises:
        BadInput: It is none, or too long.
    """
    value = given.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{name} isn't a text")
    if len(value) > most:
        raise BadInput(f"{name} has {len(value):,} characters, and {most:,} are the most")
    return value


def maybe_text(given: Mapping[str, JSONValue], name: str) -> str:
    """Give a text; empty where there is none.

    Raises:
        BadInput: It is something else, or too long.
    """
    return "" if given.get(name) is None else text(given, name)


def texts(given: Mapping[str, JSONValue], name: str) -> list[str]:
    """Give a list of texts; empty where there is none.

    Raises:
        BadInput: It is something else, or too long.
    """
    values = given.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) > _MANY:
        raise BadInput(f"{name} isn't a list of at most {_MANY:,} texts")
    return [text({name: value}, name) for value in values]


def whole(given: Mapping[str, JSONValue], name: str, otherwise: int) -> int:
    """Give a whole number; another where there is none.

    Raises:
        BadInput: It is something else.
    """
    value = given.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} isn't a whole number")
    return value


def flag(given: Mapping[str, JSONValue], name: str) -> bool:
    """Give yes or no; no where there is none.

    Raises:
        BadInput: It is something else.
    """
    value = given.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadInput(f"{name} is neither True nor False")
    return value


def mapping(given: Mapping[str, JSONValue], name: str) -> dict[str, JSONValue]:
    """Give a dictionary; empty where there is none.

    Raises:
        BadInput: It is something else.
    """
    value = given.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"{name} isn't a dictionary")
    return value
