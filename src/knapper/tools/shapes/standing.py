"""Say how an index stands, as tools answer it."""

from typing_extensions import TypedDict


class Skipped(TypedDict):
    """Name a file that the index holds only in part, or not at all."""

    path: str
    code: str
    problem: str
    line: int


class Status(TypedDict):
    """Say how a vault's index stands."""

    success: bool
    vault: str
    notes: int
    files: int
    chunks: int
    embedded: int
    pending: int
    problems: int
    skipped: list[Skipped]
    model: str
    size_bytes: int
    index_incomplete: bool
    built: str
