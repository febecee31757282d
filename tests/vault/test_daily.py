"""Where daily notes are kept, what they are called, and what they begin with."""

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.vault import obsidian
from knapper.vault.obsidian import DailyNotes
from tests.index import worlds

AT = dt.datetime(2026, 11, 22, 14, 5, 7, 123456, tzinfo=dt.timezone(dt.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("YYYY-MM-DD", "2026-11-22"),
        ("YYYY/MM-MMMM/YYYY-MM-DD-dddd", "2026/11-November/2026-11-22-Sunday"),
        ("dddd, Do MMMM YYYY [at] HH:mm", "Sunday, 22nd November 2026 at 14:05"),
        ("[Week] ww [of] gggg", "Week 48 of 2026"),
        ("GGGG-[W]WW-E", "2026-W47-7"),
        ("[YYYY] [] YY", "YYYY  26"),
        ("\\Y YY", "Y 26"),
        ("ddd dd d do e", "Sun Su 0 0th 0"),
        ("MMM M Mo Q Qo", "Nov 11 11th 4 4th"),
        ("DDD DDDD DDDo", "326 326 326th"),
        ("h:mm A hh a H k kk", "2:05 PM 02 pm 14 14 14"),
        ("ss s SSS S", "07 7 123 1"),
        ("Z ZZ", "+02:00 +0200"),
        ("X", "1795349107"),
        ("L | LL | LT", "11/22/2026 | November 22, 2026 | 2:05 PM"),
        ("", ""),
        ("日記 YYYY年", "日記 2026年"),
    ],
)
def test_patterns_mean_what_they_mean_in_moment(pattern: str, expected: str) -> None:
    assert obsidian.format_date(AT, pattern) == expected


@pytest.mark.parametrize(
    ("day", "expected"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (21, "21st")]
)
def test_days_are_counted_as_in_english(day: int, expected: str) -> None:
    assert obsidian.format_date(AT.replace(day=day), "Do") == expected


@pytest.mark.parametrize(
    ("date", "expected"),
    [("2024-12-29", "2025-01"), ("2024-12-28", "2024-52"), ("2026-01-01", "2026-01"), ("2021-01-02", "2021-01")],
)
def test_the_first_week_holds_the_first_of_january(date: str, expected: str) -> None:
    assert obsidian.format_date(dt.datetime.fromisoformat(date).replace(tzinfo=dt.UTC), "gggg-ww") == expected


@given(st.datetimes(timezones=st.just(dt.UTC)), st.text(max_size=20))
def test_any_pattern_can_be_written(at: dt.datetime, pattern: str) -> None:
    plain = pattern.replace("[", "").replace("]", "")

    assert obsidian.format_date(at, f"[{plain}]") == plain
    assert obsidian.format_date(at, pattern) is not None


def read(tmp_path: Path, **files: object) -> DailyNotes:
    names = {
        "core": ".obsidian/daily-notes.json",
        "plugins": ".obsidian/community-plugins.json",
        "periodic": ".obsidian/plugins/periodic-notes/data.json",
    }
    worlds.fill(tmp_path, {names[name]: json.dumps(value) for name, value in files.items()})
    return obsidian.read_daily_notes(tmp_path)


def test_a_vault_that_says_nothing_keeps_them_in_a_folder_of_their_own(tmp_path: Path) -> None:
    assert read(tmp_path).path(AT) == "Daily Notes/2026-11-22.md"


@pytest.mark.parametrize(
    ("core", "path"),
    [
        ({}, "2026-11-22.md"),
        ({"folder": "Journal"}, "Journal/2026-11-22.md"),
        ({"folder": "/Journal/", "format": "YYYY/MM/DD"}, "Journal/2026/11/22.md"),
        ({"folder": "J", "format": "[Daily] YYYY.MM.DD"}, "J/Daily 2026.11.22.md"),
        ({"folder": 1, "format": None}, "2026-11-22.md"),
        ([], "2026-11-22.md"),
    ],
)
def test_obsidians_settings_count(tmp_path: Path, core: object, path: str) -> None:
    assert read(tmp_path, core=core).path(AT) == path


@pytest.mark.parametrize(
    "periodic",
    [
        {"daily": {"enabled": True, "folder": "P", "format": "DD", "template": "T"}},
        {
            "activeCalendarSet": "b",
            "calendarSets": [
                {"id": "a", "day": {"enabled": True, "folder": "X"}},
                {"id": "b", "day": {"enabled": True, "folder": "P", "format": "DD", "templatePath": "T"}},
            ],
        },
    ],
)
def test_the_plugin_counts_before_them_where_it_is_in_use(tmp_path: Path, periodic: object) -> None:
    core = {"folder": "Journal"}

    assert read(tmp_path, core=core, periodic=periodic).path(AT) == "Journal/2026-11-22.md"
    found = read(tmp_path, core=core, periodic=periodic, plugins=["dataview", "periodic-notes"])
    assert (found.path(AT), found.template) == ("P/22.md", "T")


@pytest.mark.parametrize("periodic", [{}, [], {"daily": {"enabled": False}}, {"calendarSets": [1]}, {"daily": 1}])
def test_a_plugin_without_daily_notes_leaves_it_to_obsidian(tmp_path: Path, periodic: object) -> None:
    found = read(tmp_path, core={"folder": "J"}, periodic=periodic, plugins=["periodic-notes"])

    assert found.folder == "J"


def test_a_templates_variables_are_written() -> None:
    kept = DailyNotes(format="YYYY-MM-DD")
    template = "# {{title}}\n{{date}} {{date:dddd}} {{ time }} {{TIME:HH}} {{yesterday}} {{tomorrow:DD}} {{x}} <% y %>"

    assert kept.fill(template, AT) == ("# 2026-11-22\n2026-11-22 Sunday 14:05 14 2026-11-21 23 {{x}} <% y %>")
