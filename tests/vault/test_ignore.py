from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.errors import SetupError
from knapper.vault import paths, walk
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.walk import IgnoreRules

FILES = ["a.md", "Templates/t.md", "Templates.md", "Notes/Deep/_draft.md", "Notes/b.tmp.md", "x/Private/p.md"]


def load(root: Path, *filters: str, rules: str | None = None) -> IgnoreRules:
    if rules is not None:
        (root / ".knapignore").write_bytes(rules.encode())
    return IgnoreRules.load(root, ObsidianSettings(user_ignore_filters=filters))


def shown(ignore: IgnoreRules, files: list[str] = FILES) -> list[str]:
    return [file for file in files if not ignore.hides(file)]


@pytest.mark.parametrize(
    "path", [".obsidian/app.json", ".git", "a/.venv/x.md", ".trash/a.md", "a/.hidden.md", ".OBSIDIAN/x"]
)
def test_names_with_a_leading_dot_are_never_part_of_the_vault(path: str) -> None:
    assert IgnoreRules().hides(path)


@pytest.mark.parametrize("path", ["a.md", "a./b.md", "a..b.md", "node_modules/a.md", "venv/a.md"])
def test_other_names_are(path: str) -> None:
    assert not IgnoreRules().hides(path)


def test_the_ignore_file_hides_what_it_names(tmp_path: Path) -> None:
    ignore = load(tmp_path, rules="\ufeff# mine\r\nPrivate/\r\n*.tmp.md\r\n!b.tmp.md\r\n")

    assert shown(ignore) == ["a.md", "Templates/t.md", "Templates.md", "Notes/Deep/_draft.md", "Notes/b.tmp.md"]
    assert ignore.hides("x/private/P.MD")
    assert ignore.problems == ()


def test_obsidians_filters_are_beginnings_of_paths_or_expressions(tmp_path: Path) -> None:
    _ = pytest.importorskip("re2", reason="google-re2 has no wheel for this system or Python")
    ignore = load(tmp_path, "templates/", "/(^|\\/)_/", "")

    assert shown(ignore) == ["a.md", "Templates.md", "Notes/b.tmp.md", "x/Private/p.md"]
    assert ignore.hides("Templates", is_folder=True)
    assert not ignore.hides("Templates")


def test_an_expression_is_tried_on_files_and_not_on_folders(tmp_path: Path) -> None:
    ignore = load(tmp_path, "/^Archive$/")

    assert not ignore.hides("Archive", is_folder=True)
    assert not ignore.hides("Archive/a.md")


def test_filters_and_lines_without_effect_are_told(tmp_path: Path) -> None:
    ignore = load(tmp_path, "/(?=x)/", "/[/", "ok/", rules="fine\n[broken\n")

    assert len(ignore.problems) == 3
    assert ".knapignore, line 2" in ignore.problems[0]


def test_a_name_in_any_unicode_form_is_hidden(tmp_path: Path) -> None:
    _ = pytest.importorskip("re2", reason="google-re2 has no wheel for this system or Python")
    ignore = load(tmp_path, "Cafe\u0301/", "/^r\u00e9sum\u00e9/", rules="Na\u00efve/")

    assert ignore.hides("caf\u00e9/a.md")
    assert ignore.hides("re\u0301sume\u0301.md")
    assert ignore.hides("nai\u0308ve/a.md")


def test_rules_that_cannot_be_read_stop_everything(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (tmp_path / "rules").write_text("Private/", encoding="utf-8")
    (vault / ".knapignore").symlink_to(tmp_path / "rules")

    with pytest.raises(SetupError) as error:
        IgnoreRules.load(vault, ObsidianSettings())

    assert ".knapignore" in error.value.hint


def test_rules_that_a_link_leads_to_and_that_are_gone_stop_everything(tmp_path: Path) -> None:
    (tmp_path / ".knapignore").symlink_to("moved away")

    with pytest.raises(SetupError, match="leads nowhere"):
        IgnoreRules.load(tmp_path, ObsidianSettings())


def test_rules_without_end_stop_everything(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        load(tmp_path, rules="x\n" * 100_000)


RULES = st.lists(st.sampled_from(["a/", "*.md", "!b.md", "/a/b", "**/b/", "a*", "!a/", "b/*"]), max_size=4)
PARTS = st.lists(st.sampled_from(["a", "b", "b.md", "ab", ".b"]), min_size=1, max_size=4)


@given(
    rules=RULES, filters=st.lists(st.sampled_from(["a/", "b", "a/b"]), max_size=2), files=st.lists(PARTS, max_size=8)
)
def test_a_walk_lists_exactly_what_is_not_hidden(
    tmp_path_factory: pytest.TempPathFactory, rules: list[str], filters: list[str], files: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("vault")
    ignore = IgnoreRules(patterns=paths.parse_globs(rules), prefixes=tuple(filters))
    for parts in files:
        if not any(above.is_file() for above in root.joinpath(*parts).parents):
            root.joinpath(*parts[:-1]).mkdir(parents=True, exist_ok=True)
            if not root.joinpath(*parts).exists():
                root.joinpath(*parts).touch()
    there = {file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file()}

    found = {str(file.path) for file in walk.list_files(root, ignore)}

    assert found == {file for file in there if not ignore.hides(file)}
