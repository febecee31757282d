"""Mistakes that agents of other systems make; each test bears the name of one."""

from pathlib import Path
from typing import Any

import pytest

from knapper.app import tables
from knapper.changes.writer import SubmitOptions
from tests.agents import runs
from tests.tools import opened

NOTES = {
    "Garden.md": "---\nstatus: open\ntags:\n  - outdoors\n---\n# Garden\n\nThe fence, see [[Rain]]. #outdoors\n",
    "Rain.md": "# Rain\n\nIt rains.\n",
}
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("update_frontmatter", {"path": "Garden.md", "field": "status", "value": "done"}),
    ("batch_update_frontmatter", {"paths": ["Garden.md"], "field": "seen", "value": True}),
    ("rename_tag", {"old": "outdoors", "new": "outside"}),
    ("move_file", {"source": "Rain.md", "destination": "Weather/Rain.md"}),
    ("batch_move_files", {"moves": [{"source": "Rain.md", "destination": "Weather/Rain.md"}]}),
]


@pytest.mark.parametrize(("name", "given"), WRITES, ids=[name for name, _ in WRITES])
def test_writes_of_properties_and_tags_and_moves_do_not_pass_by_the_review(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    vault = opened.vault(tmp_path, NOTES)
    before = runs.files(vault.root)

    with vault.open("agent", SubmitOptions(run="r")) as context:
        _ = context.freshen(meaning=False)
        answer = tables.build_table().call(name, given, lambda _: context)
        waiting = context.writer.proposals.find(limit=10).proposals

    assert answer["status"] == "proposed"
    assert [one.id for one in waiting] == [answer["proposal_id"]]
    assert runs.files(vault.root) == before
