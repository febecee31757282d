"""The search tool: shapes, errors, and what a client may not see."""

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from knapper.errors import BadInput, KnapError, NotFound, RefusedError
from knapper.index.refresh import Freshness
from knapper.tools import search
from knapper.tools.context import Context, parse_property_test
from knapper.tools.notes import find_notes, list_tags, vault_status
from knapper.tools.search import freshness_notes, search_vault
from knapper.vault.access import Policy
from tests.index import worlds


def no_writer() -> NoReturn:
    raise AssertionError("searching opens nothing to write with")


def context(tmp_path: Path, policy: Policy | None = None) -> Context:
    root = worlds.fill(
        tmp_path / "v", {"a.md": "# Alpha\n\nalpha text\n", "secret/b.md": "alpha secret\n", "bad.md": "---\n[\n---\n"}
    )
    index = worlds.engine(root, tmp_path / "s", worlds.WordEmbedder())
    view = index.view.with_policy(policy or Policy(client="test"))
    return Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close)


def test_a_result_has_the_documented_fields(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        answer = search_vault(ctx, "alpha text", 1)

    assert answer["success"] is True
    assert answer["results"] == [
        {
            "source": "a.md",
            "content": "# Alpha\n\nalpha text",
            "heading": "# Alpha",
            "start_line": 1,
            "end_line": 3,
            "score": answer["results"][0]["score"],
            "hash": answer["results"][0]["hash"],
            "cosine": 0.8944,
        }
    ]
    assert (answer["index_stale"], answer["index_incomplete"], answer["pending"]) == (False, False, 0)


def test_no_match_is_a_success_with_a_message(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        answer = search_vault(ctx, "zzzz qqqq", mode="keyword")

    assert (answer["success"], answer["message"], answer["results"]) == (True, "No matching documents found", [])


@pytest.mark.parametrize(
    ("folder", "error"), [("secrets", NotFound), ("secret", NotFound), ("../elsewhere", RefusedError)]
)
def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, folder: str, error: type[KnapError]) -> None:
    with context(tmp_path, Policy(client="test", hidden=("secret/",))) as ctx, pytest.raises(error) as raised:
        search_vault(ctx, "alpha", folders=[folder])

    assert f"'{folder}'" in raised.value.message
    assert "nearest" not in raised.value.hint


def test_a_mistyped_folder_is_an_error_even_beside_one_with_results(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        nothing = search_vault(ctx, "zzzz", mode="keyword", folders=["secret"])
        found = search_vault(ctx, "alpha", mode="keyword", folders=["SECRET/"])
        with pytest.raises(NotFound) as mistyped:
            search_vault(ctx, "alpha", mode="keyword", folders=["secret", "secrte"])

    assert "notes" not in nothing
    assert [row["source"] for row in found["results"]] == ["secret/b.md"]
    assert (mistyped.value.message, mistyped.value.hint) == ("no folder 'secrte' in the vault", "nearest: 'secret'")
    assert mistyped.value.code == "no_such_folder"


def test_a_folder_to_exclude_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        found = search_vault(ctx, "alpha", mode="keyword", exclude_folders=["SECRET/"])
        mistyped = search_vault(ctx, "alpha", mode="keyword", exclude_folders=["secrte"])
        listed = find_notes(ctx, exclude_folders=["secrte"])

    told = "no folder 'secrte' in the vault, so that nothing is excluded with it; nearest: 'secret'"
    assert "secret/b.md" not in [row["source"] for row in found["results"]]
    assert "notes" not in found
    assert mistyped.get("notes") == [told]
    assert listed.get("notes") == [told]


def test_a_tag_to_exclude_that_no_note_has_is_told(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        mistyped = search_vault(ctx, "alpha", mode="keyword", exclude_tags=["wrk"])
        listed = find_notes(ctx, exclude_tags=["#wrk"])

    told = "no note has the tag #wrk, so that nothing is excluded with it"
    assert (mistyped.get("notes"), listed.get("notes")) == ([told], [told])


def test_a_field_that_no_note_has_is_told(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        listed = find_notes(ctx, fields=["title", "nonsense"])

    assert listed.get("notes") == ["no note has the property 'nonsense' to show"]


@pytest.mark.parametrize(
    ("pending", "is_filling", "note"),
    [
        (1, False, "passages found by words only until they are embedded: 1; run `knap index`"),
        (1200, False, "passages found by words only until they are embedded: 1,200; run `knap index`"),
        (2, True, "passages found by words only until they are embedded, which is being done: 2"),
    ],
)
def test_passages_without_vectors_are_told_with_what_helps(pending: int, is_filling: bool, note: str) -> None:
    assert freshness_notes(Freshness(pending=pending, filling=is_filling)) == [note]


def test_a_query_that_only_excludes_is_told_to_hold_no_word(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        answer = search_vault(ctx, "-alpha")

    assert (answer["results"], answer["notes"]) == ([], ["the query holds no word to look for"])


def test_a_query_of_emoji_alone_is_told_to_hold_no_word(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        answer = search_vault(ctx, "🚀", mode="keyword")

    notes = ["the query holds no word to look for: emoji and signs aren't indexed"]
    assert (answer["results"], answer["notes"]) == ([], notes)


def test_where_a_score_comes_from_is_told_when_asked(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        answer = search_vault(ctx, "alpha", explain=True)

    assert set(answer["results"][0]["explain"]) == {"keyword", "dense", "chunk", "name", "passages", "note"}


@pytest.mark.parametrize(("query", "marked"), [("alpah", ["Alpha", "alpha"]), ("tex", ["text"])])
def test_a_corrected_word_is_marked_where_it_stands(tmp_path: Path, query: str, marked: list[str]) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "Alpha.md").write_text("# Alpha\n\nalpha text\n", encoding="utf-8")
    with context(tmp_path) as ctx:
        result = search_vault(ctx, query, mode="keyword", explain=True)["results"][0]

    assert [result["content"][start:stop] for start, stop in result["matches"]] == marked


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"query": "  "}, "empty"),
        ({"query": "a", "n_results": 0}, "n_results"),
        ({"query": "a", "n_results": 201}, "n_results"),
        ({"query": "a", "mode": "magic"}, "no mode"),
        ({"query": "a", "per_note": 0}, "per_note"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, call: dict[str, object], message: str) -> None:
    with context(tmp_path) as ctx, pytest.raises(BadInput, match=message):
        search_vault(ctx, **call)  # type: ignore[arg-type]


def test_a_client_neither_finds_nor_counts_what_it_may_not_see(tmp_path: Path) -> None:
    with context(tmp_path, Policy(client="guest", hidden=("secret/", "bad.md"))) as ctx:
        answer = search_vault(ctx, "alpha secret", 50)
        typo = search_vault(ctx, "secrett")
        status = vault_status(ctx)

    assert {row["source"] for row in answer["results"]} == {"a.md"}
    assert "secret/b" not in str(typo)
    assert (status["notes"], status["files"], status["problems"], status["skipped"]) == (1, 1, 0, [])


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("status", ("status", "exists", "")),
        ("!status", ("status", "missing", "")),
        ("status=done", ("status", "equals", "done")),
        ("status != done", ("status", "not_equals", "done")),
        ("tags~idea", ("tags", "contains", "idea")),
        ("tags!~idea", ("tags", "not_contains", "idea")),
        ("a=b=c", ("a", "equals", "b=c")),
        ("url=https://a.example/~me", ("url", "equals", "https://a.example/~me")),
    ],
)
def test_tests_of_properties_are_read(text: str, test: tuple[str, str, str]) -> None:
    read = parse_property_test(text)

    assert (read.name, read.op, read.value) == test


def test_a_test_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="tests no property"):
        parse_property_test("!")


def test_changes_that_are_not_indexed_are_counted_for_who_may_see_them(tmp_path: Path) -> None:
    with context(tmp_path, Policy(client="guest", hidden=("secret/",))) as ctx:
        ctx.index.refresh()
        current = vault_status(ctx)
        worlds.fill(ctx.view.root, {"new.md": "new\n", "secret/b.md": "other\n", "secret/new.md": "new\n"})
        (ctx.view.root / "a.md").unlink()
        guest, owner = vault_status(ctx), vault_status(replace(ctx, view=ctx.index.view))
        search_vault(ctx, "new")
        afterwards = vault_status(ctx)

    assert [(one["stale"], one["unchecked"]) for one in (current, guest, owner, afterwards)] == [
        (0, False),
        (2, False),
        (4, False),
        (0, False),
    ]
    assert guest.get("remarks") == [
        "2 changed files aren't in the index yet: run `knap index`, or keep `knap watch` running"
    ]
    assert "remarks" not in current
    assert "remarks" not in afterwards


def test_an_index_that_was_never_filled_is_not_called_current(tmp_path: Path) -> None:
    with context(tmp_path) as ctx:
        status = vault_status(ctx)

    assert (status["index_incomplete"], status["stale"], status["unchecked"]) == (True, 0, True)
    assert status.get("remarks") == ["the index isn't complete yet: run `knap index`"]


def test_a_link_shows_a_client_nothing_of_a_file_that_it_may_not_see(tmp_path: Path) -> None:
    with context(tmp_path, Policy(client="guest", hidden=("secret/",))) as ctx:
        (ctx.view.root / "secret" / "b.md").write_text("---\ntags: [hush]\n---\nalpha secret\n", encoding="utf-8")
        (ctx.view.root / "door.md").symlink_to("secret/b.md")
        found = {mode: search_vault(ctx, "secret hush door", 50, mode)["results"] for mode in search.SEARCH_MODES}
        tagged = search_vault(ctx, "alpha", tags=["hush"])
        tags = list_tags(ctx)
        status = vault_status(ctx)
        owner = search_vault(replace(ctx, view=ctx.index.view), "secret", mode="keyword")

    assert "door.md" not in str(found)
    assert (tagged["results"], tags["results"], status["notes"]) == ([], [], 2)
    assert "door.md" in str(owner["results"])


def test_a_typo_tells_a_client_nothing_of_words_that_it_may_not_see(tmp_path: Path) -> None:
    with context(tmp_path, Policy(client="guest", hidden=("secret/",))) as ctx:
        worlds.fill(ctx.view.root, {"Garden.md": "roses\n", "secret/b.md": "gardan\n", "secret/Gardin.md": ""})
        said = [search_vault(ctx, word, mode="keyword").get("notes") for word in ("gardan", "gardin", "gardon")]
        owner = search_vault(replace(ctx, view=ctx.index.view), "gardan", mode="keyword")

    assert [str(notes) for notes in said] == [
        f"[\"no note holds it as typed: searched for 'garden' for '{word}'\"]"
        for word in ("gardan", "gardin", "gardon")
    ]
    assert "notes" not in owner


def test_what_could_not_be_listed_is_told_to_those_who_may_see_it(tmp_path: Path) -> None:
    with context(tmp_path, Policy(client="guest", hidden=("secret/",))) as ctx:
        for name in ("out.md", "secret/out.md"):
            (ctx.view.root / name).symlink_to(tmp_path)
        ctx.index.refresh()
        status = vault_status(ctx)

    assert [row["path"] for row in status["skipped"]] == ["bad.md", "out.md"]
    assert status["problems"] == 2
