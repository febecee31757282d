"""Each setting is declared once, as a field; reader, table, `knap config` and reference page follow from it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

import pytest

from knapper import config
from knapper.cli.commands.config import render_settings
from knapper.config import ModelSettings, SearchSettings, Settings, Vault, loading
from knapper.config.declarations import (
    FilePath,
    SettingsSection,
    Url,
    check_value,
    read_section,
    setting,
    settings_of,
)
from knapper.config.sections import ServerSettings
from knapper.config.settings import CLIENT_SETTINGS, SETTINGS, VAULT_SETTINGS, ClientSection
from knapper.errors import SetupError
from scripts import reference
from tests.sources import parsed

SOURCE = Path(config.__file__).parents[1]
NO_SETTINGS: dict[type[SettingsSection], set[str]] = {
    Settings: {"choice", "passed_by", "unused", "vaults", "clients", "config_file", "env_file", "origins"},
    Vault: {"name"},
    ModelSettings: {"keys"},
}
"""Fields that tell what came of the settings, or stand in a section's heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerSection(SettingsSection):
    depth: int = setting(2, "How deep.", most=9)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSection(SettingsSection):
    title: str = setting("t", "A title.", env=("SAMPLE_TITLE",))
    is_on: bool = setting(True, "A switch.", name="switch")
    asks: bool = setting(False, "A question.", words=("no", "yes"))
    way: Literal["", "up", "down"] = setting("", "A choice.", aliases={"north": "up"})
    parts: tuple[Literal["a", "b"], ...] = setting(("a",), "Some words.")
    lines: tuple[str, ...] = setting((), "Any texts.")
    url: Url = setting("", "An address.")
    file: FilePath = setting("", "A file.")
    key: str = setting("", "A key.", secret=True)
    inner: InnerSection = InnerSection()
    elsewhere: int = setting(1, "A number.", name="other.number", least=1, most=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSearch(SearchSettings):
    neighbours: int = setting(7, "How many neighbours a vector has.", env=("KNAP_NEIGHBOURS",), least=1, most=9)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSettings(Settings):
    search: DeepSearch = DeepSearch()


def sections(root: type[SettingsSection]) -> Iterator[type[SettingsSection]]:
    yield root
    for field in fields(root):
        if isinstance(field.type, type) and issubclass(field.type, SettingsSection):
            yield from sections(field.type)


@pytest.mark.parametrize(
    "section",
    [each for root in (Settings, Vault, ClientSection) for each in sections(root)],
    ids=lambda section: section.__name__,
)
def test_every_field_of_a_section_declares_a_setting(section: type[SettingsSection]) -> None:
    plain = {
        field.name
        for field in fields(section)
        if not field.metadata and not (isinstance(field.type, type) and issubclass(field.type, SettingsSection))
    }

    assert plain == NO_SETTINGS.get(section, set())
    assert all(one.doc.endswith(".") for one in settings_of(section))


def test_there_is_no_other_table_of_settings() -> None:
    made = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "Setting(" in path.read_text(encoding="utf-8")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Setting"
    ]

    assert made == ["config/declarations.py"]
    for table in (SETTINGS, VAULT_SETTINGS, CLIENT_SETTINGS):
        assert len({one.name for one in table}) == len(table)


def test_a_setting_that_is_added_as_a_field_is_read_and_shown_everywhere(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "Settings", DeepSettings)
    for module in (loading, reference):
        monkeypatch.setattr(module, "SETTINGS", settings_of(DeepSettings))

    by_default = config.load()
    config_file.write_text("[search]\nneighbours = 3\n", encoding="utf-8")
    by_file = config.load()
    monkeypatch.setenv("KNAP_NEIGHBOURS", "5")
    by_variable = config.load()

    assert [each.search for each in (by_default, by_file, by_variable)] == [
        DeepSearch(),
        DeepSearch(neighbours=3),
        DeepSearch(neighbours=5),
    ]
    shown = [line.split() for line in render_settings(by_file).splitlines()]
    assert ["search.neighbours", "3", f"{config_file}:2"] in shown
    row = "| `search.neighbours` | `7` | `KNAP_NEIGHBOURS` | How many neighbours a vector has. |"
    assert row in reference.settings().splitlines()


def test_a_fields_type_tells_the_kind_the_choices_and_the_default_as_it_is_written() -> None:
    rows = {one.name: (one.kind, one.choices, one.default) for one in settings_of(SampleSection, "sample")}

    assert rows == {
        "sample.title": ("text", (), "t"),
        "sample.switch": ("choice", ("off", "on"), "on"),
        "sample.asks": ("choice", ("no", "yes"), "no"),
        "sample.way": ("choice", ("up", "down", "north"), ""),
        "sample.parts": ("texts", ("a", "b"), ("a",)),
        "sample.lines": ("texts", (), ()),
        "sample.url": ("url", (), ""),
        "sample.file": ("path", (), ""),
        "sample.key": ("text", (), ""),
        "inner.depth": ("count", (), 2),
        "other.number": ("count", (), 1),
    }


def test_the_defaults_of_the_table_make_the_section_that_is_made_without_values() -> None:
    values = {one.name: one.default for one in settings_of(SampleSection, "sample")}

    assert read_section(SampleSection, values, "sample") == SampleSection()


def test_words_of_the_file_become_what_the_field_holds() -> None:
    values = {one.name: one.default for one in settings_of(SampleSection, "sample")}
    values |= {"sample.switch": "off", "sample.asks": "yes", "sample.way": "north", "inner.depth": 4}

    section = read_section(SampleSection, values, "sample")

    assert section == SampleSection(is_on=False, asks=True, way="up", inner=InnerSection(depth=4))


@pytest.mark.parametrize(("raw", "expected"), [(2, "2"), ("2", "2"), (0, "0"), ("auto", "auto")])
def test_a_number_among_words_needs_no_quotes(raw: object, expected: str) -> None:
    row = next(one for one in settings_of(ServerSettings, "server") if one.name == "server.readers")

    assert check_value(row, raw, place="a file", base=Path()) == expected


@pytest.mark.parametrize("raw", [5, True, "many"])
def test_a_number_that_is_none_of_the_words_is_refused(raw: object) -> None:
    row = next(one for one in settings_of(ServerSettings, "server") if one.name == "server.readers")

    with pytest.raises(SetupError, match=r"server\.readers"):
        _ = check_value(row, raw, place="a file", base=Path())


def test_a_secret_is_not_in_the_text_of_its_section() -> None:
    assert "hush" not in repr(SampleSection(key="hush"))


def test_a_type_that_no_value_has_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class WrongSection(SettingsSection):
        ratio: float = setting(0.5, "A ratio.")

    with pytest.raises(TypeError, match="ratio"):
        _ = settings_of(WrongSection)
