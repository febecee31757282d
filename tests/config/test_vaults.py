from pathlib import Path

import pytest

from knapper import config
from knapper.app import Hub
from knapper.config.settings import Settings
from knapper.errors import SetupError


def folder(path: Path, *, obsidian: bool = False) -> Path:
    path.mkdir(parents=True)
    if obsidian:
        (path / ".obsidian").mkdir()
    return path


def source(settings: Settings) -> str:
    return next(each.source for each in settings.origins if each.name == "vault")


@pytest.fixture
def two_vaults(config_file: Path, tmp_path: Path) -> Path:
    """Configure the vaults work and home in the folder that is given."""
    folder(tmp_path / "work")
    folder(tmp_path / "home")
    config_file.write_text(
        f"[vaults.work]\npath = '{tmp_path / 'work'}'\nhidden = ['secret/']\n"
        + f"[vaults.home]\npath = '{tmp_path / 'home'}'\n",
        encoding="utf-8",
    )
    return tmp_path


def test_a_flag_names_a_vault_or_a_folder(two_vaults: Path) -> None:
    by_name = config.load({"default_vault": "home"}, cwd=two_vaults)
    other = folder(two_vaults / "other")
    by_folder = config.load({"default_vault": "other"}, cwd=two_vaults)

    assert by_name.vault.path == two_vaults / "home"
    assert by_folder.vault == config.Vault(name="other", path=other)
    assert source(by_folder) == "--vault"


def test_a_folder_that_is_configured_keeps_its_policy(two_vaults: Path) -> None:
    (two_vaults / "link").symlink_to(two_vaults / "work", target_is_directory=True)

    chosen = config.load({"default_vault": str(two_vaults / "link")}).vault

    assert chosen.name == "work"
    assert chosen.hidden == ("secret/",)


