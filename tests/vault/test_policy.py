import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.vault.access import Policy

PATTERNS = st.lists(st.sampled_from(["Journal/", "*.secret.md", "/Work/**", "a?.md"]), max_size=3).map(tuple)


def test_without_rules_all_is_visible() -> None:
    assert Policy().visible("Any/note.md")


@pytest.mark.parametrize(
    "path",
    [
        "Journal/a.md",
        "journal/A.MD",
        "Deep/JOURNAL/a.md",
        "x/y.secret.md",
        "two\nlines/Journal/a\nb.md",
        "Caf\u00e9/a.md",
        "Cafe\u0301/a.md",
    ],
)
def test_hidden_paths_are_not_visible_in_any_spelling(path: str) -> None:
    assert not Policy(hidden=("Journal/", "*.secret.md", "Caf\u00e9/")).visible(path)


def test_only_readable_paths_are_visible() -> None:
    policy = Policy(read=("Work/", "/Inbox/*.md"), hidden=("Work/Private/",))

    visible = [
        path for path in ("Work/a.md", "Inbox/b.md", "Inbox/c.png", "d.md", "Work/Private/e.md") if policy.visible(path)
    ]

    assert visible == ["Work/a.md", "Inbox/b.md"]


def test_what_lies_outside_of_a_limit_is_not_visible_whatever_else_may_be_read() -> None:
    policy = Policy(read=("Work/", "Inbox/"), within=("Work/", "Diary/"), hidden=("*.secret.md",))

    visible = [path for path in ("Work/a.md", "Inbox/b.md", "Diary/c.md", "Work/d.secret.md") if policy.visible(path)]

    assert visible == ["Work/a.md"]
    assert not Policy(within=("Work/",)).sees_all


@pytest.mark.parametrize(
    "rules",
    [
        {"hidden": ("[a",)},
        {"hidden": ("# Private/",)},
        {"hidden": ("",)},
        {"read": ("Work/", "!Work/Private/")},
        {"within": ("!Work/",)},
        {"foreign_folders": ("\\",)},
    ],
)
def test_a_pattern_that_would_not_do_what_it_seems_to_is_refused(rules: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(SetupError) as error:
        Policy(
            client="mcp",
            hidden=rules.get("hidden", ()),
            read=rules.get("read", ()),
            within=rules.get("within", ()),
            foreign_folders=rules.get("foreign_folders", ()),
        )

    assert "'mcp'" in error.value.message
    assert error.value.hint


@given(PATTERNS, PATTERNS, st.sampled_from(["Journal/a.md", "Work/b.md", "x.secret.md", "ab.md"]))
def test_more_hidden_never_shows_more(some: tuple[str, ...], more: tuple[str, ...], path: str) -> None:
    assert Policy(hidden=some).visible(path) or not Policy(hidden=some + more).visible(path)


@pytest.mark.parametrize(
    ("path", "properties", "foreign"),
    [
        ("Clippings/page.md", {}, True),
        ("clippings/Deep/page.md", {}, True),
        ("Clippings.md", {}, False),
        ("a.md", {"source": "https://example.org/page"}, True),
        ("a.md", {"Source": ["x", "HTTP://example.org"]}, True),
        ("a.md", {"source": {"url": "<https://example.org>"}}, True),
        ("a.md", {"source": "[page](https://example.org)"}, True),
        ("a.md", {"source": "my own head"}, False),
        ("a.md", {"source": "[[Book]]"}, False),
        ("a.md", {"source": None, "link": "https://example.org"}, False),
        ("a.md", {"source": 7}, False),
    ],
)
def test_foreign_text_is_known_by_folder_or_address(path: str, properties: dict[str, JSONValue], foreign: bool) -> None:
    assert Policy().is_foreign(path, properties) is foreign


def test_what_counts_as_foreign_can_be_set() -> None:
    policy = Policy(foreign_folders=("Mail/",), foreign_properties=("url",))

    assert policy.is_foreign("Mail/a.md", {})
    assert policy.is_foreign("a.md", {"url": "https://example.org"})
    assert not policy.is_foreign("Clippings/a.md", {"source": "https://example.org"})


def test_a_fingerprint_tells_rules_apart_and_not_clients() -> None:
    policies = [
        Policy(),
        Policy(hidden=("a/",)),
        Policy(read=("a/",)),
        Policy(within=("a/",)),
        Policy(foreign_folders=()),
        Policy(foreign_properties=()),
    ]

    assert len({policy.fingerprint for policy in policies}) == len(policies)
    assert Policy(client="mcp", hidden=("a/",)).fingerprint == Policy(client="cli", hidden=("a/",)).fingerprint
    assert Policy().fingerprint == "25fee5684f51e9acc1332769f843b849f9c9da25b72484dfbe7cec53649abfa9"


def test_policies_of_equal_rules_are_equal_and_hashable() -> None:
    assert len({Policy(hidden=("a/",)), Policy(hidden=("a/",)), Policy()}) == 2
