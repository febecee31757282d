"""The day, its note, and the log: what is written where, what is linked, and what doesn't happen."""

import datetime as dt
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.errors import BadInput, KnapError, NotFound, RefusedError
from knapper.tools import daily, journal, search
from knapper.tools.context import Context
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

NOW = dt.datetime(2026, 11, 22, 14, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
TODAY = "Daily Notes/2026-11-22.md"
NOTES = {"Garden.md": "# Garden\n", "Work/Plan A.md": "", "Secret/Affair.md": "", "Twice.md": "", "Work/Twice.md": ""}


def make(tmp_path: Path, notes: Mapping[str, str] = {}) -> Opener:
    return opened.vault(tmp_path, {**NOTES, **notes}, hidden=("Secret/",))


def at_two(context: Context) -> Context:
    return replace(context, now=lambda: NOW)


def log(vault: Opener, client: str | ClientSettings = "agent", **said: str | list[str]) -> Mapping[str, Any]:
    told: dict[str, Any] = {"task_description": "Water", "query": "When?", "summary": "Done.", **said}
    with vault.open(client) as context:
        return daily.log_interaction(at_two(context), **told)


def test_the_day_and_the_time_are_local(tmp_path: Path) -> None:
    with make(tmp_path).open() as context:
        told = daily.get_current_date(at_two(context))

    assert told == {"success": True, "date": "2026-11-22", "time": "14:05", "weekday": "Sunday", "zone": "+01:00"}


def test_an_entry_makes_the_days_note_without_a_heading(tmp_path: Path) -> None:
    vault = make(tmp_path)

    done = log(vault, summary="Garden and Plan A, Affair, Twice.", files=["Garden.md", "Secret/Affair.md", "no.md"])

    assert (done["status"], done["path"], done["links"]) == ("applied", TODAY, ["Garden", "Plan A"])
    assert vault.text(TODAY) == (
        "> [!knap-log]- 14:05 · Water\n>\n> **Query:** When?\n>\n"
        "> **Summary:** [[Garden]] and [[Plan A]], Affair, Twice.\n>\n"
        "> **Files:** [[Garden]], Secret/Affair.md, no.md\n"
    )


def test_a_new_note_begins_with_the_vaults_template(tmp_path: Path) -> None:
    vault = make(
        tmp_path,
        {
            ".obsidian/daily-notes.json": '{"folder": "J", "format": "YYYY/[day] DD", "template": "T/Day"}',
            "T/Day.md": "# {{title}}\n\n{{date:dddd}}",
        },
    )

    done = log(vault)

    assert (done["status"], done["path"]) == ("applied", "J/2026/day 22.md")
    assert vault.text("J/2026/day 22.md").startswith("# day 22\n\nSunday\n\n> [!knap-log]- 14:05 · Water\n")


def test_a_template_that_is_hidden_or_gone_is_told_of_and_left_out(tmp_path: Path) -> None:
    vault = make(tmp_path, {".obsidian/daily-notes.json": '{"template": "Secret/Affair"}'})

    done = log(vault)

    assert "template" in done["notes"][0]
    assert vault.text("2026-11-22.md").startswith("> [!knap-log]")


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("# Day\n", "\n"),
        ("# Day\n\n", ""),
        ("# Day", "\n\n"),
        ("text\r\n", "\r\n"),
        ("text\r\n\r\n", ""),
        ("> quote\n", "\n"),
        ("- item", "\n\n"),
        ("---\na: 1\n---\n", "\n"),
        ("", ""),
        ("\ufefftext\n", "\n"),
    ],
)
def test_an_entry_is_appended_apart_and_every_byte_stays(tmp_path: Path, before: str, between: str) -> None:
    vault = make(tmp_path, {TODAY: before})

    done = log(vault)

    assert done["status"] == "applied"
    assert vault.text(TODAY).startswith(f"{before}{between}> [!knap-log]- 14:05")
    assert ("\r\n" in before) == ("\r\n" in vault.text(TODAY))


def test_entries_stand_below_each_other_and_can_be_taken_back(tmp_path: Path) -> None:
    vault = make(tmp_path, {TODAY: "# Day\n"})

    log(vault)
    first = vault.text(TODAY)
    second = log(vault, summary="n/a", full_response="## Answer\n\nGarden.")
    assert vault.text(TODAY) == first + (
        "\n> [!knap-log]- 14:05 · Water\n>\n> **Query:** When?\n>\n> **Response:**\n>\n"
        "> \\## Answer\n>\n> [[Garden]].\n"
    )
    with vault.open() as context:
        journal.undo_change(context, change_id=second["change_id"])

    assert vault.text(TODAY) == first


@pytest.mark.parametrize("before", ["```\nopen\n", "~~~~\n```\n", "<!-- open\n"])
def test_a_note_that_would_swallow_the_entry_is_left_alone(tmp_path: Path, before: str) -> None:
    vault = make(tmp_path, {TODAY: before})

    with pytest.raises(BadInput) as caught:
        log(vault)

    assert caught.value.code == "open_block"
    assert vault.text(TODAY) == before


@pytest.mark.parametrize(
    "said",
    [
        {"summary": "n/a"},
        {"summary": ""},
        {"task_description": " "},
        {"summary": "x" * 200_001},
    ],
)
def test_there_has_to_be_something_to_log_and_not_too_much(tmp_path: Path, said: dict[str, str]) -> None:
    vault = make(tmp_path)

    with pytest.raises(BadInput):
        log(vault, **said)

    assert not (vault.root / TODAY).exists()


