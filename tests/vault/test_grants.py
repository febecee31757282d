from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import Acceptance, ClientKind, EditableScope, Grants, Outcome, Scope

PATHS = st.sampled_from(["Inbox/a.md", "inbox/b.md", "Work/c.md", "Work/Done/d.md", "e.md"])
PATTERNS = st.lists(st.sampled_from(["Inbox/", "/Work/**", "*.md", "Done/"]), max_size=3).map(tuple)


@pytest.mark.parametrize(
    ("client", "kind", "small", "large"),
    [
        ("cli", "person", "apply", "apply"),
        ("page", "person", "apply", "apply"),
        ("mcp", "mcp", "apply", "apply"),
        ("http", "http", "apply", "apply"),
        ("agent", "agent", "propose", "propose"),
        ("script", "script", "propose", "propose"),
        ("my-editor", "named", "propose", "propose"),
    ],
)
def test_each_client_has_its_usual_outcomes(client: str, kind: ClientKind, small: Outcome, large: Outcome) -> None:
    own = access.default_grants(client)

    assert (own.kind, own.small, own.large) == (kind, small, large)
    assert own.capabilities == access.CAPABILITIES
    assert (own.editable, own.is_read_only, own.tainted, own.max_files) == ("all", False, False, 5)
    assert own.guarded == (() if kind in {"mcp", "http"} else ("Preferences.md",))


@pytest.mark.parametrize(
    ("own", "accepts"),
    [
        (access.default_grants("cli"), "always"),
        (replace(access.default_grants("cli"), tainted=True), "always"),
        (replace(access.default_grants("page"), is_read_only=True), "always"),
        (access.default_grants("mcp"), "own"),
        (access.default_grants("http"), "own"),
        (replace(access.default_grants("mcp"), tainted=True), "never"),
        (replace(access.default_grants("mcp"), is_read_only=True), "never"),
        (replace(access.default_grants("mcp"), small="propose"), "own"),
        (replace(access.default_grants("mcp"), small="propose", large="propose"), "never"),
        (access.default_grants("my-editor"), "never"),
        (replace(access.default_grants("my-editor"), small="apply"), "own"),
        (replace(access.default_grants("agent"), small="apply", large="apply"), "never"),
        (replace(access.default_grants("script"), small="apply", large="apply"), "never"),
    ],
)
def test_who_may_accept_and_undo_follows_from_the_rest(own: Grants, accepts: Acceptance) -> None:
    assert own.may_accept == accepts
    assert own.may_undo == (accepts != "never")


def test_only_named_folders_may_be_written_and_no_spelling_slips_through() -> None:
    own = replace(access.default_grants("mcp"), write=("Inbox/", "Caf\u00e9/"), read_only=("*.lock.md", "Inbox/Old/"))
    tried = [
        "Inbox/a.md",
        "INBOX/b.md",
        "Cafe\u0301/c.md",
        "Work/d.md",
        "Inbox/x.LOCK.md",
        "inbox/old/e.md",
        "Inbox.md",
    ]

    assert [path for path in tried if own.writable(path)] == tried[:3]


def test_a_read_only_client_writes_nowhere() -> None:
    assert not replace(access.default_grants("mcp"), is_read_only=True, write=("Inbox/",)).writable("Inbox/a.md")


@given(PATTERNS, PATTERNS, PATTERNS, PATHS)
def test_more_read_only_paths_never_open_more(
    write: tuple[str, ...], some: tuple[str, ...], more: tuple[str, ...], path: str
) -> None:
    few = replace(access.default_grants("mcp"), write=write, read_only=some)
    many = replace(few, read_only=some + more)

    assert few.writable(path) or not many.writable(path)


@pytest.mark.parametrize("path", ["Preferences.md", "PREFERENCES.MD", "Deep/preferences.md"])
def test_the_note_that_enters_prompts_is_guarded_wherever_it_lies(path: str) -> None:
    assert access.default_grants("agent").is_guarded(path)
    assert not replace(access.default_grants("mcp"), guarded=()).is_guarded(path)


@pytest.mark.parametrize("editable", ["current", "linked", "context"])
def test_without_an_open_note_nothing_is_editable(editable: EditableScope) -> None:
    own = replace(access.default_grants("agent"), editable=editable)

    assert not own.editable_in("a.md", access.EMPTY_SCOPE)
    assert not own.editable_in("a.md", Scope(paths=frozenset()))
    assert access.default_grants("agent").editable_in("a.md", access.EMPTY_SCOPE)


def test_a_scope_holds_its_notes_in_any_spelling_and_no_others() -> None:
    own = replace(access.default_grants("agent"), editable="context")
    scope = Scope(paths=frozenset({"Notes/Caf\u00e9.md"}))

    assert own.editable_in("notes/CAFE\u0301.md", scope)
    assert not own.editable_in("Notes/Cafe.md", scope)


@pytest.mark.parametrize(
    "rule", [{"write": ("!Inbox/",)}, {"write": ("",)}, {"read_only": ("[a",)}, {"guarded": ("# x",)}]
)
def test_a_pattern_that_would_not_do_what_it_seems_to_is_refused(rule: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(SetupError, match="'mcp'"):
        Grants(
            client="mcp",
            kind="mcp",
            write=rule.get("write", ()),
            read_only=rule.get("read_only", ()),
            guarded=rule.get("guarded", ()),
        )
