"""Every part of a note, by cases."""

from collections.abc import Callable

import pytest

from knapper.vault.parser import parse_note
from knapper.vault.source import Outline
from tests.vault import dumps
from tests.vault.cases import load

Dump = Callable[[bytes, Outline], list[str]]


def check(dump: Dump, raw: bytes, wanted: str) -> None:
    found = dump(raw, parse_note(raw))

    assert found == wanted.splitlines()


@pytest.mark.parametrize(("raw", "wanted"), load("sections"))
def test_sections(raw: bytes, wanted: str) -> None:
    check(dumps.sections, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("blocks"))
def test_blocks(raw: bytes, wanted: str) -> None:
    check(dumps.blocks, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("links"))
def test_links(raw: bytes, wanted: str) -> None:
    check(dumps.links, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("tags"))
def test_tags(raw: bytes, wanted: str) -> None:
    check(dumps.tags, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("tasks"))
def test_tasks(raw: bytes, wanted: str) -> None:
    check(dumps.tasks, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("ids"))
def test_block_ids(raw: bytes, wanted: str) -> None:
    check(dumps.ids, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("code"))
def test_code_spans(raw: bytes, wanted: str) -> None:
    check(dumps.code, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("frontmatter"))
def test_frontmatter(raw: bytes, wanted: str) -> None:
    check(dumps.frontmatter, raw, wanted)


@pytest.mark.parametrize(("raw", "wanted"), load("pending"))
def test_pending_blocks(raw: bytes, wanted: str) -> None:
    check(dumps.pending, raw, wanted)
