from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.changes import rules
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.rules import LogTarget, VaultFacts
from knapper.errors import RefusedError
from knapper.vault import access
from knapper.vault.access import EMPTY_SCOPE, EditableScope, Grants, Outcome, Policy, Scope
from knapper.vault.paths import NotePath
from knapper.vault.view import View

TEXT = b"# Plan\n\nfirst line\nsecond line\n"


def edit(path: str = "a.md", after: bytes = TEXT + b"third\n", *, anchored: bool = True) -> FileDraft:
    return FileDraft(
        path=NotePath(path),
        base="sha256:a",
        before=TEXT,
        after=after,
        needs=frozenset({"add"}),
        anchored=anchored,
        requests=frozenset({0}),
    )


def create(path: str) -> FileDraft:
    return FileDraft(path=NotePath(path), base=None, after=b"new\n", needs=frozenset({"create"}), anchored=True)


def move(path: str, target: str) -> FileDraft:
    return FileDraft(
        path=NotePath(path),
        base="sha256:a",
        before=TEXT,
        after=TEXT,
        target=NotePath(target),
        needs=frozenset({"move"}),
        anchored=True,
    )


def trash(path: str) -> FileDraft:
    return FileDraft(path=NotePath(path), base="sha256:a", before=TEXT, trash="vault", needs=frozenset({"delete"}))


def link(path: str) -> FileDraft:
    return replace(edit(path), needs=frozenset(), cause="link")


def restore(path: str, target: str) -> FileDraft:
    return FileDraft(path=NotePath(path), base=None, target=NotePath(target), needs=frozenset({"create"}))


def draft(*files: FileDraft) -> Draft:
    return Draft(files=files)


def plain(path: NotePath) -> NotePath:
    return path


def leading(alias: str, to: str) -> VaultFacts:
    """Make a vault in which one note is a link to another."""

    def real(path: NotePath) -> NotePath:
        return NotePath(to) if path == alias else path

    return replace(GROUND, resolve=real)


GROUND = VaultFacts(visible=lambda path: not path.startswith(("Journal/", ".")), resolve=plain)

SMALL = {
    "text at the end": draft(edit()),
    "a property": draft(replace(edit(after=b"---\nk: 1\n---\n" + TEXT), needs=frozenset({"properties"}))),
    "a section of a note": draft(edit(after=b"# Plan\n\nall new\n")),
    "a new note": draft(create("New.md")),
    "one line of a note of one line": draft(replace(edit(after=b"new\n"), before=b"old\n")),
}
LARGE = {
    "two notes": draft(edit("a.md"), edit("b.md")),
    "a place by its line": draft(edit(anchored=False)),
    "all of a note": draft(edit(after=b"# Other\n\nno line left\n")),
    "nothing left": draft(edit(after=b"")),
    "a move": draft(move("a.md", "b.md")),
    "a move with links": draft(move("a.md", "b.md"), link("c.md"), link("d.md")),
    "the trash": draft(trash("a.md")),
    "out of the trash": draft(restore(".trash/a.md", "a.md")),
    "five notes": draft(*(edit(f"{n}.md") for n in range(5))),
}
HUGE = {
    "six notes": draft(*(edit(f"{n}.md") for n in range(6))),
    "a query": replace(draft(edit()), by_query=True),
    "a folder": replace(draft(move("A/a.md", "B/a.md")), folders=((NotePath("A"), NotePath("B")),)),
}
USUAL: dict[str, tuple[Outcome, Outcome, Outcome]] = {
    "cli": ("apply", "apply", "propose"),
    "page": ("apply", "apply", "propose"),
    "mcp": ("apply", "apply", "propose"),
    "http": ("apply", "apply", "propose"),
    "agent": ("propose", "propose", "propose"),
    "script": ("propose", "propose", "propose"),
    "mine": ("propose", "propose", "propose"),
}


