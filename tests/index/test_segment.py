# ruff: noqa: RUF001 - what people type, in their scripts
import sqlite3
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.index import tokenizer
from knapper.index.tokenizer import Query, Term

Words = sqlite3.Connection


@pytest.fixture(scope="module")
def words() -> Iterator[Words]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE VIRTUAL TABLE words USING fts5(text, tokenize="{tokenizer.TOKENIZER}")')
    yield connection
    connection.close()


def match(query: Query) -> str:
    """Ask for all of a query."""
    wanted = " AND ".join(term.expression() for term in (*query.words, *query.phrases))
    excluded = " OR ".join(term.expression() for term in query.excluded)
    return f"({wanted}) NOT ({excluded})" if wanted and excluded else wanted


def finds(words: Words, text: str, query: str) -> bool:
    expression = match(tokenizer.parse_query(query))
    words.execute("DELETE FROM words")
    words.execute("INSERT INTO words VALUES (?)", (tokenizer.segment(text),))
    return bool(expression and words.execute("SELECT 1 FROM words WHERE words MATCH ?", (expression,)).fetchall())


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Obsidianの検索エンジン。", "検索"),
        ("私の猫。", "猫"),
        ("木曜日", "木"),
        ("木曜日", "曜"),
        ("木曜日", '"曜日"'),
        ("検索 plugin", '"検索 plugin"'),
        ("検索plugin", '"検索plugin"'),
        ("検索エンジン", '"検索。"'),
        ("検索エンジン", "検索*"),
        ("학교에서 배운다", "학교"),
        ("ภาษาไทย", "ไทย"),
        ("ที่นี่", '"ที่นี่"'),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("ｶﾞｷﾞｸﾞ", "ガギグ"),
        ("か\u3099", "が"),
        ("हिन्दी में", "हिन्दी"),
        ("বাংলা", "বাংলা"),
        ("שָׁלוֹם", "שלום"),
        ("مُحَمَّد", "محمد"),
        ("می\u200cخواهم", "میخواهم"),
    ],
)
def test_words_are_found_in_every_script(words: Words, text: str, query: str) -> None:
    assert finds(words, text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("don't panic", "don’t"),
        ("the vault", "vault's"),
        ("un avion", "l’avion"),
        ("written in C++ today", "C++"),
        ("foo_bar", "foo_bar"),
        ("foo bar", "foo_bar"),
        ("on 2024-01-02", "2024-01-02"),
        ("on 2024-01-02", "2024-01*"),
        ("to anna@example.org", "anna@example.org"),
        ("see file.name.md", "file.name.md"),
        ("naïve cafe\u0301", "naive café"),
        ("ﬁle in ＦＵＬＬ width", "file full"),
        ("co\u00adoperate", "cooperate"),
        ("⚡\ufe0fquick", "quick"),
        ("use --flag now", "--flag"),
        ("in der Straße", "STRASSE"),
        ("in der Strasse", "Straße"),
        ("Łódź", "lodz"),
        ("Søren Þór", "soren thor"),
        ("Œuvre, encyclopædia", "oeuvre encyclopaedia"),
        ("Đồng", "dong"),
        ("ılık", "ilik"),
        ("ΟΔΟΣ ΕΡΜΟΥ", "οδός Ερμού"),
        ("ἀρχή", "αρχη"),
        ("Ёжик в тумане", "ежик"),
        ("قال أحمد", "احمد"),
        ("المدرسة", "المدرسه"),
        ("کتاب یک", "كتاب يك"),
        ("running", "run"),
        ("planning ahead", "plan*"),
        ("to do list", '"to do"'),
        ("to do list", "“to do”"),
        ("to do listing", '"do list"*'),
    ],
)
def test_a_query_is_split_as_the_text_is(words: Words, text: str, query: str) -> None:
    assert finds(words, text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("検索とエンジン", '"検索エンジン"'),
        ("02 on 2024-01", "2024-01-02"),
        ("do to", '"to do"'),
        ("plan draft", "plan -draft"),
        ("plan to do", 'plan -"to do"'),
        ("plan a drafted text", "plan -draft*"),
        ("東京都", "東京 -京都"),
    ],
)
def test_what_is_not_asked_for_is_not_found(words: Words, text: str, query: str) -> None:
    assert not finds(words, text, query)


def test_operators_are_read_and_the_rest_is_words() -> None:
    query = tokenizer.parse_query('plan* week "to do" -draft -"old idea" well-known - --x')

    words = (Term(text="plan", prefix=True), Term(text="week"), Term(text="well-known"), Term(text="--x"))
    assert query == Query(
        words=words,
        content=words,
        phrases=(Term(text="to do"),),
        excluded=(Term(text="draft"), Term(text="old idea")),
        plain="plan week to do well-known - --x",
    )


