"""Tools of dates, properties and folders answer from the index: no note is read, and no folder listed, for them."""

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from knapper.index.feed import ChangeFeed
from knapper.tools.context import Context
from knapper.vault import files
from tests.tools import opened
from tests.tools.opened import call

NOTES = {f"Folder/{n}.md": f"---\nstatus: open\n---\n# {n}\n#tag{n}\n" for n in range(20)}


def not_looked_at(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands for several functions
    raise AssertionError("the vault itself was looked at")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Context]:
    with opened.vault(tmp_path, NOTES).open() as found:
        found.freshen()
        # As if somebody watched the vault.
        with ChangeFeed(found.view.root, found.index.folder) as feed, found.index.followed_by(feed):
            stands_for: Callable[..., Any] = not_looked_at
            scandir: Callable[..., Any] = os.scandir

            def list_outside(path: Any) -> Any:  # noqa: ANN401 - a path, a name or a descriptor, as scandir takes it
                # Newer Pythons list with it what pathlib lists, such as the index's own folder.
                return scandir(path) if Path(path).is_relative_to(found.index.folder) else not_looked_at()

            monkeypatch.setattr(os, "scandir", list_outside)
            monkeypatch.setattr(files, "read_bytes", stands_for)
            yield found


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_files_by_frontmatter", {"field": "status", "value": "open"}),
        ("search_by_date_range", {"start_date": "2000-01-01", "end_date": "2999-12-31", "date_type": "modified"}),
        ("search_by_folder", {"folder": "Folder"}),
        ("list_notes", {}),
        ("find_notes", {"properties": ["status=open"]}),
        ("list_tags", {}),
    ],
)
def test_the_vault_itself_is_not_looked_at(context: Context, name: str, arguments: dict[str, Any]) -> None:
    answer = call(context, name, **arguments)

    assert (answer["success"], answer["total"]) == (True, 20)
