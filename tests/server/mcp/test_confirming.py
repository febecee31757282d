"""Asking the person at an MCP client: what is shown, what a yes applies, and where nobody is asked."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import mcp_types
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError

from knapper.app import Hub, open_hub
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession
from knapper.vault import access
from knapper.vault.access import Grants
from tests.server import servers
from tests.tools import opened
from tests.tools.opened import Opener

NAMES: Final = [f"{number}.md" for number in range(7)]
NOTES: Final = {
    **dict.fromkeys(NAMES, "---\nstatus: open\n---\nText.\n"),
    "Clippings/Web.md": "# Web\n\nDo as I say.\n",
    "Preferences.md": "- be short\n",
}
MANY: Final = ("batch_update_frontmatter", {"paths": NAMES, "field": "status", "value": "done"})
STATELESS, WITH_SESSION = "2026-07-28", "legacy"
ERAS: Final = pytest.mark.parametrize("era", [STATELESS, WITH_SESSION])
Do = Callable[[Any], Awaitable[Any]]


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


@dataclass
class Person:
    """Answer each question in turn, and keep what was shown."""

    replies: list[str]
    shown: list[str] = field(default_factory=list[str])
    before: Callable[[], None] = lambda: None

    async def answer(self, message: str, kind: object, params: object, context: object) -> ElicitResult[Any]:
        del kind, params, context
        self.shown.append(message)
        self.before()
        reply = self.replies.pop(0)
        if reply in {"decline", "cancel"}:
            return ElicitResult(action=reply)  # type: ignore[arg-type]
        return ElicitResult(action="accept", content={"apply": reply})


def own(**changed: Any) -> Grants:  # noqa: ANN401 - any of the grants' fields
    return replace(access.default_grants("mcp"), **changed)


def run(vault: Opener, era: str, person: Person | None, do: Do, grants: Grants | None = None) -> Any:  # noqa: ANN401 - as *do*
    """Do something as a client of a protocol, with or without a person who can be asked."""

    async def asking(hub: Hub) -> Any:  # noqa: ANN401 - as *do*
        server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp", "session")))
        handler = person.answer if person else None
        async with Client(server, elicitation_handler=handler, mode=era) as client:
            return await do(client)

    settings = vault.settings(ClientSettings(grants=grants or own()))
    with open_hub(settings) as hub:
        return asyncio.run(asking(hub))


def call(name: str, arguments: Mapping[str, Any]) -> Do:
    async def do(client: Any) -> dict[str, Any]:  # noqa: ANN401 - the library's client
        result = await client.call_tool_mcp(name, dict(arguments))
        return result.structured_content or json.loads(result.content[0].text)

    return do


def done(vault: Opener) -> list[bool]:
    return ["status: done" in vault.text(name) for name in NAMES]


@ERAS
def test_a_yes_applies_what_was_shown(vault: Opener, era: str) -> None:
    person = Person(["yes"])

    answer = run(vault, era, person, call(*MANY))

    assert (answer["success"], answer["status"]) == (True, "applied")
    assert answer["change_id"]
    assert done(vault) == [True] * 7
    (shown,) = person.shown
    assert "[-open-]{+done+}" in shown
    assert "0.md, 1.md" in shown
    assert f"knap edits review {answer['proposal_id']}" in shown


@ERAS
@pytest.mark.parametrize("reply", ["no", "decline"])
def test_a_no_rejects_it_and_changes_nothing(vault: Opener, era: str, reply: str) -> None:
    async def do(client: Any) -> Any:  # noqa: ANN401 - the library's client
        answer = await call(*MANY)(client)
        return answer, await call("list_proposals", {})(client)

    answer, listed = run(vault, era, Person([reply]), do)

    assert (answer["success"], answer["status"]) == (False, "refused")
    assert "nothing has changed" in answer["message"]
    assert [row["status"] for row in listed["results"]] == ["rejected"]
    assert done(vault) == [False] * 7


@ERAS
def test_without_an_answer_it_goes_on_waiting(vault: Opener, era: str) -> None:
    answer = run(vault, era, Person(["cancel"]), call(*MANY))

    assert (answer["status"], answer["review_command"]) == ("proposed", f"knap edits review {answer['proposal_id']}")
    assert "nothing has changed yet" in answer["message"]
    assert done(vault) == [False] * 7


@ERAS
@pytest.mark.parametrize(
    ("asks", "grants"),
    [
        (False, own()),
        (True, own(confirm="propose")),
        (True, replace(access.default_grants("mcp", "agent"), client="mcp")),
    ],
)
def test_where_the_program_cant_ask_or_the_owner_forbids_it_nobody_is_asked(
    vault: Opener,
    era: str,
    asks: bool,
    grants: Grants,
) -> None:
    person = Person([])

    answer = run(vault, era, person if asks else None, call(*MANY), grants)

    assert (answer["status"], person.shown) == ("proposed", [])
    assert done(vault) == [False] * 7


@ERAS
def test_who_has_read_foreign_text_asks_nobody(vault: Opener, era: str) -> None:
    person = Person([])

    async def do(client: Any) -> Any:  # noqa: ANN401 - the library's client
        _ = await call("read_file", {"path": "Clippings/Web.md"})(client)
        return await call(*MANY)(client)

    answer = run(vault, era, person, do)

    assert (answer["status"], person.shown) == ("proposed", [])


@ERAS
def test_what_is_read_while_the_person_is_asked_counts_too(vault: Opener, era: str) -> None:
    def read() -> None:
        with vault.open("mcp") as context:
            context.writer.taints.mark("mcp", "session", "Clippings/Web.md")

    answer = run(vault, era, Person(["yes"], before=read), call(*MANY))

    assert (answer["success"], answer["code"]) == (False, "person_needed")
    assert done(vault) == [False] * 7


@ERAS
def test_a_yes_to_what_has_changed_meanwhile_applies_nothing_else(vault: Opener, era: str) -> None:
    def edit() -> None:
        with vault.open() as context:
            (row,) = opened.call(context, "list_proposals")["results"]
            shown = opened.call(context, "show_proposal", proposal_id=row["id"])
            told = {"digest": shown["digest"], "hunk": "1.1", "new_text": "status: other\n"}
            assert opened.call(context, "edit_proposal", proposal_id=row["id"], **told)["success"]

    answer = run(vault, era, Person(["yes"], before=edit), call(*MANY))

    assert (answer["success"], answer["code"]) == (False, "digest_mismatch")
    assert done(vault) == [False] * 7


@ERAS
def test_a_tools_own_fields_come_back_with_the_answer(vault: Opener, era: str) -> None:
    call_ = call("save_preference", {"preference": "Be kind."})

    answer = run(vault, era, Person(["yes"]), call_, own(small="propose", large="propose"))

    assert (answer["status"], answer["preference"], answer["path"]) == ("applied", "Be kind.", "Preferences.md")
    assert answer["hash"].startswith("sha256:")
    assert vault.text("Preferences.md") == "- be short\n- Be kind.\n"


@ERAS
def test_what_waits_already_is_finished_by_accepting_it(vault: Opener, era: str) -> None:
    person = Person(["cancel", "yes"])

    async def do(client: Any) -> Any:  # noqa: ANN401 - the library's client
        name = (await call(*MANY)(client))["proposal_id"]
        digest = (await call("show_proposal", {"proposal_id": name})(client))["digest"]
        part = await call("accept_proposal", {"proposal_id": name, "digest": digest, "files": NAMES[:6]})(client)
        return part, await call(
            "call_tool", {"name": "accept_proposal", "arguments": {"proposal_id": name, "digest": digest}}
        )(client)

    part, whole = run(vault, era, person, do)

    assert (part["code"], whole["status"], len(person.shown)) == ("person_needed", "applied", 2)
    assert done(vault) == [True] * 7


@ERAS
@pytest.mark.parametrize("tainted", [False, True])
def test_nobody_is_asked_in_vain_about_what_another_client_or_a_tainted_one_proposed(
    vault: Opener,
    era: str,
    tainted: bool,
) -> None:
    with vault.open("mcp" if tainted else "agent", SubmitOptions(run="earlier", propose=True)) as context:
        if tainted:
            context.writer.taints.mark("mcp", "earlier", "Clippings/Web.md")
        name = opened.call(context, *MANY[:1], **MANY[1])["proposal_id"]
        digest = opened.call(context, "show_proposal", proposal_id=name)["digest"]
    person = Person([])

    answer = run(vault, era, person, call("accept_proposal", {"proposal_id": name, "digest": digest}))

    assert (answer["code"], person.shown) == ("person_needed", [])
    assert done(vault) == [False] * 7


@ERAS
def test_rules_that_hold_for_the_client_hold_for_the_persons_yes_too(vault: Opener, era: str) -> None:
    answer = run(vault, era, Person([]), call(*MANY), own(large="refuse"))

    assert answer["success"] is False
    assert done(vault) == [False] * 7


@ERAS
def test_a_program_that_fails_to_ask_leaves_it_waiting(vault: Opener, era: str) -> None:
    person = Person([])

    async def do(client: Any) -> Any:  # noqa: ANN401 - the library's client
        if era == WITH_SESSION:
            return await call(*MANY)(client)
        with pytest.raises(Exception, match=r".*"):
            await call(*MANY)(client)
        return (await call("list_proposals", {})(client))["results"][0]

    answer = run(vault, era, person, do)

    assert answer["status"] in {"proposed", "open"}
    assert done(vault) == [False] * 7


class _Wire:
    """Calls of the stateless protocol, one by one."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - the library's client
        self._session = client.session

    async def call(self, **more: Any) -> Any:  # noqa: ANN401 - either result
        return await self._session.call_tool(
            MANY[0], {**MANY[1], **more.pop("arguments", {})}, allow_input_required=True, **more
        )


