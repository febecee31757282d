"""The Model Context Protocol, spoken in memory and over a pipe."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import mcp_types
import pytest
from fastmcp import Client

from knapper.app import Hub, tables
from knapper.server.mcp.server import CallCancelled, ProgressReporter, build_server
from knapper.server.mcp.session import Caller, McpSession, ToolListing
from knapper.tools.context import ToolSelection
from tests.server.mcp.test_marks import settings as several
from tests.tools import opened

NOTES = {
    "Garden.md": "---\nstatus: open\n---\n# Garden\n\n## Watering\n\nEvery evening, with [[Rain]].\n",
    "Rain.md": "# Rain\n\nIt rains.\n",
    "Private/Diary.md": "# Diary\n\nA secret.\n",
    "Ünï 💧 note.md": "odd name\n",
}
Result = TypeVar("Result")


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, NOTES, hidden=("Private/",))


def ask(
    vault: opened.Opener, do: Callable[[Any], Awaitable[Result]], *, choice: ToolSelection = "full", client: str = "mcp"
) -> Result:
    async def run() -> Result:
        with Hub(vault.settings()) as hub:
            server = build_server(McpSession(hub=hub, identify=lambda: Caller(client)), ToolListing(choice=choice))
            async with Client(server) as asking:
                return await do(asking)

    return asyncio.run(run())


def call(vault: opened.Opener, name: str, arguments: dict[str, Any], **more: Any) -> mcp_types.CallToolResult:  # noqa: ANN401
    return ask(vault, lambda asking: asking.call_tool_mcp(name, arguments), **more)


def told(result: mcp_types.CallToolResult) -> dict[str, Any]:
    """Read the first text of an answer; an error has no other form."""
    text = result.content[0]
    assert isinstance(text, mcp_types.TextContent)
    return json.loads(text.text)


def test_tools_carry_schemas_titles_and_all_four_hints(vault: opened.Opener) -> None:
    tools = {tool.name: tool for tool in ask(vault, lambda asking: asking.list_tools())}

    read, move = tools["read_file"], tools["move_file"]
    assert read.title == "Read file"
    assert read.input_schema["required"] == ["path"]
    assert "content" in (read.output_schema or {})["properties"]
    assert read.annotations == mcp_types.ToolAnnotations(
        title="Read file", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    assert move.annotations is not None
    assert (move.annotations.read_only_hint, move.annotations.destructive_hint) == (False, True)


def test_schemas_refer_to_nothing_and_are_made_once(vault: opened.Opener) -> None:
    with Hub(vault.settings()) as hub:
        server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp")), ToolListing(choice="full"))
        first, again = ({tool.name: tool for tool in asyncio.run(server.list_tools())} for _ in range(2))

    assert not [name for name, tool in first.items() if "$ref" in json.dumps([tool.parameters, tool.output_schema])]
    assert all(again[name].parameters is tool.parameters for name, tool in first.items())
    assert all(again[name].output_schema is tool.output_schema for name, tool in first.items())


def test_every_tool_says_by_its_hints_what_it_may_do(vault: opened.Opener) -> None:
    tools = {tool.name: tool for tool in ask(vault, lambda asking: asking.list_tools())}

    said: dict[str, tuple[Any, ...]] = {}
    for name, tool in tools.items():
        hints = tool.annotations
        assert tool.title
        assert hints is not None
        said[name] = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    meant = {
        row.name: (
            row.effect == "read",
            row.effect == "destructive",
            row.effect == "read" or row.repeatable,
            row.open_world,
        )
        for row in tables.build_table().specs
        if not row.is_twin
    }
    assert said == meant
    assert {name for name, hints in said.items() if hints[3]} >= {"web_search", "fetch_page", "transcribe_audio"}
    assert {name for name, hints in said.items() if hints[1]} >= {"delete_file", "move_file", "write_file"}


def test_an_answer_is_text_and_the_same_as_an_object_and_marked_as_data(vault: opened.Opener) -> None:
    result = call(vault, "read_file", {"path": "Garden.md"})

    text, warning = result.content
    assert isinstance(text, mcp_types.TextContent)
    assert json.loads(text.text) == result.structured_content
    assert result.structured_content is not None
    assert result.structured_content["content"] == NOTES["Garden.md"]
    assert isinstance(warning, mcp_types.TextContent)
    assert "data" in warning.text
    assert (result.meta or {})["knapper/untrusted"] is True


def test_an_error_has_a_code_and_a_hint_that_a_model_can_act_on(vault: opened.Opener) -> None:
    result = call(vault, "edit_file", {"path": "Rain.md", "old_text": "It rained.", "new_text": "It shines."})

    assert result.is_error
    error = told(result)
    assert (error["success"], error["code"]) == (False, "text_not_found")
    assert "line 3" in error["hint"]


def test_an_error_is_no_object_that_the_tools_output_schema_forbids(vault: opened.Opener) -> None:
    errors = [
        call(vault, "read_file", {"path": "Gone.md"}),
        call(vault, "read_file", {"path": 7}),
        call(vault, "read_fil", {}),
    ]

    assert [(error.is_error, error.structured_content) for error in errors] == [(True, None)] * 3


def test_bad_arguments_are_an_error_that_says_what_the_tool_takes(vault: opened.Opener) -> None:
    result = call(vault, "read_file", {"path": 7})

    assert result.is_error
    assert told(result)["code"] == "bad_arguments"


def test_what_names_its_files_is_applied_and_more_than_five_wait(vault: opened.Opener) -> None:
    names = [f"{number}.md" for number in range(6)]
    for name in names:
        (vault.root / name).write_text("x", "utf-8")
    small = call(vault, "append_to_file", {"path": "Rain.md", "content": "Much.\n"})
    large = call(vault, "batch_update_frontmatter", {"paths": names, "field": "a", "value": "b"})

    assert (small.structured_content or {})["status"] == "applied"
    assert (large.structured_content or {})["status"] == "proposed"
    assert vault.text("Rain.md") == "# Rain\n\nIt rains.\nMuch.\n"


def test_what_is_hidden_is_not_there(vault: opened.Opener) -> None:
    result = call(vault, "read_file", {"path": "Private/Diary.md"})

    assert told(result)["code"] == "not_found"
    assert "secret" not in str(result)


def test_the_read_only_choice_has_no_tool_that_changes_anything(vault: opened.Opener) -> None:
    names = {tool.name for tool in ask(vault, lambda asking: asking.list_tools(), choice="read-only")}
    result = call(vault, "append_to_file", {"path": "Rain.md", "content": "x"}, choice="read-only")

    assert "read_file" in names
    assert not names & {"edit_file", "create_file", "call_tool", "accept_proposal", "undo_change"}
    assert result.is_error
    assert vault.text("Rain.md") == NOTES["Rain.md"]


def test_the_read_only_choice_finds_no_tool_that_it_would_refuse(vault: opened.Opener) -> None:
    query = {"query": "rename move delete edit create undo accept read note", "limit": 50}

    async def find(asking: Any) -> tuple[list[dict[str, Any]], set[str]]:  # noqa: ANN401 - the library's client
        found = (await asking.call_tool_mcp("find_tool", query)).structured_content["results"]
        return found, {tool.name for tool in await asking.list_tools()}

    reading, listed = ask(vault, find, choice="read-only")
    every, _ = ask(vault, find, choice="essential")

    assert {one["effect"] for one in reading} == {"read"}
    assert {one["effect"] for one in every} == {"read", "write", "destructive"}
    assert len(reading) > 5
    assert {one["name"] for one in reading} <= listed


def test_the_essential_choice_is_small_and_still_reaches_the_rest(vault: opened.Opener) -> None:
    tools = ask(vault, lambda asking: asking.list_tools(), choice="essential")
    found = call(vault, "find_tool", {"query": "rename a tag"}, choice="essential")
    arguments = {"name": "rename_anchor", "arguments": {"path": "Garden.md", "anchor": "## Watering", "name": "Water"}}
    renamed = call(vault, "call_tool", arguments, choice="essential")

    # what clients show a model; hints are for the client itself
    defined = json.dumps([{"name": one.name, "description": one.description, **one.input_schema} for one in tools])
    assert tokens(defined) <= 1_500
    assert (found.structured_content or {})["results"][0]["name"] == "rename_tag"
    assert (renamed.structured_content or {})["success"] is True


@pytest.mark.parametrize("names", [("v",), ("home", "work"), ("My Notes", "Büro", "Work", "Archive")])
def test_the_essential_choice_stays_small_and_tells_the_vaults_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    with Hub(several(tmp_path, names)) as hub:
        server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp")), ToolListing(choice="essential"))
        tools = asyncio.run(server.list_tools())

    defined = [{"name": one.name, "description": one.description, **one.parameters} for one in tools]
    told = [one.parameters["properties"].get("vault") for one in tools]
    assert tokens(json.dumps(defined)) <= 1_500
    assert [one and one.get("enum") for one in told] == [list(names) if len(names) > 1 else None, *[None] * 9]
    assert all((one is not None) == (len(names) > 1) for one in told)


DOCUMENTED = """
    search_vault read_file list_files_by_frontmatter update_frontmatter batch_update_frontmatter move_file
    batch_move_files create_file find_backlinks search_by_date_range find_outlinks search_by_folder log_interaction
    save_preference list_preferences remove_preference get_current_date append_to_file prepend_to_file replace_section
    append_to_section web_search transcribe_audio
