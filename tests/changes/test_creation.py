import pytest

from knapper.changes.text import replacement
from knapper.errors import BadInput


def test_a_new_note_has_its_properties_in_order_and_its_text_as_it_is() -> None:
    raw = replacement.compose_note("# A\r\n\r\ntext", {"tags": ["x", "no"], "date": "2024-01-01", "done": False})

    assert raw == b'---\r\ntags:\r\n  - x\r\n  - "no"\r\ndate: 2024-01-01\r\ndone: false\r\n---\r\n# A\r\n\r\ntext'


def test_properties_join_those_that_the_text_brings() -> None:
    raw = replacement.compose_note("---\na: 1 # kept\nb: 2\n---\n", {"b": 3, "a": 1, "c": None})

    assert raw == b"---\na: 1 # kept\nb: 3\nc:\n---\n"


@pytest.mark.parametrize("content", ["", "text", "---\n---\n"])
def test_without_properties_the_text_is_the_note(content: str) -> None:
    assert replacement.compose_note(content) == content.encode()
    assert replacement.compose_note(content, {}) == content.encode()


@pytest.mark.parametrize("content", ["\ud800", "---\na: [\n---\n"])
def test_text_that_cannot_be_a_note_with_properties_is_refused(content: str) -> None:
    with pytest.raises(BadInput):
        replacement.compose_note(content, {"a": 1})
