"""`knap open`: Obsidian's addresses, editors and their lines, and what isn't opened."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from knapper.cli import main
from knapper.cli.commands import open as editors
from knapper.cli.commands import open as open_command
from knapper.cli.commands.open import OpenOptions
from knapper.cli.options import GlobalOptions
from knapper.errors import Ambiguous, BadInput, KnapError, NotFound, SetupError
from knapper.server.mcp import clients
from knapper.vault.obsidian import KnownVault
from tests.index import worlds

NOTES = {
    "Garden.md": (
        '---\naliases: ["The green plan"]\n---\n# Garden\n\nhello\n\n## Watering #daily | x\n\nevery day\n\n## End\n'
    ),
    "Areas/Roof & sky.md": "# Roof\n",
    "Work/Plan.md": "x\n",
    "Old/Plan.md": "x\n",
}


@dataclass
class RecordingLauncher:
    """Starts nothing, and writes down what it should."""

    code: int = 0
    started: list[list[str]] = field(default_factory=list[list[str]])
    ran: list[list[str]] = field(default_factory=list[list[str]])

    def start(self, command: Sequence[str]) -> None:
        self.started.append(list(command))

    def run(self, command: Sequence[str]) -> int:
        self.ran.append(list(command))
        return self.code


@pytest.fixture
def vault(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = worlds.fill(own_home / "My Notes", NOTES).resolve()
    monkeypatch.setenv("VAULT_PATH", str(folder))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "vim -n")
    return folder


def options(
    *, line: int = 0, heading: str = "", place: editors.OpenPlace | None = None, only_print: bool = False
) -> OpenOptions:
    return {"line": line, "heading": heading, "place": place, "only_print": only_print}


def opened(name: str, own: OpenOptions, code: int = 0) -> RecordingLauncher:
    launcher = RecordingLauncher(code=code)
    open_command.open_note(GlobalOptions(), name, own, launcher)
    return launcher


@pytest.mark.parametrize("name", ["Garden", "garden.md", "the green PLAN", "[[Garden]]"])
def test_a_note_goes_by_any_of_its_names(vault: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / ".obsidian").mkdir()
    launcher = opened(name, options())

    assert launcher.started == [["xdg-open", "obsidian://open?vault=My%20Notes&file=Garden.md"]]
    assert capsys.readouterr().out == "opened Garden.md in Obsidian\n"


def test_without_obsidian_the_editor_opens_it(vault: Path) -> None:
    assert opened("Roof & sky", options()).ran == [["vim", "-n", str(vault / "Areas/Roof & sky.md")]]


def test_a_heading_is_opened_by_its_line_in_an_editor_and_by_its_name_in_obsidian(vault: Path) -> None:
    heading = "Watering #daily | x"

    assert opened("Garden", options(heading=heading, place="editor")).ran[0][2:] == ["+8", str(vault / "Garden.md")]
    assert (
        opened("Garden", options(heading=heading, place="obsidian"))
        .started[0][1]
        .endswith("&file=Garden.md%23Watering%20daily%20x")
    )


@pytest.mark.parametrize(("line", "heading"), [(1, ""), (4, "%23Garden"), (10, "%23Watering%20daily%20x"), (99, "")])
def test_obsidian_is_told_the_heading_above_a_line(vault: Path, line: int, heading: str) -> None:
    assert vault.is_dir()
    assert opened("Garden", options(line=line, place="obsidian")).started[0][1].endswith(f"&file=Garden.md{heading}")


def test_the_address_can_be_printed_alone(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["open", "Roof & sky", "--print"]) == 0
    assert capsys.readouterr().out == "obsidian://open?vault=My%20Notes&file=Areas%2FRoof%20%26%20sky.md\n"

    assert main.run(["open", "Garden", "--print", "--line", "10", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["path"], shown["file"], shown["line"]) == ("Garden.md", str(vault / "Garden.md"), 10)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Plan", Ambiguous),
        ("Nothing", NotFound),
        ("../../etc/passwd", KnapError),
        ("/etc/passwd", KnapError),
        ("", BadInput),
    ],
)
def test_what_is_no_single_note_of_the_vault_is_refused(vault: Path, name: str, error: type[KnapError]) -> None:
    assert vault.is_dir()
    launcher = RecordingLauncher()
    with pytest.raises(error):
        open_command.open_note(GlobalOptions(), name, options(), launcher)
    assert (launcher.started, launcher.ran) == ([], [])


def test_a_link_that_leads_out_of_the_vault_is_refused(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("x", encoding="utf-8")
    (vault / "out.md").symlink_to(tmp_path / "secret.md")

    with pytest.raises(KnapError):
        opened("out.md", options())


def test_a_line_and_a_heading_contradict_each_other(vault: Path) -> None:
    assert vault.is_dir()
    with pytest.raises(BadInput, match="can't be given together"):
        opened("Garden", options(line=1, heading="End"))


def known(path: Path) -> KnownVault:
    return KnownVault(path=path, is_open=False, opened_ms=0)


@pytest.mark.parametrize(
    ("folders", "uri"),
    [
        ([], "obsidian://open?vault=Notes&file=a%2Fb.md%23H"),
        (["/u/Notes"], "obsidian://open?vault=Notes&file=a%2Fb.md%23H"),
        (["/u"], "obsidian://open?vault=u&file=Notes%2Fa%2Fb.md%23H"),
        (["/u", "/u/Notes/a"], "obsidian://open?vault=a&file=b.md%23H"),
        (["/u/Notes", "/x/notes"], "obsidian://open?path=%2Fu%2FNotes%2Fa%2Fb.md"),
    ],
)
def test_the_vault_is_the_one_that_obsidian_knows(folders: list[str], uri: str) -> None:
    address = editors.obsidian_address(
        Path("/u/Notes/a/b.md"), [known(Path(each)) for each in folders], Path("/u/Notes"), "H"
    )

    assert address.uri == uri
    assert bool(address.note) == ("?path=" in uri)


@pytest.mark.parametrize("name", ["a&action=new.md", "a?x#y.md", "ü %41 +.md", "a\nb.md", "a';calc.md", "=x/..md"])
def test_a_name_adds_nothing_to_an_address(name: str) -> None:
    uri = editors.obsidian_address(Path("/u/N") / name, [], Path("/u/N")).uri
    query = uri.removeprefix("obsidian://open?vault=N&file=")

    assert query != uri
    assert set(query) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%-._~")


def test_the_list_of_obsidian_is_read_where_it_keeps_it(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = vault.parent / "config"
    (config / "obsidian").mkdir(parents=True)
    (config / "obsidian" / "obsidian.json").write_text(
        json.dumps({"vaults": {"a1": {"path": str(vault.parent)}}}), encoding="utf-8"
    )
    machine = clients.MachinePaths(system="linux", home=vault.parent, config=config)
    monkeypatch.setattr(clients, "detect_machine", lambda: machine)

    assert main.run(["open", "Garden", "--print"]) == 0
    assert capsys.readouterr().out == f"obsidian://open?vault={vault.parent.name}&file=My%20Notes%2FGarden.md\n"


@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("linux", ["xdg-open", "obsidian://open?a=b&c=d"]),
        ("darwin", ["open", "obsidian://open?a=b&c=d"]),
        ("win32", ["rundll32", "url.dll,FileProtocolHandler", "obsidian://open?a=b&c=d"]),
    ],
)
def test_each_system_opens_an_address_in_its_way(system: str, command: list[str]) -> None:
    assert editors.opener_command("obsidian://open?a=b&c=d", system=system) == command


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        ("vim", ["vim", "+7", "/n/a b.md"]),
        ("/usr/bin/nano -w", ["/usr/bin/nano", "-w", "+7", "/n/a b.md"]),
        ("code --wait", ["code", "--wait", "--goto", "/n/a b.md:7"]),
        ("'C:\\Program Files\\VS\\Code.exe'", ["C:\\Program Files\\VS\\Code.exe", "--goto", "/n/a b.md:7"]),
        ("hx", ["hx", "/n/a b.md:7"]),
        ("kate", ["kate", "--line", "7", "/n/a b.md"]),
        ("notepad++.exe", ["notepad++.exe", "-n7", "/n/a b.md"]),
        ("my-editor", ["my-editor", "/n/a b.md"]),
    ],
)
def test_an_editor_is_told_the_line_as_it_understands_it(editor: str, words: list[str]) -> None:
    command, is_told = editors.editor_command(
        editors.find_editor({"EDITOR": editor}, windows=False), Path("/n/a b.md"), 7
    )

    assert command == words
    assert is_told == (editor != "my-editor")


@pytest.mark.parametrize("variables", [{}, {"EDITOR": " "}, {"VISUAL": "vim 'x"}])
def test_without_an_editor_the_way_to_one_is_told(variables: dict[str, str]) -> None:
    with pytest.raises(SetupError) as refused:
        editors.find_editor(variables)
    assert "VISUAL or EDITOR" in refused.value.hint


def test_visual_comes_first_and_an_editor_that_fails_is_told(
    vault: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VISUAL", "strange")
    launcher = opened("Garden", options(line=3, place="editor"), code=9)

    assert launcher.ran == [["strange", str(vault / "Garden.md")]]
    shown = capsys.readouterr().err
    assert "how 'strange' is told a line isn't known" in shown
    assert "ended with 9" in shown


def test_a_program_that_is_missing_or_fails_is_told(tmp_path: Path) -> None:
    launcher = editors.SystemLauncher()
    for command in (["no-such-program-here"], ["false"]):
        with pytest.raises(SetupError):
            launcher.start([*command, str(tmp_path)])
    with pytest.raises(SetupError, match="can't be started"):
        launcher.run(["no-such-program-here"])
    launcher.start(["true"])
    assert launcher.run(["true"]) == 0
