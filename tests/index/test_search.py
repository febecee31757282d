"""Search: words, names and meaning, filters, the language of queries."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from knapper.index.documents import Filter, PropertyTest
from knapper.index.engine import Engine
from knapper.index.models.base import EmbedderError, EmbedderUnavailable
from knapper.index.search import OpenNote, SearchMode, SearchRequest
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds

NOTES = {
    "Projects/Rocket.md": "---\ntags: [space/launch]\nstatus: active\ncompany: [ACME, Globex]\n---\n"
    "# Engine\n\nThe rocket burns kerosene.\n\n# Cost\n\nToo much money.\n",
    "Projects/Old/Boat.md": "---\nstatus: done\nDate: '[[2023-08-11]]'\n---\nA boat of wood, no kerosene lamp.\n",
    "Recipes/Soup.md": "---\naliases: [Broth]\n---\nCook water with salt. #food\n",
    "Clippings/Article.md": "Kerosene prices rise.\n",
    "Empty.md": "",
    "日記.md": "今日は東京で検索エンジンを試した。\n",
}


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    root = worlds.fill(tmp_path / "v", NOTES)
    opened = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    opened.refresh()
    opened.embed()
    return opened


def found(engine: Engine, text: str, where: Filter | None = None, **options: object) -> list[str]:
    question = SearchRequest(text=text, where=where or Filter(), limit=10, **options)  # type: ignore[arg-type]
    return list(dict.fromkeys(hit.row.note for hit in engine.search(question).hits))


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_every_mode_finds_the_note_that_says_it(engine: Engine, mode: str) -> None:
    assert found(engine, "rocket burns", mode=mode)[0] == "Projects/Rocket.md"


def test_a_hit_names_note_heading_and_lines(engine: Engine) -> None:
    hit = engine.search(SearchRequest(text="too much money")).hits[0]

    assert (hit.row.note, hit.row.heading, hit.row.start_line, hit.row.end_line) == (
        "Projects/Rocket.md",
        "# Cost",
        10,
        12,
    )
    assert hit.row.text == "# Cost\n\nToo much money."
    assert hit.row.hash.startswith("sha256:")


def test_an_alias_finds_its_note(engine: Engine) -> None:
    assert found(engine, "broth")[0] == "Recipes/Soup.md"


def test_an_empty_note_with_the_name_is_told(engine: Engine) -> None:
    answer = engine.search(SearchRequest(text="empty"))

    assert "Empty.md" not in [hit.row.note for hit in answer.hits]
    assert answer.remarks == ("'Empty.md' has this name and is empty",)


def test_an_empty_note_that_a_client_may_not_find_is_not_told(engine: Engine) -> None:
    where = Filter(policy=Policy(client="guest", hidden=("Empty.md",)))

    assert engine.search(SearchRequest(text="empty", where=where)).remarks == ()


@pytest.mark.parametrize(
    ("where", "which"),
    [(Filter(folders=("Projects",)), "no note that passes the filters"), (Filter(kinds=("note",)), "no note")],
)
def test_a_remark_says_that_it_is_about_the_notes_that_pass_the_filters(
    engine: Engine, where: Filter, which: str
) -> None:
    answer = engine.search(SearchRequest(text="rockett", where=where))

    assert answer.remarks == (f"{which} holds it as typed: searched for 'rocket' for 'rockett'",)


def test_japanese_is_found_by_a_word_within_a_sentence(engine: Engine) -> None:
    assert found(engine, "東京", mode="keyword") == ["日記.md"]
    assert found(engine, "検索", mode="keyword") == ["日記.md"]


def test_a_mistyped_title_is_found_and_the_correction_is_said(engine: Engine) -> None:
    answer = engine.search(SearchRequest(text="rockett"))

    assert answer.hits[0].row.note == "Projects/Rocket.md"
    assert answer.remarks == ("no note holds it as typed: searched for 'rocket' for 'rockett'",)


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_word_that_no_note_holds_is_taken_for_the_beginning_of_one(tmp_path: Path, mode: SearchMode) -> None:
    vault = {"Log.md": "the build at 3f2a9bc7d1 raises InvalidInputError\n", "Shop.md": "iPhone15を買う\n"}
    engine = worlds.engine(worlds.fill(tmp_path / "v", vault), tmp_path / "s", worlds.WordEmbedder())
    engine.refresh()
    engine.embed()

    answers = {
        text: engine.search(SearchRequest(text=text, mode=mode)) for text in ("3f2a9b", "invalidinput", "iPhone")
    }

    assert [answer.hits[0].row.note for answer in answers.values()] == ["Log.md", "Log.md", "Shop.md"]
    assert answers["iPhone"].remarks == ("no note holds it as typed: searched for words that begin with 'iPhone'",)


def test_meaning_alone_looks_for_no_beginnings(engine: Engine) -> None:
    assert engine.search(SearchRequest(text="keros", mode="semantic")).remarks == ()


@pytest.mark.parametrize("query", ["boat keros", "keros prici", "what is keros", "ke"])
def test_a_short_word_or_one_of_several_is_no_beginning(engine: Engine, query: str) -> None:
    assert "Projects/Rocket.md" not in found(engine, query, mode="keyword")


def test_beginnings_are_looked_for_only_in_notes_that_may_be_found(engine: Engine) -> None:
    answer = engine.search(SearchRequest(text="keros", mode="keyword", where=Filter(folders=("Recipes",))))

    assert (answer.hits, answer.remarks) == ((), ())


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ('"burns kerosene"', ["Projects/Rocket.md"]),
        ("kerosene -rocket -prices", ["Projects/Old/Boat.md"]),
        ('kerosene -"kerosene lamp" -prices', ["Projects/Rocket.md"]),
        ("keros*", ["Clippings/Article.md", "Projects/Old/Boat.md", "Projects/Rocket.md"]),
    ],
)
def test_the_language_of_queries_holds_in_every_ranking(engine: Engine, query: str, notes: list[str]) -> None:
    assert sorted(found(engine, query)) == notes


@pytest.mark.parametrize(
    ("query", "notes"),
    [
        ('"burns kerosene" quickly', ["Projects/Rocket.md"]),
        ('"burns kerosene" money -lamp', ["Projects/Rocket.md"]),
        ('kerosene "kerosene prices" lamp', ["Clippings/Article.md"]),
        ('"burns kerosene" "no lamp" rocket', []),
    ],
)
def test_a_phrase_is_found_without_the_words_beside_it(engine: Engine, query: str, notes: list[str]) -> None:
    assert found(engine, query, mode="keyword") == notes


def test_words_beside_a_phrase_put_the_passage_that_has_them_first(tmp_path: Path) -> None:
    vault = {"A.md": "the apple tree\n", "B.md": "cider from the apple tree\n", "C.md": "cider\n"}
    engine = worlds.engine(worlds.fill(tmp_path / "v", vault), tmp_path / "s")
    engine.refresh()

    assert found(engine, '"apple tree" cider', mode="keyword") == ["B.md", "A.md"]


@pytest.mark.parametrize(
    "query", ['" OR 1', "NEAR(a b)", "a AND", "*", "title:x", "(((", "'", "-", "^", "\x00", "🦊", "x" * 20_000]
)
def test_no_query_is_a_command_or_an_error(engine: Engine, query: str) -> None:
    assert isinstance(found(engine, query), list)


@pytest.mark.parametrize(
    ("where", "notes"),
    [
        (Filter(folders=("projects",)), ["Projects/Old/Boat.md", "Projects/Rocket.md"]),
        (Filter(folders=("Projects/",), exclude_folders=("Projects/Old",)), ["Projects/Rocket.md"]),
        (Filter(tags=("space",)), ["Projects/Rocket.md"]),
        (Filter(tags=("#Space/Launch",)), ["Projects/Rocket.md"]),
        (Filter(exclude_tags=("space",), folders=("Projects",)), ["Projects/Old/Boat.md"]),
        (Filter(properties=(PropertyTest(name="Status", op="equals", value="ACTIVE"),)), ["Projects/Rocket.md"]),
        (Filter(properties=(PropertyTest(name="company", op="contains", value="globex"),)), ["Projects/Rocket.md"]),
        (Filter(properties=(PropertyTest(name="company", op="contains", value="glo"),)), []),
        (Filter(properties=(PropertyTest(name="status", op="contains", value="on"),)), ["Projects/Old/Boat.md"]),
        (Filter(properties=(PropertyTest(name="status", op="missing"),)), ["Clippings/Article.md"]),
        (
            Filter(
                properties=(PropertyTest(name="status", op="not_equals", value="done"), PropertyTest(name="status"))
            ),
            ["Projects/Rocket.md"],
        ),
        (Filter(created_from="2023-08-11", created_to="2023-08-11"), ["Projects/Old/Boat.md"]),
        (Filter(modified_to="2001-01-01"), []),
        (Filter(paths=("projects/ROCKET.md",)), ["Projects/Rocket.md"]),
        (Filter(policy=Policy(client="x", hidden=("Projects/",))), ["Clippings/Article.md"]),
        (Filter(policy=Policy(client="x", read=("Clippings/",))), ["Clippings/Article.md"]),
    ],
)
def test_a_filter_keeps_what_passes_it_and_nothing_else(engine: Engine, where: Filter, notes: list[str]) -> None:
    for mode in ("hybrid", "semantic", "keyword"):
        hits = found(engine, "kerosene", where, mode=mode)
        assert sorted(set(hits) & {n for n in NOTES if "erosene" in NOTES[n]}) == notes


def test_a_rare_folder_is_found_among_many_better_matches(tmp_path: Path) -> None:
    notes = {f"big/{n}.md": "kerosene kerosene kerosene\n" for n in range(400)}
    root = worlds.fill(tmp_path / "v", {**notes, "small/one.md": "some words and kerosene among a lot of others\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()

        assert found(engine, "kerosene", Filter(folders=("small",))) == ["small/one.md"]


def test_one_note_gives_no_more_passages_than_asked(tmp_path: Path) -> None:
    long = "".join(f"# Part {n}\n\nkerosene again\n\n" for n in range(9))
    root = worlds.fill(tmp_path / "v", {"a.md": long, "b.md": "kerosene\n"})
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()
        engine.embed()
        hits = engine.search(SearchRequest(text="kerosene", per_note=3, limit=10)).hits

        assert sorted(hit.row.note for hit in hits) == ["a.md", "a.md", "a.md", "b.md"]


def test_words_answer_while_the_embedder_is_away_and_the_reason_is_said(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    away = worlds.WordEmbedder(error=EmbedderUnavailable("the endpoint doesn't answer"))
    with worlds.engine(root, tmp_path / "s", away) as engine:
        engine.refresh()
        answer = engine.search(SearchRequest(text="rocket"))

        assert answer.hits[0].row.note == "Projects/Rocket.md"
        assert answer.remarks == ("searched by words only: the endpoint doesn't answer",)
        with pytest.raises(EmbedderUnavailable):
            engine.search(SearchRequest(text="rocket", mode="semantic"))


def test_words_answer_before_anything_is_embedded(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", NOTES)
    with worlds.engine(root, tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.refresh()

        assert found(engine, "rocket")[0] == "Projects/Rocket.md"


def test_reciprocal_ranks_are_there_by_name(engine: Engine) -> None:
    assert found(engine, "rocket burns", fusion="rrf")[0] == "Projects/Rocket.md"


def test_a_search_sees_what_another_process_wrote_meanwhile(engine: Engine, tmp_path: Path) -> None:
    found(engine, "kerosene")
    worlds.fill(tmp_path / "v", {"New.md": "kerosene zeppelin\n"})
    (tmp_path / "v" / "Projects/Rocket.md").unlink()
    with worlds.engine(tmp_path / "v", tmp_path / "s", worlds.WordEmbedder()) as other:
        other.refresh()
        other.embed()

    assert found(engine, "zeppelin", mode="semantic")[0] == "New.md"
    assert "Projects/Rocket.md" not in found(engine, "rocket kerosene")


def test_it_is_said_where_no_note_holds_a_word_of_the_query(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "kerosene lamp\n"})

    class Anything(worlds.WordEmbedder):
        """Find everything near to anything."""

        def query(self, text: str) -> NDArray[np.float32]:
            return super().query(text.replace("qqqqzz", "kerosene"))

    with worlds.engine(root, tmp_path / "s", Anything()) as engine:
        engine.refresh()
        engine.embed()
        answer = engine.search(SearchRequest(text="qqqqzz"))

        assert answer.hits[0].row.note == "a.md"
        assert answer.remarks == ("no note holds any of these words: these are the nearest in meaning",)


@pytest.mark.parametrize("is_instant", [True, False])
def test_no_snapshot_is_held_while_an_embedder_waits_for_a_server(tmp_path: Path, *, is_instant: bool) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "kerosene lamp\n"})
    held: list[bool] = []

    class Watching(worlds.WordEmbedder):
        """Look at the asking thread's connection."""

        def query(self, text: str) -> NDArray[np.float32]:
            held.append(engine.store.database.reader().in_transaction)
            return super().query(text)

    embedder = Watching()
    embedder.instant = is_instant
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        engine.embed()
        answer = engine.search(SearchRequest(text="lamp"))

    assert [hit.row.note for hit in answer.hits] == ["a.md"]
    assert held[-1] == is_instant


