import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.cli import output
from knapper.cli.render import notes
from knapper.tools.shapes.read import PassageHit


def test_words_leave_out_what_is_excluded() -> None:
    assert notes.query_words('Garden "to do" -draft -"not this" plan* garden x-ray') == (
        "garden",
        "to",
        "do",
        "plan",
        "x",
        "ray",
    )


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("water", "Watering the underwater garden", "[Watering] the underwater garden"),
        ("watering", "water it", "[water] it"),
        ("to", "today", "today"),
        ("what is the water for", "what the water is for: Watering", "what the [water] is for: [Watering]"),
        ("to be or not to be", "to be", "[to] [be]"),
        ('"what is" water', "what is the water", "[what] [is] the [water]"),
        ("was ist das für ein Brot", "das Brot, ein Brot für was", "das [Brot], ein [Brot] für was"),
        ("what's IT", "what it is: IT", "what [it] is: [IT]"),
        ("日本", "これは日本語です", "これは[日本]語です"),
        ("東京の寿司", "東京都庁の寿司屋", "[東京]都庁[の寿司]屋"),
        ("猫 docker", "猫とDockerコンテナ", "[猫]と[Docker]コンテナ"),
        ("มะเขือเทศ", "รดน้ำมะเขือเทศทุกเย็น", "รดน้ำ[มะเขือเทศ]ทุกเย็น"),
        ("dvorak", "von Dvořák", "von [Dvořák]"),
        ("STRASSE", "in der Straße", "in der [Straße]"),
        ("efficient", "an eﬃcient way", "an [eﬃcient] way"),
        ("हिन्दी", "यह हिन्दी में", "यह [हिन्दी] में"),
        ("محمد", "then مُحَمَّد came", "then [مُحَمَّد] came"),
        ("parse user", "parse_user_input", "[parse]_[user]_input"),
        ("", "nothing", "nothing"),
    ],
)
def test_forms_of_words_are_marked(query: str, text: str, marked: str) -> None:
    assert notes.style_words(text, notes.query_words(query), lambda word: f"[{word}]") == marked


@given(text=st.text(), query=st.text())
def test_marking_changes_no_text(text: str, query: str) -> None:
    assert notes.style_words(text, notes.query_words(query), lambda word: word) == text


@given(text=st.text(alphabet="ab \n日本,", max_size=300), query=st.text(alphabet="ab 日"), limit=st.integers(20, 80))
def test_a_snippet_is_short_and_one_line_of_the_text(text: str, query: str, limit: int) -> None:
    snippet = notes.cut_snippet(text, notes.query_words(query), limit)

    assert len(snippet) <= limit + 2
    assert "\n" not in snippet
    assert snippet.strip("…") in " ".join(text.split())


def test_a_snippet_shows_the_word_that_was_asked_for() -> None:
    text = "before " * 100 + "needle " + "after " * 100

    snippet = notes.cut_snippet(text, ("needle",), 80)

    assert "needle" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_a_snippet_shows_where_most_of_the_words_stand() -> None:
    text = "water alone " + "before " * 60 + "water the tomatoes daily " + "after " * 60

    snippet = notes.cut_snippet(text, notes.query_words("tomatoes water daily"), 80)

    assert "water the tomatoes daily" in snippet


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_other_systems_are_no_strange_characters(end: str) -> None:
    passage: PassageHit = {
        "source": "A.md",
        "content": f"# A{end}{end}one{end}two",
        "heading": "# A",
        "start_line": 1,
        "end_line": 4,
        "score": 1.0,
        "hash": "sha256:0",
    }

    shown = [click.unstyle(render("one", [passage])) for render in (notes.render_search_results, notes.render_passages)]

    assert shown == ["A.md:1-4  # A\n  one two", "1. A.md:1-4  # A\n   one\n   two"]


def test_what_a_terminal_would_obey_is_taken_out() -> None:
    assert output.plain("a\x1b[2Jb\x07\u202ec\x9b\td\n") == "a\ufffd[2Jb\ufffd\ufffdc\ufffd\td\n"
