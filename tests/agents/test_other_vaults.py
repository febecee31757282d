"""Answers may cite notes of the client's other vaults, by the vault's name; each is checked there, under its policy."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from knapper import app
from knapper.agents import citations
from knapper.agents.runs import executor, export
from knapper.agents.runs.model import ALL_NOTES, RetrievedContext, RunNode, RunRecord, SourceRef
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.app.hub import Hub
from knapper.changes.writer import SubmitOptions
from knapper.cli import runs
from knapper.config import ClientSettings, EmbeddingSettings, Settings, Vault
from knapper.tools.context import Context
from knapper.vault import access, parser
from tests.agents import run_world
from tests.agents.run_world import Brain, World
from tests.index import worlds

FENCE = "# Fence\n\n## Cost\n\nThe fence costs 900 crowns in all.\n"
CITED = "It costs 900 crowns. [[work:Plans/Fence#Cost]] (lines 3-5)"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    home = worlds.fill(tmp_path / "home", {"A.md": "# A\n\nAlpha.\n", "work:Note.md": "# Mine\n\nOwn.\n"})
    work = worlds.fill(
        tmp_path / "work",
        {"Plans/Fence.md": FENCE, "Note.md": "# Theirs\n", "Pay/Boss.md": "# Boss\n\nMuch.\n"}
        | {"Clippings/Page.md": "# Page\n\nWritten elsewhere.\n"},
    )
    vaults = (Vault(name="home", path=home.resolve()), Vault(name="work", path=work.resolve(), hidden=("Pay/",)))
    settings = Settings(
        choice=vaults[0],
        vaults=vaults,
        clients=(ClientSettings(grants=access.default_grants("guest"), hidden=("Plans/",)),),
        state_dir=tmp_path / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=tmp_path / "config.toml",
    )
    with app.open_hub(settings) as made:
        for name in made.vaults:
            made.context(client="cli", vault=name).index.refresh()
        yield made


@pytest.fixture
def world(hub: Hub, tmp_path: Path) -> Iterator[World]:
    made = run_world.world(tmp_path / "own", Brain())
    context = hub.context(client="agent")

    def open_context(run: str, _: tuple[str, ...]) -> Context:
        return hub.context(client="agent", submit_options=SubmitOptions(run=run))

    engine = replace(made.engine, open_context=open_context)
    made.context.close()
    yield replace(made, engine=engine, context=context)
    made.work.shut()


def found(hub: Hub) -> RetrievedContext:
    note = hub.context(client="agent", vault="work").view.read("Plans/Fence.md")
    source = SourceRef(vault="work", path=note.path, hash=note.hash, first=3, last=5)
    return RetrievedContext(context="The fence costs 900 crowns.", sources=(source,), score=0.9, confidence=0.9)


def cited(world: World, hub: Hub) -> RunRecord:
    world.finder.found["T"] = found(hub)
    world.brain.answers["T"] = CITED
    return world.run("T")


@pytest.mark.parametrize(
    "written",
    ["[[work:Plans/Fence#Cost]] (lines 3-5)", "[[work:Fence#Cost]] (lines 3-5)", "[[work: Plans/Fence.md#Cost|L3-5]]"],
)
def test_a_citation_of_another_vault_holds_where_its_note_says_so(hub: Hub, written: str) -> None:
    checked = citations.check_citations(hub.context(client="agent"), f'"The fence costs 900 crowns" {written}')

    assert checked.failures == ()
    one = checked.citations[0].as_dict()
    assert (one["vault"], one["path"], one["start_line"], one["end_line"]) == ("work", "Plans/Fence.md", 3, 5)


@pytest.mark.parametrize(
    ("client", "written", "code"),
    [
        ("agent", "[[work:Nothing]]", "no_note"),
        ("agent", "[[elsewhere:Note]]", "no_note"),
        ("agent", "[[work:Pay/Boss]]", "no_note"),
        ("agent", "[[work:Boss]]", "no_note"),
        ("agent", "[[work:../home/A]]", "no_note"),
        ("guest", "[[work:Plans/Fence]]", "no_note"),
        ("agent", "[[work:]]", "no_note"),
        ("agent", "[[:A]]", "no_note"),
        ("agent", "[[home:A]]", "no_note"),
        ("agent", "[[main:A]]", "no_note"),
        ("agent", "[[A:work:Plans/Fence]]", "no_note"),
        ("agent", "[[work:Plans/Fence#Colour]]", "no_heading"),
        ("agent", "[[work:Plans/Fence]] (lines 3-50)", "no_such_line"),
        ("agent", '"The fence costs 1,000 crowns" [[work:Plans/Fence]]', "not_quoted"),
    ],
)
def test_one_that_does_not_hold_there_is_told(hub: Hub, client: str, written: str, code: str) -> None:
    checked = citations.check_citations(hub.context(client=client), written)

    assert [one.code for one in checked.failures] == [code]


def test_what_a_client_may_not_see_there_is_as_what_is_not_there(hub: Hub) -> None:
    context = hub.context(client="guest")

    hidden, missing, nowhere = (
        citations.check_citations(context, f"[[{vault}:Plans/{note}]]").failures[0]
        for vault, note in (("work", "Fence"), ("work", "Nope!"), ("nope", "Fence"))
    )

    assert hidden.reason.replace("Fence", "Nope!") == missing.reason
    assert hidden.reason.replace("work", "nope") == nowhere.reason
    assert hidden.hint == missing.hint == nowhere.hint == ""


def test_a_note_of_ones_own_with_a_colon_in_its_name_goes_first(hub: Hub) -> None:
    checked = citations.check_citations(hub.context(client="agent"), "[[work:Note]]")

    assert [one.passage.vault for one in checked.citations] == [""]
    assert checked.citations[0].passage.text.startswith("# Mine")


def test_a_vault_alone_knows_no_other(tmp_path: Path) -> None:
    made = run_world.world(tmp_path, Brain())
    checked = citations.check_citations(made.context, "[[work:Note]]")
    run_world.shut(made)

    assert [one.code for one in checked.failures] == ["no_note"]


def test_a_runs_answer_cites_what_was_found_in_another_vault(world: World, hub: Hub) -> None:
    run = cited(world, hub)
    node = world.node(run, "root")

    assert "\n[[work:Plans/Fence]] (lines 3-5)\n" in world.brain.prompts["answer", "T"]
    assert (run.answer, [one["vault"] for one in run.citations], run.removed) == (CITED, ["work"], ())
    assert {(one.vault, one.path) for one in node.sources} == {("work", "Plans/Fence.md")}
    assert "cites work:Plans/Fence.md, lines 3-5" in runs.render_node(node.as_dict())
    assert "found work:Plans/Fence.md, lines 3-5" in runs.render_node(node.as_dict())


def test_a_run_looks_through_the_vaults_that_it_was_told_of_and_no_others(world: World) -> None:
    world = replace(world, engine=replace(world.engine, retrieve=VaultRetriever()))

    alone = world.run("What does the fence cost?", code_mode=False)
    both = world.run("What does the fence cost?", code_mode=False, also=("work",))

    assert {one.vault for one in world.node(alone, "root").sources} <= {""}
    assert "work" in {one.vault for one in world.node(both, "root").sources}
    assert not world.node(both, "root").cached
    assert world.runs.show(both.id).as_dict()["also"] == ["work"]


def test_who_found_nothing_anywhere_looks_again_once_another_vault_has_more(world: World, hub: Hub) -> None:
    world = replace(world, engine=replace(world.engine, retrieve=VaultRetriever()))
    run = world.run("xylophone", code_mode=False, also=("work",))
    before = world.stale(run)
    root = hub.context(client="cli", vault="work").view.root
    (root / "Music.md").write_text("# Xylophone\n", encoding="utf-8")

    assert before == {}
    assert world.stale(run) == {"root": [f"work:{ALL_NOTES}"]}


def test_a_note_that_changes_in_another_vault_makes_stale_what_cites_it(world: World, hub: Hub) -> None:
    run = cited(world, hub)
    again = world.run("T")
    root = hub.context(client="cli", vault="work").view.root
    (root / "Plans/Fence.md").write_text(FENCE.replace("900", "800"), encoding="utf-8")

    assert world.node(again, "root").cached
    assert world.stale(run) == {"root": ["work:Plans/Fence.md"]}
    _ = world.go_on(run.id, replay="stale")
    assert ("answer", "T") in world.brain.asked


def test_an_answer_from_the_cache_taints_as_foreign_text_of_another_vault_does(world: World, hub: Hub) -> None:
    note = hub.context(client="cli", vault="work").view.read("Clippings/Page.md")
    source = SourceRef(vault="work", path=note.path, hash=note.hash)
    world.finder.found["T"] = RetrievedContext(context="Written elsewhere.", sources=(source,), score=0.9)

    runs = [world.run("T"), world.run("T"), world.run("a")]

    taints = world.context.writer.taints
    assert [taints.is_tainted("somebody", run.id) for run in runs] == [False, True, False]


def test_an_exported_answer_opens_the_other_vault_and_breaks_no_link(world: World, hub: Hub) -> None:
    run = cited(world, hub)
    answer = f"{run.answer}\n\nAnd [[A]], [[work:Plans/Fence#Cost|the \\[cost\\]]] too; `[[work:Plans/Fence]]` is code."
    note = export.export_requests(replace(run, answer=answer), [], "Answers/Fence.md")[0]

    links = parser.parse_note(note.content.encode()).links
    assert [link.target for link in links if link.kind == "wikilink"] == ["A"]
    assert (
        "[work: Plans/Fence > Cost](obsidian://open?vault=work&file=Plans%2FFence%23Cost) (lines 3-5)" in note.content
    )
    assert "`[[work:Plans/Fence]]` is code" in note.content


def test_what_was_found_elsewhere_is_named_where_no_answer_could_be_written(hub: Hub) -> None:
    node = RunNode(id="root", task="T", found=found(hub))

    assert "- [[work:Plans/Fence]] (lines 3-5)" in executor.list_sources(node)
