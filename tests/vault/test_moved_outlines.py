"""An outline whose links get other targets is that of the new text, or isn't moved at all."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knapper.changes.text.splices import Splice, merge
from knapper.vault import parser
from knapper.vault.source import Link
from tests.properties import scaled
from tests.vault.test_parse import PIECES

_PLAIN_WORDS = re.compile(r"(?:[^\W_]|[ ./,-])+")
_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9_%./-]+")
_WORDS = ["C", "a b", "x/y z", "N.md", "../up", "2026-01-01", "é ü", "漢字", "a" * 60, "1. x", "-"]
_ADDRESSES = ["c.md", "a/b.md", "../x.md", "a%20b.md", "%C3%BC.png", "x_y", "__a__", "%zz", "a" * 60]
_LINES = (
    "[[B]]",
    "# [[B]] head",
    "text [[B#H|x]] and ![[B]] *[[B^id]]* #tag",
    "- item [[B]]\n- [ ] task [[B]]\n  - [n](a/N.md#h 'title') ^id",
    "[![alt](p/my%20pic.png)](a/N.md) https://x.y/[[B]]",
    "|a|b|\n|-|-|\n|[[B\\|x]]|[n](a/N.md)|",
    "> quote [[B]]\n> more",
    "`[[B]]` $[[B]]$ <b>[[B]]</b> <a title='[[B]]'>",
    "```\n[[B]]\n```",
    "[[B]]\n===",
    "[x][r] [n](<a/N.md>) [[ B ]]",
    "[^1]: note [[B]]",
    "    code [[B]]",
    "é [[B]] 漢 [n](a/N.md)\\",
)


def _is_plain(raw: bytes, link: Link) -> bool:
    patterns = {"wikilink": _PLAIN_WORDS, "embed": _PLAIN_WORDS, "markdown": _PLAIN_ADDRESS, "image": _PLAIN_ADDRESS}
    written = raw[link.target_start : link.target_stop].decode(errors="replace")
    return link.kind in patterns and patterns[link.kind].fullmatch(written) is not None


@given(
    head=st.sampled_from(["", "\ufeff", "---\nup: '[[B]]'\ntags: [a]\n---\n"]),
    pieces=st.lists(st.sampled_from([*_LINES, *(f"\n\n{line}\n\n" for line in _LINES), *PIECES]), max_size=12),
    newline=st.sampled_from(["\n", "\r\n"]),
    data=st.data(),
)
@settings(max_examples=scaled(300), deadline=None)
def test_a_moved_outline_is_that_of_the_new_text(
    head: str, pieces: list[str], newline: str, data: st.DataObject
) -> None:
    raw = (head + "".join(pieces)).replace("\n", newline).encode(errors="surrogateescape")
    outline = parser.parse_note(raw)
    targets: dict[int, tuple[Link, bytes]] = {}
    for link in outline.links:
        if _is_plain(raw, link) and data.draw(st.booleans()):
            new = data.draw(st.sampled_from(_WORDS if link.kind in {"wikilink", "embed"} else _ADDRESSES))
            targets[link.target_start] = (link, new.encode())

    moved = parser.move_outline(raw, outline, list(targets.values()))

    if moved is not None:
        splices = [Splice(start=one.target_start, stop=one.target_stop, new=new) for one, new in targets.values()]
        assert moved == parser.parse_note(merge(raw, splices))


@pytest.mark.parametrize(
    "text", ["see [[B]] #tag\n\n- [ ] task ^id", "[n](a/N.md#h) ![[B#H|x]]", "<b title='x'> [[B]]", "# H\n\n`c` [[B]]"]
)
def test_an_outline_is_moved_where_only_positions_change(text: str) -> None:
    raw = text.encode()
    outline = parser.parse_note(raw)

    assert parser.move_outline(raw, outline, [(link, b"Other") for link in outline.links]) is not None


@pytest.mark.parametrize(
    "text",
    [
        "# head [[B]]",
        "- [ ] task [[B]]",
        "[![alt](pic.png)](a.md)",
        "[[B]] %%c%%",
        "[[B]] $$m$$",
        "[[B]]\n\n[r]: x",
        "---\nup: '[[B]]'\n---\n",
        "[[B]] \0",
        "no link",
    ],
)
def test_an_outline_is_not_moved_where_more_changes(text: str) -> None:
    raw = text.encode()
    outline = parser.parse_note(raw)

    assert parser.move_outline(raw, outline, [(link, b"Other") for link in outline.links]) is None
