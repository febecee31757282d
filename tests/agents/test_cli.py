"""`knap ask`, `knap chat` and `knap models` with a model on loopback."""

import asyncio
import io
import json
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.agents.sessions.store import SessionStore
from knapper.agents.work_store import open_work
from knapper.app.hub import local_now
from knapper.cli import main
from tests.agents import protocol
from tests.agents.protocol import Reply, Server
from tests.agents.scripted import Call
from tests.cli import terminals
from tests.cli.terminals import Line

GARDEN = "# Garden\n\n## Fence\n\nThe fence is to be green.\n"
LOOK = Reply(parts=["Looking. ", Call("read_file", {"path": "Garden.md"})])
ANSWER = Reply(parts=["It is **green**. ", "[[Garden#Fence]] (lines 3-5)"])
EDIT = Reply(parts=[Call("edit_file", {"path": "Garden.md", "old_text": "green", "new_text": "red"})])


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "Garden.md").write_text(GARDEN, encoding="utf-8")
    monkeypatch.setenv("VAULT_PATH", str(root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return root


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def model(server: Server) -> str:
    return f"tiny@{server.base_url}"


def test_ask_prints_the_answer_alone_and_shows_its_steps(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(LOOK, ANSWER) as server:
        code = main.run(["ask", "What", "colour?", "--model", model(server)])

    out, err = capsys.readouterr()
    assert code == 0
    assert out == "It is **green**. [[Garden#Fence]] (lines 3-5)\n"
    assert err.startswith(f"asking {model(server)} …\n")
    assert "→ read_file(path='Garden.md')" in err
    assert "✓ Garden.md" in err
    assert "200 + 40 tokens, 1 tool call" in err
    assert vault.is_dir()


@pytest.mark.usefixtures("vault")
def test_agents_calls_that_fail_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(Reply(parts=[Call("edit_all", {})]), ANSWER) as server:
        _ = main.run(["ask", "What colour?", "--scout", "--model", model(server)])

    assert "  → edit_all\n  ✗ edit_all: there is no tool 'edit_all'\n" in capsys.readouterr().err


@pytest.mark.usefixtures("vault")
def test_results_of_several_calls_name_their_tools(capsys: pytest.CaptureFixture[str]) -> None:
    calls = Reply(parts=[Call("read_file", {"path": "Garden.md"}), Call("read_file", {"path": "None.md"})])
    with protocol.serving(calls, LOOK, ANSWER) as server:
        _ = main.run(["ask", "What", "colour?", "--model", model(server)])

    steps = [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("  ")]
    assert sorted(step.split(":")[0] for step in steps[:2]) == ["✓ read_file", "✗ read_file"]
    assert steps[2] == "✓ Garden.md"


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("words", [("colour?",), ("colour?", "--task"), ("colour?", "--scout")])
def test_a_person_sees_that_the_model_is_tried_again(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with protocol.serving(Reply(status=500, headers={"retry-after-ms": "1"})) as server:
        assert main.run(["ask", *words, "--model", model(server)]) != 0
        err = capsys.readouterr().err
        main.run(["ask", *words, "--model", model(server), "--json"])
        shown = capsys.readouterr()

    assert f"! trying again in 1 s (1 of 2): {model(server)}: its server answered with status 500" in err
    assert "trying again" not in shown.out + shown.err


@pytest.mark.usefixtures("vault")
def test_a_notice_that_was_shown_as_it_came_is_not_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(LOOK, ANSWER) as server:
        main.run(["ask", "colour?", "--model", model(server), "--cents", "5"])

    err = capsys.readouterr().err
    assert err.count("no price is known") == 1


def test_ask_as_json_holds_answer_citations_tools_and_tokens(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(LOOK, ANSWER) as server:
        code = main.run(["ask", "What colour?", "--model", model(server), "--json"])

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert shown["success"]
    assert shown["answer"] == "It is **green**. [[Garden#Fence]] (lines 3-5)"
    (citation,) = shown["citations"]
    assert (citation["path"], citation["start_line"], citation["end_line"]) == ("Garden.md", 3, 5)
    assert GARDEN.encode()[citation["start"] : citation["stop"]].decode() == citation["text"]
    assert citation["hash"].startswith("sha256:")
    assert [tool["name"] for tool in shown["tools"]] == ["read_file"]
    assert shown["usage"] == {
        "requests": 2,
        "input_tokens": 200,
        "output_tokens": 40,
        "total_tokens": 240,
        "cost_usd": None,
    }
    assert "session_id" not in shown
    assert vault.is_dir()


def test_a_citation_that_is_dropped_twice_is_told_once(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Reply(parts=["Green. [[Garden#Roof]] Tall. [[Garden#Roof]]"])
    with protocol.serving(wrong) as server:
        _ = main.run(["ask", "What colour?", "--model", model(server)])

    told = [line for line in capsys.readouterr().err.splitlines() if "dropped" in line]
    assert told == ["a citation was dropped 2 times: [[Garden#Roof]]: Garden.md has no heading 'Roof'"]
    assert vault.is_dir()


def test_ask_drops_a_citation_that_does_not_hold_and_says_so(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Reply(parts=["Green. [[Garden#Roof]] (lines 3-5)"])
    with protocol.serving(wrong) as server:
        _ = main.run(["ask", "What colour?", "--model", model(server)])

    out, err = capsys.readouterr()
    assert out == "Green.\n"
    assert "a citation was dropped: [[Garden#Roof]] (lines 3-5): Garden.md has no heading 'Roof'" in err
    assert vault.is_dir()


@pytest.mark.slow
def test_a_terminal_sees_what_was_changed_after_the_citations_were_checked(vault: Path) -> None:
    wrong = Reply(parts=["It stands.\n\nGreen. [[Garden#Roof]] (lines 3-5)"])
    with protocol.serving(wrong) as server:
        ended = terminals.run(["ask", "What colour?", "--model", model(server), "--no-color", "--quiet"], [])

    printed, _, changed = ended.printed.partition("Changed after the citations were checked:")
    lines = [line.strip() for line in changed.splitlines()]
    assert "Green. [[Garden#Roof]] (lines 3-5)" in printed
    assert "-Green. [[Garden#Roof]] (lines 3-5)" in lines
    assert "+Green." in lines
    assert "It stands." not in changed
    assert vault.is_dir()


def test_what_was_written_before_an_error_is_no_answer(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(LOOK, Reply(status=401)) as server:
        code = main.run(["ask", "What colour?", "--model", model(server)])

    assert (code, capsys.readouterr().out) == (3, "")
    assert vault.is_dir()


@pytest.mark.parametrize(("reply", "code"), [(Reply(status=401), 3), (Reply(status=404), 3)])
def test_ask_ends_with_the_models_error(
    vault: Path, capsys: pytest.CaptureFixture[str], reply: Reply, code: int
) -> None:
    with protocol.serving(reply) as server:
        assert main.run(["ask", "What?", "--model", model(server)]) == code
        assert main.run(["ask", "What?", "--model", model(server), "--json"]) == code

    out, err = capsys.readouterr()
    assert "error: " in err
    assert not json.loads(out)["success"]
    assert vault.is_dir()


def test_a_prompt_that_a_server_does_not_take_is_answered_with_what_a_small_model_needs(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving(Reply(status=400)) as server:
        code = main.run(["ask", "What colour?", "--model", model(server)])

    err = capsys.readouterr().err
    assert code == 3
    assert "status 400" in err
    assert 'tools = "essential"' in err
    assert vault.is_dir()


@pytest.mark.parametrize(("finish", "times"), [("length", 1), ("stop", 0)])
def test_ask_says_where_an_answer_was_cut_off(
    vault: Path, capsys: pytest.CaptureFixture[str], finish: str, times: int
) -> None:
    parts = [protocol.chunk(protocol.delta("It is gr", 0)), protocol.chunk({}, finish=finish)]
    with protocol.serving(Reply(raw=[*(f"data: {json.dumps(part)}" for part in parts), "data: [DONE]"])) as server:
        code = main.run(["ask", "What colour?", "--model", model(server)])

    out, err = capsys.readouterr()
    assert (code, out) == (0, "It is gr\n")
    assert err.count("may write no more") == times
    assert vault.is_dir()


@pytest.mark.parametrize("limit", ["turn_tokens", "day_tokens"])
@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
def test_ask_tells_that_a_limit_is_reached(
    vault: Path, own_home: Path, capsys: pytest.CaptureFixture[str], limit: str, how: list[str]
) -> None:
    (own_home / "config.toml").write_text(f"[model]\n{limit} = 100\n", encoding="utf-8")
    with protocol.serving(LOOK) as server:
        codes = [main.run(["ask", "What colour?", "--model", model(server), *how]) for _ in range(2)]

    out, err = capsys.readouterr()
    assert codes == [4, 4]
    assert (out if how else err).count("budget_spent" if how else "error: ") == 2
    assert vault.is_dir()


def test_ask_without_a_model_shows_passages(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["ask", "fence"]) == 0

    out, err = capsys.readouterr()
    assert "The fence is to be green." in out
    assert "run `knap setup`" in err
    assert vault.is_dir()


def test_ask_can_show_passages_though_a_model_is_set(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAP_MODEL", "openai:none")

    assert main.run(["ask", "fence", "--passages"]) == 0
    assert "The fence is to be green." in capsys.readouterr().out
    assert vault.is_dir()


def test_a_change_that_ask_makes_waits_for_a_persons_word(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(EDIT, Reply(parts=["It waits."])) as server:
        _ = main.run(["ask", "Paint it red", "--model", model(server)])

    assert (vault / "Garden.md").read_text(encoding="utf-8") == GARDEN
    assert "waits for your decision: `knap edits show" in capsys.readouterr().err


def test_a_chat_at_a_terminal_leads_to_its_own_command_for_changes(vault: Path) -> None:
    with protocol.serving(EDIT, Reply(parts=["It waits."])) as server:
        typed_lines = [Line(after="> ", text="Paint it red\n"), Line(after="tool call", text="/exit\n")]
        ended = terminals.run(["chat", "--model", model(server), "--no-color"], typed_lines)

    assert "1 change for your decision: /edits\n" in ended.printed
    assert "knap edits show" not in ended.printed
    assert vault.is_dir()


def test_chat_remembers_and_goes_on_another_time(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply(parts=["One."]), Reply(parts=["Two."]), Reply(parts=["Three."])) as server:
        monkeypatch.setenv("KNAP_MODEL", "tiny")
        monkeypatch.setenv("KNAP_BASE_URL", server.base_url)
        typed(monkeypatch, "first", "", "second")
        assert main.run(["chat"]) == 0
        typed(monkeypatch, "third")
        assert main.run(["chat"]) == 0

    assert capsys.readouterr().out == "One.\nTwo.\nThree.\n"
    said = [[one["content"] for one in asked["messages"] if one["role"] == "user"] for asked in server.asked]
    assert said == [["first"], ["first", "second"], ["first", "second", "third"]]
    assert vault.is_dir()


def test_a_note_has_a_chat_of_its_own_and_new_begins_anew(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply(parts=["Yes."])) as server:
        for more in ([], ["--note", "Garden.md"], ["--new"]):
            typed(monkeypatch, "hello")
            assert main.run(["chat", "--model", model(server), *more]) == 0

    assert [len(asked["messages"]) for asked in server.asked] == [2, 2, 2]
    assert '"Garden.md"' in server.asked[1]["messages"][0]["content"]
    assert capsys.readouterr().out == "Yes.\nYes.\nYes.\n"
    assert vault.is_dir()


def test_orders_with_a_slash(vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with protocol.serving(EDIT, Reply(parts=["It waits."]), Reply(parts=["Forgotten."])) as server:
        typed(
            monkeypatch,
            *("/help", "/nonsense", "/model", "/undo", "/save", "/edits", "paint it red", "/edits", "/save Chat.md"),
            *("/clear", "what was that?", "/model nonsense", "/exit", "never read"),
        )
        assert main.run(["chat", "--model", model(server)]) == 0

    out, err = capsys.readouterr()
    assert "/undo            take back" in out
    assert f"tiny@{server.base_url}" in out
    assert "there is no /nonsense" in err
    assert "nothing was changed in this session" in err
    assert "nothing was said yet" in err
    assert "nothing waits in this session" in err
    assert "-The fence is to be green." in out or "green" in out
    assert "names no provider" in err
    assert (vault / "Chat.md").read_text(encoding="utf-8").startswith("# paint it red\n")
    assert len(server.asked) == 3
    assert [one["role"] for one in server.asked[2]["messages"]] == ["system", "user"]


def test_undo_takes_back_what_the_session_changed(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_home: Path
) -> None:
    (own_home / "config.toml").write_text('[clients.agent]\nsmall = "apply"\n', encoding="utf-8")
    with protocol.serving(EDIT, Reply(parts=["Done."])) as server:
        typed(monkeypatch, "paint it red")
        _ = main.run(["chat", "--model", model(server)])
        changed = (vault / "Garden.md").read_text(encoding="utf-8")
        typed(monkeypatch, "/undo", "/undo")
        _ = main.run(["chat", "--model", model(server)])

    assert "red" in changed
    assert (vault / "Garden.md").read_text(encoding="utf-8") == GARDEN
    assert "nothing was changed in this session that isn't undone" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal to a thread")
def test_ctrl_c_stops_the_answer_and_not_the_chat(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply(parts=["Half ", "never"], hang_s=20), Reply(parts=["Whole."])) as server:
        press(lambda: bool(server.asked))
        typed(monkeypatch, "tell", "again")
        assert main.run(["chat", "--model", model(server)]) == 0

    out, err = capsys.readouterr()
    assert "stopped" in err
    assert out.endswith("Whole.\n")
    assert vault.is_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal to a thread")
def test_ctrl_c_stops_a_task_and_says_so(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Plan.md").write_text("# Plan\n", encoding="utf-8")
    with protocol.serving(Reply(parts=["Half ", "never"], hang_s=20)) as server:
        press(lambda: bool(server.asked))
        code = main.run(["ask", "Tidy up", "--note", "Plan.md", "--model", model(server)])

    assert (code, capsys.readouterr().err.splitlines()[-1]) == (130, "stopped")


def press(when: Callable[[], bool]) -> None:
    """Press Ctrl-C once something has happened."""

    def wait() -> None:
        pause = threading.Event()
        while not when():
            pause.wait(0.02)
        pause.wait(0.3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def test_models_shows_what_is_set_and_what_answers(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply()) as server:
        monkeypatch.setenv("KNAP_MODEL", "tiny")
        monkeypatch.setenv("KNAP_BASE_URL", server.base_url)
        monkeypatch.setenv("KNAP_API_KEY", "sk-secret")
        monkeypatch.setenv("OLLAMA_BASE_URL", server.address)
        assert main.run(["models"]) == 0
        assert main.run(["models", "--json"]) == 0

    out = capsys.readouterr().out
    assert "answers" in out
    assert "ollama:qwen3:latest" in out
    assert "sk-secret" not in out
    assert not server.asked
    assert server.keys[0] == "Bearer sk-secret"
    assert vault.is_dir()


def test_models_says_what_to_do_where_none_is_set(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply()) as server:
        gone = server.address
    monkeypatch.setenv("OLLAMA_BASE_URL", gone)

    assert main.run(["models"]) == 1
    out, err = capsys.readouterr()
    assert "Ollama isn't running" in out
    assert "no model is set" in err
    assert main.run(["chat"]) == 3
    assert vault.is_dir()


def test_doctor_asks_the_server_that_embeds(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> dict[str, str]:
        _ = main.run(["doctor", "--json"])
        checks = json.loads(capsys.readouterr().out)["checks"]
        return next(check for check in checks if check["name"] == "embedder")

    monkeypatch.setenv("KNAP_EMBEDDINGS", "endpoint")
    unset = found()
    monkeypatch.setenv("KNAP_EMBEDDINGS_MODEL", "nomic")
    with protocol.serving(Reply()) as server:
        monkeypatch.setenv("KNAP_EMBEDDINGS_BASE_URL", server.base_url)
        here = found()
    gone = found()

    assert (unset["state"], here["state"], gone["state"]) == ("fail", "ok", "warn")
    assert "can't be reached" in gone["text"]
    assert vault.is_dir()


def test_doctor_asks_the_models_server(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply()) as server:
        monkeypatch.setenv("KNAP_MODEL", model(server))
        _ = main.run(["doctor", "--json"])
        here = finding(capsys)
    _ = main.run(["doctor", "--json"])
    gone = finding(capsys)

    assert (here["state"], gone["state"]) == ("ok", "warn")
    assert gone["hint"]
    assert not server.asked
    assert vault.is_dir()


def finding(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return next(one for one in json.loads(capsys.readouterr().out)["checks"] if one["name"] == "model")


def test_conversations_in_which_something_goes_on_are_marked(
    own_home: Path, vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply(parts=["One."])) as server:
        typed(monkeypatch, "What is green?")
        _ = main.run(["chat", "--model", model(server)])
    _ = capsys.readouterr()
    work = open_work(next(own_home.rglob("work.db")).parent)
    (row,) = sessions_told(capsys)

    async def held() -> tuple[dict[str, object], str]:
        async with SessionStore(work, local_now).lock(str(row["id"])):
            (seen,) = await asyncio.to_thread(sessions_told, capsys)
            _ = await asyncio.to_thread(main.run, ["sessions"])
        return seen, capsys.readouterr().out

    seen, line = asyncio.run(held())
    work.shut()

    assert (row["busy"], seen["busy"], sessions_told(capsys)[0]["busy"]) == (False, True, False)
    assert "… at work" in line
    assert vault.is_dir()


def sessions_told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    _ = main.run(["sessions", "--json"])
    return json.loads(capsys.readouterr().out)["results"]


def test_conversations_can_be_looked_after(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with protocol.serving(Reply(parts=["One."])) as server:
        typed(monkeypatch, "What is green?")
        _ = main.run(["chat", "--model", model(server)])
    _ = capsys.readouterr()

    _ = main.run(["sessions", "--json"])
    (row,) = json.loads(capsys.readouterr().out)["results"]
    name = row["id"]
    codes = [
        main.run(["sessions"]),
        main.run(["sessions", "show", name]),
        main.run(["sessions", "rename", name, "Colours"]),
        main.run(["sessions", "fork", name]),
        main.run(["sessions", "export", name, "Chats/Colours.md"]),
        main.run(["sessions", "clear", name]),
        main.run(["sessions", "delete", name]),
    ]
    out = capsys.readouterr().out

    assert (row["turns"], row["name"], row["active_file"]) == (1, "What is green?", None)
    assert codes == [0] * 7
    assert "> What is green?\n\nOne." in out
    assert "Colours (fork)" in out
    assert (vault / "Chats" / "Colours.md").read_text(encoding="utf-8").startswith("# Colours\n")
    assert main.run(["sessions", "show", name]) == 2
