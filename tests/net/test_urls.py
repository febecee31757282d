import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.net import urls
from knapper.net.urls import BadAddress


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("http://example.org", "http://example.org/"),
        ("HTTP://Example.ORG:80/A#b", "http://example.org/A"),
        ("https://example.org.:443/?q=1", "https://example.org/?q=1"),
        ("https://example.org?q=a b", None),
        ("https://example.org?q", "https://example.org/?q"),
        ("https://example.org/\ud800", None),
        ("https://example.org/?q=\udfff", None),
        ("https://example.org/#\ud800", "https://example.org/"),
        ("https://example.org/ä%20|x", "https://example.org/%C3%A4%20%7Cx"),
        ("https://münchen.example/", "https://xn--mnchen-3ya.example/"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("http://[2606:2800:220:1::1]:80/", "http://[2606:2800:220:1::1]/"),
        ("  https://example.org/a\n", "https://example.org/a"),
        ("https://my_host.example/", "https://my_host.example/"),
    ],
)
def test_a_plain_address_has_one_spelling(text: str, wanted: str | None) -> None:
    if wanted is None:
        with pytest.raises(BadAddress):
            urls.parse(text)
    else:
        assert str(urls.parse(text)) == wanted


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("/b", "https://example.org/b"),
        ("c?d", "https://example.org/x/c?d"),
        ("//other.example/b", "https://other.example/b"),
        ("http://other.example", "http://other.example/"),
        ("../../..", "https://example.org/"),
        ("?q", "https://example.org/x/y?q"),
    ],
)
def test_where_a_page_sends_one_is_read_from_its_own_address(location: str, wanted: str) -> None:
    assert str(urls.join(urls.parse("https://example.org/x/y"), location)) == wanted


def test_an_address_without_end_is_refused() -> None:
    with pytest.raises(BadAddress, match="4,000"):
        urls.parse("https://example.org/" + "a" * 4_000)


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "https://example.org", "//", "http://["]))
def test_any_text_is_read_or_refused_and_what_was_read_stays(text: str, start: str) -> None:
    try:
        once = urls.parse(start + text)
    except BadAddress:
        return

    assert urls.parse(str(once)) == once
    assert str(once).isascii()
    assert not set(str(once)) & set(" \t\r\n\\")