@pytest.mark.parametrize("client", USUAL)
@pytest.mark.parametrize("size", [0, 1, 2], ids=["small", "large", "huge"])
def test_each_client_applies_and_proposes_what_is_usual(client: str, size: int) -> None:
    for what, one in (SMALL, LARGE, HUGE)[size].items():
        found = rules.judge(one, access.default_grants(client), GROUND)

        assert (what, found.kind) == (what, USUAL[client][size])
        assert bool(found.reason) == (found.kind == "propose")


@pytest.mark.parametrize("client", USUAL)
def test_whoever_read_foreign_text_only_proposes_but_for_persons(client: str) -> None:
    own = replace(access.default_grants(client), small="apply", large="apply", tainted=True)

    kinds = {rules.judge(one, own, GROUND).kind for one in (*SMALL.values(), *LARGE.values())}

    assert kinds == ({"apply"} if own.is_person else {"propose"})


@pytest.mark.parametrize("client", USUAL)
@pytest.mark.parametrize(
    "touched",
    [
        edit("Preferences.md"),
        edit("preferences.MD"),
        create("Preferences.md"),
        move("a.md", "Preferences.md"),
        move("Preferences.md", "old.md"),
        trash("Preferences.md"),
        link("Preferences.md"),
    ],
)
def test_the_preferences_change_only_with_a_persons_word(client: str, touched: FileDraft) -> None:
    own = replace(access.default_grants(client), small="apply", large="apply", guarded=("Preferences.md",))

    assert rules.judge(draft(touched), own, GROUND).kind == ("apply" if own.is_person else "propose")
    assert rules.judge(draft(touched), own, GROUND, person_word=True).kind == "apply"
    assert rules.judge(draft(touched), replace(own, guarded=()), GROUND).kind == "apply"


def test_an_alias_of_the_preferences_is_guarded_too() -> None:
    ground = leading("alias.md", "Preferences.md")
    own = replace(access.default_grants("mcp"), guarded=("Preferences.md",))

    assert rules.judge(draft(edit("alias.md")), own, ground).kind == "propose"


@pytest.mark.parametrize("client", ["mcp", "http"])
def test_a_program_whose_user_looks_on_changes_the_preferences_unless_it_read_foreign_text(client: str) -> None:
    own = access.default_grants(client)

    assert rules.judge(draft(edit("Preferences.md")), own, GROUND).kind == "apply"
    assert rules.judge(draft(edit("Preferences.md")), replace(own, tainted=True), GROUND).kind == "propose"


@pytest.mark.parametrize("client", ["mcp", "http", "cli"])
def test_how_many_named_files_are_changed_at_once_is_the_owners_to_say(client: str) -> None:
    eight = draft(*(edit(f"{n}.md") for n in range(8)), *(link(f"l{n}.md") for n in range(20)))
    own = access.default_grants(client)

    assert rules.judge(eight, own, GROUND).kind == "propose"
    assert "8 files; more than 5" in rules.judge(eight, own, GROUND).reason
    assert rules.judge(eight, replace(own, max_files=8), GROUND).kind == "apply"
    assert rules.judge(eight, replace(own, max_files=7), GROUND).kind == "propose"
    assert rules.judge(replace(eight, by_query=True), replace(own, max_files=100), GROUND).kind == "propose"
    assert rules.judge_acceptance(eight, replace(own, max_files=8), GROUND).kind == "apply"


def clipped(path: NotePath, raw: bytes | None) -> bool:
    return path.startswith("Clippings/") or b"source" in (raw or b"")


CLIPPED = replace(GROUND, foreign=clipped)