def test_the_flag_is_above_the_variable_and_that_above_the_file(
    two_vaults: Path, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text("default_vault = 'home'\n" + config_file.read_text(encoding="utf-8"), encoding="utf-8")
    from_file = config.load()
    monkeypatch.setenv("VAULT_PATH", str(two_vaults / "work"))
    from_variable = config.load()
    from_flag = config.load({"default_vault": "home"})

    assert (from_file.vault.name, source(from_file)) == ("home", f"{config_file}:1")
    assert (from_variable.vault.name, source(from_variable)) == ("work", "VAULT_PATH")
    assert (from_flag.vault.name, source(from_flag)) == ("home", "--vault")


def test_a_default_vault_may_be_a_folder_beside_the_file(config_file: Path) -> None:
    notes = folder(config_file.parent / "notes")
    config_file.write_text("default_vault = 'notes'\n", encoding="utf-8")

    assert config.load().vault.path == notes.resolve()


def test_the_only_configured_vault_is_chosen(config_file: Path, tmp_path: Path) -> None:
    folder(tmp_path / "notes")
    config_file.write_text(f"[vaults.mine]\npath = '{tmp_path / 'notes'}'\n", encoding="utf-8")

    settings = config.load(cwd=folder(tmp_path / "elsewhere", obsidian=True))

    assert settings.vault.name == "mine"
    assert source(settings) == "the only configured vault"


def test_the_current_folder_is_chosen_inside_a_vault(tmp_path: Path) -> None:
    folder(tmp_path / "notes", obsidian=True)

    settings = config.load(cwd=folder(tmp_path / "notes" / "a" / "b"))

    assert settings.vault.path == tmp_path / "notes"
    assert ".obsidian" in source(settings)


def test_without_any_sign_no_vault_is_chosen_and_the_next_step_is_told(tmp_path: Path) -> None:
    settings = config.load(cwd=tmp_path)

    with pytest.raises(SetupError, match="no vault is chosen") as error:
        _ = settings.vault
    assert "--vault" in error.value.hint
    assert "VAULT_PATH" in error.value.hint


def test_among_several_vaults_none_is_guessed(two_vaults: Path) -> None:
    settings = config.load(cwd=two_vaults)

    with pytest.raises(SetupError) as error:
        _ = settings.vault
    assert "work, home" in error.value.hint


@pytest.mark.parametrize("wanted", ["hmoe", "/no/such/folder", "x" * 5_000, "a\nb"])
def test_a_vault_that_is_not_there_is_named(wanted: str, two_vaults: Path) -> None:
    settings = config.load({"default_vault": wanted}, cwd=two_vaults)

    with pytest.raises(SetupError) as error:
        _ = settings.vault
    assert wanted in error.value.message
    assert ("did you mean 'home'?" in error.value.hint) == (wanted == "hmoe")


def test_a_configured_vault_whose_folder_is_gone_is_named(two_vaults: Path) -> None:
    (two_vaults / "home").rmdir()

    settings = config.load({"default_vault": "home"})

    with pytest.raises(SetupError, match="of the vault 'home' isn't there"):
        _ = settings.vault


def test_a_hub_takes_no_other_vault_in_the_place_of_one_that_is_named(two_vaults: Path) -> None:
    (two_vaults / "home").rmdir()
    named = config.load({"default_vault": "home"}, cwd=two_vaults)

    with pytest.raises(SetupError, match="no vault and no folder 'hmoe'"):
        Hub(config.load({"default_vault": "hmoe"}, cwd=two_vaults))
    with pytest.raises(SetupError, match="vault 'home' isn't"):
        Hub(named, only=True)
    with Hub(named) as hub:
        assert hub.vaults == ("home", "work")
        assert hub.context(client="cli", vault="work").vault == "work"
        with pytest.raises(SetupError, match="vault 'home' isn't"):
            hub.context(client="cli")
    with Hub(config.load(cwd=two_vaults)) as hub:
        assert hub.vaults == ("work", "home")


def test_a_file_of_secrets_in_a_vault_is_refused(two_vaults: Path) -> None:
    secrets = folder(two_vaults / "work" / "sub") / "my.env"
    secrets.write_text("KNAP_MODEL=x\n", encoding="utf-8")

    with pytest.raises(SetupError, match="lies inside the vault"):
        config.load({"default_vault": "home"}, env_file=str(secrets))


def test_a_file_of_secrets_in_the_chosen_folder_is_refused(tmp_path: Path) -> None:
    notes = folder(tmp_path / "notes", obsidian=True)
    (notes / ".env").write_text(f"VAULT_PATH={notes}\n", encoding="utf-8")

    with pytest.raises(SetupError, match="lies inside the vault"):
        config.load(env_file=str(notes / ".env"), cwd=tmp_path)


def test_an_env_file_in_the_current_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KNAP_MODEL=x\n", encoding="utf-8")

    assert config.load(cwd=tmp_path).model.name == ""


@pytest.mark.usefixtures("two_vaults")
def test_state_folders_differ_by_folder_and_carry_the_name() -> None:
    settings = config.load()
    folders = [config.state_folder(settings, vault) for vault in settings.vaults]

    assert [each.parent for each in folders] == [settings.state_dir / "vaults"] * 2
    assert [each.name.rpartition("-")[0] for each in folders] == ["work", "home"]
    assert all(len(each.name.rpartition("-")[2]) == 10 for each in folders)


@pytest.mark.parametrize("name", ["../../out", "a/b:c*", "日記", ".", "x" * 300, "-"])
def test_any_name_makes_one_folder(name: str, tmp_path: Path) -> None:
    settings = config.load(cwd=tmp_path)

    found = config.state_folder(settings, config.Vault(name=name, path=tmp_path))

    assert found.parent == settings.state_dir / "vaults"
    found.mkdir(parents=True)
    assert found.resolve().parent == (settings.state_dir / "vaults").resolve()


def test_a_vault_keeps_its_state_under_a_new_name(tmp_path: Path) -> None:
    settings = config.load(cwd=tmp_path)
    old = config.state_folder(settings, config.Vault(name="old", path=tmp_path))
    old.mkdir(parents=True)

    assert config.state_folder(settings, config.Vault(name="new", path=tmp_path)) == old


def test_state_inside_the_vault_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = folder(tmp_path / "notes")
    (tmp_path / "link").symlink_to(notes, target_is_directory=True)
    for inside in (notes, notes / "state", tmp_path / "link" / "deep" / "state"):
        monkeypatch.setenv("KNAP_STATE_DIR", str(inside))
        settings = config.load({"default_vault": str(notes)})

        with pytest.raises(SetupError, match="lies inside the vault"):
            config.state_folder(settings)
    assert list(notes.iterdir()) == []


def test_a_vault_that_is_passed_by_is_known_unless_a_flag_named_the_other(two_vaults: Path) -> None:
    here = folder(two_vaults / "notes" / "below", obsidian=True)
    (here / "deep").mkdir()

    assert config.load({"default_vault": "work"}, cwd=here).passed_by is None
    assert config.load({"default_vault": str(here)}, cwd=here).passed_by is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VAULT_PATH", "work")
        assert config.load(cwd=here / "deep").passed_by == here
        assert config.load(cwd=two_vaults / "work").passed_by is None
        assert config.load(cwd=two_vaults).passed_by is None


def test_a_vault_that_is_not_there_is_told_with_what_names_it(
    two_vaults: Path, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write_text("default_vault = 'garden'\n" + config_file.read_text(encoding="utf-8"), encoding="utf-8")
    by_file = refused(config.load())
    monkeypatch.setenv("VAULT_PATH", "/nowhere/at/all")
    by_variable = refused(config.load())
    by_flag = refused(config.load({"default_vault": "garden"}, cwd=two_vaults))

    assert by_file.message == f"there is no vault and no folder 'garden', which {config_file}:1 names"
    assert by_variable.message == "there is no vault and no folder '/nowhere/at/all', which VAULT_PATH names"
    assert by_flag.message == "there is no vault and no folder 'garden'"
    assert by_flag.hint == "give the folder of your notes, or one of work, home"


def test_a_vault_that_is_a_file_is_told_to_be_one(two_vaults: Path, config_file: Path) -> None:
    note = two_vaults / "Note.md"
    note.write_text("x", encoding="utf-8")
    by_flag = refused(config.load({"default_vault": str(note)}))
    config_file.write_text(f"[vaults.notes]\npath = '{note}'\n", encoding="utf-8")
    by_file = refused(config.load())

    assert by_flag.message == f"'{note}' is a file, and no vault"
    assert by_file.message == f"the folder {note} of the vault 'notes' is a file"


def refused(settings: Settings) -> SetupError:
    with pytest.raises(SetupError) as raised:
        _ = settings.vault
    return raised.value