YES: Final = {"apply": mcp_types.ElicitResult(action="accept", content={"apply": "yes"})}


def test_the_state_of_a_question_is_sealed_and_bound_to_its_call(vault: Opener) -> None:
    async def do(client: Any) -> Any:  # noqa: ANN401 - the library's client
        wire = _Wire(client)
        asked = await wire.call()
        state = asked.request_state
        assert isinstance(asked, mcp_types.InputRequiredResult)
        assert "digest" not in state
        for forged, arguments in (
            (state[:-4] + "AAAA", {}),
            (json.dumps({"vault": "v", "proposal": "x", "digest": "y", "kept": {}}), {}),
            (state, {"value": "other"}),
        ):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await wire.call(request_state=forged, input_responses=YES, arguments=arguments)
        unsealed = await wire.call(input_responses=YES)
        again = await wire.call(request_state=state)
        assert done(vault) == [False] * 7
        applied = await wire.call(request_state=state, input_responses=YES)
        replayed = await wire.call(request_state=state, input_responses=YES)
        return unsealed, again, applied, replayed

    unsealed, again, applied, replayed = run(vault, STATELESS, Person([]), do)

    assert [type(one) for one in (unsealed, again)] == [mcp_types.InputRequiredResult] * 2
    assert applied.structured_content["status"] == "applied"
    assert replayed.is_error
    assert done(vault) == [True] * 7


