"""HTML that was made to take long to read."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.net import web
from knapper.net.guard import FetchedResponse

MANY = " ".join(f"a{number}=1" for number in range(60_000))
"""Attributes that took half a minute."""


def text(html: str) -> str:
    answer = FetchedResponse(
        url="https://site.example/a", status=200, content_type="text/html", charset="", body=html.encode()
    )
    return web.read_page(answer).text


@pytest.mark.parametrize(
    "html",
    [
        f"<html><body><!-- x --><p {MANY}>The knot holds.</p></body></html>",
        f"<html><body><p x='>' y=\">\" it's {MANY}>The knot holds.</p></body></html>",
        f"<html><body><p {MANY.replace(' ', '/')}>The knot holds.</p></body></html>",
        f"<html><body><script>a<b '</script><p x='>' {MANY}>The knot holds.</p></body></html>",
    ],
    ids=["plain", "quoted", "slashes", "script"],
)
def test_an_element_with_thousands_of_attributes_is_read_without_them(html: str) -> None:
    assert "The knot holds." in text(html)


@dataclass
class Element:
    attrib: dict[str, str]
    tag: str = "p"

    def drop_tree(self) -> None:
        raise AssertionError("only attributes are taken away here")


@dataclass
class Page:
    elements: list[Element]

    def iter(self) -> list[Element]:
        return self.elements


def test_attributes_that_are_found_once_a_page_is_parsed_are_left_out() -> None:
    few = {str(number): "" for number in range(web.MAX_ATTRIBUTES)}
    page = Page([Element(dict(few)), Element({**few, "more": ""}), Element({})])

    web.strip_attributes(page)

    assert [one.attrib for one in page.elements] == [few, {}, {}]


@given(st.text(alphabet="<>ab=\"'/ \n-!", max_size=200))
def test_other_html_stays_as_it_is(html: str) -> None:
    assert web.trim_html(html) == html


@pytest.mark.parametrize(
    "html", ["&#10;&#13;&#9;&#32;", "&#x20AC;&#8364;", "&#128512", "&#66&#x42;", "&amp;#6;", "&#;&#x;"]
)
def test_references_to_characters_stay(html: str) -> None:
    assert web.trim_html(html) == html


def test_long_attributes_stay_where_they_are_few() -> None:
    tag = f"<img alt='{'a' * 50_000}' src=\"data:image/png;base64,{'A' * 50_000}\">"

    assert web.trim_html(tag) == tag
