"""What is said to who mistypes something, or forgets it."""

import json
from pathlib import Path

import pytest

import knapper
from knapper.cli import main, output


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Make a vault with one note in a folder."""
    (tmp_path / "Garden.md").write_text("# Garden\n", encoding="utf-8")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], vault: Path, *args: str) -> tuple[int, list[str]]:
    code = main.run(["-v", str(vault), *args])
    return code, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("args", "error", "hint"),
    [
        (
            ["search", "x", "--folder"],
            "option '--folder' requires an argument",
            "`knap search --help` shows the usage",
        ),
        (["edits", "show", "--client"], "no such option '--client'", "`knap edits show --help` shows the usage"),
        (["undo", "--proposal"], "option '--proposal' requires an argument", "`knap undo --help` shows the usage"),
        (["edits", "review", "--vault"], "option '--vault' requires an argument", "`knap edits review --help`"),
        (["edits", "1m80zgrxy-jesrk0k4"], "there is no command 'knap edits", "one of accept, blocks, draw,"),
        (
            ["links", "Garden"],
            "there is no command 'knap links Garden'",
            "one of broken, in, orphans, out; `knap links out NOTE` lists",
        ),
        (["edits", "show"], "missing argument 'ID'", "`knap edits` lists the ids"),
        (["sessions", "delete"], "missing argument 'ID'", "`knap sessions` lists the ids"),
        (["run", "status"], "missing argument 'ID'", "`knap run list` lists the ids"),
        (["search", "x", "--limit", "3"], "no such option '--limit'", "-n says how many; `knap search --help`"),
        (["log", "--top", "3"], "no such option '--top'", "-n says how many; `knap log --help`"),
        (["links", "brken"], "there is no command 'knap links brken'", "did you mean 'broken'?"),
        (["search", "apple tree", "-winter"], "no such option '-w'", "to exclude a word, quote the whole query:"),
        (
            ["search", '-"apple tree" cider'],
            "no such option '-\"'",
            "to exclude a word, quote the whole query: `knap search 'tree -winter'`; where it begins with a dash, "
            "put -- before it: `knap search -- '-winter tree'`",
        ),
        (["find", "tree", "-winter"], "no such option '-w'", "to exclude a word, quote the whole query:"),
        (["find", "--folder", "A", "--folder", "B"], "--folder is given 2 times", "run it once for each;"),
        (["run", "statsu"], "there is no command 'knap run statsu'", "did you mean 'status'? A task of one word"),
        (["run", "statsu", "r1", "-q"], "there is no command 'knap run statsu'", "did you mean 'status'?"),
        (["run", "show", "r260314-092653-a1b2c3d4"], "there is no command 'knap run show'", "did you mean 'status'?"),
        (["run", "stop"], "there is no command 'knap run stop'", "did you mean 'cancel'?"),
        (["token", "create"], "there is no command 'knap token create'", "did you mean 'new'?"),
        (
            ["config", "get"],
            "there is no command 'knap config get'",
            "one of edit, path, set, unset; `knap config` alone",
        ),
        (
            ["sessions", "list"],
            "there is no command 'knap sessions list'",
            "one of clear, delete, export, fork, rename, show; `knap sessions` alone",
        ),
        (
            ["history", "--kind", "change"],
            "invalid value for '--kind': 'change' is not one of",
            "did you mean 'changed'?",
        ),
        (["history", "--kind", "zzz"], "invalid value for '--kind': 'zzz' is not one of", "`knap history --help`"),
        (["vaults"], "there is no command 'vaults'", "`knap config` shows the vaults, `knap setup --vault FOLDER`"),
        (["delete", "Garden.md"], "there is no command 'delete'", "did you mean 'rm'?"),
        (["history", "Garden.md"], "got unexpected extra argument (Garden.md)", "a note or folder is named by --note"),
        (["run", "resme", "r1"], "there is no command 'knap run resme'", "did you mean 'resume'?"),
        (["edit", "Garden.md", "--at", "delete:1", "x"], "'delete:1' takes no text", "'--at replace:1' puts it"),
        (["chat", "--note", "Gardn.md", "--model", "ollama:none"], "no file 'Gardn.md' in the vault", ""),
        (["run"], "no task is given", 'quote it: `knap run "Plan the move"`; or one of cancel,'),
        (["props", "Garden.md", "sett", "a", "b"], "'sett' is no note,", "did you mean 'set'?"),
        (["props", "--folder", ".", "remov", "a"], "'remov' is no note,", "did you mean 'remove'?"),
        (["undo", "--run", "r1"], "there is nothing to undo of the run 'r1'", "`knap log` lists"),
        (["undo", "--proposal", "p1"], "there is nothing to undo of the proposal 'p1'", "`knap log` lists"),
        (["undo", ""], "the id or time is empty", "`knap log` lists"),
        (["undo", "--run", ""], "the id or time is empty", "`knap log` lists"),
        (["undo", "--proposal", ""], "the id or time is empty", "`knap log` lists"),
        (["undo", "--since", ""], "the id or time is empty", "`knap log` lists"),
        (["mcp", "status", "cursor"], "got unexpected extra argument", "`knap mcp status --help` shows the usage"),
        (["edit", "one", "1", "Garden.md"], "no file 'one' in", "the note comes first: `knap edit PATH OLD NEW`"),
        (["edit", "x", "Garden.md", "--at", "end"], "no file 'x' in", "the note comes first: `knap edit PATH --at"),
        (["section", "Tasks", "Garden.md", "x"], "no file 'Tasks'", "the note comes first: `knap section PATH HEADING"),
        (["section", "Anna's", "Garden.md", "x"], "no file", "the note comes first: `knap section PATH HEADING"),
        (
            ["props", "set", "Garden.md", "x", "1"],
            "it is 'set NAME VALUE'",
            "the note comes first: `knap props Garden",
        ),
        (["props", "set", "x", "1", "2", "3"], "it is 'set NAME VALUE'", "quote what holds spaces"),
        (["tags", "Garden.md"], "there is no command 'knap tags Garden.md'", "one of list, rename; `knap info NOTE`"),
        (["tags", "renam"], "there is no command 'knap tags renam'", "did you mean 'rename'?"),
        (["undo", "Garden.md"], "'Garden.md' isn't the id of a change", "`knap log Garden.md` lists"),
        (
            ["read", "Garden.md", "Tasks"],
            "got unexpected extra argument (Tasks)",
            "it reads one note, or a part of",
        ),
        (["search", "x", "-n", "many"], "invalid value for '-n': 'many' isn't a whole number", "`knap search --help`"),
        (
            ["script", "x", "--timeout", "y"],
            "invalid value for '--timeout': 'y' isn't a number",
            "`knap script --help`",
        ),
        (["config", "set", "server.port", "-5"], "no such option '-5'", "to give -5 as a value, put -- before the"),
        (["run", "status", "\udcf6"], "the argument '\\udcf6' isn't valid Unicode", "give it as UTF-8 text"),
        (["undo", "\udcf6"], "the argument '\\udcf6' isn't valid Unicode", "give it as UTF-8 text"),
        (["log", "--client", "\udcf6"], "the argument '\\udcf6' isn't valid Unicode", "give it as UTF-8 text"),
        (["tags", "rename", "\udcf6", "x"], "the argument '\\udcf6' isn't valid Unicode", "give it as UTF-8 text"),
        (
            ["schedule", "add"],
            "missing argument 'AGENT'. Give an agent's name, such as weekly-review",
            "`knap schedule",
        ),
        (["undo", "c1"], "no change 'c1' in the journal", "`knap log` lists"),
        (["sessions", "show", "s1"], "there is no session 's1'", "`knap sessions` lists"),
        (["edits", "show", "p1"], "no proposal 'p1'", "`knap edits list --all` lists"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_error_names_the_thing_and_the_next_command(
    args: list[str], error: str, hint: str, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = told(capsys, vault, *args)

    assert code == 2
    assert lines[0].startswith(f"error: {error}")
    assert lines[1].startswith(f"hint: {hint}")


def test_text_that_occurs_twice_leads_to_the_option_that_changes_all(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / "Twice.md").write_text("red, and red\n", encoding="utf-8")

    _, lines = told(capsys, vault, "edit", "Twice", "red", "green")

    assert lines[1] == "hint: add text around it until it occurs once, or give --count 2 to change all"


def test_an_option_without_its_value_before_the_command_has_a_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["-v"])

    assert (code, capsys.readouterr().err.splitlines()[1]) == (2, "hint: `knap COMMAND --help` shows the usage")


@pytest.mark.parametrize("task", [["Fences"], ["Say how it stands", "now"], ["statsu", "of", "the garden"]])
def test_a_task_that_is_no_mistyped_command_is_begun(
    task: list[str], vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = told(capsys, vault, "run", *task)

    assert (code, lines[0]) == (3, "error: no model is set")


def test_a_page_beyond_the_last_result_says_how_many_there_are(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, vault, "find", "--offset", "20")

    assert (code, lines) == (1, ["note: 1 match, and --offset 20 skips them all", "nothing found"])


@pytest.mark.parametrize("command", ["search", "find", "ask"])
def test_a_folder_without_notes_is_told(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, tmp_path, command, "garden")

    assert code == 1
    assert "note: the index holds no note of this vault: `knap status` shows which folder it is" in lines


@pytest.mark.parametrize("link", ["Garden#Watering", "[[Garden#Watering]]"])
def test_a_link_to_read_is_told_how_to_name_a_section(
    link: str, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = told(capsys, vault, "read", link)

    assert code == 2
    assert lines[1] == "hint: a section is named by itself: `knap read 'Garden' --section 'Watering'`"


def test_an_undo_of_a_proposal_that_waits_says_how_to_decide_it(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main.run(["-v", str(vault), "edit", "Garden.md", "Garden", "Yard", "--propose", "--json"])
    proposal = str(json.loads(capsys.readouterr().out)["proposal_id"])
    waiting = [
        told(capsys, vault, "undo", "--proposal", proposal, *more) for more in ((), ("--dry-run",), ("--partial",))
    ]
    main.run(["-v", str(vault), "edits", "reject", proposal, "-q"])
    rejected = told(capsys, vault, "undo", "--proposal", proposal)

    expected = [
        f"error: the proposal '{proposal}' still waits: it has changed nothing that could be undone",
        f"hint: a person decides: `knap edits accept {proposal}`, or `reject` in place of `accept`",
    ]
    assert waiting == [(2, expected)] * 3
    assert rejected[1][0] == f"error: there is nothing to undo of the proposal '{proposal}'"


def test_a_preset_takes_no_note_that_isnt_there(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = told(capsys, vault, "presets", "save", "mine", "--add", "Garden", "--add", "Gardn.md")
    main.run(["-v", str(vault), "presets", "list", "--json"])
    listed = json.loads(capsys.readouterr().out)

    assert (code, lines[0]) == (2, "error: no file 'Gardn.md' in the vault")
    assert "Garden.md" in lines[1]
    assert listed["total"] == 0


def test_a_preset_tells_of_a_folder_to_exclude_that_isnt_there(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Archive").mkdir()
    (vault / "Archive" / "Old.md").write_text("old\n", encoding="utf-8")
    code, lines = told(capsys, vault, "presets", "save", "mine", "--exclude", "Archive", "--exclude", "Archiv")
    main.run(["-v", str(vault), "presets", "save", "mine", "--exclude", "Archiv", "--json"])
    saved = json.loads(capsys.readouterr().out)

    remark = "no folder 'Archiv' in the vault, so that nothing is excluded with it; nearest: 'Archive'"
    assert (code, lines) == (0, [f"note: {remark}"])
    assert saved["notes"] == [remark]


def test_places_in_one_line_are_named_once(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "Garden.md").write_text("a red red red rose\nred\n", encoding="utf-8")
    _, several = told(capsys, vault, "edit", "Garden.md", "red", "blue")
    (vault / "Garden.md").write_text("a red red red rose\n", encoding="utf-8")
    _, one = told(capsys, vault, "edit", "Garden.md", "red", "blue")

    assert several[0] == "error: the old text occurs 4 times, in lines 1, 2"
    assert one[0] == "error: the old text occurs 3 times, in line 1"


def test_an_undo_of_many_changes_is_one_line_in_the_log(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        told(capsys, vault, "edit", "Garden.md", "--at", "end", f"line {number}")
    told(capsys, vault, "undo", "--since", "1h")
    main.run(["-v", str(vault), "log", "-n", "1"])
    line = capsys.readouterr().out.splitlines()[0]

    assert line.endswith(" and 2 more changes)")
    assert line.count(", ") == 2


def test_a_note_whose_name_is_like_an_operation_is_shown(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "sett").mkdir()
    (vault / "Set.md").write_text("---\na: 1\n---\n", encoding="utf-8")
    code, lines = told(capsys, vault, "props", "Garden.md", "Set.md")

    assert (code, lines) == (0, [])


@pytest.mark.parametrize("hint", output.COMMAND_HINTS)
def test_every_hint_that_is_put_into_commands_is_one_that_is_given(hint: str) -> None:
    sources = Path(knapper.__file__).parent.rglob("*.py")

    assert [file for file in sources if file.name != "output.py" and f'"{hint}"' in file.read_text(encoding="utf-8")]


def test_the_log_of_what_is_not_there_says_so(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, mistyped = told(capsys, vault, "log", "Gardn.md")
    _, unchanged = told(capsys, vault, "log", "Garden.md")

    assert (code, mistyped) == (0, ["nothing was changed, and there is no file or folder 'Gardn.md' in the vault"])
    assert unchanged == ["nothing was changed"]


def test_a_note_that_a_question_is_about_is_not_dropped_in_silence(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = told(capsys, vault, "ask", "garden", "--note", "Garden.md")

    assert lines[0].startswith("note: --note counts only where a model answers")


def test_what_an_error_quotes_from_a_note_does_not_steer_the_terminal(
    vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (vault / "Evil.md").write_text("last \x1b]0;title\x07 \x1b[2J line\n", encoding="utf-8")
    code, lines = told(capsys, vault, "edit", "Evil.md", "--at", "replace:900", "x")

    assert code == 2
    assert any("line" in line for line in lines)
    assert "\x1b" not in "".join(lines)


def test_the_configuration_can_be_saved_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "new" / "knapper" / "config.toml"
    monkeypatch.setenv("KNAP_CONFIG", str(where))
    code = main.run(["config", "path"])

    assert (code, capsys.readouterr().out) == (0, f"{where}\n")
    assert where.parent.is_dir()
    assert not where.exists()


@pytest.mark.parametrize("words", [["--vault", "{}/My", "Notes", "index"], ["index", "--vault", "{}/My", "Notes"]])
def test_a_folder_with_spaces_is_to_be_quoted(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "My Notes").mkdir()
    code = main.run([word.format(tmp_path) for word in words])

    assert code == 2
    assert capsys.readouterr().err.splitlines()[1].startswith("hint: quote a folder whose name holds spaces")


def test_a_folder_given_to_a_command_is_to_be_named_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["index", "Notes"])

    assert code == 2
    assert capsys.readouterr().err.splitlines()[1] == "hint: name the vault first: `knap --vault FOLDER index`"


def test_a_client_that_none_of_the_configured_ones_is_is_named(
    capsys: pytest.CaptureFixture[str], vault: Path, tmp_path: Path
) -> None:
    file = tmp_path / "knap.toml"
    file.write_text('[clients.claude]\nkind = "mcp"\n', encoding="utf-8")
    for name, expected in (("clade", 1), ("claude", 0), ("agent", 0)):
        code, lines = told(capsys, vault, "--config", str(file), "tool", "--client", name, "get_current_date")
        assert (code, len(lines)) == (0, expected)
        assert all(f"no client '{name}' is configured" in line and line.endswith("claude") for line in lines)