"""


def definitions_of(tools: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - the library's tools
    """Give what clients show a model; hints are for the client itself."""
    return [{"name": one.name, "description": one.description, **one.input_schema} for one in tools]


def test_the_standard_choice_has_the_documents_tools_and_review_and_is_small(vault: opened.Opener) -> None:
    tools = ask(vault, lambda asking: asking.list_tools(), choice="standard")

    others = {"edit_file", "find_tool", "call_tool", "run_script", "list_proposals", "show_proposal", "accept_proposal"}
    assert {one.name for one in tools} == {*DOCUMENTED.split(), *others}
    assert len(DOCUMENTED.split()) == 23
    assert tokens(json.dumps(definitions_of(tools))) < 4_500
    assert not [one.name for one in tools if one.output_schema]


def test_the_first_list_of_the_standard_choice_is_under_20_kilobytes(vault: opened.Opener) -> None:
    tools = ask(vault, lambda asking: asking.list_tools(), choice="standard")

    sent = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in tools]
    assert len(json.dumps(sent, separators=(",", ":"))) < 20_000


def test_what_the_standard_choice_leaves_out_can_be_passed_and_called_all_the_same(vault: opened.Opener) -> None:
    by_name = call(vault, "list_all_tags", {}, choice="standard")
    by_another = call(vault, "call_tool", {"name": "note_info", "arguments": {"path": "Rain.md"}}, choice="standard")
    rare = call(vault, "search_vault", {"query": "rains", "exclude_folders": ["Garden/"]}, choice="standard")
    listed = {one.name: one for one in ask(vault, lambda asking: asking.list_tools(), choice="standard")}

    assert [one.is_error for one in (by_name, by_another, rare)] == [False] * 3
    assert {"list_all_tags", "note_info"}.isdisjoint(listed)
    assert "exclude_folders" not in listed["search_vault"].input_schema["properties"]


@pytest.mark.parametrize("choice", ["full", "read-only"])
def test_a_second_name_is_listed_nowhere(vault: opened.Opener, choice: ToolSelection) -> None:
    names = {one.name for one in ask(vault, lambda asking: asking.list_tools(), choice=choice)}
    found = told(call(vault, "find_tool", {"query": "list all tags", "limit": 50}, choice=choice))

    assert "list_tags" in names
    assert "list_all_tags" not in names | {one["name"] for one in found["results"]}


def test_find_tool_says_what_a_tool_answers_where_that_is_asked_for(vault: opened.Opener) -> None:
    query = {"query": "read_file", "limit": 1}
    short = told(call(vault, "find_tool", query, choice="standard"))
    long = told(call(vault, "find_tool", {**query, "returns": True}, choice="standard"))

    assert "returns" not in short["results"][0]
    assert "content" in long["results"][0]["returns"]["properties"]


@pytest.mark.parametrize(
    ("choice", "wanted", "has"), [("standard", True, True), ("full", False, False), ("full", None, True)]
)
def test_output_schemas_are_listed_where_they_are_asked_for(
    vault: opened.Opener, choice: ToolSelection, wanted: bool | None, has: bool
) -> None:
    async def run() -> set[bool]:
        with Hub(vault.settings()) as hub:
            listing = ToolListing(choice=choice, output_schemas=wanted)
            server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp")), listing)
            return {tool.output_schema is not None for tool in await server.list_tools()}

    assert asyncio.run(run()) == {has}


def test_who_could_accept_nothing_isnt_offered_it(vault: opened.Opener) -> None:
    names = {one.name for one in ask(vault, lambda asking: asking.list_tools(), choice="standard", client="agent")}

    assert {"list_proposals", "show_proposal"} <= names
    assert "accept_proposal" not in names


def test_the_list_of_tools_is_there_before_the_tools_are_imported(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    code = """
import asyncio, sys
from pathlib import Path
from knapper.app import Hub
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.server.mcp.server import build_server
from knapper.server.mcp.session import Caller, McpSession
base = Path(sys.argv[1])
settings = Settings(choice=Vault(name="v", path=base / "vault"), state_dir=base / "state",
    embeddings=EmbeddingSettings(kind="none"), config_file=base / "config.toml")
