from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.proposals import taint
from knapper.changes.proposals.taint import Taints
from knapper.errors import RefusedError
from knapper.vault import access


@pytest.fixture
def taints(tmp_path: Path) -> Iterator[Taints]:
    own = taint.open_taints(tmp_path)
    yield own
    own.shut()


def test_who_read_foreign_text_is_remembered_after_a_restart(tmp_path: Path, taints: Taints) -> None:
    assert taints.mark("mcp", "session-1", "https://example.org")
    assert not taints.mark("mcp", "session-1", "Clippings/b.md")
    other = taint.open_taints(tmp_path)

    assert other.is_tainted("mcp", "session-1")
    assert [(one.client, one.run, one.source) for one in other.entries()] == [
        ("mcp", "session-1", "https://example.org")
    ]
    other.shut()


def test_all_clients_of_a_run_share_what_one_has_read_and_other_runs_do_not(taints: Taints) -> None:
    taints.mark("web", "run-1", "https://example.org")

    assert taints.is_tainted("task", "run-1")
    assert not taints.is_tainted("web", "run-2")
    assert not taints.is_tainted("web")


def test_what_a_client_read_outside_of_runs_counts_in_each_of_them(taints: Taints) -> None:
    taints.mark("mcp", "", "Clippings/a.md")

    assert taints.is_tainted("mcp")
    assert taints.is_tainted("mcp", "session-9")
    assert not taints.is_tainted("http")
    assert not taints.is_tainted("")


@pytest.mark.parametrize("client", ["mcp", "http", "agent", "script", "mine"])
def test_only_a_person_clears(client: str, taints: Taints) -> None:
    taints.mark("mcp", "", "Clippings/a.md")

    with pytest.raises(RefusedError):
        taints.clear("mcp", by=replace(access.default_grants(client), small="apply", large="apply"))
    assert taints.is_tainted("mcp")
    assert taints.clear("mcp", by=access.default_grants("cli"))
    assert not taints.clear("mcp", by=access.default_grants("cli"))
    assert not taints.is_tainted("mcp")
