"""Which notes go with the open one, why, and what a limit leaves of them."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline import scopes
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.records import (
    SOURCE_PRIORITY,
    ContextNote,
    NoteSelectionMetadata,
    ScoutResult,
    SelectionSource,
)
from knapper.agents.pipeline.scopes import ContextScopeConfig, EditRules
from knapper.errors import BadInput, NotFound
from knapper.tools.context import Context
from knapper.vault import parser
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds
from tests.properties import scaled
from tests.tools import opened

Graph = Mapping[str, Sequence[str]]


def reference(graph: Graph, start: str, depth: int, walls: Sequence[str]) -> dict[str, int]:
    """Walk breadth first over plain sets."""
    beside: dict[str, set[str]] = {name: set() for name in graph}
    for source, targets in graph.items():
        for target in targets:
            beside[source].add(target)
            beside[target].add(source)
    reached = {start: 0}
    ring = {start}
    for steps in range(1, depth + 1):
        fresh = {to for name in ring for to in beside[name]} - reached.keys()
        ring = {name for name in fresh if not any(name.startswith(f"{wall}/") for wall in walls)}
        reached |= dict.fromkeys(ring, steps)
    return {name: steps for name, steps in reached.items() if name != start}


def make(base: Path, graph: Graph, *, hidden: tuple[str, ...] = ()) -> opened.Opener:
    rng = random.Random(0)
    texts: dict[str, str] = {}
    for name, targets in graph.items():
        forms = [
            f"[[{to.removesuffix('.md')}]]" if rng.random() < 0.7 else f"[x]({relative(name, to)})" for to in targets
        ]
        texts[name] = f"# {name}\n\n" + "\n".join(f"See {form}." for form in forms) + "\n\n```\n[[Fenced/Away]]\n```\n"
    return opened.vault(base, texts, hidden=hidden)


def relative(source: str, target: str) -> str:
    return "../" * source.count("/") + target


def world(seed: int, size: int = 120) -> dict[str, list[str]]:
    """Make a vault like real ones: folders, a few notes that all link to, chains, and notes alone."""
    rng = random.Random(seed)
    folders = ["", "A/", "A/Deep/", "B/", "Private/", "Private/More/"]
    names = [f"{rng.choice(folders)}n{number}.md" for number in range(size)]
    hubs = names[:3]
    return {
        name: [*rng.sample(names, rng.choice([0, 0, 1, 2, 3])), *([rng.choice(hubs)] if rng.random() < 0.2 else [])]
        for name in names
    }


@pytest.mark.parametrize("seed", range(3))
def test_links_are_followed_as_a_plain_walk_does(tmp_path: Path, seed: int) -> None:
    graph = world(seed)
    vault = make(tmp_path, graph)
    start = sorted(graph, key=lambda name: -len(graph[name]))[0]

    with vault.open("agent") as context:
        _ = context.freshen(meaning=False)
        for depth in range(4):
            for walls in ((), ("Private",), ("A", "B/"), ("A/Deep",)):
                found = pipeline_context.follow_links(context, NotePath(start), depth, walls)

                assert found == reference(graph, start, depth, [wall.strip("/") for wall in walls])


def test_links_of_a_vault_that_people_wrote_are_followed_as_a_plain_walk_does(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "docs"
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.md")}
    by_name = {Path(name).stem: name for name in texts}
    prose = {name: re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL) for name, text in texts.items()}
    targets = {name: re.findall(r"\[\[([^\]|#]+)", text) for name, text in prose.items()}
    graph = {name: [by_name[to] for to in found if to in by_name] for name, found in targets.items()}

    with opened.vault(tmp_path, texts).open("agent") as context:
        _ = context.freshen(meaning=False)
        for start in ("index.md", "how-to/hide-notes.md"):
            for depth in range(4):
                for walls in ((), ("how-to",), ("reference",)):
                    assert pipeline_context.follow_links(context, NotePath(start), depth, walls) == reference(
                        graph, start, depth, walls
                    )

    assert len(reference(graph, "index.md", 1, ())) > 10


@settings(max_examples=scaled(15))
@given(seed=st.integers(0, 10_000), depth=st.integers(0, 3), wall=st.sampled_from(["", "A", "Private", "Private/More"]))
def test_links_of_any_vault(tmp_path_factory: pytest.TempPathFactory, seed: int, depth: int, wall: str) -> None:
    graph = world(seed, size=25)
    vault = make(tmp_path_factory.mktemp("v"), graph)
    start = min(graph)
    walls = (wall,) if wall else ()

    with vault.open("agent") as context:
        _ = context.freshen(meaning=False)
        found = pipeline_context.follow_links(context, NotePath(start), depth, walls)

    assert found == reference(graph, start, depth, walls)


def test_what_is_hidden_is_a_wall_too(tmp_path: Path) -> None:
    graph = {"Start.md": ["Secret/S.md"], "Secret/S.md": ["Behind.md"], "Behind.md": []}
    vault = make(tmp_path, graph, hidden=("Secret/",))

    with vault.open("agent") as context:
        _ = context.freshen(meaning=False)

        assert pipeline_context.follow_links(context, NotePath("Start.md"), 3) == {}


CHAIN = {
    "One.md": ["F/Two.md"],
    "F/Two.md": ["Three.md"],
    "Three.md": ["Four.md"],
    "Four.md": ["Five.md"],
    "Five.md": [],
    "F/Beside.md": [],
    "F/Below/Deep.md": [],
    "Zero.md": ["One.md"],
}


@pytest.fixture
def chain(tmp_path: Path) -> opened.Opener:
    return make(tmp_path, CHAIN)


def chosen(vault: opened.Opener, wanted: TaskRequest, scout: ScoutResult | None = None) -> dict[str, str]:
    with vault.open("agent") as context:
        return {str(one.path): one.why() for one in pipeline_context.select_notes(context, wanted, scout)}


def test_the_depth_says_how_far_links_are_followed(chain: opened.Opener) -> None:
    found = {
        depth: set(chosen(chain, TaskRequest(task="-", current="One.md", scope=ContextScopeConfig(link_depth=depth))))
        for depth in range(4)
    }

    assert found[0] == {"One.md"}
    assert found[1] == {"One.md", "F/Two.md", "Zero.md"}
    assert found[2] == found[1] | {"Three.md"}
    assert found[3] == found[2] | {"Four.md"}


def test_the_same_folder_comes_with_it_without_those_below(chain: opened.Opener) -> None:
    scope = ContextScopeConfig(link_depth=0, include_same_folder=True)

    assert chosen(chain, TaskRequest(task="-", current="F/Two.md", scope=scope)) == {
        "F/Two.md": "the open note",
        "F/Beside.md": "same folder",
    }


def test_notes_added_by_hand_come_with_it_even_from_excluded_folders(chain: opened.Opener) -> None:
    scope = ContextScopeConfig(link_depth=3, excluded_folders=("F",))

    found = chosen(chain, TaskRequest(task="-", current="One.md", scope=scope, added=("F/Beside.md", "Zero.md")))

    assert found == {"One.md": "the open note", "Zero.md": "link depth 1, manual", "F/Beside.md": "manual"}


def test_what_was_explored_stands_in_the_place_of_the_scope(chain: opened.Opener) -> None:
    five = NoteSelectionMetadata(path=NotePath("Five.md"), semantic_score=0.824)

    found = chosen(chain, TaskRequest(task="-", current="One.md"), ScoutResult(selected_notes=(five,)))

    assert found == {"One.md": "the open note", "Five.md": "semantic 82%"}


def test_a_note_that_is_not_there_is_an_error(chain: opened.Opener) -> None:
    with pytest.raises(NotFound):
        _ = chosen(chain, TaskRequest(task="-", current="One.md", added=("Gone.md",)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("current", ContextScopeConfig(link_depth=0)),
        ("linked", ContextScopeConfig(link_depth=1)),
        ("folder", ContextScopeConfig(link_depth=0, include_same_folder=True)),
        ({}, ContextScopeConfig(link_depth=2)),
        ({"linkDepth": 3, "includeSameFolder": True}, ContextScopeConfig(link_depth=3, include_same_folder=True)),
        ({"link_depth": 0, "excluded_folders": ["A"]}, ContextScopeConfig(link_depth=0, excluded_folders=("A",))),
        (ContextScopeConfig(link_depth=1), ContextScopeConfig(link_depth=1)),
    ],
)
def test_scopes_are_read_in_all_their_forms(given: object, expected: ContextScopeConfig) -> None:
    assert scopes.read_scope(given) == expected


@pytest.mark.parametrize("wrong", ["all", {"depth": 1}, {"link_depth": 4}, {"link_depth": -1}, {"link_depth": True}, 3])
def test_what_is_no_scope_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput):
        _ = scopes.read_scope(wrong)


def test_all_capabilities_and_the_context_scope_are_the_default() -> None:
    assert EditRules() == EditRules(editable="context", can=frozenset({"add", "delete", "create", "navigate"}))
    assert scopes.read_abilities({"canDelete": False}) == {"add", "create", "navigate"}
    assert scopes.read_abilities(["add"]) == {"add"}
    with pytest.raises(BadInput):
        _ = scopes.read_abilities(["fly"])
    with pytest.raises(BadInput):
        _ = scopes.read_editable_scope("all")


def note(path: str, source: SelectionSource, size: int, **more: object) -> ContextNote:
    raw = ("word " * 19 + "end.\n").encode() * (size // 25)
    why = replace(NoteSelectionMetadata(path=NotePath(path), sources=(source,)), **more)
    return ContextNote(note=parser.make_note(NotePath(path), raw), metadata=why)


def every(size: int) -> list[ContextNote]:
    return [note(f"{source}.md", source, size) for source in SOURCE_PRIORITY]


def test_a_limit_takes_notes_out_by_kind_and_says_so() -> None:
    found = every(1_500)

    for limit, kept in ((20_000, 5), (7_000, 4), (5_500, 3), (3_700, 2), (3_000, 1)):
        context = pipeline_context.build_context(found, limit=limit, mark="m")

        assert [one.note.path for one in context.notes] == [f"{source}.md" for source in SOURCE_PRIORITY[:kept]]
        assert [one.source for one in context.removed] == [*reversed(SOURCE_PRIORITY[kept:])]
        assert context.tokens <= limit
        assert bool(context.notices) is (kept < 5)


def test_within_a_kind_what_is_far_away_or_unlike_goes_first() -> None:
    found = [
        note("near.md", "linked", 6_000, link_depth=1),
        note("far.md", "linked", 6_000, link_depth=3),
        note("like.md", "semantic", 6_000, semantic_score=0.9),
        note("unlike.md", "semantic", 6_000, semantic_score=0.1),
    ]

    context = pipeline_context.build_context(found, limit=3_000, mark="m")

    assert [one.path for one in context.removed] == ["unlike.md", "like.md", "far.md"]


def test_of_a_single_note_that_is_too_long_the_beginning_stays() -> None:
    context = pipeline_context.build_context([note("long.md", "current", 9_000)], limit=3_000, mark="m")

    assert context.cut == "long.md"
    assert context.tokens <= 3_000
    assert "leaves out the end of long.md, from line " in context.notices[0]


def given_raw(text: str) -> ContextNote:
    why = NoteSelectionMetadata(path=NotePath("one.md"), sources=("current",))
    return ContextNote(note=parser.make_note(NotePath("one.md"), text.encode()), metadata=why)


@pytest.mark.parametrize("line", ["word " * 40_000, "x" * 200_000, "漢" * 20_000, "</a>" * 20_000, "\\" * 60_000])
def test_of_a_line_longer_than_the_limit_the_beginning_stays(line: str) -> None:
    context = pipeline_context.build_context([given_raw(f"# Head\n{line}\nafter\n")], limit=3_000, mark="m")

    _, _, shown = context.text.partition("\n2: ")
    begun, said, _ = shown.partition(" … (the rest of this line isn't shown)")
    assert 2_500 <= context.tokens <= 3_000
    assert said
    assert line.startswith(json.loads(f'"{begun}"'))
    assert "after" not in shown
    assert (context.cut, context.whole_lines) == ("one.md", 1)
    assert context.notices == ("the token limit of 3,000 leaves out the end of one.md, from within line 2 on",)


def test_a_long_line_is_cut_between_words() -> None:
    context = pipeline_context.build_context([given_raw("potatoes " * 9_000)], limit=3_000, mark="m")

    assert "potatoes … (the rest of this line" in context.text


def test_of_a_line_that_no_room_is_left_for_nothing_is_shown() -> None:
    context = pipeline_context.build_context([given_raw("y" * 11_500 + "\n" + "x" * 9_000)], limit=3_000, mark="m")

    assert "2: x" not in context.text
    assert context.notices == ("the token limit of 3,000 leaves out the end of one.md, from line 2 on",)


def test_a_limit_below_three_thousand_is_refused() -> None:
    with pytest.raises(BadInput, match="2,999"):
        _ = pipeline_context.build_context([], limit=2_999, mark="m")


def test_lines_are_numbered_as_on_disk_and_the_reason_stands_above(tmp_path: Path) -> None:
    text = '---\ntitle: "x"\n---\n# Head\r\n\n<b>bold</b> \\ "q"\n'
    vault = opened.vault(tmp_path, {"N.md": text})

    with vault.open("agent") as context:
        built = build(context, "N.md")

    assert "why: the open note" in built
    assert '\n2: title: \\"x\\"\n' in built
    assert '\n4: # Head\n5: \n6: \\u003cb>bold\\u003c/b> \\\\ \\"q\\"\n' in built


def test_an_edit_that_waits_is_marked_with_its_lines(tmp_path: Path) -> None:
    block = '```ai-edit\n{"id":"e1","type":"add","before":"","after":"x"}\n```\n#ai_edit\n'
    vault = opened.vault(tmp_path, {"N.md": f"# Head\n\n{block}\nEnd.\n"})

    with vault.open("agent") as context:
        built = build(context, "N.md")

    assert 'lines 3-6: an edit that waits for the person\'s word (add, id "e1")' in built
    assert "\n8: End.\n" in built


def build(context: Context, path: str) -> str:
    found = pipeline_context.read_notes(
        context, pipeline_context.select_notes(context, TaskRequest(task="-", current=path)), 3_000
    )
    return pipeline_context.build_context(found.notes, limit=3_000, mark="m", problems=found.problems).text


def test_of_linked_notes_the_nearest_stay_and_the_others_are_named(tmp_path: Path) -> None:
    near = [f"Near/{number:02}.md" for number in range(15)]
    far = [f"Far/{number:02}.md" for number in range(15)]
    graph = {"Start.md": near, near[0]: far, **{path: [] for path in near[1:]}, **{path: [] for path in far}}
    vault = make(tmp_path, graph)
    request = TaskRequest(task="t", current="Start.md", added=("Far/14.md",), token_limit=100_000)

    with vault.open("agent") as context:
        usual, all_of_them, few = (
            pipeline_context.gather_context(context, replace(request, **limit), None, mark="m")
            for limit in ({}, {"linked_notes": 0}, {"linked_notes": 3})
        )

    assert usual.paths == {"Start.md", *near, *far[:5], "Far/14.md"}
    assert [one.path for one in usual.removed] == far[5:14]
    assert "(agents.linked_notes) leaves out 9 notes: Far/05.md (linked), Far/06.md" in usual.notices[0]
    assert (len(all_of_them.paths), all_of_them.removed, all_of_them.notices) == (31, (), ())
    assert few.paths == {"Start.md", *near[:3], "Far/14.md"}
    removed = few.as_dict()["removed"]
    assert isinstance(removed, list)
    assert len(removed) == 26


BY_MEANING = {
    "Start.md": "tomatoes want water\n",
    "Near.md": "tomatoes want water daily\n",
    "Half.md": "tomatoes and beans and peas and leeks\n",
    "Old/Same.md": "tomatoes want water\n",
    "Far.md": "a budget\n",
    "Hidden/Same.md": "tomatoes want water\n",
}


def no_writer() -> NoReturn:
    raise AssertionError("gathering opens nothing to write with")


def gather_near(
    base: Path,
    embedder: worlds.WordEmbedder | None,
    wanted: Mapping[str, Any],
    excluded: tuple[str, ...] = ("Old",),
) -> pipeline_context.UnifiedContext:
    """Gather what goes with Start.md, which has no links; one folder is a wall, another hidden."""
    index = worlds.engine(worlds.fill(base / "v", BY_MEANING), base / "s", embedder)
    _ = index.refresh()
    view = index.view.with_policy(Policy(client="guest", hidden=("Hidden/",)))
    scope = ContextScopeConfig(excluded_folders=excluded)
    request = TaskRequest(task="t", current="Start.md", scope=scope, **wanted)
    with Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close) as context:
        return pipeline_context.gather_context(context, request, None, mark="m")


def test_notes_near_in_meaning_come_along_where_they_are_wished_with_how_near_they_are(tmp_path: Path) -> None:
    near = {
        name: gather_near(tmp_path / name, worlds.WordEmbedder(), wanted)
        for name, wanted in {
            "usual": {},
            "all": {"semantic_notes": 20, "semantic_similarity": 10},
            "one": {"semantic_notes": 1, "semantic_similarity": 10},
            "exact": {"semantic_notes": 20, "semantic_similarity": 65},
        }.items()
    }

    assert near["usual"].paths == {"Start.md"}
    assert near["all"].paths == {"Start.md", "Near.md", "Half.md"}
    assert near["one"].paths == near["exact"].paths == {"Start.md", "Near.md"}
    (row,) = [one.metadata for one in near["one"].notes if one.note.path == "Near.md"]
    assert (row.sources, row.why()) == (("semantic",), f"semantic {round(100 * (row.semantic_score or 0))}%")
    assert not any(one.notices for one in near.values())


def test_where_nothing_is_near_in_meaning_or_the_index_has_none_that_is_said(tmp_path: Path) -> None:
    without = gather_near(tmp_path / "without", None, {"semantic_notes": 5})
    strict = gather_near(tmp_path / "strict", worlds.WordEmbedder(), {"semantic_notes": 5, "semantic_similarity": 100})

    assert without.paths == strict.paths == {"Start.md"}
    assert without.notices == (
        "no note is near in meaning by 50 % (agents.semantic_similarity), or the index has no vectors yet",
    )
    assert "by 100 %" in strict.notices[0]


def test_an_excluded_folder_that_is_not_there_is_told_and_a_hidden_one_is_not(tmp_path: Path) -> None:
    gathered = gather_near(tmp_path, None, {}, excluded=("Old", "Odl", "Hidden"))

    assert gathered.notices == ("no folder 'Odl' in the vault, so that nothing is excluded with it; nearest: 'Old'",)


def test_a_stored_request_keeps_its_limits_of_linked_and_semantic_notes() -> None:
    request = TaskRequest(task="t", linked_notes=7, semantic_notes=3, semantic_similarity=60)
    stored = request.as_dict()
    added = ("linked_notes", "semantic_notes", "semantic_similarity")
    older = pipeline_context.read_request({name: value for name, value in stored.items() if name not in added})

    assert pipeline_context.read_request(stored) == request
    assert (older.linked_notes, older.semantic_notes, older.semantic_similarity) == (20, 0, 50)


def test_notes_that_there_is_no_room_for_are_not_even_read(tmp_path: Path) -> None:
    many = {f"Many/{number:03}.md": "word " * 1_000 for number in range(40)}
    vault = opened.vault(tmp_path, {"Start.md": "# Start\n", **many})

    with vault.open("agent") as context:
        chosen = pipeline_context.select_notes(context, TaskRequest(task="-", current="Start.md", added=tuple(many)))
        found = pipeline_context.read_notes(context, chosen, 3_000)
        built = pipeline_context.build_context(found.notes, limit=3_000, mark="m", unread=found.unread)
        whole = pipeline_context.build_context(
            pipeline_context.read_notes(context, chosen, 1_000_000).notes, limit=3_000, mark="m"
        )

    assert len(found.notes) < 10
    assert [one.note.path for one in built.notes] == [one.note.path for one in whole.notes]
    assert built.removed == whole.removed
    assert len(built.notes) + len(built.removed) == 41
