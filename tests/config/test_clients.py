from pathlib import Path

import pytest

from knapper import config
from knapper.errors import SetupError
from knapper.vault import access

FULL = """
[clients.mcp]
hidden = ["Journal/"]
read = ["Work/", "Journal/"]
write = ["Work/"]
read_only = ["*.lock.md"]
capabilities = ["add", "properties"]
scope = "linked"
large = "refuse"
guarded = []

[clients.my-editor]
kind = "http"
access = "read"
vaults = ["work"]

[vaults.work]
path = "work"
"""


def test_what_the_owner_says_about_a_client_arrives(config_file: Path) -> None:
    config_file.write_text(FULL, encoding="utf-8")

    settings = config.load()
    mcp, mine = settings.client("mcp"), settings.client("my-editor")

    assert [client.name for client in settings.clients] == ["mcp", "my-editor"]
    assert (mcp.read, mcp.hidden) == (("Work/", "Journal/"), ("Journal/",))
    assert mcp.grants == access.Grants(
        client="mcp",
        kind="mcp",
        capabilities=frozenset({"add", "properties"}),
        write=("Work/",),
        read_only=("*.lock.md",),
        editable="linked",
        small="apply",
        large="refuse",
        guarded=(),
        confirm="ask",
    )
    assert (mcp.vaults, mine.vaults) == ((), ("work",))
    assert [mine.may_open("work"), mine.may_open("home"), mcp.may_open("home")] == [True, False, True]
    assert (mine.grants.kind, mine.grants.is_read_only, mine.grants.small) == ("http", True, "apply")
    assert (mine.grants.large, mine.grants.guarded) == ("apply", ())


@pytest.mark.parametrize(("kind", "guarded"), [("mcp", ()), ("http", ()), ("agent", ("Preferences.md",))])
def test_what_is_guarded_is_usual_for_the_kind_unless_the_owner_says(
    kind: str, guarded: tuple[str, ...], config_file: Path
) -> None:
    config_file.write_text(
        f"[clients.a]\nkind = '{kind}'\n[clients.b]\nkind = '{kind}'\nguarded = ['Preferences.md', 'Rules/']\n"
        f"[clients.c]\nkind = '{kind}'\nguarded = []\n",
        encoding="utf-8",
    )

    found = config.load().clients

    assert [client.grants.guarded for client in found] == [guarded, ("Preferences.md", "Rules/"), ()]


def test_whether_a_person_is_asked_through_a_client_is_usual_for_its_kind_unless_the_owner_says(
    config_file: Path,
) -> None:
    assert [access.default_grants(name).confirm for name in ("mcp", "http", "agent", "script", "cli")] == [
        "ask",
        "ask",
        "propose",
        "propose",
        "propose",
    ]
    config_file.write_text(
        "[clients.mcp]\nconfirm = 'propose'\n[clients.mine]\nkind = 'http'\n[clients.bot]\nkind = 'agent'\n"
        "[clients.bold]\nkind = 'agent'\nconfirm = 'ask'\n",
        encoding="utf-8",
    )

    assert [client.grants.confirm for client in config.load().clients] == ["propose", "ask", "propose", "ask"]


def test_who_only_proposes_small_changes_applies_no_other_unless_the_owner_says(config_file: Path) -> None:
    config_file.write_text(
        "[clients.mcp]\nsmall = 'propose'\n[clients.http]\nsmall = 'propose'\nlarge = 'apply'\n"
        "[clients.cli]\nsmall = 'refuse'\n",
        encoding="utf-8",
    )

    assert [client.grants.large for client in config.load().clients] == ["propose", "apply", "refuse"]


def test_how_many_files_a_client_changes_at_once_can_be_set(config_file: Path) -> None:
    config_file.write_text("[clients.mcp]\nmax_files = 20\n", encoding="utf-8")

    assert (config.load().client("mcp").grants.max_files, config.load().client("http").grants.max_files) == (20, 5)


def test_a_client_that_is_not_configured_has_what_is_usual() -> None:
    settings = config.load()

    assert settings.clients == ()
    assert settings.client("mcp") == config.ClientSettings(grants=access.default_grants("mcp"))
    assert settings.client("unheard-of").grants.small == "propose"


def test_what_is_said_of_clients_is_shown_with_its_place(config_file: Path) -> None:
    config_file.write_text(FULL, encoding="utf-8")

    shown = [each for each in config.load().origins if each.name.startswith("clients.")]

    assert shown[0].name == "clients.mcp.read"
    assert shown[0].source == f"{config_file}:4"
    assert {each.name: each.value for each in shown}["clients.mcp.guarded"] == ""
    assert shown[-1].name == "clients.my-editor.access"


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        ("clients = 1", "'clients' in", "[clients.mcp]"),
        ("[clients]\nmcp = 'apply'", "'clients.mcp' in", "[clients.mcp]"),
        ("[clients.mpc]\nsmall = 'refuse'", "'mpc' in", "did you mean 'mcp'?"),
        ("[clients.mine]\nsmall = 'refuse'", "has no kind", "kind ="),
        ("[clients.agent]\nkind = 'mcp'", "can't be of another kind", "take the line out"),
        ("[clients.mine]\nkind = 'person'", "must be one of mcp, http, agent, script", "kind"),
        ("[clients.mcp]\nsmal = 'apply'", "no setting 'clients.mcp.smal'", "'clients.mcp.small'"),
        ("[clients.mcp]\nsmall = 'aply'", "must be one of apply, propose, refuse", "small"),
        ("[clients.mcp]\ncapabilities = ['fly']", "must be a list with some of add, delete", "capabilities"),
        ("[clients.mcp]\nwrite = 'Work/'", "must be a list of texts", "write"),
        ("[vaults.work]\npath = 'w'\n[clients.mcp]\nvaults = ['wrok']", "no vault 'wrok'", "'work'"),
        ("[clients.mcp]\nvaults = ['work']", "no vault 'work'", "[vaults.NAME]"),
        ("[clients.mcp]\nwrite = ['!Work/']", "name it in 'read_only'", "pattern"),
        ("[clients.mcp]\nhidden = ['[a']", "'mcp'", "pattern"),
    ],
)
def test_rules_that_can_not_be_meant_are_refused(text: str, cause: str, hint: str, config_file: Path) -> None:
    config_file.write_text(text, encoding="utf-8")

    with pytest.raises(SetupError) as error:
        config.load()

    assert cause in error.value.message
    assert hint in error.value.hint


def test_a_clients_own_kind_may_be_repeated(config_file: Path) -> None:
    config_file.write_text("[clients.mcp]\nkind = 'mcp'", encoding="utf-8")

    assert config.load().client("mcp").grants == access.default_grants("mcp")


def test_clippings_and_notes_with_a_source_are_foreign_unless_the_owner_says_otherwise(
    config_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    config_file.write_text(
        f"[vaults.a]\npath = '{tmp_path / 'a'}'\n[vaults.b]\npath = '{tmp_path / 'b'}'\nforeign_folders = []\n",
        encoding="utf-8",
    )

    usual, other = config.load().vaults

    assert (usual.foreign_folders, usual.foreign_properties) == (("Clippings/",), ("source",))
    assert (other.foreign_folders, other.foreign_properties) == ((), ("source",))


def test_how_long_proposals_wait_can_be_set(config_file: Path) -> None:
    assert config.load().proposal_days == 30

    config_file.write_text("[proposals]\nexpire_days = 7\n", encoding="utf-8")

    assert config.load().proposal_days == 7
