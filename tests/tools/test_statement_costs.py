"""What each SQL statement of a tool costs in a larger vault, after more changes and beside more proposals.

SQLite may choose an index that suits a small table alone. No test of a small vault sees that, and in a large one it
hides in the time of everything else. So SQLite's own steps are counted here, statement by statement.
"""

import collections
import random
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from knapper import app
from knapper.changes.writer import SubmitOptions
from knapper.index.words import postings
from knapper.tools import registry
from knapper.tools.context import Context
from knapper.tools.table import TOOLS
from tests.tools import opened

Costs = Mapping[tuple[str, str], int]
"""SQLite's steps, by tool and statement."""

_EVERY: Final = 5
"""Steps between two looks at what is running."""
_FEW: Final = 400
"""Steps that may be more by chance, such as a table's next level."""
_GROWTH: Final = 1.7
"""Of four times as many rows; what looks at all of them has nearly four times as many steps."""

_NOTES: Final = 120
_CHANGES: Final = 60
_PROPOSALS: Final = 20
_OPEN_PROPOSALS: Final = 6

_GROWS_WITH_NOTES: Final[Mapping[str, str]] = {
    "SELECT path, size, mtime_ns,": "compares all files, where no watcher runs",
    "SELECT COUNT(*) FROM files f": "counts what a list has in all",
    "SELECT kind, COUNT(*) FROM files": "counts all notes, by kind",
    "SELECT MIN(f.path), COUNT(*) FROM files": "counts a folder's notes",
    "SELECT MIN(folder_key) FROM files": "lists the folders",
    "SELECT key, name, COUNT(*)": "counts all tags; remembered until the vault changes",
    "UPDATE files SET racy": "for files saved within moments of being read, as many as this machine makes meanwhile",
    "COMMIT": "now and then, FTS5 joins what was added to its index since",
    "INSERT INTO chunk_words": "as COMMIT, where rows don't come in the order of their ids",
}
_GROWS_WITH_PROPOSALS: Final[Mapping[str, str]] = {
    **_GROWS_WITH_NOTES,
    "SELECT count(*) FROM proposals": "counts what a list has in all, and asks of each file whether it is still shown",
}


