from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, KnapError, SetupError
from knapper.net.web import Web, WebOptions, open_web
from knapper.tools import files, web
from knapper.tools.context import Context
from tests.net.internet import Internet, internet, page
from tests.net.servers import Reply, serving
from tests.tools.opened import Opener, vault

HITS = b'{"results": [{"title": "Knots", "url": "https://a.example/1", "content": "About knots"}]}'


@pytest.fixture
def net() -> Generator[Internet]:
    with internet() as made:
        made.pages["site.example/a"] = page("0123456789" * 3, "text/plain")
        yield made


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return vault(tmp_path, {"A.md": "text\n"})


def online(opener: Opener, reached: Web, client: str = "mcp", run: str = "") -> Context:
    return replace(opener.open(client, SubmitOptions(run=run) if run else None), open_web=lambda: reached)


def searching(url: str) -> Web:
    return open_web(WebOptions(provider="tavily", api_key="k", base_url=url))


def test_a_search_has_the_shape_of_the_contract(opener: Opener) -> None:
    with serving(Reply(body=HITS)) as server, online(opener, searching(server.url)) as context:
        answer = web.web_search(context, "knots")

    assert answer == {
        "success": True,
        "query": "knots",
        "results": [{"title": "Knots", "url": "https://a.example/1", "snippet": "About knots"}],
        "total": 1,
        "limit": 8,
        "untrusted": True,
    }


def test_a_search_without_results_says_so(opener: Opener) -> None:
    with serving(Reply(body=b'{"results": []}')) as server, online(opener, searching(server.url)) as context:
        answer = web.web_search(context, "knots", 3)
        assert not context.writer.taints.entries()

    assert (answer["success"], answer["message"], answer["results"]) == (True, "No web results found", [])
    assert (answer["limit"], "notes" in answer) == (3, False)


@pytest.mark.parametrize("number", [0, 16, -1])
def test_a_number_of_results_out_of_range_is_refused(opener: Opener, number: int) -> None:
    with opener.open("mcp") as context, pytest.raises(BadInput):
        web.web_search(context, "knots", number)


def test_a_page_is_read_in_parts(opener: Opener, net: Internet) -> None:
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context:
        first = web.fetch_page(context, "http://site.example/a", length=20)
        last = web.fetch_page(context, "http://site.example/a", offset=20)
        past = web.fetch_page(context, "http://site.example/a", offset=30)

    assert first == {
        "success": True,
        "url": "http://site.example/a",
        "title": "",
        "date": "",
        "content_type": "text/plain",
        "content": "01234567890123456789",
        "offset": 0,
        "next_offset": 20,
        "total_chars": 30,
        "truncated": True,
        "untrusted": True,
    }
    assert (last["content"], last["next_offset"], last["truncated"]) == ("0123456789", None, False)
    assert (past["content"], past["message"]) == ("", "The page ends before this offset")
    assert len(net.sent) == 1


def test_a_page_without_text_says_so(opener: Opener, net: Internet) -> None:
    net.pages["site.example/b"] = page("<html><script>render()</script></html>")
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context:
        answer = web.fetch_page(context, "http://site.example/b")

    assert (answer["content"], answer["message"]) == ("", "The page holds no readable text")


def test_a_page_whose_end_was_not_read_says_so(opener: Opener, net: Internet) -> None:
    net.pages["site.example/b"] = page("<html><body><p>Knots are tied.</p>" + "<!-- -->" * 150_000 + "<p>The end.</p>")
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context:
        answer = web.fetch_page(context, "http://site.example/b")

    assert answer["content"] == "Knots are tied."
    assert "its end wasn't read" in str(answer["message"])


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, 0), (0, 50_001)])
def test_numbers_out_of_range_are_refused_before_anything_is_fetched(
    opener: Opener, net: Internet, offset: int, length: int
) -> None:
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context, pytest.raises(BadInput):
        web.fetch_page(context, "http://site.example/a", offset, length)

    assert net.sent == []


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://localhost/", "http://site.example/missing"])
def test_what_cannot_be_fetched_is_an_error(opener: Opener, net: Internet, url: str) -> None:
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context:
        with pytest.raises(KnapError) as raised:
            web.fetch_page(context, url)
        assert not context.writer.taints.entries()

    assert raised.value.hint


def test_the_web_is_off_until_the_owner_allows_it(opener: Opener) -> None:
    with opener.open("mcp") as context:
        for call in (lambda: web.web_search(context, "x"), lambda: web.fetch_page(context, "http://site.example/")):
            with pytest.raises(SetupError, match="web access is off") as raised:
                call()
            assert "[web]" in raised.value.hint


def test_whoever_has_read_a_page_only_proposes(opener: Opener, net: Internet) -> None:
    with online(opener, open_web(WebOptions(), dialer=net.dialer)) as context:
        before = files.append_to_file(context, "A.md", "before")
        _ = web.fetch_page(context, "http://site.example/a")
        after = files.append_to_file(context, "A.md", "after")

    assert (before["status"], after["status"]) == ("applied", "proposed")
    assert "after" not in opener.text("A.md")


def test_whoever_has_read_results_of_a_search_only_proposes(opener: Opener) -> None:
    with serving(Reply(body=HITS)) as server, online(opener, searching(server.url)) as context:
        _ = web.web_search(context, "knots")

        assert files.append_to_file(context, "A.md", "after")["status"] == "proposed"


def test_a_run_that_has_read_a_page_leaves_other_runs_alone(opener: Opener, net: Internet) -> None:
    reached = open_web(WebOptions(), dialer=net.dialer)
    with online(opener, reached, run="one") as context:
        _ = web.fetch_page(context, "http://site.example/a")
        assert files.append_to_file(context, "A.md", "x")["status"] == "proposed"
    with online(opener, reached, run="two") as context:
        assert files.append_to_file(context, "A.md", "y")["status"] == "applied"


def test_a_person_who_has_read_a_page_still_writes(opener: Opener, net: Internet) -> None:
    with online(opener, open_web(WebOptions(), dialer=net.dialer), client="cli") as context:
        _ = web.fetch_page(context, "http://site.example/a")

        assert files.append_to_file(context, "A.md", "x")["status"] == "applied"
