"""What an agent may do for a client: what both may, in the way of the stricter one."""

from dataclasses import replace
from pathlib import Path

import pytest

from knapper.app.hub import narrow_context
from knapper.config import ClientSettings
from knapper.errors import KnapError, RefusedError, SetupError
from knapper.tools import files
from knapper.vault import access
from knapper.vault.access import CAPABILITIES, EditableScope, Grants
from tests.tools import opened
from tests.tools.opened import Opener

AGENT = access.default_grants("agent")


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"A.md": "# A\n", "Work/B.md": "# B\n", "Private/C.md": "# C\n"})


def client(**more: object) -> Grants:
    return replace(access.default_grants("named"), **more)


def test_outcomes_are_the_stricter_ones() -> None:
    bold = replace(AGENT, small="apply", large="propose")

    assert access.join_grants(AGENT, access.default_grants("page")).small == "propose"
    assert access.join_grants(bold, client(small="propose", large="refuse")).large == "refuse"
    assert access.join_grants(bold, client(small="propose")).small == "propose"
    assert access.join_grants(bold, access.default_grants("page")).small == "apply"


def test_an_agent_stays_one_whoever_it_works_for() -> None:
    joined = access.join_grants(AGENT, access.default_grants("page"))

    assert (joined.kind, joined.client, joined.may_accept) == ("agent", "agent", "never")


def test_capabilities_places_and_scopes_are_those_that_both_have() -> None:
    own = replace(AGENT, capabilities=CAPABILITIES - {"delete"}, read_only=("Log/",))
    joined = access.join_grants(
        own, client(capabilities=CAPABILITIES - {"move"}, write=("Inbox/",), read_only=("Old/",))
    )

    assert joined.capabilities == CAPABILITIES - {"delete", "move"}
    assert [joined.writable(path) for path in ("Inbox/A.md", "A.md", "Log/A.md", "Old/A.md")] == [True, *[False] * 3]
    assert access.join_grants(own, client(is_read_only=True)).is_read_only
    assert access.join_grants(own, client(editable="current")).editable == "current"


@pytest.mark.parametrize(
    ("own", "asker", "joined"),
    [
        ("all", "all", "all"),
        ("all", "context", "context"),
        ("linked", "all", "linked"),
        ("linked", "linked", "linked"),
        ("current", "context", "current"),
        ("context", "current", "current"),
        ("linked", "context", "current"),
    ],
)
def test_an_editable_scope_is_never_wider_than_either(
    own: EditableScope, asker: EditableScope, joined: EditableScope
) -> None:
    assert access.join_grants(replace(AGENT, editable=own), client(editable=asker)).editable == joined


def test_two_lists_of_places_that_differ_cannot_be_joined() -> None:
    with pytest.raises(SetupError) as refused:
        _ = access.join_grants(replace(AGENT, write=("Inbox/",)), client(write=("Work/",)))

    assert "write" in refused.value.hint


def test_an_agent_sees_and_writes_only_what_both_may(vault: Opener) -> None:
    asker = ClientSettings(grants=client(), read=("Work/", "A.md"), hidden=("A.md",))
    with vault.open(ClientSettings(grants=AGENT, hidden=("Private/",))) as context:
        own = narrow_context(context, asker)
        seen = [str(file.path) for file in own.view.list_files()]
        done = files.append_to_file(own, "Work/B.md", "More.")
        with pytest.raises(KnapError):
            _ = files.append_to_file(own, "A.md", "More.")
        with pytest.raises(RefusedError):
            _ = files.create_file(own, "Private/New.md", "x")

    assert seen == ["Work/B.md"]
    assert done["status"] == "proposed"


def test_three_lists_of_what_may_be_seen_cannot_be_joined(vault: Opener) -> None:
    with vault.open(ClientSettings(grants=AGENT, read=("Work/",))) as context:
        view = context.view.with_policy(replace(context.view.policy, read=("*",)))
        with pytest.raises(SetupError) as refused:
            _ = narrow_context(replace(context, view=view), ClientSettings(grants=client(), read=("A.md",)))

    assert refused.value.code == "config_invalid"
