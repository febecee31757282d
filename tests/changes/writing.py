"""Read and show what operations do to a note, in the signs of the cases."""

from collections.abc import Callable, Iterable

from knapper.changes.text import splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.errors import KnapError
from tests.vault import cases

Act = Callable[[Snapshot, str, str], Splice | Iterable[Splice]]


def result(raw: bytes, act: Callable[[Snapshot], Splice | Iterable[Splice]]) -> bytes:
    """Give a note after an operation."""
    made = act(splices.take_snapshot(raw))
    return splices.merge(raw, [made] if isinstance(made, Splice) else made)


def played(raw: bytes, wanted: str, act: Act) -> str:
    """Do what each line ``target <- text => result`` asks for, each on the same note."""
    return "\n".join(_row(raw, row, act) for row in wanted.split("\n"))


def _row(raw: bytes, row: str, act: Act) -> str:
    call, _, _ = row.partition("=> ")
    target, _, text = call.partition("<-")
    try:
        after = result(raw, lambda note: act(note, target.rstrip(), text.strip(" ").replace("⏎", "\n")))
    except KnapError as error:
        return f"{call}=> {error.code}"
    return f"{call}=> {cases.shown(after).replace(chr(0xFEFF), '␂')}"
