"""Hold what scripts get from a vault to the documented contract, and to the client's policy."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from knapper.app import tables
from knapper.codemode.bridge import (
    MAX_PROPOSALS,
    MAX_REPLY_TEXT,
    Bridge,
    ScriptAnswer,
    execute_script,
    result_answer,
    run_script,
)
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import ClientSettings
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.jsontypes import JSONValue
from knapper.tools import proposals, registry
from knapper.tools.context import Context, ScriptAccess, ScriptExit, ScriptProfile, ScriptResult, ToolSignature
from knapper.vault import access
from tests.codemode import examples
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Patterns/Authentication/OAuth.md": "---\ntype: pattern\n---\n# OAuth\n\nKeep the refresh token safe.\n",
    "Patterns/OAuth.md": "# OAuth implementation\n\nAn OAuth implementation with a refresh token and JWT.\n",
    "Auth/JWT.md": "# JWT\n\nOAuth and JWT together.\n",
    "Authors.md": "# Authors\n",
    "Clippings/Web.md": "# Web\n\nOthers wrote about OAuth.\n",
    "Secret/Plan.md": "# Plan\n\nOAuth in secret.\n",
}


@pytest.fixture
def context(vault: Opener, sandbox: WorkerPool) -> Iterator[Context]:
    with vault.open("script") as made:
        _ = made.index.refresh()
        yield replace(made, open_sandbox=lambda: sandbox)


def ask(context: Context, method: str, profile: ScriptProfile = "strict", **given: JSONValue) -> JSONValue:
    return Bridge(context, profile)(method, given)


def ran(context: Context, code: str, profile: ScriptProfile = "strict") -> ScriptResult:
    outcome = execute_script(context, code, profile)
    assert outcome.error == ""
    return outcome


def test_the_first_documented_example_runs_unchanged(context: Context) -> None:
    result = ran(context, examples.FIRST).result

    assert isinstance(result, dict)
    assert "Keep the refresh token safe" in str(result["context"])
    assert len(result["citations"] if isinstance(result["citations"], list) else []) >= 2
    assert result["confidence"] == 0.72


def test_the_first_documented_example_runs_where_its_note_is_missing(vault: Opener, context: Context) -> None:
    (vault.root / "Patterns/Authentication/OAuth.md").unlink()

    result = ran(context, examples.FIRST).result

    assert isinstance(result, dict)
    assert str(result["context"]).startswith("## OAuth Patterns\n\n\n## Examples")


def test_the_second_documented_example_runs_unchanged(context: Context) -> None:
    result = ran(context, examples.SECOND).result

    assert isinstance(result, dict)
    assert result["citations"] == [{"vault": "main", "path": "Auth/"}, {"vault": "main", "path": "Authors.md"}]
    assert result["confidence"] == 0.8
    assert "An OAuth implementation" in str(result["context"])


def test_a_search_gives_each_note_once_and_whole(context: Context) -> None:
    found = ask(context, "search", query="OAuth implementation", limit=10)

    assert isinstance(found, list)
    assert [set(one) for one in found if isinstance(one, dict)] == [{"path", "content", "score"}] * len(found)
    first = found[0]
    assert isinstance(first, dict)
    assert (first["path"], first["content"]) == ("Patterns/OAuth.md", NOTES["Patterns/OAuth.md"])


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        ({"path_filter": "Patterns/"}, {"Patterns/OAuth.md", "Patterns/Authentication/OAuth.md"}),
        ({"path_filter": "Patterns/Authentication"}, {"Patterns/Authentication/OAuth.md"}),
        ({"path_filter": "Patterns/OAuth.md"}, {"Patterns/OAuth.md"}),
        ({"type_filter": "pattern"}, {"Patterns/Authentication/OAuth.md"}),
        ({"path_filter": "Secret/"}, set[str]()),
    ],
)
def test_a_search_can_be_filtered(context: Context, where: Mapping[str, JSONValue], paths: set[str]) -> None:
    found = Bridge(context)("search", {"query": "OAuth", "limit": 50, **where})

    assert isinstance(found, list)
    assert {str(one["path"]) for one in found if isinstance(one, dict)} == paths


def test_a_missing_note_is_empty_everywhere(context: Context) -> None:
    assert [ask(context, name, path="Nowhere.md") for name in ("read_note", "get_frontmatter", "get_hash")] == [
        "",
        {},
        "",
    ]
    assert ask(context, "read_notes", paths=["Nowhere.md", "Authors.md"]) == {
        "Nowhere.md": "",
        "Authors.md": "# Authors\n",
    }


def test_a_note_is_found_by_its_path_without_ending(context: Context) -> None:
    assert ask(context, "read_note", path="Authors") == "# Authors\n"


def test_a_list_shows_a_level_and_its_folders(context: Context) -> None:
    assert ask(context, "list_notes") == ["Auth/", "Clippings/", "Patterns/", "Authors.md"]
    assert ask(context, "list_notes", directory="Patterns") == ["Patterns/Authentication/", "Patterns/OAuth.md"]
    assert ask(context, "list_notes", directory="patterns/", recursive=True) == [
        "Patterns/OAuth.md",
        "Patterns/Authentication/OAuth.md",
    ]
    assert ask(context, "list_notes", directory="Nowhere") == []


def test_none_stands_for_left_out(context: Context) -> None:
    found = ask(context, "search", query="OAuth", limit=None, path_filter=None, vaults=None)

    assert found == ask(context, "search", query="OAuth")
    assert ask(context, "list_notes", directory=None, recursive=None) == ask(context, "list_notes")


def test_what_the_client_may_not_see_is_not_there(context: Context) -> None:
    assert ask(context, "read_note", path="Secret/Plan.md") == ""
    assert ask(context, "list_notes", directory="Secret", recursive=True) == []
    assert "Secret" not in str(ask(context, "search", query="secret OAuth", limit=200))


def test_a_client_that_may_read_less_sees_less(vault: Opener, context: Context) -> None:
    del context  # has made the index
    client = ClientSettings(grants=access.default_grants("script"), read=("Patterns/",))
    with vault.open(client) as narrow:
        assert ask(narrow, "list_notes", recursive=True) == [
            "Patterns/OAuth.md",
            "Patterns/Authentication/OAuth.md",
        ]
        assert ask(narrow, "read_note", path="Authors.md") == ""


def test_a_new_note_is_a_proposal(vault: Opener, context: Context) -> None:
    told = ask(
        context, "write_note", path="Notes/New.md", content="# New\n", note_type="summary", frontmatter={"tags": ["a"]}
    )

    assert isinstance(told, dict)
    assert told["status"] == "proposed"
    assert not (vault.root / "Notes").exists()
    shown = proposals.show_proposal(context, str(told["proposal_id"]))
    assert "+type: summary" in str(shown)


def test_a_note_that_is_there_is_proposed_anew_bound_to_what_the_script_read(vault: Opener, context: Context) -> None:
    bridge = Bridge(context)
    _ = bridge("read_note", {"path": "Authors.md"})
    _ = (vault.root / "Authors.md").write_text("# Authors\n\nchanged meanwhile\n", encoding="utf-8")

    with pytest.raises(ConflictError):
        _ = bridge("write_note", {"path": "Authors.md", "content": "# Mine\n"})

    told = ask(context, "write_note", path="Authors.md", content="# Mine\n")
    assert isinstance(told, dict)
    assert told["status"] == "proposed"
    assert vault.text("Authors.md").endswith("changed meanwhile\n")


def test_even_a_client_whose_changes_are_applied_only_proposes_by_a_script(vault: Opener) -> None:
    with vault.open("cli") as context:
        told = ask(context, "write_note", path="New.md", content="x")

    assert isinstance(told, dict)
    assert told["status"] == "proposed"
    assert not (vault.root / "New.md").exists()


def test_what_a_script_proposes_says_that_nothing_has_changed_and_how_it_is_accepted(context: Context) -> None:
    bridge = Bridge(context)
    told = bridge("write_note", {"path": "New.md", "content": "x"})
    outcome = ScriptResult(kind="ok", proposals=bridge.proposals)

    answer = result_answer(outcome)

    assert isinstance(told, dict)
    command = f"knap edits review {told['proposal_id']}"
    assert command in str(told["message"])
    assert answer["proposals"] == [{"id": told["proposal_id"], "vault": "v", "review_command": command}]
    assert "nothing has changed yet" in str(answer["message"])
    assert "message" not in result_answer(ScriptResult(kind="ok"))


def test_proposals_of_one_script_are_counted(context: Context) -> None:
    bridge = Bridge(context)
    for number in range(MAX_PROPOSALS):
        _ = bridge("write_note", {"path": f"N{number}.md", "content": "x"})

    with pytest.raises(RefusedError, match="may propose"):
        _ = bridge("write_note", {"path": "Last.md", "content": "x"})


def test_reading_what_others_wrote_is_remembered(context: Context) -> None:
    assert not context.writer.taints.is_tainted("script", "")

    _ = ask(context, "read_note", path="Clippings/Web.md")

    assert context.writer.taints.is_tainted("script", "")


def test_a_search_that_finds_what_others_wrote_is_remembered(context: Context) -> None:
    _ = ask(context, "search", query="others wrote", limit=5)

    assert context.writer.taints.is_tainted("script", "")


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("nothing", {}),
        ("read_note", {}),
        ("read_note", {"path": 3}),
        ("read_note", {"path": "A.md", "other": 1}),
        ("read_note", {"path": "x" * 5_000}),
        ("search", {"query": "x", "limit": 0}),
        ("search", {"query": "x", "limit": True}),
        ("search", {"query": " "}),
        ("search", {"query": "x" * 3_000}),
        ("search", {"query": "x", "vaults": "main"}),
        ("list_notes", {"recursive": "yes"}),
        ("write_note", {"path": "A.md", "content": "x", "frontmatter": []}),
    ],
)
def test_a_call_that_cant_be_is_told_so(context: Context, method: str, given: Mapping[str, JSONValue]) -> None:
    with pytest.raises(BadInput):
        _ = Bridge(context)(method, given)


def test_errors_tell_nothing_of_this_machine(vault: Opener, context: Context) -> None:
    (vault.root / "Out.md").symlink_to(vault.state / "x")
    told: list[str] = []
    for path in ("Out.md", "../x", str(vault.root.parent / "x"), "A.md\0", "Authors.md/x"):
        try:
            _ = ask(context, "read_note", path=path)
        except KnapError as error:
            told.append(error.message + error.hint)

    assert told
    assert not [message for message in told if str(vault.root) in message or str(vault.state) in message]


def test_files_are_read_only_in_their_profile_and_below_their_root(tmp_path: Path, context: Context) -> None:
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    _ = (root / "src" / "main.py").write_text("print()\n", encoding="utf-8")
    _ = (tmp_path / "outside.txt").write_text("secret", encoding="utf-8")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    _ = (root / "binary").write_bytes(b"\0\1")
    allowed = replace(context, scripting=ScriptAccess(roots=(root,)))

    assert ask(allowed, "read_file", "local", path="src/main.py") == "print()\n"
    assert ask(allowed, "read_file", "extended", path=str(root / "src/main.py")) == "print()\n"
    for path in ("link.txt", "../outside.txt", str(tmp_path / "outside.txt"), "src", "nothing", "binary"):
        with pytest.raises(KnapError):
            _ = ask(allowed, "read_file", "local", path=path)
    with pytest.raises(RefusedError):
        _ = ask(allowed, "read_file", path="src/main.py")
    with pytest.raises(RefusedError):
        _ = ask(context, "read_file", "local", path="src/main.py")


def test_pages_are_read_only_in_their_profile_and_are_others_text(context: Context) -> None:
    asked: list[str] = []

    def get(url: str) -> str:
        asked.append(url)
        return "page"

    allowed = replace(context, scripting=ScriptAccess(http_get=get))

    with pytest.raises(RefusedError):
        _ = ask(allowed, "http_get", "local", url="https://example.org")
    assert asked == []
    assert ask(allowed, "http_get", "extended", url="https://example.org") == "page"
    assert context.writer.taints.is_tainted("script", "")


def test_a_script_uses_the_methods_of_its_profile(context: Context) -> None:
    allowed = replace(context, scripting=ScriptAccess(http_get=lambda url: f"page of {url}"))
    code = "__result__ = obsidian.http_get('https://example.org')"

    assert ran(allowed, code, "extended").result == "page of https://example.org"
    refused = execute_script(allowed, code, "local")
    assert refused.kind == "error"
    assert "isn't there in this profile" in refused.error


def test_tools_that_were_given_can_be_called_and_no_others(context: Context) -> None:
    def call(own: Context, name: str, given: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
        return {"success": True, "vault": own.vault, "name": name, "given": dict(given)}

    schema: dict[str, JSONValue] = {"properties": {"limit": {}, "path": {}}, "required": ["path"]}
    tool = ToolSignature(name="note_info", parameters=schema)
    allowed = replace(context, scripting=ScriptAccess(tools=lambda: (tool,), call=call))
    code = "__result__ = [obsidian.tools.note_info('A.md', limit=2), dir(obsidian.tools)]"

    answer = {"success": True, "vault": "v", "name": "note_info", "given": {"path": "A.md", "limit": 2}}
    assert ran(allowed, code).result == [answer, ["note_info"]]
    with pytest.raises(NotFound):
        _ = ask(allowed, "tools.delete_file", path="Authors.md")
    with pytest.raises(BadInput):
        _ = Bridge(allowed)("tools.note_info", {"": [1, 2, 3]})


def test_several_vaults_are_searched_and_named(tmp_path: Path, context: Context) -> None:
    other = opened.vault(tmp_path / "second", {"Docs/OAuth.md": "# OAuth in the docs\n\nOAuth implementation.\n"})
    with other.open("script") as docs:
        _ = docs.index.refresh()

        def find(name: str) -> Context:
            if name != "docs":
                raise NotFound(f"there is no vault '{name}'")
            return docs

        allowed = replace(context, scripting=ScriptAccess(open_vault=find))
        found = ask(allowed, "search", query="OAuth", limit=20, vaults=["main", "docs"])

        assert isinstance(found, list)
        assert {str(one["vault"]) for one in found if isinstance(one, dict)} == {"main", "docs"}
        assert ask(allowed, "read_note", path="Docs/OAuth.md", vault="docs") != ""
        assert ask(allowed, "read_note", path="Docs/OAuth.md") == ""
        with pytest.raises(NotFound):
            _ = ask(allowed, "read_note", path="A.md", vault="third")


def test_the_tool_tells_the_whole_outcome(context: Context) -> None:
    told = run_script(context, "print('x')\n__result__ = obsidian.read_note('Authors.md')")

    assert set(told) == set(ScriptAnswer.__required_keys__)
    assert told["proposals"] == []
    assert (told["ok"], told["kind"], told["result"], told["stdout"], told["calls"]) == (
        True,
        "ok",
        "# Authors\n",
        "x\n",
        1,
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("x = (", "syntax"),
        ("obsidian.tools.read_file('Nowhere.md')", "error"),
        ("import os", "refused"),
        ("__result__ = print", "result"),
        ("while True: pass", "timeout"),
        ("x = 'x' * 10**9", "memory"),
    ],
)
def test_a_failure_has_code_and_hint_as_other_tools_errors_have(context: Context, code: str, kind: str) -> None:
    told = run_script(context, code, timeout_s=0.5 if kind == "timeout" else None)

    assert (told["success"], told["kind"], told["code"]) == (False, kind, f"script_{kind}")
    assert told["error"]
    assert told["hint"]


def test_every_way_to_fail_has_a_code_and_a_hint() -> None:
    told = {kind: result_answer(ScriptResult(kind=kind, error="x")) for kind in get_args(ScriptExit)}

    assert [kind for kind, answer in told.items() if not answer.get("hint") or "code" not in answer] == ["ok"]


def test_a_name_that_a_script_lacks_leads_to_obsidian() -> None:
    told = result_answer(ScriptResult(kind="error", error="line 1: NameError: name 'search' is not defined"))
    other = result_answer(ScriptResult(kind="error", error="line 1: ZeroDivisionError: division by zero"))

    assert told.get("hint", "").endswith("as in obsidian.search(query, limit)")
    assert "obsidian" not in other.get("hint", "")


@pytest.mark.parametrize(("code", "timeout_s"), [("", None), (" \n", None), ("1", 0), ("1", -1), ("1", float("nan"))])
def test_the_tool_refuses_what_cant_be_run(context: Context, code: str, timeout_s: float | None) -> None:
    with pytest.raises(BadInput):
        _ = run_script(context, code, timeout_s=timeout_s)


def test_the_tool_has_schemas_of_what_it_takes_and_gives() -> None:
    row = tables.build_table().find("run_script")

    taken, given = registry.parameter_schema(row, brief=True)["properties"], registry.answer_schema(row)["properties"]
    assert isinstance(taken, dict)
    assert isinstance(given, dict)
    assert list(taken) == ["code"]
    assert set(given) == set(ScriptAnswer.__annotations__)
    assert len(registry.describe(row)) < 1_500


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("read_note", {"path": "Big.md"}),
        ("read_notes", {"paths": ["Half.md", "./Half.md"]}),
    ],
)
def test_an_answer_is_refused_before_it_is_made_where_it_would_be_too_large(
    vault: Opener, context: Context, method: str, arguments: dict[str, Any]
) -> None:
    for name, size in {"Big.md": MAX_REPLY_TEXT, "Half.md": MAX_REPLY_TEXT // 2}.items():
        _ = (vault.root / name).write_text(f"large\n{'x' * size}", encoding="utf-8")

    with pytest.raises(BadInput) as raised:
        _ = ask(context, method, **arguments)

    assert raised.value.code == "too_large"
    assert ask(context, "get_hash", path="Big.md")