@pytest.mark.parametrize("per_note", [1, 2])
def test_properties_come_after_texts_that_match_as_well(tmp_path: Path, per_note: int) -> None:
    texts = "\n\n".join(f"# Part {number}\n\nThe kerosene lamp number {number}." for number in range(3))
    notes = {
        f"{name}.md": f"---\nlamp: kerosene lamp, and much beside it that nobody asks for\n---\n{texts}\n"
        for name in ("a", "b", "c")
    }
    root = worlds.fill(tmp_path / "v", {**notes, "d.md": f"A lamp of {'other words ' * 100}.\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        hits = engine.search(SearchRequest(text="kerosene lamp", mode="keyword", limit=30, per_note=per_note)).hits

    kinds = {name: [hit.row.kind for hit in hits if hit.row.note == name] for name in notes}
    assert kinds == dict.fromkeys(notes, ["text"] * per_note)


@pytest.mark.parametrize("query", ["#ai_edit", "ai_edit"])
def test_notes_in_which_an_edit_waits_are_found_by_its_tag(tmp_path: Path, query: str) -> None:
    edit = '{"id":"1f2e3d4c-5b6a79","type":"replace","before":"Old text.\\n","after":"New text.\\n"}'
    block = f"```ai-edit\n{edit}\n```\n#ai_edit\n"
    root = worlds.fill(tmp_path / "v", {**NOTES, "Waits.md": f"# Head\n\n{block}"})
    with worlds.engine(root, tmp_path / "s") as opened:
        opened.refresh()
        waiting = found(opened, query, mode="keyword")
        tagged = found(opened, "text", Filter(tags=("ai_edit",)))
        new = found(opened, "new", mode="keyword")
        (root / "Waits.md").write_text("# Head\n\nOld text.\n", encoding="utf-8")
        opened.refresh()
        after = found(opened, query, mode="keyword")

    assert (waiting, tagged, new, after) == (["Waits.md"], ["Waits.md"], [], [])


class Resized(worlds.WordEmbedder):
    """Stand for another model behind the same name."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions


def test_a_model_that_was_changed_behind_its_name_is_told_and_words_answer(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s", Resized(512)) as engine:
        engine.freshen()
    with worlds.engine(root, tmp_path / "s", Resized(1024)) as engine:
        answer = engine.search(SearchRequest(text="alpha"))

        assert [hit.row.note for hit in answer.hits] == ["a.md"]
        assert "model behind its name was changed" in answer.remarks[0]
        with pytest.raises(EmbedderError, match="changed"):
            engine.search(SearchRequest(text="alpha", mode="semantic"))


def test_vectors_of_a_model_that_was_changed_behind_its_name_are_made_anew(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with (
        worlds.engine(root, tmp_path / "s", Resized(512)) as late,
        worlds.engine(root, tmp_path / "s", Resized(1024)) as engine,
    ):
        late.freshen()
        assert late.search(SearchRequest(text="alpha", mode="semantic")).hits
        worlds.fill(root, {"c.md": "gamma\n"})
        engine.freshen()
        assert engine.freshen().pending == 0
        for word, note in (("alpha", "a.md"), ("gamma", "c.md")):
            assert engine.search(SearchRequest(text=word, mode="semantic")).hits[0].row.note == note
        assert "changed" in late.search(SearchRequest(text="gamma")).remarks[0]


def test_one_run_embeds_all_chunks_anew_where_the_vectors_changed_their_length(tmp_path: Path) -> None:
    embedder = Resized(512)
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s", embedder) as engine:
        engine.refresh()
        first = engine.embed()
        embedder.dimensions = 1024
        worlds.fill(root, {"c.md": "gamma\n"})
        engine.refresh()
        engine.embed()

        assert first == 2
        assert engine.store.count_pending("words") == 0
        assert engine.status().embedded == 3


def test_two_processes_with_vectors_of_other_lengths_do_not_remove_each_others_for_ever(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"a.md": "alpha\n", "b.md": "beta\n"})
    with (
        worlds.engine(root, tmp_path / "s", Resized(512)) as stale,
        worlds.engine(root, tmp_path / "s", Resized(1024)) as newer,
    ):
        for engine, name in ((stale, "c.md"), (newer, "d.md")):
            worlds.fill(root, {name: "gamma\n" * len(name)})
            engine.refresh()
            engine.embed()
        worlds.fill(root, {"e.md": "delta\n"})
        stale.refresh()
        with pytest.raises(
            EmbedderError, match="1024 numbers under the model name 'words', and this one makes"
        ) as raised:
            stale.embed()
        freshness = stale.freshen()
        kept = newer.status().embedded
        newer.embed()

        assert "start this process anew" in raised.value.hint
        assert freshness.pending == 1
        assert kept == 4
        assert newer.status().embedded == 5
        assert stale.search(SearchRequest(text="delta")).hits[0].row.note == "e.md"


def test_a_mistyped_title_is_corrected_whatever_form_its_letters_have(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {"Übersetzung.md": "alpha\n", "b.md": "beta\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.freshen()
        answer = engine.search(SearchRequest(text=unicodedata.normalize("NFD", "Überseetzung"), mode="keyword"))

    assert [hit.row.note for hit in answer.hits] == ["Übersetzung.md"]


@pytest.mark.parametrize(
    ("typed", "correction", "note"),
    [
        ("followup", "follow-up", "Follow-up list.md"),
        ("obsidankanban", "obsidian-kanban", "obsidian-kanban.md"),
        ("kanbn", "kanban", "obsidian-kanban.md"),
        ("thecookiemoma", "thecookiemomma", "Thecookiemomma's log.md"),
        ("qouted", "quoted", "Named.md"),
    ],
)
def test_a_correction_is_a_word_of_the_name(tmp_path: Path, typed: str, correction: str, note: str) -> None:
    names = ("Follow-up list", "obsidian-kanban", "Thecookiemomma's log")
    vault = {f"{name}.md": "alpha\n" for name in names}
    root = worlds.fill(tmp_path / "v", {**vault, "Named.md": "---\naliases: ['quoted\"titel']\n---\nalpha\n"})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.freshen()
        answer = engine.search(SearchRequest(text=typed, mode="keyword"))

    assert [hit.row.note for hit in answer.hits] == [note]
    assert answer.remarks == (f"no note holds it as typed: searched for '{correction}' for '{typed}'",)


def test_a_note_is_compared_by_its_vectors_where_the_embedder_has_stopped_answering(tmp_path: Path) -> None:
    notes = {"a.md": "alpha\n", "near.md": "alpha alpha\n", "asked.md": "question\n", "far.md": "word\n"}
    embedder = worlds.WordEmbedder()
    beside = OpenNote(path=NotePath("a.md"), linked=lambda: {NotePath("near.md")}, words=lambda: "word")
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s", embedder) as engine:
        engine.freshen()
        embedder.error = EmbedderError("no answer", hint="wait")
        answer = engine.related(SearchRequest(text="question"), beside)

    assert {one.hit.row.note: one.why for one in answer.related} == {
        "asked.md": ("task",),
        "near.md": ("current_note", "linked"),
    }
    assert "no answer" in answer.remarks[0]


def test_a_task_without_words_finds_what_is_like_the_open_note(tmp_path: Path) -> None:
    notes = {"a.md": "alpha\n", "near.md": "alpha alpha\n", "far.md": "word\n"}
    beside = OpenNote(path=NotePath("a.md"), linked=set[NotePath], words=lambda: "word")
    with worlds.engine(worlds.fill(tmp_path / "v", notes), tmp_path / "s", worlds.WordEmbedder()) as engine:
        engine.freshen()
        answers = [engine.related(SearchRequest(text="***"), beside)]
        engine.search(SearchRequest(text="alpha"))
        answers.append(engine.related(SearchRequest(text="***"), beside))

    assert [[one.hit.row.note for one in answer.related] for answer in answers] == [["near.md"]] * 2
    assert "no word" in answers[0].remarks[0]


def test_names_that_a_client_may_not_find_leave_room_for_a_correction_from_its_own(tmp_path: Path) -> None:
    hidden = {f"Secret/Meridian {number}.md": "x\n" for number in range(120)}
    root = worlds.fill(tmp_path / "v", {**hidden, "Meridian of the house and the garden behind it.md": "x\n"})
    guest = Filter(policy=Policy(client="guest", hidden=("Secret/",)))
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        answer = engine.search(SearchRequest(text="meridiam", where=guest, mode="keyword"))

    assert answer.remarks == ("no note holds it as typed: searched for 'meridian' for 'meridiam'",)


def test_the_limits_of_a_ranking_are_told_once_they_are_reached(tmp_path: Path) -> None:
    root = worlds.fill(tmp_path / "v", {f"Meeting {number}.md": "notes\n" for number in range(101)})
    with worlds.engine(root, tmp_path / "s") as engine:
        engine.refresh()
        many = engine.search(SearchRequest(text="meeting", mode="keyword"))
        (root / "Meeting 100.md").unlink()
        engine.refresh()
        few = engine.search(SearchRequest(text="meeting", mode="keyword"))

    assert (many.limits, few.limits) == (("of the names with a word of the question, the best 100 counted",), ())