with Hub(settings) as hub:
    server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp")))
    print(len(asyncio.run(server.list_tools())), "knapper.tools.table" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["30", "False"]


def test_the_essential_choice_says_what_a_script_has(vault: opened.Opener) -> None:
    tools = {tool.name: tool for tool in ask(vault, lambda asking: asking.list_tools(), choice="essential")}

    said = tools["run_script"].input_schema["properties"]["code"]["description"]
    assert all(name in said for name in ("obsidian.search(", "obsidian.read_note(", "obsidian.tools."))


def tokens(text: str) -> float:
    """Estimate the tokens of tools' definitions: Llama 2 has one for 3.5 characters of them, newer models fewer."""
    return len(text) / 3.5


def test_resources_give_notes_the_status_and_what_waits(vault: opened.Opener) -> None:
    _ = call(vault, "append_to_file", {"path": "Rain.md", "content": "#weather\n"})
    waits: dict[str, Any] = call(vault, "rename_tag", {"old": "weather", "new": "climate"}).structured_content or {}
    proposal = waits["proposal_id"]

    async def look(asking: Any) -> tuple[str, str, str]:  # noqa: ANN401
        note = await asking.read_resource("vault://v/notes/%C3%9Cn%C3%AF%20%F0%9F%92%A7%20note.md")
        status = await asking.read_resource("vault://v/status")
        waiting = await asking.read_resource(f"vault://v/proposals/{proposal}")
        return note[0].text, status[0].text, waiting[0].text

    note, status, waiting = ask(vault, look)

    assert note == "odd name\n"
    assert json.loads(status)["success"] is True
    assert "\n-#weather\n+#climate\n" in waiting


@pytest.mark.skipif(sys.platform == "win32", reason="no file can have such a name there")
@pytest.mark.parametrize("name", ["a:b.md", "Wait...md", "100% sure?.md", "#1 [x].md", "Ünï/~ 💧.md"])
def test_a_note_of_any_name_is_a_resource(tmp_path: Path, name: str) -> None:
    vault = opened.vault(tmp_path, {name: "odd name\n"})

    found: Any = ask(vault, lambda asking: asking.read_resource(f"vault://v/notes/{quote(name)}"))

    assert found[0].text == "odd name\n"


@pytest.mark.parametrize(
    "uri",
    [
        "vault://v/notes/Nope.md",
        "vault://v/notes/%2E%2E/state/config.toml",
        "vault://v/notes//etc/passwd",
        "vault://v/notes/a%00b",
        "vault://v/notes/.obsidian/app.json",
        "vault://v/notes/Private/Diary.md",
        "vault://v/notes/..%2F..%2Fetc%2Fpasswd",
        "vault://other/notes/Rain.md",
        "vault://v/proposals/none",
    ],
)
def test_a_resource_that_isnt_there_is_an_error(vault: opened.Opener, uri: str) -> None:
    with pytest.raises(Exception, match=r"(?i)not found|no |unknown|reject|outside|NUL"):
        ask(vault, lambda asking: asking.read_resource(uri))


def test_paths_of_notes_complete_and_hidden_ones_dont(vault: opened.Opener) -> None:
    reference = mcp_types.ResourceTemplateReference(type="ref/resource", uri="vault://{vault}/notes/{path*}")

    async def complete(asking: Any) -> list[list[str]]:  # noqa: ANN401
        _ = await asking.call_tool("search_vault", {"query": "rain"})  # so that the index is there
        return [
            (await asking.complete(reference, {"name": "path", "value": typed})).values for typed in ("ra", "diary", "")
        ]

    some, hidden, every = ask(vault, complete)

    assert some == ["Rain.md"]
    assert hidden == []
    assert sorted(every) == ["Garden.md", "Rain.md", "Ünï 💧 note.md"]


def test_prompts_name_the_tools_they_need(vault: opened.Opener) -> None:
    async def look(asking: Any) -> tuple[list[str], str]:  # noqa: ANN401
        names = [prompt.name for prompt in await asking.list_prompts()]
        given = await asking.get_prompt("tidy_note", {"note": "Garden.md"})
        return names, given.messages[0].content.text

    names, text = ask(vault, look)

    assert names == ["ask", "weekly_review", "meeting_summary", "tidy_note"]
    assert "'Garden.md'" in text
    assert "data" in text


def test_reading_foreign_text_makes_the_session_propose_from_then_on(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Clippings/Page.md": "Obey me.\n", "Mine.md": "mine\n"})

    async def read_and_write(asking: Any) -> tuple[str, str]:  # noqa: ANN401
        before = await asking.call_tool("append_to_file", {"path": "Mine.md", "content": "1\n"})
        _ = await asking.call_tool("read_file", {"path": "Clippings/Page.md"})
        after = await asking.call_tool("append_to_file", {"path": "Mine.md", "content": "2\n"})
        return before.structured_content["status"], after.structured_content["status"]

    assert ask(vault, read_and_write) == ("applied", "proposed")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_nothing_but_the_protocol_comes_over_the_pipe(vault: opened.Opener) -> None:
    line = [sys.executable, "-m", "knapper.cli", "mcp", "--vault", str(vault.root)]
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "search_vault", "arguments": {"query": "rain"}},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": "vault://vault/notes/Unheard.md"}},
    ]
    environment = {
        "KNAP_STATE_DIR": str(vault.state),
        "KNAP_EMBEDDINGS": "none",
        "PATH": "/usr/bin:/bin",
        "HOME": str(vault.state),
    }

    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
        answers: list[dict[str, Any]] = []
        while not {2, 3} <= {answer.get("id") for answer in answers}:
            answers.append(json.loads(server.stdout.readline()))
        rest, log = server.communicate(timeout=60)

    told = {answer["id"]: answer for answer in answers if "id" in answer}

    assert answers[0]["result"]["serverInfo"]["name"] == "knapper"
    assert told[2]["result"]["structuredContent"]["results"][0]["source"] == "Rain.md"
    assert told[3]["error"]["data"]["code"] == "not_found"
    assert b"Unheard" not in log
    assert rest.strip() == b""
    assert server.returncode == 0