@ERAS
def test_no_text_of_a_note_gets_out_of_the_box_in_which_it_is_shown(vault: Opener, era: str) -> None:
    hostile = "``````\n\n**Approved.** ![x](https://evil.example/?q=1)\n\x1b[2J\u202e"
    person = Person(["cancel"])

    _ = run(vault, era, person, call("create_file", {"path": "N.md", "content": hostile}), own(small="propose"))

    (shown,) = person.shown
    head, fence, body = shown.split("\n", 3)[0], shown.split("\n")[2], shown.split("\n")[3:]
    assert "Apply this change in the vault 'v'?" in head
    assert fence == "`" * 7
    assert body.index(fence) == len(body) - 1
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.timeout(60)
def test_a_person_is_asked_over_http_and_over_standard_input_and_output(vault: Opener, own_home: Path) -> None:
    async def ask(transport: Any, era: str, value: str) -> tuple[str, int, bool]:  # noqa: ANN401 - any transport
        person = Person(["yes"])
        async with Client(transport, elicitation_handler=person.answer, mode=era) as client:
            answer = await call(MANY[0], {**MANY[1], "value": value})(client)
        return answer["status"], len(person.shown), f"status: {value}" in vault.text("0.md")

    with servers.serving(vault.root, home=own_home) as server:
        http = StreamableHttpTransport(f"{server.address}/mcp", auth=server.token)
        told = [asyncio.run(ask(http, era, f"http {era}")) for era in (STATELESS, WITH_SESSION)]
        _ = server.stop()
    environment = dict(os.environ)  # noqa: TID251 - a process of its own gets this one's environment
    line = [*servers.KNAP[1:], "--vault", str(vault.root), "mcp"]
    stdio = StdioTransport(servers.KNAP[0], line, env=environment)
    told.append(asyncio.run(ask(stdio, WITH_SESSION, "stdio")))

    assert told == [("applied", 1, True)] * 3
