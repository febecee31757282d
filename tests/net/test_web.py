import pytest

from knapper.errors import BadInput, SetupError
from knapper.net.urls import NotPublic
from knapper.net.web import Web, WebOptions, open_web
from tests.net.internet import Internet, page
from tests.net.servers import Reply, serving

HITS = b'{"results": [{"title": "t", "url": "https://a.example/1"}, {"title": "u", "url": "https://a.example/2"}]}'


def opened(net: Internet, **options: object) -> Web:
    return open_web(WebOptions(**options), dialer=net.dialer)  # pyright: ignore[reportArgumentType]


def test_reading_on_does_not_fetch_again(net: Internet) -> None:
    net.pages["*"] = page("once", "text/plain")
    web = opened(net)

    assert web.fetch("http://site.example/a").text == web.fetch("http://SITE.example/a#b").text == "once"
    assert len(net.sent) == 1


def test_only_the_last_pages_are_kept(net: Internet) -> None:
    net.pages["*"] = page("x", "text/plain")
    web = opened(net)
    for number in range(9):
        _ = web.fetch(f"http://site.example/{number}")
    _ = web.fetch("http://site.example/8")
    assert len(net.sent) == 9

    _ = web.fetch("http://site.example/0")
    assert len(net.sent) == 10


def test_an_error_is_not_kept(net: Internet) -> None:
    web = opened(net)
    for _ in range(2):
        with pytest.raises(Exception, match="404"):
            web.fetch("http://site.example/a")

    assert len(net.sent) == 2


def test_pages_come_from_listed_hosts_only_where_there_is_a_list(net: Internet) -> None:
    net.pages["*"] = page("x", "text/plain")
    net.names["other.example"] = ["93.184.216.40"]
    web = opened(net, hosts=("site.example",))

    assert web.fetch("http://site.example/").text == "x"
    with pytest.raises(NotPublic):
        web.fetch("http://other.example/")


@pytest.mark.parametrize("query", ["", " \n", "x" * 1_001])
def test_a_query_that_is_none_is_refused(net: Internet, query: str) -> None:
    with pytest.raises(BadInput):
        opened(net).search(query)


def test_no_results_are_not_asked_for(net: Internet) -> None:
    with pytest.raises(BadInput):
        opened(net).search("x", 0)


def test_the_owners_limit_counts_where_it_is_lower(net: Internet) -> None:
    with serving(Reply(body=HITS)) as server:
        web = opened(net, provider="tavily", api_key="k", base_url=server.url, max_results=1)
        hits = web.search("a\n b", 8)
        web.close()

    assert [hit.title for hit in hits] == ["t"]
    assert (server.requests[0].json["query"], server.requests[0].json["max_results"]) == ("a b", 1)


def test_a_provider_without_key_is_said_when_it_is_asked_and_pages_need_none(net: Internet) -> None:
    net.pages["*"] = page("x", "text/plain")
    web = opened(net, provider="brave")

    assert web.fetch("http://site.example/").text == "x"
    with pytest.raises(SetupError) as raised:
        web.search("x")
    assert raised.value.code == "search_key"


def test_an_address_for_duckduckgo_is_a_mistake(net: Internet) -> None:
    with pytest.raises(SetupError) as raised:
        opened(net, base_url="http://localhost").search("x")

    assert "web.base_url" in raised.value.message


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(WebOptions(api_key="secret"))