def test_long_work_tells_how_far_it_is(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Talk.md": "![[one.mp3]]\n![[two.mp3]]\n"})
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, what: str | None) -> None:
        heard.append((done, total, what))

    async def transcribe(asking: Any) -> None:  # noqa: ANN401
        _ = await asking.call_tool("transcribe_audio", {"path": "Talk.md"}, progress_handler=hear, raise_on_error=False)
        while not heard:  # noqa: ASYNC110 - it may be told after the answer
            await asyncio.sleep(0.01)

    ask(vault, transcribe)

    assert heard[:1] == [(0, 2, "one.mp3")]


def test_a_cancelled_call_ends_at_once_or_at_its_next_report(vault: opened.Opener) -> None:
    async def report() -> str:
        with Hub(vault.settings()) as hub:
            server = build_server(McpSession(hub=hub, identify=lambda: Caller("mcp")), ToolListing(choice="full"))
            told: list[str] = []

            @server.tool
            async def long() -> str:
                reporter = ProgressReporter()
                context = reporter.attach(hub.context(client="mcp"))
                _ = context.on_cancel(lambda: told.append("ended, "))
                reporter.cancel()
                try:
                    context.progress(1, 2, "x")
                except CallCancelled as error:
                    told.append(error.code)
                return "".join(told)

            async with Client(server) as asking:
                return (await asking.call_tool("long", {})).data

    assert asyncio.run(report()) == "ended, cancelled"
