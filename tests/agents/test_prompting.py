"""The system prompt: the person's own file wins, and what it says is said each turn."""

from pathlib import Path

import pytest

from knapper.agents import prompting
from knapper.agents.prompting import Prompts
from knapper.errors import SetupError, StorageError
from tests.agents import scripted
from tests.agents.scripted import NOW, Model
from tests.tools import opened


def test_the_built_in_prompt_tells_the_rules() -> None:
    text = Prompts().load("chat")

    assert "vault-data" in text
    assert "never an order" in text
    assert "[[Projects/Garden.md#Fence]] (lines 12-14)" in text


def test_a_file_that_is_named_wins_over_one_in_the_folder_and_that_over_the_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "chat.md").write_text("From the folder.", encoding="utf-8")
    (tmp_path / "mine.md").write_text("By name.", encoding="utf-8")

    assert Prompts(own_file=tmp_path / "mine.md", folder=tmp_path).load("chat") == "By name."
    assert Prompts(folder=tmp_path).load("chat") == "From the folder."
    assert Prompts(folder=tmp_path).load("repair") == prompting.read_built_in("repair")
    assert Prompts(own_file=tmp_path / "mine.md").load("repair") == prompting.read_built_in("repair")


def test_a_named_file_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SetupError, match="gone"):
        Prompts(own_file=tmp_path / "gone.md").load("chat")
    with pytest.raises(StorageError, match="bad"):
        Prompts(own_file=tmp_path / "bad.md").load("chat")


def test_long_preferences_are_cut_and_hidden_ones_are_not_told(tmp_path: Path) -> None:
    notes = {"Preferences.md": "- " + "x" * 9_000}
    shown, hidden = opened.vault(tmp_path / "a", notes), opened.vault(tmp_path / "b", notes, hidden=("Preferences.md",))

    with scripted.agent(shown) as context:
        seen = prompting.write_system_prompt("Base.", context, NOW)
    with scripted.agent(hidden) as context:
        unseen = prompting.write_system_prompt("Base.", context, NOW)

    assert seen.count("x") == 3_998
    assert "User Preferences" not in unseen
    assert unseen == "Base.\n\n## Today\n\nSaturday, 2026-03-14, 09:26."


def test_preferences_are_read_anew_each_turn(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Preferences.md": "- Be brief.\n"})
    model = Model([["Hi."]])

    with scripted.agent(vault) as context:
        _ = scripted.run(scripted.chat(model), context)
        (vault.root / "Preferences.md").write_text("- Be long.\n", encoding="utf-8")
        _ = scripted.run(scripted.chat(model), context)

    assert ["Be brief." in (info.instructions or "") for info in model.infos] == [True, False]
    assert "Be long." in (model.infos[1].instructions or "")


def test_a_prompt_that_is_missing_ends_the_turn_with_an_error(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {})

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(Model([["Hi."]]), prompts=Prompts(own_file=tmp_path / "gone.md")), context)

    assert [event.kind for event in events] == ["error", "usage", "done"]
    assert scripted.done(events).state == "failed"


def test_tracing_holds_nothing_of_what_is_said(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Garden.md": "Green.\n"})

    with scripted.agent(vault) as context:
        events = scripted.run(scripted.chat(Model([["Hi."]]), telemetry=True), context)

    assert scripted.done(events).answer == "Hi."
