import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from knapper.vault import paths
from tests.properties import scaled

PIECES = [
    r"a",
    r"b",
    r"ab",
    r"*",
    r"?",
    r"[ab]",
    r"[!a]",
    r"[^b]",
    r"[a-c]",
    r"\*",
    r".md",
    r"*.md",
    r"a*",
    r"*b",
    r"a*b*",
    r"[]a]",
    r"[[:alpha:]]",
]
PATHS = [
    r"a",
    r"b",
    r"ab",
    r"a.md",
    r"a/b",
    r"a/b.md",
    r"a/a/b",
    r"b/a.md",
    r"ab/ab/a.md",
    r"a/b/ab/b.md",
    r"*",
    r"b/]",
    r"c/c/c/c.md",
]
# "**" beside other characters is left out: git reads "a**/**" in a way that its documentation doesn't tell.
PART = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join).filter(lambda part: "**" not in part)
BODY = st.lists(PART | st.just("**"), min_size=1, max_size=3).map("/".join)
HEAD = st.sampled_from(["", "", "/", "**/", "!", "!/"])
LINES = st.lists(st.tuples(HEAD, BODY, st.sampled_from(["", "", "/", "/**"])).map("".join), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("git"):
        pytest.skip("git isn't installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def ignored_by_git(repository: Path, lines: list[str]) -> set[str]:
    (repository / ".git/info/exclude").write_text("\n".join(lines), encoding="utf-8")
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, cwd=repository, input="\0".join(PATHS), capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return set(done.stdout.split("\0")) - {""}


@settings(max_examples=scaled(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
@example(lines=["*.md", "!a"])
@example(lines=["a/", "!a/b.md"])
@example(lines=["a/**/b", "**/ab/**", "b/"])
@example(lines=["/*", "!/a", "/a/*", "!/a/b.md"])
def test_paths_match_as_git_has_it(repository: Path, lines: list[str]) -> None:
    ours = {path for path in PATHS if paths.parse_globs(lines).match(path)}

    assert ours == ignored_by_git(repository, lines)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("Private/", "Private/a.md"),
        ("Private/", "x\ny/Private/a\nb.md"),
        ("*.tmp", "x/two\nlines.tmp"),
        ("/a/**/z", "a/b\nc/d/z"),
        ("Private/", "PRIVATE/a.md"),
        ("/Café/*", "cafe\u0301/a.md"),
        ("\\#tag.md", "#tag.md"),
        ("\\!x.md", "!x.md"),
        ("trailing\\ ", "trailing "),
        ("trailing\\   ", "trailing "),
        ("trailing  ", "trailing"),
        ("crlf.md\r\n", "crlf.md"),
        ("[[:digit:]]*", "2024.md"),
        ("🗂️*", "🗂️ hub.md"),
    ],
)
def test_a_pattern_matches(line: str, path: str) -> None:
    assert paths.parse_globs([line]).match(path)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("Private/", "Private"),
        ("/Private/", "x/Private/a.md"),
        ("a.md", "axmd"),
        ("# Private/", "# Private/a.md"),
        ("", "a.md"),
        ("a?b", "a/b"),
        ("a[.-0]b", "a/b"),
        ("[b-a]", "a"),
        ("x*y", "xaz"),
    ],
)
def test_a_pattern_does_not_match(line: str, path: str) -> None:
    assert not paths.parse_globs([line]).match(path)


def test_a_folder_matches_a_pattern_for_folders() -> None:
    assert paths.parse_globs(["Private/"]).match("x/Private", is_folder=True)


@settings(max_examples=scaled(150))
@given(
    parts=st.lists(st.text("aAßSséE\u0301\u0338İ.", min_size=1, max_size=3), min_size=1, max_size=4),
    lines=st.lists(st.sampled_from(["a/", "SS/", "/É/", "É", "*é/", "!a", "ss/**", "i̇/"]), min_size=1, max_size=3),
)
@example(parts=["STRASSE", "\u0338a"], lines=["straße/"])
def test_a_path_matches_where_it_or_a_folder_above_does(parts: list[str], lines: list[str]) -> None:
    path, patterns = "/".join(parts), paths.parse_globs(lines)
    folders = any(patterns.match_only(folder, is_folder=True) for folder in paths.parent_folders(path))

    assert patterns.match(path) == (folders or patterns.match_only(path, is_folder=False))


def test_a_folder_that_matches_takes_all_below_it_along() -> None:
    patterns = paths.parse_globs(["Private/", "!Private/open.md", "!open.md"])

    assert patterns.match("Private/open.md")
    assert not patterns.match_only("Private/open.md", is_folder=False)


@pytest.mark.parametrize(
    ("line", "why"), [("[a", "closed"), ("a\\", "backslash"), ("[[:nope:]]", "class"), ("x" * 1001, "longer")]
)
def test_a_line_that_is_no_pattern_is_told_and_matches_nothing(line: str, why: str) -> None:
    patterns = paths.parse_globs(["ok", line])

    assert patterns.match("ok")
    assert not patterns.match(line)
    (problem,) = patterns.problems
    assert problem.startswith("line 2")
    assert why in problem


@pytest.mark.parametrize(
    "line",
    [
        "*a" * 200 + "*b",
        "?*" * 300 + "b",
        "**/a/" * 100 + "b",
        "*" * 900,
        "**/*a*a*a/**/*a*a*a/**/*a*a*b",
        "[ab]*" * 150 + "c",
    ],
)
def test_a_pattern_made_to_hang_ends(line: str) -> None:
    patterns = paths.parse_globs([line])

    for path in ("a" * 255, "/".join(["aaaaaaaa"] * 400), "a/" * 2000):
        assert patterns.match(path) in {True, False}


@given(st.text("ab/*?[]!^-\\: #", max_size=12), st.text("ab/*?[]!^-\\: #", min_size=1, max_size=12))
def test_no_line_breaks_the_reader(line: str, path: str) -> None:
    assert paths.parse_globs([line]).match(path) in {True, False}


def test_a_line_with_a_very_long_run_of_spaces_is_too_long() -> None:
    assert len(paths.parse_globs(["a" + " " * 200_000 + "b"]).problems) == 1