@pytest.mark.parametrize(
    ("one", "freed"),
    [
        (move("Clippings/a.md", "Notes/a.md"), True),
        (replace(move("Clippings/a.pdf", "a.pdf"), before=None, after=None), True),
        (replace(edit(), before=b"source: x\n" + TEXT, after=TEXT), True),
        (move("Clippings/a.md", "Clippings/Old/a.md"), False),
        (move("a.md", "Clippings/a.md"), False),
        (replace(edit(), before=b"source: x\n" + TEXT), True),
        (trash("Clippings/a.md"), False),
        (create("Clippings/a.md"), False),
        (edit("Clippings/a.md"), False),
    ],
)
def test_only_a_person_makes_other_peoples_text_count_as_the_vaults_own(one: FileDraft, freed: bool) -> None:
    own = access.default_grants("mcp")
    found = rules.judge(draft(one), own, CLIPPED)

    assert (found.kind, "untrusted content" in found.reason) == (("propose", True) if freed else ("apply", False))
    assert rules.judge(draft(one), access.default_grants("cli"), CLIPPED).kind == "apply"
    assert rules.judge_acceptance(draft(one), own, CLIPPED).kind == ("refuse" if freed else "apply")


def test_what_counts_as_other_peoples_text_is_read_from_the_note_itself(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(TEXT)
    facts = rules.facts_of(View.open(tmp_path, Policy()))
    sourced = b"---\nsource: https://example.org\n---\n" + TEXT

    assert facts.foreign(NotePath("a.md"), sourced)
    assert facts.foreign(NotePath("Clippings/a.md"), None)
    assert not facts.foreign(NotePath("a.md"), TEXT)
    assert not facts.foreign(NotePath("a.md"), None)


@pytest.mark.parametrize("one", [*SMALL.values(), *LARGE.values(), *HUGE.values()])
def test_a_persons_word_applies_what_would_wait(one: Draft) -> None:
    assert rules.judge(one, access.default_grants("cli"), GROUND, person_word=True).kind == "apply"


def test_what_the_owner_refuses_stays_refused_with_a_persons_word() -> None:
    own = replace(access.default_grants("mcp"), large="refuse")

    assert rules.judge(draft(trash("a.md")), own, GROUND, person_word=True).kind == "refuse"
    with pytest.raises(RefusedError, match=r"may not: it trashes 'a.md'"):
        rules.judge(draft(trash("a.md")), own, GROUND).raise_if_refused()


UNTOUCHABLE = [
    ".obsidian/app.json",
    "Notes/.hidden/a.md",
    ".trash/a.md",
    ".knapignore",
    "Journal/a.md",
]


@pytest.mark.parametrize("path", UNTOUCHABLE)
@pytest.mark.parametrize("client", USUAL)
def test_hidden_ignored_and_system_places_are_never_written(client: str, path: str) -> None:
    block = b'```ai-edit\n{"id":"a","type":"add","before":"","after":"x"}\n```\n#ai_edit\n'
    for one in (
        edit(path),
        edit(path, TEXT + block),
        create(path),
        move("a.md", path),
        move(path, "a.md"),
        trash(path),
    ):
        if path.startswith(".trash/") and one.target == "a.md":
            continue  # restored
        found = rules.judge(draft(one), access.default_grants(client), GROUND, person_word=True)

        assert (found.kind, [refusal.code for refusal in found.refusals]) == ("refuse", ["untouchable"])
        assert path in found.reason


def test_a_link_to_a_hidden_note_is_hidden_too() -> None:
    ground = leading("alias.md", "Journal/a.md")

    assert [one.code for one in rules.find_refusals(draft(edit("alias.md")), access.default_grants("cli"), ground)] == [
        "untouchable"
    ]


def test_a_note_that_became_a_link_to_outside_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "vault", tmp_path / "outside.md"
    root.mkdir()
    outside.write_bytes(TEXT)
    (root / "a.md").symlink_to(outside)
    (root / "Out").symlink_to(tmp_path, target_is_directory=True)
    ground = rules.facts_of(View.open(root, Policy()))

    for one in (edit("a.md"), create("Out/new.md"), move("b.md", "Out/b.md")):
        assert [refusal.code for refusal in rules.find_refusals(draft(one), access.default_grants("cli"), ground)] == [
            "outside_vault"
        ]


def test_a_file_comes_out_of_the_trash_as_it_is_to_a_place_for_notes() -> None:
    own = replace(access.default_grants("mcp"), capabilities=frozenset({"create"}), editable="context")

    assert rules.find_refusals(draft(restore(".trash/a.md", "a.md")), own, GROUND) == ()
    for path, target in [(".trash/a.md", ".obsidian/a.md"), (".trash/Journal/a.md", "a.md"), (".trash/a", ".trash/b")]:
        assert rules.find_refusals(draft(restore(path, target)), own, GROUND)
    assert rules.find_refusals(draft(restore(".trash/a.md", "a.md")), replace(own, capabilities=frozenset()), GROUND)


NEEDS: list[tuple[FileDraft, Capability]] = [
    (edit(), "add"),
    (replace(edit(), needs=frozenset({"delete"})), "delete"),
    (replace(edit(), needs=frozenset({"properties"})), "properties"),
    (replace(create("b.md"), needs=frozenset()), "create"),
    (replace(move("a.md", "b.md"), needs=frozenset()), "move"),
    (replace(trash("a.md"), needs=frozenset()), "delete"),
]


@pytest.mark.parametrize(("one", "need"), NEEDS)
def test_a_change_needs_its_capability_whatever_it_claims(one: FileDraft, need: Capability) -> None:
    own = replace(access.default_grants("agent"), capabilities=access.CAPABILITIES - {need})

    (refusal,) = rules.find_refusals(draft(one), own, GROUND)

    assert refusal.code == "capability"
    assert one.path in refusal.reason
    assert rules.find_refusals(draft(one), replace(own, capabilities=frozenset({need, *one.needs})), GROUND) == ()


@pytest.mark.parametrize("editable", ["current", "linked", "context"])
def test_without_an_open_note_nothing_that_exists_is_changed(editable: EditableScope) -> None:
    own = replace(access.default_grants("agent"), editable=editable)
    property_ = replace(edit("a.md"), needs=frozenset({"properties"}))

    for one in (edit("a.md"), property_, move("a.md", "b.md"), trash("a.md")):
        for scope in (EMPTY_SCOPE, Scope(paths=frozenset()), Scope(paths=frozenset({"b.md"}))):
            assert [refusal.code for refusal in rules.find_refusals(draft(one), own, GROUND, scope)] == [
                "outside_scope"
            ]
    assert rules.find_refusals(draft(create("new.md")), own, GROUND) == ()


def test_a_move_within_the_scope_may_take_its_links_along() -> None:
    own = replace(access.default_grants("agent"), editable="current")
    moved = draft(move("a.md", "b.md"), link("c.md"), link("Journal/d.md"))

    assert rules.find_refusals(moved, own, GROUND, Scope(paths=frozenset({"A.md"}))) == ()


def test_a_link_in_a_read_only_note_holds_a_move_back() -> None:
    own = replace(access.default_grants("mcp"), read_only=("Archive/",))

    (refusal,) = rules.find_refusals(draft(move("a.md", "b.md"), link("Archive/c.md")), own, GROUND)

    assert (refusal.path, refusal.code) == ("Archive/c.md", "not_writable")
    assert "link" in refusal.reason


def test_a_hidden_note_that_holds_a_link_is_not_named() -> None:
    own = replace(access.default_grants("mcp"), read_only=("Journal/",))
    hidden = replace(link("Journal/secret.md"), hidden=True)

    (refusal,) = rules.find_refusals(draft(move("a.md", "b.md"), hidden), own, GROUND)
    guarded = rules.judge(
        draft(replace(hidden, path=NotePath("Journal/Preferences.md"))), access.default_grants("agent"), GROUND
    )

    assert (refusal.path, refusal.code) == ("", "not_writable")
    assert "Journal" not in f"{refusal.reason} {refusal.hint} {guarded.reason}"


def test_only_the_bad_items_of_a_batch_are_named() -> None:
    files = [
        replace(edit(path), requests=frozenset({number}))
        for number, path in enumerate(["a.md", "Archive/b.md", "c.md", ".obsidian/x"])
    ]
    own = replace(access.default_grants("mcp"), read_only=("Archive/",))

    found = rules.find_refusals(draft(*files), own, GROUND)

    assert [(sorted(one.requests), one.code) for one in found] == [([1], "not_writable"), ([3], "untouchable")]
    shown = rules.judge(draft(*files), own, GROUND)
    assert shown.kind == "refuse"
    with pytest.raises(RefusedError) as error:
        shown.raise_if_refused()
    assert error.value.code == "not_writable"
    assert [sorted(one.requests) for one in shown.refusals] == [[1], [3]]
    assert "refusals" in error.value.details


def test_a_folder_is_held_to_the_path_rules_even_when_empty() -> None:
    for source, target in [("A", ".obsidian/A"), (".obsidian", "A"), ("Archive", "A"), ("A", "Archive/A")]:
        moved = Draft(files=(), folders=((NotePath(source), NotePath(target)),))
        own = replace(access.default_grants("mcp"), read_only=("Archive",))

        assert rules.judge(moved, own, GROUND).kind == "refuse"


@pytest.mark.parametrize("client", USUAL)
def test_a_client_accepts_only_what_it_would_apply(client: str) -> None:
    own = access.default_grants(client)
    accepted = [
        {rules.judge_acceptance(one, own, GROUND).kind for one in drafts.values()} for drafts in (SMALL, LARGE, HUGE)
    ]

    persons, named_ones, none = [{"apply"}] * 3, [{"apply"}, {"apply"}, {"refuse"}], [{"refuse"}] * 3
    assert accepted == (persons if own.is_person else named_ones if client in {"mcp", "http"} else none)


@pytest.mark.parametrize("client", [name for name in USUAL if name not in {"cli", "page"}])
def test_nobody_but_a_person_accepts_for_or_as_one_who_read_foreign_text(client: str) -> None:
    own = replace(access.default_grants(client), small="apply", large="apply")

    assert rules.judge_acceptance(SMALL["a new note"], replace(own, tainted=True), GROUND).kind == "refuse"
    assert rules.judge_acceptance(SMALL["a new note"], own, GROUND, tainted=True).kind == "refuse"
    guarded = replace(own, guarded=("Preferences.md",))
    assert rules.judge_acceptance(draft(edit("Preferences.md")), guarded, GROUND).kind == "refuse"
    assert (
        rules.judge_acceptance(SMALL["a new note"], access.default_grants("cli"), GROUND, tainted=True).kind == "apply"
    )


def test_the_yes_of_a_person_who_was_asked_applies_what_would_wait_within_the_clients_rules() -> None:
    own = access.default_grants("mcp")
    kinds = {rules.judge_confirmation(one, own, GROUND).kind for one in (*LARGE.values(), *HUGE.values())}

    assert kinds == {"apply"}
    assert rules.judge_confirmation(draft(edit("Journal/a.md")), own, GROUND).kind == "refuse"
    assert rules.judge_confirmation(draft(trash("a.md")), replace(own, large="refuse"), GROUND).kind == "refuse"


@pytest.mark.parametrize(
    "changed", [{"tainted": True}, {"confirm": "propose"}, {"is_read_only": True}, {"kind": "person"}]
)
def test_nobody_is_asked_where_the_owner_or_what_was_read_forbids_it(changed: dict[str, Any]) -> None:
    own = replace(access.default_grants("mcp"), **changed)

    assert not own.may_ask
    assert rules.judge_confirmation(draft(edit()), own, GROUND).kind == "refuse"


def test_nobody_is_asked_about_what_was_proposed_after_foreign_text_was_read() -> None:
    own = access.default_grants("mcp")

    assert own.may_ask
    assert rules.judge_confirmation(draft(edit()), own, GROUND, tainted=True).kind == "refuse"


def test_accepting_is_held_to_the_rules_again() -> None:
    own = replace(access.default_grants("cli"), read_only=("Archive/",))

    assert rules.judge_acceptance(draft(edit("Archive/a.md")), own, GROUND).kind == "refuse"
    assert rules.judge_acceptance(draft(edit(".obsidian/a.md")), own, GROUND).kind == "refuse"


ENTRY = b"> [!knap-log]- 14:05 \xc2\xb7 Done\n>\n> Text.\n"
LOGGED = edit("Daily.md", after=TEXT + b"\n" + ENTRY, anchored=False)
LOG = LogTarget(path=NotePath("Daily.md"))


@pytest.mark.parametrize("client", ["agent", "script", "mcp"])
def test_an_entry_in_the_log_is_applied_for_clients_that_only_propose(client: str) -> None:
    own = replace(access.default_grants(client), small="propose", large="refuse")
    made = replace(create("Daily.md"), after=b"# Day\n\n" + ENTRY)

    assert rules.judge(draft(LOGGED), own, GROUND, log=LOG).kind == "apply"
    assert rules.judge(draft(made), own, GROUND, log=replace(LOG, opening=b"# Day\n")).kind == "apply"
    assert rules.judge(draft(replace(made, after=ENTRY)), own, GROUND, log=LOG).kind == "apply"


@pytest.mark.parametrize(
    "file",
    [
        replace(LOGGED, path=NotePath("Other.md")),
        replace(LOGGED, after=TEXT + b"\nplain\n"),
        replace(LOGGED, after=TEXT + b"\nplain\n\n" + ENTRY),
        replace(LOGGED, after=TEXT + b"\n" + ENTRY + b"plain\n"),
        replace(LOGGED, after=TEXT + b"\n" + ENTRY + b"\n" + ENTRY),
        replace(LOGGED, after=TEXT + ENTRY[1:]),
        replace(LOGGED, after=TEXT.replace(b"first", b"second") + b"\n" + ENTRY),
        replace(LOGGED, after=ENTRY + b"\n" + TEXT),
        replace(LOGGED, after=ENTRY),
        replace(LOGGED, after=TEXT),
        replace(LOGGED, before=None),
        replace(LOGGED, needs=frozenset({"add", "delete"})),
        replace(LOGGED, target=NotePath("Daily.md")),
        replace(LOGGED, trash="vault"),
        replace(create("Daily.md"), after=b"# Another day\n\n" + ENTRY),
        replace(create("Daily.md"), after=b"# Day\n\nplain\n\n" + ENTRY),
        create("Daily.md"),
    ],
)
def test_nothing_else_passes_for_an_entry(file: FileDraft) -> None:
    own = replace(access.default_grants("agent"), small="propose", large="propose")

    assert rules.judge(draft(file), own, GROUND, log=replace(LOG, opening=b"# Day\n")).kind != "apply"


def test_an_entry_is_held_to_all_other_rules() -> None:
    own = access.default_grants("agent")
    hidden = replace(LOGGED, path=NotePath(".obsidian/Daily.md"))
    guarded = replace(LOGGED, path=NotePath("Preferences.md"))

    def outcome(file: FileDraft, own: Grants) -> Outcome:
        return rules.judge(draft(file), own, GROUND, log=LogTarget(path=file.path)).kind

    assert outcome(hidden, own) == "refuse"
    assert outcome(guarded, own) == "propose"
    assert outcome(LOGGED, replace(own, tainted=True)) == "propose"
    assert outcome(LOGGED, replace(own, small="refuse")) == "refuse"
    assert outcome(LOGGED, replace(own, is_read_only=True)) == "refuse"
    assert outcome(LOGGED, replace(own, write=("Work/",))) == "refuse"
    assert outcome(LOGGED, replace(own, editable="current")) == "refuse"
    assert outcome(LOGGED, replace(own, capabilities=frozenset({"create"}))) == "refuse"


def test_an_entry_beside_another_change_is_none() -> None:
    own = access.default_grants("agent")

    assert rules.judge(draft(LOGGED, edit("a.md")), own, GROUND, log=LOG).kind == "propose"
    assert rules.judge(replace(draft(LOGGED), by_query=True), own, GROUND, log=LOG).kind == "propose"


FILES = st.lists(
    st.sampled_from(
        [
            edit("a.md"),
            edit("Work/b.md", anchored=False),
            create("Work/n.md"),
            move("c.md", "Work/c.md"),
            trash("d.md"),
            edit(".obsidian/e"),
            edit("Preferences.md"),
        ]
    ),
    max_size=7,
    unique_by=lambda file: file.path,
)
OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(["refuse", "propose", "apply"])
RANK = {"refuse": 0, "propose": 1, "apply": 2}


@given(FILES, OUTCOMES, OUTCOMES, st.booleans(), st.sampled_from([(), ("Work/",)]))
def test_less_trust_never_does_more(
    files: list[FileDraft], small: Outcome, large: Outcome, read_only: bool, write: tuple[str, ...]
) -> None:
    open_ = Grants(client="mcp", kind="mcp", small=small, large=large)
    closer = [
        replace(open_, tainted=True),
        replace(open_, is_read_only=read_only),
        replace(open_, write=write),
        replace(open_, editable="current"),
        replace(open_, capabilities=frozenset({"add"})),
        replace(open_, max_files=2),
        replace(open_, guarded=("Preferences.md", "d.md")),
    ]

    most = RANK[rules.judge(draft(*files), open_, GROUND).kind]

    assert all(RANK[rules.judge(draft(*files), own, GROUND).kind] <= most for own in closer)


LONG = TEXT + b"word " * 2_000


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (TEXT + b"word " * (2_000 - rules.MOST_TAKEN_OUT // 4), "apply"),
        (TEXT + b"word " * (2_000 - rules.MOST_TAKEN_OUT // 4 - 1), "propose"),
        (TEXT, "propose"),
        (TEXT + b" " * len(LONG), "propose"),
        (TEXT + b"\n" * len(LONG), "propose"),
        (TEXT + b"gone", "propose"),
        (TEXT + b"text " * 2_000, "apply"),
        (LONG + b"more", "apply"),
    ],
)
@pytest.mark.parametrize("client", ["mcp", "http"])
def test_taking_much_text_out_is_not_small(client: str, after: bytes, kind: str) -> None:
    one = draft(replace(edit(after=after), before=LONG))
    careful = replace(access.default_grants(client), large="propose")
    verdict = rules.judge(one, careful, GROUND)

    assert rules.judge(one, access.default_grants(client), GROUND).kind == "apply"  # it names its file
    assert verdict.kind == kind
    assert ("characters out of 'a.md'" in verdict.reason) == (kind == "propose")


def test_a_person_takes_out_as_much_as_they_like() -> None:
    one = draft(replace(edit(after=TEXT), before=LONG))

    assert rules.judge(one, access.default_grants("cli"), GROUND).kind == "apply"


def test_what_is_taken_out_counts_characters_and_no_bytes() -> None:
    assert rules.count_taken_out("äöü ß\n".encode(), b"\xff ") == 3
    assert rules.count_taken_out(b"a", b"a b") == 0


PIECES = (b"a b\n", b"---\n", "\u00e4\n".encode(), b"\xff\n", b"\r\n", b"c\r", b"tail", b"\n")
LINES = st.lists(st.sampled_from(PIECES), max_size=8)


@given(LINES, LINES, LINES, LINES)
def test_what_is_kept_at_both_ends_of_a_long_note_changes_no_verdict(
    head: list[bytes], old: list[bytes], new: list[bytes], tail: list[bytes]
) -> None:
    before, after = (b"".join([*head, *middle, *tail]) for middle in (old, new))
    counts = [sum(map(len, raw.decode(errors="replace").split())) for raw in (before, after)]
    rows = [{row.strip() for row in raw.splitlines()} - {b"", b"---"} for raw in (before, after)]

    assert rules.count_taken_out(before, after) == max(counts[0] - counts[1], 0)
    assert rules.overwrites(before, after) == (len(rows[0]) >= 2 and rows[0].isdisjoint(rows[1]))
