"""`knap ask` with its switches, and the tools `ask_vault` and `scout_vault`, with a model on loopback."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper import app
from knapper.agents.pipeline.store import AgentToggles, Preset
from knapper.app import clients, pipelines
from knapper.changes.writer import SubmitOptions
from knapper.cli import main
from knapper.cli.output import ExitCode
from knapper.config import ClientSettings, ModelSettings, Settings
from knapper.errors import NotFound, SetupError
from knapper.vault import access
from tests.agents import protocol, scripts
from tests.agents.protocol import Reply, Server
from tests.agents.scripted import Call
from tests.tools import opened

NOTES = {
    "Garden.md": "# Garden\n\nThe fence is green. See [[Plants]].\n",
    "Plants.md": "# Plants\n\nRoses.\n",
    "Other.md": "# Other\n",
}
SELECT = Reply(parts=[scripts.select("Garden.md")])
ASK = Reply(parts=[scripts.select("Garden.md", confidence="exploring"), Call("ask_user", {"question": "Which?"})])
EDIT = Reply(parts=scripts.task("Painted.", ("Garden.md", "replace:3", "Blue.")))
ANSWER = Reply(parts=scripts.task("Green. [[Garden]] (lines 3-3)"))


@pytest.fixture
def vault(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> opened.Opener:
    made = opened.vault(tmp_path, NOTES)
    monkeypatch.setenv("VAULT_PATH", str(made.root))
    monkeypatch.setenv("KNAP_EMBEDDINGS", "none")
    monkeypatch.chdir(own_home)
    return made


def ask(server: Server, *words: str) -> int:
    return main.run(["ask", *words, "--model", f"tiny@{server.base_url}"])


def test_a_note_makes_it_the_agents_work_with_its_links(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving(ANSWER) as server:
        code = ask(server, "colour?", "--note", "Garden.md", "--depth", "1")

    out, err = capsys.readouterr()
    assert code == 0
    assert out == "Green. [[Garden]] (lines 3-3)\n"
    assert "Plants.md: link depth 1" in err
    assert "tokens (task 15)" in err
    assert vault.root.is_dir()


def test_without_a_note_the_scout_switches_itself_on(vault: opened.Opener, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(SELECT, ANSWER) as server:
        code = ask(server, "colour?", "--depth", "1", "--json")

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [one["path"] for one in shown["pipeline"]["scout"]["selected_notes"]] == ["Garden.md"]
    assert shown["answer"].startswith("Green.")
    assert vault.root.is_dir()


@pytest.mark.parametrize(
    ("reply", "ending", "told"),
    [
        (SELECT, ExitCode.OK, ["chosen: 1 note (done)", "  Garden.md: chosen while exploring"]),
        (Reply(parts=["None."]), ExitCode.NOTHING, ["chosen: nothing (exploring)"]),
    ],
    ids=["a note", "nothing"],
)
def test_what_the_scout_chose_is_told_once(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str], reply: Reply, ending: ExitCode, told: list[str]
) -> None:
    with protocol.serving(reply) as server:
        code = ask(server, "colour?", "--scout", "--no-task")

    out, err = capsys.readouterr()
    assert (code, [line for line in err.splitlines() if "chosen" in line or line.startswith("  Garden")]) == (
        ending,
        told,
    )
    assert not out.startswith("\n")
    assert vault.root.is_dir()


@pytest.mark.parametrize("option", ["--note", "--add"])
def test_a_note_that_is_not_there_is_told_before_anything_is_asked_or_kept(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    with protocol.serving() as server:
        code = ask(server, "colour?", option, "Nope.md", "--scout", "--no-task", "--json")
        asked = server.asked

    assert code == 2
    assert "Nope.md" in json.loads(capsys.readouterr().out)["error"]
    assert asked == []
    main.run(["sessions", "--json"])
    assert json.loads(capsys.readouterr().out)["results"] == []
    assert vault.root.is_dir()


def test_an_answer_that_can_not_be_used_twice_is_told_to_the_person(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving(Reply(parts=['{"summary": "Pain'])) as server:
        code = ask(server, "paint", "--note", "Garden.md", "--json")
        asked = len(server.asked)

    told = json.loads(capsys.readouterr().out)
    assert (code, asked, told["code"]) == (3, 2, "bad_reply")
    assert "the model's answer can't be used" in told["error"]
    assert "another model" in told["hint"]
    assert vault.root.is_dir()


def test_edits_wait_and_the_switches_hold(vault: opened.Opener, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(EDIT) as server:
        code = ask(server, "paint", "--note", "Garden.md", "--json")
        forbidden = ask(server, "paint", "--note", "Garden.md", "--can", "add", "--json", "--no-history")

    one, other = (json.loads(line) for line in _documents(capsys.readouterr().out))
    assert (code, forbidden) == (0, 0)
    assert len(one["proposals"]) == 1
    assert other["proposals"] == []
    assert other["edit_results"]["failures"][0]["code"] == "capability"
    assert vault.text("Garden.md") == NOTES["Garden.md"]


def _documents(text: str) -> list[str]:
    decoder = json.JSONDecoder()
    found: list[str] = []
    while text.strip():
        _, end = decoder.raw_decode(text.lstrip())
        found.append(text.lstrip()[:end])
        text = text.lstrip()[end:]
    return found


def test_the_choice_of_agents_is_remembered_only_where_that_is_asked_for(vault: opened.Opener) -> None:
    def remembered() -> AgentToggles:
        with app.open_hub(settings(vault)) as hub, pipelines.open_pipelines(hub) as opened_:
            return clients.default_preset(opened_.presets, hub.settings).toggles

    with protocol.serving(SELECT, ANSWER, SELECT, ANSWER) as server:
        _ = ask(server, "x", "--note", "Garden.md", "--scout", "--json")
        once = remembered()
        _ = ask(server, "x", "--note", "Garden.md", "--scout", "--remember", "--json")
        kept = remembered()

    assert (once, kept) == (AgentToggles(), AgentToggles(scout=True))


def test_presets_are_saved_and_used(vault: opened.Opener) -> None:
    with protocol.serving(ANSWER) as server:
        words = ("--note", "Garden.md", "--depth", "0", "--add", "Other.md", "--editable", "current")
        _ = ask(server, "x", *words, "--save-preset", "Plain", "--no-web", "--json")
        _ = ask(server, "x", "--note", "Garden.md", "--preset", "plain", "--json")

    sent = [json.dumps(one["messages"]) for one in server.asked]
    assert len(sent) == 2
    for one in sent:
        assert "Other.md" in one
        assert 'note: \\"Plants.md' not in one
        assert "You may edit the open note only" in one
    with app.open_hub(settings(vault)) as hub, pipelines.open_pipelines(hub) as opened_:
        assert [preset.name for preset in opened_.presets.list()] == ["Plain"]
        assert clients.default_preset(opened_.presets, hub.settings).toggles == AgentToggles()
        with pytest.raises(NotFound, match="no preset 'Other'"):
            _ = clients.default_preset(opened_.presets, hub.settings, "Other")


def test_the_next_turn_knows_what_became_of_its_edits(vault: opened.Opener) -> None:
    wrong = Reply(parts=scripts.task("Tried.", ("Garden.md", "replace:3", "Blue."), ("Garden.md", "replace:90", "x")))
    with protocol.serving(wrong, wrong, ANSWER) as server:
        _ = ask(server, "paint", "--note", "Garden.md", "--json")
        _ = ask(server, "and now?", "--note", "Garden.md", "--json")

    told = json.dumps(server.asked[-1]["messages"])
    assert "1 could be made and 1 couldn't" in told
    assert "there is no line 90" in told
    assert "the proposal is open" in told
    assert vault.text("Garden.md") == NOTES["Garden.md"]


def test_a_question_waits_and_is_answered_from_another_surface_after_a_restart(
    vault: opened.Opener, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving(ASK, SELECT, ANSWER) as server:
        with app.open_hub(settings(vault, server)) as hub:
            asked = call(hub, "mcp", "ask_vault", {"task": "colour?"})
        code = ask(server, "the front one", "--resume", str(asked["run_id"]), "--json")
        again = ask(server, "the front one", "--resume", str(asked["run_id"]), "--json")

    shown = json.loads(_documents(capsys.readouterr().out)[0])
    assert (asked["state"], asked["question"]) == ("asked", {"question": "Which?", "options": []})
    assert (code, shown["state"], shown["run_id"]) == (0, "complete", asked["run_id"])
    assert "The person answers: the front one" in json.dumps(server.asked[1]["messages"])
    assert again != 0


def test_one_client_cannot_go_on_with_the_run_of_another(vault: opened.Opener) -> None:
    with protocol.serving(ASK, SELECT) as server, app.open_hub(settings(vault, server)) as hub:
        asked = call(hub, "mcp", "scout_vault", {"task": "colour?"})
        stolen = call(hub, "http", "scout_vault", {"run_id": asked["run_id"], "answer": "x"})
        own = call(hub, "mcp", "scout_vault", {"run_id": asked["run_id"], "answer": "x"})

    assert stolen["code"] == "no_run"
    assert own["state"] == "complete"


def test_the_tools_give_what_the_agents_found(vault: opened.Opener) -> None:
    with protocol.serving(SELECT, EDIT) as server, app.open_hub(settings(vault, server)) as hub:
        scouted = call(hub, "mcp", "scout_vault", {"task": "paint", "rounds": 2, "notes": 3})
        asked = call(hub, "mcp", "ask_vault", {"task": "paint", "note": "Garden.md", "link_depth": 0})

    assert scouted["pipeline"]["scout"]["selected_notes"][0]["path"] == "Garden.md"
    assert len(asked["proposals"]) == 1
    assert asked["edit_results"]["success"] == 1
    assert vault.text("Garden.md") == NOTES["Garden.md"]


@pytest.mark.parametrize("foreign", [True, False])
def test_who_hears_an_answer_made_of_others_text_only_proposes_from_then_on(
    vault: opened.Opener, foreign: bool
) -> None:
    (vault.root / "Clippings").mkdir()
    (vault.root / "Clippings" / "Page.md").write_text("# Page\n\nFrom a stranger.\n", "utf-8")
    note = "Clippings/Page.md" if foreign else "Other.md"

    with protocol.serving(ANSWER) as server, app.open_hub(settings(vault, server)) as hub:
        _ = call(hub, "mcp", "ask_vault", {"task": "what?", "note": note, "link_depth": 0})
        done = call(hub, "mcp", "append_to_file", {"path": "Other.md", "content": "more"})

    assert done["status"] == ("proposed" if foreign else "applied")


def test_the_session_that_hears_an_answer_only_proposes_and_no_other_of_that_client(vault: opened.Opener) -> None:
    (vault.root / "Clippings").mkdir()
    (vault.root / "Clippings" / "Page.md").write_text("# Page\n\nFrom a stranger.\n", "utf-8")

    with protocol.serving(ANSWER) as server, app.open_hub(settings(vault, server)) as hub:

        def within(session: str, tool: str, **arguments: object) -> dict[str, Any]:
            context = hub.context(client="mcp", submit_options=SubmitOptions(run=session))
            return dict(hub.table.call(tool, arguments, lambda _: context))

        _ = within("one", "ask_vault", task="what?", note="Clippings/Page.md", link_depth=0)
        found = {one: within(one, "append_to_file", path="Other.md", content="x")["status"] for one in ("one", "two")}
        bare = call(hub, "mcp", "append_to_file", {"path": "Other.md", "content": "more"})

    assert found == {"one": "proposed", "two": "applied"}
    assert bare["status"] == "applied"


@pytest.mark.parametrize("kind", ["agent", "mcp"])
def test_a_run_that_a_tainted_run_begins_is_tainted_too(vault: opened.Opener, kind: str) -> None:
    with protocol.serving(EDIT) as server, app.open_hub(settings(vault, server)) as hub:
        context = hub.context(client=kind, submit_options=SubmitOptions(run="one"))
        _ = context.writer.taints.mark(kind, "one", "https://example.org")
        told: dict[str, Any] = dict(
            hub.table.call("ask_vault", {"task": "paint", "note": "Garden.md"}, lambda _: context)
        )
        proposal = hub.context(client="cli").writer.proposals.show(told["proposals"][0])

    assert proposal.tainted
    assert proposal.run == told["run_id"] != "one"


def test_a_preset_gives_a_client_what_it_may_see_and_do(vault: opened.Opener) -> None:
    hiding = ClientSettings(grants=replace(access.default_grants("mcp"), is_read_only=True), hidden=("Plants.md",))

    with (
        protocol.serving(ANSWER) as server,
        app.open_hub(replace(settings(vault, server), clients=(hiding,))) as hub,
    ):
        with pipelines.open_pipelines(hub) as own:
            own.presets.save(Preset(name="Beds", added=("Plants.md", "Other.md")))
        told = call(hub, "mcp", "ask_vault", {"task": "x", "note": "Garden.md", "link_depth": 0, "preset": "beds"})

    assert [note["path"] for note in told["context"]["notes"]] == ["Garden.md", "Other.md"]
    assert "Inserting text is forbidden" in json.dumps(server.asked[0]["messages"])


@pytest.mark.parametrize(("client", "looks"), [("mcp", False), ("cli", True)])
def test_only_persons_go_on_from_the_switches_as_a_person_left_them(
    vault: opened.Opener, client: str, looks: bool
) -> None:
    replies = (SELECT, ANSWER) if looks else (ANSWER,)
    with protocol.serving(*replies) as server, app.open_hub(settings(vault, server)) as hub:
        with pipelines.open_pipelines(hub) as own:
            own.presets.set_toggles(AgentToggles(scout=True))
        told = call(hub, client, "ask_vault", {"task": "colour?", "note": "Garden.md"})

    assert told["answer"].startswith("Green.")
    assert ("scout" in told["pipeline"]) == looks


@pytest.mark.parametrize("kept_from", ["agent", "mcp"])
def test_what_is_hidden_from_the_agents_or_their_client_goes_to_no_model(vault: opened.Opener, kept_from: str) -> None:
    hiding = ClientSettings(grants=access.default_grants(kept_from), hidden=("Plants.md",))
    choose = Reply(parts=[scripts.select("Garden.md", "Plants.md")])

    with (
        protocol.serving(ANSWER, ASK, choose, ASK, choose) as server,
        app.open_hub(replace(settings(vault, server), clients=(hiding,))) as hub,
    ):
        named = call(hub, "mcp", "ask_vault", {"task": "x", "note": "Plants.md"})
        linked = call(hub, "mcp", "ask_vault", {"task": "x", "note": "Garden.md", "link_depth": 1})
        asked = call(hub, "mcp", "scout_vault", {"task": "x"})
        chosen = call(hub, "mcp", "scout_vault", {"run_id": asked["run_id"], "answer": "y"})
        again = call(hub, "mcp", "scout_vault", {"task": "x"})
        by_person = call(hub, "cli", "scout_vault", {"run_id": again["run_id"], "answer": "y"})

    assert named["code"] == "not_found"
    assert [one["path"] for one in linked["context"]["notes"]] == ["Garden.md"]
    for found in (chosen, by_person):
        assert [one["path"] for one in found["pipeline"]["scout"]["selected_notes"]] == ["Garden.md"]
    assert "Roses" not in json.dumps(server.asked)


def test_without_a_model_the_tools_say_what_to_set(vault: opened.Opener) -> None:
    with app.open_hub(settings(vault)) as hub:
        told = call(hub, "mcp", "ask_vault", {"task": "x"})

    assert told["code"] == "no_model"
    assert told["hint"]


def test_without_a_model_the_switches_are_an_error(vault: opened.Opener, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["ask", "x", "--scout"]) != 0
    assert "no model is set" in capsys.readouterr().err
    assert vault.root.is_dir()


def test_switching_all_off_is_refused(vault: opened.Opener, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(ANSWER) as server:
        assert ask(server, "x", "--no-task", "--no-scout", "--no-web") != 0

    assert "no agent is switched on" in capsys.readouterr().err
    assert vault.root.is_dir()


def test_debug_shows_what_was_given_and_said(vault: opened.Opener, capsys: pytest.CaptureFixture[str]) -> None:
    with protocol.serving(EDIT) as server:
        _ = ask(server, "paint", "--note", "Garden.md", "--debug")

    err = capsys.readouterr().err
    assert "=== task: conversation" in err
    assert '"position": "replace:3"' in err
    assert vault.root.is_dir()


def test_all_agents_off_in_the_configuration_is_a_setup_error(vault: opened.Opener) -> None:
    found = settings(vault)
    off = replace(found, agents=replace(found.agents, task_on=False))

    with pytest.raises(SetupError, match="no agent is switched on"):
        _ = clients.configured_preset(off)


def settings(vault: opened.Opener, server: Server | None = None) -> Settings:
    model = ModelSettings(name=f"tiny@{server.base_url}") if server else ModelSettings()
    return replace(vault.settings(), model=model, state_dir=state())


def state() -> Path:
    from knapper import config  # noqa: PLC0415

    return config.load().state_dir


def call(hub: app.Hub, client: str, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    return dict(hub.table.answer(name, arguments, lambda vault: hub.context(client=client, vault=vault)))


def test_models_to_fall_back_on_do_tasks_too_and_no_server_is_asked_for_what_it_may_not_know(
    vault: opened.Opener,
) -> None:
    with protocol.serving(Reply(status=500)) as broken, protocol.serving(EDIT) as server:
        model = ModelSettings(name=f"tiny@{broken.base_url}", fallbacks=(f"tiny@{server.base_url}",), retries=0)
        found = replace(settings(vault), model=model)
        with app.open_hub(found) as hub:
            told = call(hub, "mcp", "ask_vault", {"task": "paint", "note": "Garden.md"})

    assert told["edit_results"]["success"] == 1
    assert "response_format" not in server.asked[0]
