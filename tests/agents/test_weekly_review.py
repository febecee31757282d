"""The weekly review: links for notes that have none, proposed and never applied, from every surface."""

import asyncio
import io
import json
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper import app
from knapper.agents.chat.conversations import Conversations
from knapper.agents.chat.turn import Message
from knapper.agents.events import Done, Event
from knapper.agents.sessions.store import SessionStore
from knapper.agents.stages import Stages
from knapper.agents.work_store import open_work
from knapper.changes.writer import SubmitOptions
from knapper.cli import main
from knapper.config import ClientSettings, ModelSettings, Settings
from knapper.errors import NotFound
from knapper.tools.context import Context
from knapper.vault import access
from tests.agents import protocol, scripted
from tests.agents.protocol import Reply, Server
from tests.agents.scripted import NOW, Call, Model
from tests.server import chats
from tests.tools import opened

NOTES = {
    "Beds.md": "# Beds\n\nSee [[Roses]].\n",
    "Roses.md": "# Roses\n\nRed.\n",
    "Pruning.md": "# Pruning\n\nIn March.\n",
}
LINK = "- See also [[Pruning]]: when to cut"
LOOK = Call("orphans", {"limit": 15})
PROPOSE = Call("append_to_file", {"path": "Roses.md", "content": LINK, "reason": "roses are pruned"})
REPORT = "Proposed a link from Roses to Pruning."
APPLYING = ClientSettings(grants=replace(access.default_grants("agent"), small="apply", large="apply"))


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> opened.Opener:
    made = opened.vault(tmp_path, NOTES)
    monkeypatch.setenv("VAULT_PATH", str(made.root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return made


@pytest.fixture
def talks(vault: opened.Opener) -> Generator[Conversations]:
    context = vault.open(APPLYING)
    folder = vault.state / "chats"
    folder.mkdir(parents=True)
    work = open_work(folder)
    kept = SessionStore(work, lambda: NOW)

    def open_context(run: str) -> Context:
        return replace(context, submit_options=SubmitOptions(run=run))

    yield Conversations(store=kept, context_of=open_context, wait_s=0.3)
    work.shut()
    context.close()


def review(talks: Conversations, model: Model, *, may_apply: bool = False) -> tuple[Done, list[Event]]:
    events: list[Event] = []
    stage, chat = Stages().find("weekly-review"), scripted.chat(model)
    return asyncio.run(talks.run_stage(chat, stage, events.append, may_apply=may_apply)), events


def test_a_link_is_proposed_even_where_the_agent_may_apply(vault: opened.Opener, talks: Conversations) -> None:
    model = Model([[LOOK], [PROPOSE], [REPORT]])

    done, events = review(talks, model)

    assert (done.state, done.answer, len(done.proposals), done.changes) == ("complete", REPORT, 1, [])
    assert vault.text("Roses.md") == NOTES["Roses.md"]
    assert [event.kind for event in events if event.kind in {"tool_call", "proposal", "done"}] == [
        *("tool_call", "tool_call", "proposal", "done"),
    ]
    (turn,) = talks.store.turns(done.session_id)
    assert (turn.question, talks.store.get(done.session_id).name) == ("/weekly-review", "Weekly review")


def test_where_the_owner_says_so_the_link_is_applied(vault: opened.Opener, talks: Conversations) -> None:
    done, _ = review(talks, Model([[LOOK], [PROPOSE], [REPORT]]), may_apply=True)

    assert (len(done.changes), done.proposals) == (1, [])
    assert LINK in vault.text("Roses.md")


def test_the_model_has_the_reviews_prompt_its_task_and_its_tools_alone(talks: Conversations) -> None:
    model = Model([[REPORT]])

    _ = review(talks, model)

    offered = {tool.name for tool in model.infos[0].function_tools}
    assert offered == {*Stages().find("weekly-review").tools, "get_continuation"}
    assert "You review a person's notes" in str(model.infos[0].instructions)
    asked = str(model.asked[0][-1].parts)
    assert "1 note has no link in either direction. Review up to 15 of them" in asked
    assert "Pruning" not in asked
    assert "Everything inside `vault-data` blocks was written" in str(model.infos[0].instructions)


def test_where_every_note_has_a_link_no_model_is_asked(vault: opened.Opener, talks: Conversations) -> None:
    (vault.root / "Pruning.md").unlink()
    model = Model([[REPORT]])

    done, events = review(talks, model)
    chat, session = scripted.chat(model), talks.store.begin().id
    with pytest.raises(NotFound) as refused:
        _ = asyncio.run(talks.reply(chat, session, Message(text="/weekly-review"), events.append))

    assert (done.answer, done.session_id) == ("Every note has a link: there is nothing to review.", "")
    assert (refused.value.code, model.asked) == ("nothing_to_do", [])


@pytest.mark.parametrize("text", ["/weekly-review now", "weekly-review", "/weekly", "say /weekly-review"])
def test_only_the_bare_name_sets_the_agent_to_work(text: str) -> None:
    assert Stages().named_by(text) is None
    assert Stages().named_by(" /weekly-review\n") == Stages().find("weekly-review")


def served(*calls: Call) -> list[Reply]:
    return [*(Reply(parts=[call]) for call in calls), Reply(parts=[REPORT])]


def model_of(server: Server) -> str:
    return f"tiny@{server.base_url}"


def test_the_command_tells_the_report_and_lists_the_agents(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving(*served(LOOK, PROPOSE)) as server:
        code = main.run(["agent", "weekly-review", "--json", "--model", model_of(server)])
    shown = json.loads(capsys.readouterr().out)
    listed = main.run(["agent"])

    assert (code, listed) == (0, 0)
    assert (shown["answer"], len(shown["proposals"]), bool(shown["session_id"])) == (REPORT, 1, True)
    assert vault.text("Roses.md") == NOTES["Roses.md"]
    assert capsys.readouterr().out == "weekly-review  propose links between notes that have none\n"


def test_the_chat_at_the_terminal_takes_its_name_as_a_command(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("/weekly-review\n"))

    with protocol.serving(*served(LOOK)) as server:
        code = main.run(["chat", "--model", model_of(server)])

    assert code == 0
    assert REPORT in capsys.readouterr().out
    assert "You review a person's notes" in json.dumps(server.asked[0]["messages"])
    assert vault.root.is_dir()


def settings(vault: opened.Opener, server: Server) -> Settings:
    return replace(vault.settings(), model=ModelSettings(name=model_of(server)))


@pytest.mark.parametrize("client", ["mcp", "http"])
def test_the_tool_answers_every_client_within_its_rules(vault: opened.Opener, client: str) -> None:
    hiding = ClientSettings(grants=access.default_grants(client), hidden=("Pruning.md",))
    with protocol.serving(*served(LOOK, PROPOSE)) as server:
        with app.open_hub(settings(vault, server)) as hub:
            told = call(hub, client)
        with app.open_hub(replace(settings(vault, server), clients=(hiding,))) as hub:
            hidden = call(hub, client)

    assert (told["answer"], len(told["proposals"])) == (REPORT, 1)
    assert hidden["answer"] == "Every note has a link: there is nothing to review."
    assert vault.text("Roses.md") == NOTES["Roses.md"]


def call(hub: app.Hub, client: str) -> dict[str, Any]:
    arguments = {"agent": "weekly-review"}
    return dict(hub.table.call("run_agent", arguments, lambda vault: hub.context(client=client, vault=vault)))


def test_a_message_over_http_sets_it_to_work(tmp_path: Path) -> None:
    model = Model([[Call("orphans", {})], [REPORT]])
    with chats.asking(tmp_path, model) as client:
        answer = client.post("/chat", json={"message": "/weekly-review"}).json()

    assert (answer["response"], [tool["name"] for tool in answer["tools"]]) == (REPORT, ["orphans"])
    assert "You review a person's notes" in str(model.infos[0].instructions)