@dataclass(slots=True)
class _Meter:
    """Counts the steps of all connections while a tool is named."""

    tool: str = ""
    costs: dict[tuple[str, str], int] = field(default_factory=lambda: collections.defaultdict(int))

    def counting(self, base: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
        meter = self

        class Counting(base):
            statement = ""

            def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3 has it
                self._begin(sql)
                return super().execute(sql, values)

            def executemany(self, sql: str, rows: Any, /) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3 has it
                self._begin(sql)
                return super().executemany(sql, rows)

            def _begin(self, sql: str) -> None:
                self.statement = " ".join(sql.split())
                self.set_progress_handler(self._count if meter.tool else None, _EVERY)

            def _count(self) -> None:
                if meter.tool:
                    meter.costs[meter.tool, self.statement] += _EVERY

        return Counting


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> _Meter:
    meter, connect = _Meter(), sqlite3.connect
    kinds: dict[type[sqlite3.Connection], type[sqlite3.Connection]] = {}

    def counted(
        database: object, *, factory: type[sqlite3.Connection] = sqlite3.Connection, **options: object
    ) -> sqlite3.Connection:
        if factory not in kinds:
            kinds[factory] = meter.counting(factory)
        plain: Callable[..., sqlite3.Connection] = connect
        return plain(database, factory=kinds[factory], **options)

    monkeypatch.setattr(sqlite3, "connect", counted)
    return meter


def written(notes: int) -> dict[str, str]:
    """Return notes with links, tags, properties and names, which are the same in a vault of more notes."""
    found: dict[str, str] = {}
    for number in range(notes):
        pick = random.Random(number)
        words = " ".join(f"word{pick.randrange(1_000)}" for _ in range(40))
        links = " ".join(f"[[N{pick.randrange(_NOTES)}]]" for _ in range(4))
        found[f"F{number // 20}/N{number}.md"] = (
            f"---\ntags: [t{number}]\nstatus: s{number}\naliases: [Alias {number}]\n---\n"
            f"# Note {number}\n\n## Part {number}\n{words}\n\n{links if number < _NOTES else ''} #own{number}\n"
        )
    return found


TABLE: Final = registry.ToolTable(TOOLS)


def call(context: Context, tool: str, **arguments: object) -> Any:  # noqa: ANN401 - each tool has its own answer
    return registry.invoke_tool(TABLE.find(tool), context, arguments)


def _note(turn: int, first: int) -> str:
    return f"F{first // 20}/N{first + turn}.md"


def _undo(context: Context) -> None:
    newest = call(context, "list_changes", limit=1)["results"][0]["id"]
    _ = call(context, "undo_change", change_id=newest)


def _accept(context: Context) -> None:
    open_one = call(context, "list_proposals", status="open", limit=1)["results"][0]["id"]
    shown = call(context, "show_proposal", proposal_id=open_one)
    _ = call(context, "accept_proposal", proposal_id=open_one, digest=shown["digest"])


def _reject(context: Context) -> None:
    open_one = call(context, "list_proposals", status="open", limit=1)["results"][0]["id"]
    _ = call(context, "reject_proposal", proposal_id=open_one)


_CALLS: Final[Mapping[str, Callable[[Context, int], object]]] = {
    "append_to_file": lambda context, turn: call(
        context, "append_to_file", path=_note(turn, 0), content=f"added [[N{turn}]]"
    ),
    "update_frontmatter": lambda context, turn: call(
        context, "update_frontmatter", path=_note(turn, 2), field="status", value="new"
    ),
    "create_file": lambda context, turn: call(
        context, "create_file", path=f"F1/New{turn}.md", content="# New\n\nSome [[N1]] text"
    ),
    "move_file": lambda context, turn: call(
        context, "move_file", source=_note(turn, 4), destination=f"F1/Moved{turn}.md"
    ),
    "delete_file": lambda context, turn: call(context, "delete_file", path=_note(turn, 6)),
    "rename_tag": lambda context, turn: call(context, "rename_tag", old=f"t{8 + turn}", new=f"renamed{turn}"),
    "undo_change": lambda context, _: _undo(context),
    "accept_proposal": lambda context, _: _accept(context),
    "reject_proposal": lambda context, _: _reject(context),
    "list_changes": lambda context, _: call(context, "list_changes", limit=5),
    "list_changes of a note": lambda context, turn: call(context, "list_changes", path=_note(turn, 0), limit=5),
    "list_changes of a client": lambda context, _: call(context, "list_changes", client="mcp", limit=5),
    "list_changes of a run": lambda context, _: call(context, "list_changes", run="r", limit=5),
    "list_proposals": lambda context, _: call(context, "list_proposals", limit=5),
    "list_proposals that are open": lambda context, _: call(context, "list_proposals", status="open", limit=5),
    "search_vault": lambda context, turn: call(context, "search_vault", query=f"Note {10 + turn}"),
    "find_notes": lambda context, turn: call(context, "find_notes", properties=[f"status=s{10 + turn}"], limit=5),
    "list_files_by_frontmatter": lambda context, turn: call(
        context, "list_files_by_frontmatter", field="status", value=f"s{10 + turn}"
    ),
    "note_info": lambda context, turn: call(context, "note_info", path=_note(turn, 12)),
    "fetch_note": lambda context, turn: call(context, "fetch_note", path=_note(turn, 12)),
    "find_backlinks": lambda context, turn: call(context, "find_backlinks", note_name=f"N{12 + turn}"),
    "get_links": lambda context, turn: call(context, "get_links", path=_note(turn, 12)),
    "broken_links": lambda context, _: call(context, "broken_links", limit=5),
    "orphans": lambda context, _: call(context, "orphans", limit=5),
    "list_notes": lambda context, _: call(context, "list_notes", limit=5),
    "list_tags": lambda context, _: call(context, "list_tags", limit=5),
    "explore_vault": lambda context, _: call(context, "explore_vault"),
    "vault_status": lambda context, _: call(context, "vault_status"),
}
"""Tools about single notes, and those that list or count; each is called twice, about different notes."""


def costs(
    meter: _Meter,
    base: Path,
    *,
    notes: int = _NOTES,
    made: int = _CHANGES,
    proposals: int = _PROPOSALS,
    still_open: int = _OPEN_PROPOSALS,
) -> Costs:
    """Call tools in a vault, each once before it is counted."""
    vault = opened.vault(base, written(notes))
    with app.open_vault(vault.settings(), client="cli") as context:
        context.index.refresh()
        postings.build(context.index.store.database)
        for number in range(made):
            text = f"# Made {number}\n\n" + " ".join(f"made{number * word % 997}" for word in range(40))
            _ = call(context, "create_file", path=f"Made/{number}.md", content=text)
        asking = replace(context, submit_options=SubmitOptions(propose=True))
        for number in range(proposals):
            _ = call(asking, "append_to_file", path=f"F4/N{80 + number % 20}.md", content=f"asked {number}")
            if number >= still_open:
                _reject(context)
        for tool, act in _CALLS.items():
            meter.tool = ""
            act(context, 0)
            meter.tool = tool
            act(context, 1)
            meter.tool = ""
    found, meter.costs = meter.costs, collections.defaultdict(int)
    return found


def grown(small: Costs, large: Costs, allowed: Mapping[str, str]) -> list[str]:
    """List the statements that take more steps than before, but for those that begin as one that has a reason."""
    return [
        f"{tool}: {small.get((tool, statement), 0)} steps became {cost}: {statement}"
        for (tool, statement), cost in large.items()
        if not statement.startswith(tuple(allowed)) and cost > _FEW and cost > _GROWTH * small.get((tool, statement), 0)
    ]


@pytest.mark.slow
def test_what_a_statement_costs_grows_with_nothing_that_it_needs_not_read(meter: _Meter, tmp_path: Path) -> None:
    small = costs(meter, tmp_path / "small")
    of_notes = grown(small, costs(meter, tmp_path / "notes", notes=4 * _NOTES), _GROWS_WITH_NOTES)
    of_changes = grown(small, costs(meter, tmp_path / "changes", made=8 * _CHANGES), _GROWS_WITH_NOTES)
    of_proposals = grown(small, costs(meter, tmp_path / "proposals", proposals=8 * _PROPOSALS), _GROWS_WITH_PROPOSALS)
    few_open = costs(meter, tmp_path / "few", still_open=_PROPOSALS)
    many_open = costs(meter, tmp_path / "open", proposals=8 * _PROPOSALS, still_open=8 * _PROPOSALS)
    of_open = grown(few_open, many_open, _GROWS_WITH_PROPOSALS)

    assert (of_notes, of_changes, of_proposals, of_open) == ([], [], [], [])