def test_stop_words_are_words_and_no_content() -> None:
    query = tokenizer.parse_query('what is the "to do" list')

    assert query.content == (Term(text="list"),)
    assert query.words == (Term(text="what"), Term(text="is"), Term(text="the"), Term(text="list"))
    assert query.phrases == (Term(text="to do"),)


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "-", '-""', "?!", "''", "🎉", "\x00", "-only -this"])
def test_a_query_that_asks_for_no_word_matches_nothing(query: str) -> None:
    assert match(tokenizer.parse_query(query)) == ""


def test_a_term_is_quoted_for_the_index() -> None:
    assert Term(text='a "b" OR').expression() == '"a ""b"" OR"'
    assert Term(text="plan", prefix=True).expression() == '"plan"*'


def test_an_unclosed_quote_is_a_space() -> None:
    assert tokenizer.parse_query('12" screen').words == (Term(text="12"), Term(text="screen"))


@pytest.mark.parametrize("query", ["NEAR(a b)", "a AND b", "text:a", "a^b", "{text}: a", 'a"b', "a OR", "(", "NOT a"])
def test_the_index_language_is_only_text(words: Words, query: str) -> None:
    read = tokenizer.parse_query(query)

    assert all(term.expression().startswith('"') for term in (*read.words, *read.phrases))
    words.execute("SELECT 1 FROM words WHERE words MATCH ?", (match(read) or '"x"',)).fetchall()


def test_a_word_is_asked_for_once_and_a_page_not_to_its_end() -> None:
    assert tokenizer.parse_query("a b a").words == (Term(text="a"), Term(text="b"))
    assert len(tokenizer.parse_query(" ".join(map(str, range(1000)))).words) == tokenizer.MAX_QUERY_WORDS


def test_a_pasted_passage_has_no_operators() -> None:
    passage = '-one "two three" four* ' + "and so on " * 12

    query = tokenizer.parse_query(passage)

    assert (query.phrases, query.excluded) == ((), ())
    assert {term.text for term in query.words} >= {"one", "two", "three", "four"}
    assert not any(term.prefix for term in query.words)


@pytest.mark.parametrize(
    ("text", "query", "matches"),
    [
        ("Мы пили чай и йогурт.", "ЙОГУРТ", ["йогурт"]),
        ("Ёжик в тумане", "ежик", ["Ёжик"]),
        ("यह हिन्दी में है।", "हिन्दी", ["हिन्दी"]),
        ("আমি বাংলা বলি।", "বাংলা", ["বাংলা"]),
        ("قال أحمد مرحبا", "أحمد", ["أحمد"]),
        ("then مُحَمَّد came", "محمد", ["مُحَمَّد"]),
        ("אמר שָׁלוֹם לכם", "שלום", ["שָׁלוֹם"]),
        ("ΟΔΟΣ ΕΡΜΟΥ", "οδός", ["ΟΔΟΣ"]),
        ("in der Straße 5", "strasse", ["Straße"]),
        ("un cafe\u0301, deux cafés", "cafe", ["cafe\u0301", "cafés"]),
        ("co\u00adoperate", "cooperate", ["co\u00adoperate"]),
        ("その後、東京都庁の寿司屋", "東京の寿司", ["東京", "の寿司"]),
    ],
)
def test_a_found_word_is_marked_in_its_text(text: str, query: str, matches: list[str]) -> None:
    stemmer = tokenizer.Stemmer()
    try:
        spans = tokenizer.find_matches(tokenizer.parse_query(query), text, stemmer)
    finally:
        stemmer.close()

    assert [text[start:stop] for start, stop in spans] == matches


@pytest.mark.parametrize("block", [range(0x300, 0x370), range(0x590, 0x700), range(0x900, 0xF00)])
def test_a_mark_is_a_part_of_its_word(block: range) -> None:
    marks = [mark for mark in map(chr, block) if unicodedata.category(mark) in {"Mn", "Mc"}]

    assert [mark for mark in marks if not tokenizer.TEXT_WORD.fullmatch(f"a{mark}b")] == []


def test_text_without_such_scripts_stays_as_it_is() -> None:
    assert tokenizer.segment("Plain text, déjà vu.") == "Plain text, déjà vu."


def test_no_character_is_a_word_without_letters(words: Words) -> None:
    words.execute("DELETE FROM words")
    characters = " ".join(chr(code) for code in range(1, 0xD800))
    words.execute("INSERT INTO words VALUES (?)", (tokenizer.segment(characters),))
    words.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, words, row)")

    assert words.execute("SELECT count(*) FROM temp.terms WHERE term IS NULL OR term = ''").fetchone()[0] == 0


@given(st.text())
def test_any_query_can_be_asked(words: Words, query: str) -> None:
    expression = match(tokenizer.parse_query(query))

    words.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression or '"x"',)).fetchall()


@given(st.text(alphabet="ab検索エンの 'é-.ไที่", min_size=1, max_size=12), st.data())
def test_a_part_of_a_run_is_found_as_a_phrase(words: Words, text: str, data: st.DataObject) -> None:
    run = "検索エンジンの木"
    start = data.draw(st.integers(0, len(run) - 1))
    stop = data.draw(st.integers(start + 1, len(run)))

    assert finds(words, f"{text} {run}", f'"{run[start:stop]}"')
