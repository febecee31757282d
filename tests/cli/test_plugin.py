"""`knap plugin`: the built plugin comes into a vault and goes again, whole or not at all."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knapper.cli import launching, main, plugin
from knapper.cli.plugin import BuiltPlugin, VaultPlugin
from knapper.errors import RefusedError, SetupError, StorageError
from knapper.server import credentials

SETTINGS = '{"address": "http://127.0.0.1:25627"}'


def built(version: str = "1.2.0") -> BuiltPlugin:
    manifest = json.dumps({"id": "knapper", "version": version}).encode()
    return BuiltPlugin(
        version=version, files={"manifest.json": manifest, "main.js": f"// {version}".encode(), "styles.css": b"a{}"}
    )


def write_built(folder: Path, version: str = "1.2.0") -> None:
    folder.mkdir(exist_ok=True)
    for name, content in built(version).files.items():
        (folder / name).write_bytes(content)


@pytest.fixture
def vault(own_home: Path) -> Path:
    root = own_home / "My Notes Ж"
    (root / ".obsidian").mkdir(parents=True)
    return root.resolve()


@pytest.fixture
def place(vault: Path, own_home: Path) -> VaultPlugin:
    return VaultPlugin(root=vault, lock_folder=own_home / "state" / "server")


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shipped"
    write_built(folder)
    monkeypatch.setattr(plugin.load_built, "__defaults__", (folder,))
    return folder


def tree(vault: Path) -> dict[str, bytes]:
    folder = vault / ".obsidian"
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def run(vault: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main.run(["--vault", str(vault), "plugin", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_without_a_built_plugin_it_says_so_and_how_to_build_it(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugin.load_built, "__defaults__", (tmp_path / "none",))
    code = main.run(["--vault", str(vault), "plugin", "install"])
    printed = capsys.readouterr().err

    assert code == 3
    assert "the Obsidian plugin isn't in this installation" in printed
    assert "`python -m scripts.plugin build` builds it" in printed
    assert tree(vault) == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b"{"),
        ("manifest.json", b'{"id": "other", "version": "1"}'),
        ("manifest.json", b'{"id": "knapper", "version": "\\u001b[31m"}'),
        ("main.js", b""),
    ],
)
def test_a_plugin_that_is_not_whole_is_not_installed(shipped: Path, name: str, content: bytes) -> None:
    (shipped / name).write_bytes(content)

    with pytest.raises(SetupError) as caught:
        _ = plugin.load_built()

    assert caught.value.code == "plugin_not_built"


@pytest.mark.usefixtures("shipped")
def test_it_is_installed_enabled_only_when_asked_and_again_without_harm(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dry = run(vault, "install", "--enable", "--dry-run", capsys=capsys)
    before = tree(vault)
    first = run(vault, "install", capsys=capsys)
    without_list = tree(vault)
    enabled = run(vault, "install", "--enable", capsys=capsys)
    again = run(vault, "install", "--enable", capsys=capsys)

    assert (dry[0], dry[1]["changes"], before) == (0, ["installed", "enabled"], {})
    assert (first[0], first[1]["changes"], first[1]["enabled"]) == (0, ["installed"], False)
    assert without_list == {f"plugins/knapper/{name}": content for name, content in built().files.items()}
    assert enabled[1]["changes"] == ["unchanged", "enabled"]
    assert again[1]["changes"] == ["unchanged"]
    assert (again[1]["state"], again[1]["version"]) == ("current", "1.2.0")
    assert json.loads((vault / ".obsidian" / "community-plugins.json").read_text("utf-8")) == ["knapper"]


def test_obsidians_list_keeps_its_order_and_what_is_not_understood(place: VaultPlugin, vault: Path) -> None:
    file = vault / ".obsidian" / "community-plugins.json"
    file.write_text('["zeta", {"id": 1}, "alpha", 7, "Ж"]', encoding="utf-8")
    _ = place.install(built(), enable=True)
    enabled = json.loads(file.read_text("utf-8"))
    removed = place.uninstall(with_data=False)

    assert enabled == ["zeta", {"id": 1}, "alpha", 7, "Ж", "knapper"]
    assert json.loads(file.read_text("utf-8")) == ["zeta", {"id": 1}, "alpha", 7, "Ж"]
    assert removed == ["disabled", "removed"]


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "\xff", "null"])
def test_a_list_of_another_form_is_not_written_over(place: VaultPlugin, vault: Path, text: str) -> None:
    file = vault / ".obsidian" / "community-plugins.json"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(RefusedError):
        _ = place.install(built(), enable=True)

    assert tree(vault) == {"community-plugins.json": text.encode("latin-1")}
    assert place.install(built(), enable=False) == ["installed"]


def test_a_newer_one_takes_its_place_and_settings_and_other_files_stay(place: VaultPlugin, vault: Path) -> None:
    _ = place.install(built("1.0.0"), enable=False)
    folder = vault / ".obsidian" / "plugins" / "knapper"
    (folder / "data.json").write_text(SETTINGS, encoding="utf-8")
    (folder / "cache").mkdir()
    (folder / "cache" / "a").write_text("x", encoding="utf-8")
    changes = place.install(built("2.0.0"), enable=False)

    assert changes == ["updated"]
    assert tree(vault) == {
        **{f"plugins/knapper/{name}": content for name, content in built("2.0.0").files.items()},
        "plugins/knapper/data.json": SETTINGS.encode(),
        "plugins/knapper/cache/a": b"x",
    }


def test_settings_that_obsidian_saves_meanwhile_stay(
    place: VaultPlugin, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ = place.install(built("1.0.0"), enable=False)
    data = vault / ".obsidian" / "plugins" / "knapper" / "data.json"
    data.write_text(SETTINGS, encoding="utf-8")
    write = plugin._write_whole  # pyright: ignore[reportPrivateUsage]

    def save_amid(file: Path, content: bytes) -> None:
        data.write_text("saved after the copy", encoding="utf-8")
        write(file, content)

    monkeypatch.setattr(plugin, "_write_whole", save_amid)
    _ = place.install(built("2.0.0"), enable=False)

    assert data.read_text("utf-8") == "saved after the copy"


@pytest.mark.parametrize("has_older", [False, True])
def test_a_command_that_fails_at_any_step_leaves_the_old_plugin_or_the_new_one(
    place: VaultPlugin, vault: Path, monkeypatch: pytest.MonkeyPatch, has_older: bool
) -> None:
    if has_older:
        _ = place.install(built("1.0.0"), enable=False)
        (place.folder / "data.json").write_text(SETTINGS, encoding="utf-8")
    before = tree(vault)
    real_rename, real_write = Path.rename, plugin._write_whole  # pyright: ignore[reportPrivateUsage]
    steps = 0
    for stop in range(20):
        count = 0

        def tick(stop: int = stop) -> None:
            nonlocal count
            count += 1
            if count == stop + 1:
                raise OSError(28, "No space left on device")

        def rename(self: Path, target: Path, tick: Callable[[], None] = tick) -> Path:
            tick()
            return real_rename(self, target)

        def write(file: Path, content: bytes, tick: Callable[[], None] = tick) -> None:
            tick()
            real_write(file, content)

        monkeypatch.setattr(Path, "rename", rename)
        monkeypatch.setattr(plugin, "_write_whole", write)
        try:
            _ = place.install(built("2.0.0"), enable=False)
        except StorageError:
            left = tree(vault)
        else:
            break
        assert left == before
        steps += 1

    assert steps >= (5 if has_older else 4)
    assert (place.folder / "main.js").read_bytes() == b"// 2.0.0"
    assert not has_older or (place.folder / "data.json").read_text("utf-8") == SETTINGS


def test_what_a_kill_left_between_the_two_renames_is_put_back(place: VaultPlugin, vault: Path) -> None:
    _ = place.install(built("1.0.0"), enable=False)
    (place.folder / "data.json").write_text(SETTINGS, encoding="utf-8")
    place.folder.rename(vault / ".obsidian" / ".knapper-old")
    (vault / ".obsidian" / ".knapper-new").mkdir()
    (vault / ".obsidian" / ".knapper-new" / "main.js").write_text("half", encoding="utf-8")

    changes = place.install(built("1.0.0"), enable=False)

    assert changes == ["unchanged"]
    assert tree(vault) == {
        **{f"plugins/knapper/{name}": content for name, content in built("1.0.0").files.items()},
        "plugins/knapper/data.json": SETTINGS.encode(),
    }
    assert not (vault / ".obsidian" / ".knapper-new").exists()


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("name", [".obsidian", ".obsidian/plugins", ".obsidian/plugins/knapper"])
def test_nothing_is_written_through_a_link(place: VaultPlugin, vault: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault / ".obsidian").rmdir()
    link = vault / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)

    for action in (
        lambda: place.install(built(), enable=True),
        lambda: place.uninstall(with_data=True),
        lambda: place.status(None),
    ):
        with pytest.raises(RefusedError, match="is a link"):
            _ = action()

    assert list(outside.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("name", ["main.js", "data.json", "../../community-plugins.json", "../../.knapper-new"])
def test_a_linked_file_is_refused_and_stays(place: VaultPlugin, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine", encoding="utf-8")
    _ = place.install(built("1.0.0"), enable=False)
    file = Path(os.path.normpath(place.folder / name))
    file.unlink(missing_ok=True)
    file.symlink_to(outside)

    with pytest.raises(RefusedError):
        _ = place.install(built(), enable=True)
    with pytest.raises(RefusedError):
        _ = place.uninstall(with_data=True)

    assert outside.read_text("utf-8") == "mine"
    assert file.is_symlink()


@pytest.mark.parametrize(
    "content", [b"{}", b'{"id": "other", "version": "1"}', b"{", b'{"id": "knapper", "version": 1}']
)
def test_another_plugin_of_that_folder_is_refused_and_stays(place: VaultPlugin, vault: Path, content: bytes) -> None:
    place.folder.mkdir(parents=True)
    (place.folder / "manifest.json").write_bytes(content)
    (place.folder / "main.js").write_text("other", encoding="utf-8")
    before = tree(vault)

    with pytest.raises(RefusedError, match="holds another plugin"):
        _ = place.install(built(), enable=True)
    with pytest.raises(RefusedError, match="holds another plugin"):
        _ = place.uninstall(with_data=True)

    assert tree(vault) == before


def test_a_folder_or_file_in_the_way_is_refused(place: VaultPlugin, vault: Path) -> None:
    place.folder.parent.mkdir()
    place.folder.write_text("a file", encoding="utf-8")
    with pytest.raises(RefusedError, match="is a file, where a folder should be"):
        _ = place.install(built(), enable=True)
    place.folder.unlink()
    (place.folder / "main.js").mkdir(parents=True)
    with pytest.raises(RefusedError, match="isn't a plain file"):
        _ = place.install(built(), enable=True)

    assert tree(vault) == {}


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_vault_that_cannot_be_written_is_told(place: VaultPlugin, vault: Path) -> None:
    (vault / ".obsidian").chmod(0o500)
    try:
        with pytest.raises(StorageError, match="can't be changed"):
            _ = place.install(built(), enable=True)
    finally:
        (vault / ".obsidian").chmod(0o700)

    assert tree(vault) == {}


@pytest.mark.usefixtures("shipped")
def test_a_folder_that_obsidian_never_opened_gets_no_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    code, answer = run(root, "install", capsys=capsys)

    assert (code, answer["code"]) == (3, "no_obsidian")
    assert list(root.iterdir()) == []


def test_from_a_folder_that_obsidian_never_opened_nothing_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bare").mkdir()

    code = main.run(["plugin", "uninstall", "--vault", str(tmp_path / "bare")])

    assert (code, capsys.readouterr().out) == (0, f"the plugin isn't in the vault {tmp_path / 'bare'}\n")
    assert list((tmp_path / "bare").iterdir()) == []


@pytest.mark.usefixtures("shipped")
def test_a_removal_names_the_folder(vault: Path, place: VaultPlugin, capsys: pytest.CaptureFixture[str]) -> None:
    _ = place.install(built(), enable=False)

    code = main.run(["plugin", "uninstall", "--vault", str(vault)])

    assert (code, capsys.readouterr().out) == (0, f"the plugin is removed\n{place.folder}\n")


@pytest.mark.usefixtures("shipped")
def test_a_dry_run_says_that_nothing_was_changed(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _ = main.run(["--vault", str(vault), "plugin", "install", "--enable", "--dry-run"])
    lines = capsys.readouterr().out.splitlines()

    assert lines[:2] == ["nothing was changed: this is a dry run; without --dry-run:", "the plugin is installed"]
    assert tree(vault) == {}


@pytest.mark.usefixtures("shipped")
def test_it_is_taken_away_and_its_settings_stay_unless_they_should_not(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _ = run(vault, "install", "--enable", capsys=capsys)
    data = vault / ".obsidian" / "plugins" / "knapper" / "data.json"
    data.write_text(SETTINGS, encoding="utf-8")
    dry = run(vault, "uninstall", "--data", "--dry-run", capsys=capsys)
    whole = tree(vault)
    first = run(vault, "uninstall", capsys=capsys)
    kept = tree(vault)
    second = run(vault, "uninstall", "--data", capsys=capsys)
    third = run(vault, "uninstall", "--data", capsys=capsys)

    assert dry[1]["changes"] == ["disabled", "removed"]
    assert len(whole) == 5
    assert first[1]["changes"] == ["disabled", "removed", "kept"]
    assert kept == {"community-plugins.json": b"[]", "plugins/knapper/data.json": SETTINGS.encode()}
    assert (second[0], second[1]["changes"]) == (0, [])
    assert not data.parent.exists()
    assert (third[0], third[1]["changes"]) == (0, [])


@pytest.mark.usefixtures("shipped")
def test_status_tells_what_is_there(
    vault: Path, shipped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = run(vault, "status", capsys=capsys)
    _ = run(vault, "install", capsys=capsys)
    current = run(vault, "status", capsys=capsys)
    (vault / ".obsidian" / "plugins" / "knapper" / "main.js").write_text("changed", encoding="utf-8")
    changed = run(vault, "status", capsys=capsys)
    write_built(shipped, "1.3.0")
    older = run(vault, "status", capsys=capsys)
    monkeypatch.setattr(plugin.load_built, "__defaults__", (shipped / "gone",))
    unbuilt = run(vault, "status", capsys=capsys)

    assert (absent[0], absent[1]["state"]) == (1, "absent")
    assert (current[0], current[1]["state"], current[1]["enabled"], current[1]["paired"]) == (0, "current", False, [])
    assert changed[1]["state"] == "changed"
    assert (older[1]["state"], older[1]["version"], older[1]["shipped"]) == ("other_version", "1.2.0", "1.3.0")
    assert (unbuilt[1]["state"], unbuilt[1]["shipped"]) == ("other_version", None)


@pytest.mark.usefixtures("shipped")
def test_opening_pairs_by_a_link_with_a_code_that_is_good(
    vault: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(launching, "open_link", opened.append)
    code, answer = run(vault, "install", "--enable", "--open", capsys=capsys)
    offer = credentials.open_codes(own_home / "state").redeem(answer["code"], {str(vault)})

    assert code == 0
    assert opened == [answer["link"]]
    assert answer["link"].startswith("obsidian://knapper?vault=My%20Notes%20%D0%96&address=http%3A%2F%2F127.0.0.1%3A")
    assert offer is not None


@pytest.mark.parametrize("words", [["plugin", "install", "--enable", "--open"], ["connect", "--open"]])
def test_where_nothing_opens_the_link_the_code_is_shown_all_the_same(
    vault: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    def refuse(link: str) -> None:
        raise SetupError(f"nothing here opens {link[:8]} links")

    monkeypatch.setattr(launching, "open_link", refuse)
    code = main.run(["--vault", str(vault), *words])
    printed = capsys.readouterr()
    shown = re.search(r"\b([0-9A-Z]{4}-[0-9A-Z]{4})\b", printed.out)

    assert (code, "nothing here opens" in printed.err) == (3, True)
    assert shown is not None
    assert credentials.open_codes(own_home / "state").redeem(shown[1], {str(vault)}) is not None


def test_connect_tells_that_the_plugin_is_not_in_the_vault(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = main.run(["--vault", str(vault), "connect"]), capsys.readouterr().err
    main.run(["--vault", str(vault), "plugin", "install", "--quiet"])
    capsys.readouterr()
    after = main.run(["--vault", str(vault), "connect"]), capsys.readouterr().err

    assert (before[0], after[0]) == (0, 0)
    assert "`knap plugin install` puts it there" in before[1]
    assert "knap plugin install" not in after[1]