@pytest.mark.parametrize("client", ["cli", "agent", "script", "mcp", "http", "somebody"])
def test_every_client_that_may_write_logs_at_once(tmp_path: Path, client: str) -> None:
    vault = make(tmp_path)

    assert [log(vault, client)["status"] for _ in range(2)] == ["applied", "applied"]


def test_a_client_may_be_kept_from_it(tmp_path: Path) -> None:
    vault = make(tmp_path, {TODAY: "# Day\n"})
    reader = ClientSettings(grants=replace(access.default_grants("r", "agent"), is_read_only=True))
    elsewhere = ClientSettings(grants=replace(access.default_grants("e", "agent"), write=("Work/",)))

    for client in (reader, elsewhere):
        with pytest.raises(RefusedError):
            log(vault, client)

    assert vault.text(TODAY) == "# Day\n"


def test_a_folder_that_is_hidden_is_not_written_to(tmp_path: Path) -> None:
    vault = make(tmp_path, {".obsidian/daily-notes.json": '{"folder": "Secret"}'})

    with pytest.raises(RefusedError):
        log(vault)


def test_how_a_call_is_meant_counts_for_an_entry_too(tmp_path: Path) -> None:
    vault = make(tmp_path)

    with vault.open(asked=SubmitOptions(dry_run=True)) as context:
        planned = daily.log_interaction(at_two(context), "t", "q", "s")
    with vault.open(asked=SubmitOptions(propose=True)) as context:
        proposed = daily.log_interaction(at_two(context), "t", "q", "s")

    assert (planned["status"], proposed["status"]) == ("planned", "proposed")
    assert not (vault.root / TODAY).exists()


def test_who_has_read_foreign_text_only_proposes_entries(tmp_path: Path) -> None:
    vault = make(tmp_path, {TODAY: "# Day\n"})

    with vault.open("agent") as context:
        context.writer.taints.mark("agent", "", "Clippings/x.md")
    done = log(vault)

    assert done["status"] == "proposed"


def test_search_finds_the_log_only_where_it_is_asked_for(tmp_path: Path) -> None:
    vault = make(tmp_path, {TODAY: "# Day\n\nI saw a zebra.\n"})
    log(vault, query="zebra?", summary="A zebra in the Garden.", task_description="Zebra")

    with vault.open() as context:
        plain: Any = search.search_vault(context, "zebra", 20)["results"]
        asked: Any = search.search_vault(context, "zebra", 20, include_log=True)["results"]

        others: list[Any] = [
            search_of(context, "zebra", limit=20)["results"]
            for search_of in (search.search_keyword, search.search_semantic, search.search_task_relevant)
        ]

    assert ["I saw" in hit["content"] for hit in plain] == [True]
    assert all("knap-log" not in str(found) for found in others)
    assert sorted("knap-log" in hit["content"] for hit in asked) == [False, True]


def test_a_days_note_is_read(tmp_path: Path) -> None:
    vault = make(tmp_path, {TODAY: "# Day\n", "Daily Notes/2026-11-21.md": "Yesterday\n"})

    with vault.open() as context:
        shown = [daily.daily_note(at_two(context), day)["content"] for day in ("", "today", "yesterday", "2026-11-21")]

    assert shown == ["# Day\n", "# Day\n", "Yesterday\n", "Yesterday\n"]


def test_a_days_note_that_is_missing_is_made_only_when_asked(tmp_path: Path) -> None:
    vault = make(tmp_path, {".obsidian/daily-notes.json": '{"folder": "J", "template": "T"}', "T.md": "# {{date}}\n"})

    with vault.open() as context:
        with pytest.raises(NotFound) as caught:
            daily.daily_note(at_two(context), "2026-1-2")
        made = daily.daily_note(at_two(context), "2026-1-2", create=True)

    assert (caught.value.code, caught.value.details["path"]) == ("no_daily_note", "J/2026-01-02.md")
    assert (made["status"], made["path"], made["created"]) == ("applied", "J/2026-01-02.md", True)
    assert vault.text("J/2026-01-02.md") == "# 2026-01-02\n"


def test_an_agent_only_proposes_a_days_note(tmp_path: Path) -> None:
    with make(tmp_path).open("agent") as context:
        made = daily.daily_note(at_two(context), create=True)

    assert (made["status"], made["created"]) == ("proposed", False)


@pytest.mark.parametrize(
    "day", ["soon", "2026-02-30", "2026-13-01", "22.11.2026", "0000-01-01", "0001-01-01", "9999-12-31", "x" * 9999]
)
def test_what_is_no_date_is_refused(tmp_path: Path, day: str) -> None:
    said = '{"template": "Day"}'
    notes = {".obsidian/daily-notes.json": said, "Day.md": "{{yesterday}} {{tomorrow}} {{date:gggg}}"}
    with make(tmp_path, notes).open() as context, pytest.raises(BadInput):
        daily.daily_note(at_two(context), day, create=True)


def test_settings_cannot_lead_out_of_the_vault(tmp_path: Path) -> None:
    vault = make(tmp_path, {".obsidian/daily-notes.json": '{"folder": "../out"}'})

    with pytest.raises(KnapError) as caught:
        log(vault)

    assert caught.value.code == "outside_vault"
    assert not (tmp_path / "out").exists()


def test_no_entry_is_lost_where_several_log_at_once(tmp_path: Path) -> None:
    vault = make(tmp_path)

    def entry(number: int) -> Mapping[str, Any]:
        return log(vault, summary=f"Entry {number}.")

    with ThreadPoolExecutor(3) as pool:
        done = [*pool.map(entry, range(6))]

    assert [one["status"] for one in done] == ["applied"] * 6
    assert all(vault.text(TODAY).count(f"Entry {number}.") == 1 for number in range(6))
