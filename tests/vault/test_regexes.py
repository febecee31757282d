import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knapper.vault import paths
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.walk import IgnoreRules

_ = pytest.importorskip("re2", reason="google-re2 has no wheel for this system or Python")

FLAGS = re.IGNORECASE | re.DOTALL | re.ASCII  # as in JavaScript, \w and \d are of ASCII
CHARACTERS = st.sampled_from(
    [
        "a",
        "B",
        "/",
        ".",
        "\\.",
        "\\d",
        "\\w",
        "\\W",
        "[\\w-]",
        "[ab]",
        "[^a]",
        "[a-c\\]]",
        "é",
        "-",
        " ",
        "\\/",
        "[\\S/]",
    ]
)
TEXTS = st.text("aAbBcé/.-1] \n", max_size=12)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda part: f"({part})") | inner.map(lambda part: f"(?:{part})")
    repeated = st.tuples(CHARACTERS | group, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}", "{1,}"]))
    joined = st.lists(inner | group, min_size=1, max_size=3)
    return group | repeated.map("".join) | joined.map("".join) | joined.map("|".join)


PATTERNS = st.recursive(CHARACTERS, grown, max_leaves=6)


@given(PATTERNS, TEXTS)
@example("(^|/)_", "a/_b")
@example("a{2,3}b", "caaab")
@example("(a|b){0}c", "c")
@example("x|", "a")
def test_an_expression_matches_what_pythons_own_matcher_does(pattern: str, text: str) -> None:
    theirs = re.search(pattern, text, FLAGS) is not None

    assert paths.parse_regex(pattern).search(text) == theirs


@given(
    st.tuples(st.sampled_from(["^", "^.*", "(^|/)", "(?:^a|b)"]), PATTERNS, st.sampled_from(["", "$", "(/|$)"])), TEXTS
)
def test_anchors_hold_where_pythons_do(parts: tuple[str, str, str], text: str) -> None:
    before, pattern, after = parts
    theirs = re.search(f"{before}(?:{pattern}){after.replace('$', chr(92) + 'Z')}", text, FLAGS)

    assert paths.parse_regex(f"{before}(?:{pattern}){after}").search(text) == (theirs is not None)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^Templates/", "templates/a.md", "My Templates/a.md"),
        ("\\.excalidraw\\.md$", "x/Drawing.excalidraw.md", "excalidraw.md"),
        ("(^|\\/)_", "a/_draft.md", "a_b/c.md"),
        (".*/20\\d{2}-\\d\\d/.*", "Journal/2024-05/a.md", "Journal/2024/a.md"),
        ("^(Archive|Old|Trash)\\/.*\\.md$", "Old/a.md", "Older/a.md"),
        ("^Private", "Private/two\nlines.md", "x\nPrivate"),
        ("\\bdraft\\b", "a/my draft.md", "a/drafty.md"),
        ("(?<year>20\\d\\d)\\.md$", "2024.md", "1999.md"),
    ],
)
def test_expressions_that_people_write_match_what_they_mean(pattern: str, yes: str, no: str) -> None:
    regex = paths.parse_regex(pattern)

    assert regex.search(yes)
    assert not regex.search(no)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "a*a*a*a*a*a*a*a*b", "(a{0,9}){9}b", "(.*a){12}b"])
def test_an_expression_made_to_hang_ends(pattern: str) -> None:
    regex = paths.parse_regex(pattern)

    assert not any(regex.search("a" * 4000 + f"!{number}") for number in range(20) if "$" not in pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!x)",
        "(?<=a)b",
        "(?P<n>a)",
        "(a)\\1",
        "(?i)a",
        "(?i:a)",
        "\\12",
        "\\p{L}",
        "\\Qa.b\\E",
        "\\C",
        "\\x4",
        "\\u{41}",
        "a\\",
        "[a",
        "[]",
        "[]a]",
        "[z-a]",
        "(a",
        "a)",
        "*a",
        "a**",
        "{2}",
        "x" * 301,
        "a{1001}",
        "((a{99}){99}){99}",
        "(\\W{0,100}){10}",
    ],
)
def test_what_is_not_covered_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        paths.parse_regex(pattern)


@given(st.text("ab(){}[]|*+?^$\\.,-19:d", max_size=20))
def test_no_text_breaks_the_reader(pattern: str) -> None:
    try:
        regex = paths.parse_regex(pattern)
    except ValueError:
        return

    assert isinstance(regex.search("ab/ba.md"), bool)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^Screenshot\\s\\d", "Screenshot\u202f1.png", "Screenshot_1.png"),
        ("^[\\s_]$", "\u00a0", "\u200b"),
        ("^\\S$", "\u200b", "\u00a0"),
        ("^[^\\S]$", "\u3000", "a"),
        ("^[\\s-x]$", "-", "a"),
        ("^[\\S-\\t]$", "-", " "),
        ("^\\w$", "a", "é"),
        ("^\\u00e9\\x41$", "Éa", "ea"),
        ("^\\ud83d\\udca1", "\U0001f4a1.md", "\U0001f4a2.md"),
        ("^[[:a]$", "[", "]"),
        ("^[a[]$", "[", "]"),
        ("^[(?:]$", "?", "a"),
        ("^[(?\\]]$", "]", "a"),
        ("^a[^]b$", "a\nb", "ab"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("^a\\\u2013b$", "a\u2013b", "a-b"),
        ("^\\_\\-\\ $", "_- ", "_-"),
    ],
)
def test_an_expression_is_read_as_javascript_reads_it(pattern: str, yes: str, no: str) -> None:
    regex = paths.parse_regex(pattern)

    assert regex.search(yes)
    assert not regex.search(no)


def test_an_expression_of_more_states_than_fit_into_memory_still_matches_right() -> None:
    pattern = "a[ab]{14}c[ab]*$"
    regex = paths.parse_regex(pattern)
    letters = random.Random(1)
    texts = ["".join(letters.choices("abc", weights=[8, 8, 1], k=300)) for _ in range(200)]

    assert [regex.search(text) for text in texts] == [re.search(pattern, text) is not None for text in texts]


def test_nothing_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="missing"):
        paths.parse_regex("(")
    paths.parse_regex("([^x]{0,330}x){3}!").search("ab\u00e9" * 1000)

    assert capfd.readouterr() == ("", "")


def test_half_a_surrogate_pair_ends_nothing() -> None:
    assert paths.parse_regex("^\ud83d\\ud83d?$") == paths.parse_regex("^\ud83d\\ud83d?$")
    assert paths.parse_regex("^a.b$").search("a\udcffb")


def test_an_expression_goes_to_another_process() -> None:
    regex = pickle.loads(pickle.dumps(paths.parse_regex("^a.b$")))

    assert isinstance(regex, paths.Regex)
    assert regex.search("A\nb")


def test_a_missing_library_is_told_and_all_else_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)  # as if it weren't installed

    ignore = IgnoreRules.load(tmp_path, ObsidianSettings(user_ignore_filters=("/^a/", "Templates/")))

    (problem,) = ignore.problems
    assert problem.startswith("Obsidian's filter '/^a/' has no effect: the package google-re2")
    assert not ignore.hides("a.md")
    assert ignore.hides("Templates/a.md")


def test_a_vault_without_expressions_does_not_wait_for_the_library(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from knapper.vault.walk import IgnoreRules;"
        "from knapper.vault.obsidian import ObsidianSettings;"
        "IgnoreRules.load(Path(sys.argv[1]), ObsidianSettings(user_ignore_filters=('a/',)));"
        "print('re2' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
