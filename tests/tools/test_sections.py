"""Sections: what is documented of them, and each error."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.drafts import EditSection
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.tools import files
from knapper.tools.context import Context
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "# Log\n\n## May\n\nOne.\n\n### Deep\n\nTwo.\n\n```\n## May\n```\n\n## June\n\nThree.\n\n## june\n\nFour.\n"
Call = Callable[[Context, str], Mapping[str, Any]]
CALLS: dict[str, Call] = {
    "replace_section": lambda context, heading: files.replace_section(context, "Log.md", heading, "New."),
    "append_to_section": lambda context, heading: files.append_to_section(context, "Log.md", heading, "New."),
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Log.md": NOTE})


@pytest.mark.parametrize("name", CALLS)
def test_a_heading_that_is_missing_is_answered_with_the_nearest(vault: Opener, name: str) -> None:
    with vault.open() as context, pytest.raises(NotFound) as caught:
        CALLS[name](context, "## Mai")

    assert caught.value.code == "heading_not_found"
    assert "## May" in caught.value.hint


@pytest.mark.parametrize("name", CALLS)
def test_a_heading_of_another_level_is_another_heading(vault: Opener, name: str) -> None:
    with vault.open() as context, pytest.raises(NotFound):
        CALLS[name](context, "### May")


@pytest.mark.parametrize("name", CALLS)
def test_a_heading_that_stands_twice_is_answered_with_its_lines(vault: Opener, name: str) -> None:
    with vault.open() as context, pytest.raises(Ambiguous) as caught:
        CALLS[name](context, "## JUNE")

    assert caught.value.details["lines"] == [15, 19]
    assert "15" in str(caught.value)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("heading", ["May", ""])
def test_a_heading_needs_its_signs(vault: Opener, name: str, heading: str) -> None:
    with vault.open() as context, pytest.raises(BadInput) as caught:
        CALLS[name](context, heading)

    assert caught.value.code == "invalid_heading"


def test_a_replaced_section_goes_with_its_heading_and_what_is_below(vault: Opener) -> None:
    with vault.open() as context:
        done = files.replace_section(context, "Log.md", "## may", "## Summer\n\nHot.")

    assert (done["success"], done["path"]) == (True, "Log.md")
    assert vault.text("Log.md") == "# Log\n\n## Summer\n\nHot.\n\n## June\n\nThree.\n\n## june\n\nFour.\n"


def test_appended_text_stands_at_the_end_of_the_section_after_a_blank_line(vault: Opener) -> None:
    with vault.open() as context:
        files.append_to_section(context, "Log.md", "## May", "Line 1\nLine 2")

    assert "## May\n```\n\nLine 1\nLine 2\n\n## June" in vault.text("Log.md")
    assert vault.text("Log.md").startswith("# Log\n\n## May\n\nOne.\n")


def test_a_person_may_leave_the_signs_out(vault: Opener) -> None:
    request = EditSection(path="Log.md", heading="Deep", content="Changed.", how="replace_body")

    with vault.open() as context:
        files.edit_section(context, request)

    assert "### Deep\n\nChanged.\n\n## June" in vault.text("Log.md")
