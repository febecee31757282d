"""What completions offer: words as bash and fish mean them, quotes, kinds of arguments, and live values of a vault."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from knapper import config
from knapper.cli import main, output, places
from knapper.cli.completion import answering, line
from knapper.cli.completion.answering import Request
from knapper.cli.completion.line import Candidate
from knapper.config import Vault
from knapper.system import private
from knapper.vault import paths
from scripts import completion_table
from tests.index import worlds

OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NOTES = {
    "Garden.md": (
        '---\naliases: ["The green plan"]\nstatus: open\n---\n# Garden\n\n## Watering\n\n## Winter\n\n#project/beds\n'
    ),
    "Areas/Garden plan.md": "#project/paths\n",
    "Areas/House/Roof.md": "#house\n",
    "Areas/House/Cellar.md": "x\n",
    "Work/Roof.md": "x\n",
    "Заметки/Жук.md": "#сад\n",
    "-v.md": "a name like an option\n",
    "picture.png": "",
}


@pytest.fixture
def vault(own_home: Path) -> Path:
    folder = worlds.fill(own_home / "Notes", NOTES)
    assert main.run(["--vault", str(folder), "index", "--no-embed", "-q"]) == 0
    (own_home / "config.toml").write_text(
        f'default_vault = "notes"\n[vaults.notes]\npath = "{folder.as_posix()}"\n'
        f'[vaults."my other"]\npath = "{own_home.as_posix()}"\n'
        '[clients.editor]\nkind = "http"\n',
        encoding="utf-8",
    )
    return folder


def complete(text: str) -> list[str]:
    """Return what bash would insert after a line."""
    directive, *rows = answering.answer(["bash", text]).splitlines()
    assert directive.startswith(("none", "files", "folders"))
    return rows


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("knap read Ga", ["knap", "read", "Ga"]),
        ("knap read ", ["knap", "read", ""]),
        (r"knap  read My\ No", ["knap", "read", "My No"]),
        ('knap read "My No', ["knap", "read", "My No"]),
        ("knap read 'My \\No", ["knap", "read", "My \\No"]),
        ('knap read "a\\$b\\c"d', ["knap", "read", "a$b\\cd"]),
        (r"knap read $'a\n\x41\u0416\'", ["knap", "read", "a\nAЖ'"]),
        (r"knap read $'\xd0\x96", ["knap", "read", "Ж"]),
        ('knap read ""', ["knap", "read", ""]),
        ("knap read \\", ["knap", "read", ""]),
        ("knap --folder=a:b", ["knap", "--folder=a:b"]),
    ],
)
def test_a_line_of_bash_is_split_as_bash_splits_it(text: str, values: list[str]) -> None:
    assert [word.value for word in line.read_bash(text)] == values


@pytest.mark.parametrize(
    ("text", "kept", "quote"),
    [
        ("knap --tag=pro", "--tag=", ""),
        ("knap --tag=a:b", "--tag=a:", ""),
        (r"knap a\:b", "", ""),
        ('knap --tag="pro', "--tag=", '"'),
        ('knap "a b"/c', "", ""),
        ("knap 'a:b", "", "'"),
        ("knap x$'a", "x", "$'"),
    ],
)
def test_bash_replaces_only_what_follows_a_break_or_an_open_quote(text: str, kept: str, quote: str) -> None:
    word = line.read_bash(text)[-1]

    assert (word.kept, word.quote) == (kept, quote)


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)


@hypothesis.given(TEXTS, st.sampled_from(["", '"', "'", "$'"]))
def test_what_is_quoted_for_bash_means_the_same_and_steers_no_terminal(text: str, quote: str) -> None:
    quoted = line.quote_bash(text, quote)
    closing = quote[-1:]

    assert not OBEYED.search(quoted)
    assert line.read_bash(f"x {quote}{quoted}{closing}")[-1].value == text
    assert len(line.read_bash(f"x {quote}{quoted}{closing}")) == 2


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")
def test_bash_itself_reads_what_was_quoted_as_the_same(tmp_path: Path) -> None:
    texts = [
        "a b",
        "$(touch x)",
        "`touch x`",
        "a'b\"c",
        "\\",
        "~",
        "a\nb",
        "é\u202e\x9b",
        "{a,b}*?[x]",
        "#x",
        "!x",
        "-n",
        "\x01",
    ]
    script = "".join(
        f"printf '%s\\0' {quote}{line.quote_bash(text, quote)}{quote[-1:]}\n"
        for text in texts
        for quote in ("", '"', "'")
    )

    shown = subprocess.run(["bash"], input=script.encode(), capture_output=True, check=True, cwd=tmp_path)

    assert shown.stdout.decode().split("\0")[:-1] == [text for text in texts for _ in range(3)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("character", [chr(code) for code in range(0x2100) if OBEYED.match(chr(code))])
def test_no_shell_is_given_what_a_terminal_obeys(character: str) -> None:
    candidates = [Candidate(f"a{character}b", f"c{character}d"), Candidate("plain", f"c{character}d")]
    rendered = [*line.render_zsh(candidates), *line.render_fish(candidates), *line.render_powershell(candidates)]

    assert not any(OBEYED.search(row.replace("\t", "")) for row in rendered)
    assert [row.split("\t")[0] for row in line.render_fish(candidates)] == ["plain"]
    assert [row.split("\t")[0] for row in line.render_powershell(candidates)] == ["plain"]
    assert [row.split("\t")[0] for row in line.render_zsh(candidates)] == (["a\\nb"] if character == "\n" else []) + [
        "plain"
    ]


def test_a_completion_leaves_out_all_that_output_replaces() -> None:
    replaced = [chr(code) for code in range(0x3000) if output.plain(chr(code)) != chr(code)]

    assert len(replaced) > 60
    assert [character for character in replaced if line.render_fish([Candidate(f"a{character}")])] == []


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Garden.md", "Garden.md"),
        ("--folder", "--folder"),
        ("a b", "'a b'"),
        ("it's", "'it''s'"),
        ("it\u2019s", "'it\u2019\u2019s'"),
        ("$(calc)", "'$(calc)'"),
        ("`calc", "'`calc'"),
        ("", "''"),
        ("@x", "'@x'"),
        ("-x;calc", "'-x;calc'"),
        ("a,b", "'a,b'"),
    ],
)
def test_names_are_quoted_for_powershell(text: str, quoted: str) -> None:
    assert line.render_powershell([Candidate(text)])[0].split("\t")[0] == quoted


@pytest.mark.parametrize(
    ("token", "value"), [("'My No", "My No"), (r"My\ No", "My No"), (r'"a\"b', 'a"b'), (r"'a\nb", r"a\nb"), ("", "")]
)
def test_an_unfinished_word_of_fish_is_read(token: str, value: str) -> None:
    assert line.read_fish(token) == value


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("knap edi", ["edit", "edits"]),
        ("knap edits acc", ["accept"]),
        ("knap --vault notes edits acc", ["accept"]),
        ("knap -q -vnotes edits acc", ["accept"]),
        ("knap search --mod", ["--mode"]),
        ("knap search x --mode ", ["hybrid", "semantic", "keyword"]),
        ("knap search x --mode=key", ["keyword"]),
        ("knap tool read_f", ["read_file"]),
        ("knap config set embeddings.k", ["embeddings.kind"]),
        ("knap mcp install claude-c", ["claude-code"]),
        ("knap completion install z", ["zsh"]),
        ("knap search -- --mo", []),
        ("knap nothing x", []),
        ("knap", []),
    ],
)
def test_commands_options_and_choices_are_completed(text: str, rows: list[str]) -> None:
    assert answering.answer(["bash", text]).splitlines()[1:] == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("knap read Gar", ["Garden.md", "Garden\\ plan.md"]),
        ("knap read gARDEN\\ ", ["Garden\\ plan.md"]),
        ("knap read Areas/", ["Areas/Garden\\ plan.md", "Areas/House/"]),
        ("knap read areas/h", ["Areas/House/"]),
        ('knap read "Areas/Gar', ["Areas/Garden plan.md"]),
        ("knap read Roof", ["Areas/House/Roof.md", "Work/Roof.md"]),
        ("knap read Cel", ["Cellar.md"]),
        ("knap read Cellar.m", ["Cellar.md"]),
        ("knap read the", ["The\\ green\\ plan"]),
        ("knap read жу", ["Жук.md"]),
        ("knap read -- -", ["./-v.md"]),
        ("knap read pic", []),
        ("knap move pic", ["picture.png"]),
        ("knap new Areas/", ["Areas/House/"]),
        ("knap search --tag pro", ["project/beds", "project/paths"]),
        ("knap search --tag=PROJECT/b", ["project/beds"]),
        ("knap search --tag PROJECT/b", ["project/beds"]),
        ("knap search --tag '#hou", ["#house"]),
        ("knap find --property st", ["status"]),
        ("knap read Garden --section W", ["Watering", "Winter"]),
        ("knap --vault ", ["notes", "my\\ other"]),
        ("knap --vault no", ["notes"]),
        ("knap config set vaults.notes.p", ["vaults.notes.path"]),
        ("knap log --client ed", ["editor"]),
        ("knap --vault nowhere read Gar", []),
        ("knap edits accept ", []),
    ],
)
def test_values_of_the_vault_are_completed(vault: Path, text: str, rows: list[str]) -> None:
    assert vault.is_dir()
    assert complete(text) == rows


def test_what_waits_and_what_was_done_is_completed_by_its_id(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vault)
    assert main.run(["edit", "Garden.md", "Winter", "Snow", "--propose", "-q"]) == 0
    assert main.run(["edit", "Work/Roof.md", "x", "y", "-q"]) == 0
    assert main.run(["presets", "save", "my own", "--scout", "-q"]) == 0
    capsys.readouterr()
    assert main.run(["edits", "--json"]) == 0
    proposal = json.loads(capsys.readouterr().out)["results"][0]["id"]
    assert main.run(["log", "--json"]) == 0
    change = json.loads(capsys.readouterr().out)["results"][0]["id"]

    assert complete(f"knap edits accept {proposal[:2]}") == [proposal]
    assert complete(f"knap undo {change[:2]}") == [change]
    assert complete("knap presets show m") == ["my\\ own"]


def test_files_and_folders_outside_a_vault_are_left_to_the_shell(vault: Path) -> None:
    assert vault.is_dir()
    assert answering.answer(["bash", "knap --config "]) == "files\n"
    assert answering.answer(["bash", "knap --vault /tm"]) == "folders\n"
    assert answering.answer(["bash", "knap read Areas/Ho"]) == "none nospace\nAreas/House/\n"


@pytest.mark.parametrize("text", ["", "knap read 'Gar", "knap --vault x", "knap read \x00"])
def test_a_damaged_index_or_an_odd_line_gives_nothing_and_no_error(vault: Path, own_home: Path, text: str) -> None:
    assert vault.is_dir()
    for database in own_home.rglob("index.db"):
        database.write_bytes(b"no database" * 100)
    (own_home / "config.toml").write_bytes(b"\xff not TOML [[[")

    assert answering.answer(["bash", text]).partition("\n")[2] == ""


@hypothesis.given(st.text(max_size=8))
def test_names_are_folded_as_the_index_folds_them(text: str) -> None:
    assert answering.name_key(text) == paths.name_key(text)
    assert answering.name_key(unicodedata.normalize("NFD", text)) == paths.name_key(unicodedata.normalize("NFD", text))


def arrangements() -> Iterator[tuple[str, str, Mapping[str, str], Mapping[str, str]]]:
    """Give a configuration, a file of secrets, the environment and the options; ``{}`` is the home."""
    two = "[vaults.one]\npath = '{}/one'\n[vaults.two]\npath = 'two'\n"
    yield two, "", {}, {}
    yield f"default_vault = 'two'\n{two}", "", {}, {}
    yield two, "", {"VAULT_PATH": "one"}, {}
    yield two, "VAULT_PATH={}/two\n", {}, {}
    yield two, "VAULT_PATH={}/two\n", {"VAULT_PATH": "one"}, {"--vault": "two"}
    yield two, "", {}, {"--vault": "~/one"}
    yield "[vaults.one]\npath = '~/one'\n", "", {}, {}
    yield f"state_dir = 'elsewhere'\n{two}", "", {"KNAP_STATE_DIR": ""}, {"--vault": "one"}
    yield two, "KNAP_STATE_DIR=from-env\n", {"KNAP_STATE_DIR": ""}, {"--vault": "one"}
    yield two, "", {"KNAP_STATE_DIR": ""}, {"--vault": "one"}
    yield two, "", {"KNAP_STATE_DIR": "", "XDG_DATA_HOME": "{}/data"}, {"--vault": "one"}
    yield "", "", {}, {"--vault": "one"}
    yield "", "", {}, {}
    yield two, "", {}, {"--vault": "three"}


@pytest.mark.parametrize("arrangement", list(arrangements()), ids=range(14))
def test_the_vault_is_the_one_that_the_command_would_take(
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    arrangement: tuple[str, str, Mapping[str, str], Mapping[str, str]],
) -> None:
    home = str(own_home)
    text, secrets, environment, options = arrangement
    for name in ("one", "two"):
        (own_home / name / ".obsidian").mkdir(parents=True)
    (own_home / "config.toml").write_text(text.replace("{}", home), encoding="utf-8")
    if secrets:
        (own_home / ".env").write_text(secrets.replace("{}", home), encoding="utf-8")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("{}", home))
    monkeypatch.chdir(own_home)
    settings = config.load({"default_vault": options.get("--vault", "")})
    expected = settings.choice
    if isinstance(expected, Vault):
        private.make_folder(config.state_folder(settings))

    found = answering.read_setup(
        Request(
            options=options,
            arguments=(),
            environment=config.environment_variables(),
            folder=Path.cwd(),
        )
    )

    places_of_files = places.ConfigPlaces(options, config.environment_variables(), str(Path.cwd()))
    assert Path(places_of_files.find_state()) == settings.state_dir
    assert Path(places_of_files.file) == settings.config_file
    assert dict(found.vaults) == {vault.name: vault.path for vault in settings.vaults}
    if isinstance(expected, Vault):
        assert found.place == (expected.path, config.state_folder(settings))
    else:
        assert found.place is None


def test_the_table_is_that_of_the_commands() -> None:
    assert answering.TABLE.read_text(encoding="utf-8") == completion_table.table_json(), "run scripts/reference"


def test_kinds_are_only_of_parameters_that_exist() -> None:
    table = completion_table.make_table()
    known = {*answering.KINDS, *table[answering.NAMES], "vault", "client", "files", "folders", ""}

    assert {*completion_table.KINDS.values(), *completion_table.OWN_KINDS.values()} <= known
    assert [name for name in completion_table.OWN_KINDS if name.rpartition(" ")[0] not in table] == []


def test_a_completion_imports_nothing_that_takes_long(vault: Path) -> None:
    code = (
        "import sys; from knapper.cli.__main__ import main\n"
        "sys.argv = ['knap', '__complete', 'bash', 'knap read Gar']\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=vault)
    loaded = set(ended.stderr.split())

    assert ended.stdout == "none\nGarden.md\nGarden\\ plan.md\n"
    assert loaded & {"click", "platformdirs", "knapper.config", "knapper.cli.main", "knapper.errors", "numpy"} == set()
    assert {name for name in loaded if name.startswith("knapper.")} == {
        *("knapper.cli", "knapper.cli.__main__", "knapper.cli.start", "knapper.cli.places", "knapper.cli.completion"),
        *(f"knapper.cli.completion.{name}" for name in ("answering", "line")),
    }


MANY = 10_000
MAX_STEPS = 80_000
"""Of SQLite's machine, which counts the rows that are looked at; `python -m bench cold` holds the time."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["knap read ", "knap read Fo", "knap read Note\\ 7", "knap search --tag t", "knap move x"]
)
def test_a_completion_among_ten_thousand_notes_looks_at_few(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    _fill_many(own_home, tmp_path / "Many")
    steps: list[None] = []
    connect = sqlite3.connect

    def counted(place: str, *, uri: bool, timeout: float) -> sqlite3.Connection:
        connection = connect(place, uri=uri, timeout=timeout)
        connection.set_progress_handler(lambda: steps.append(None), 100)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counted)
    candidates = answering.answer(["bash", text]).splitlines()

    assert candidates[0].startswith("none")
    assert len(candidates) <= answering.MAX_CANDIDATES + 2
    assert 0 < len(steps) * 100 < MAX_STEPS


def _fill_many(home: Path, folder: Path) -> None:
    """Make a vault whose index has many notes, without reading as many files: the rows of one note are repeated."""
    worlds.fill(folder, {"Note.md": "#t0\n"})
    assert main.run(["--vault", str(folder), "index", "--no-embed", "-q"]) == 0
    (home / "config.toml").write_text(f'[vaults.many]\npath = "{folder.as_posix()}"\n', encoding="utf-8")
    database = next((home / "state").rglob("index.db"))
    with sqlite3.connect(database) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(files)") if row[1] != "id"]
        others = [name for name in columns if name not in {"path", "path_key", "name_key", "folder_key"}]
        rows = [
            (f"Folder {n % 300}/Note {n}.md", f"folder {n % 300}/note {n}.md", f"note {n}", f"folder {n % 300}")
            for n in range(MANY)
        ]
        connection.executemany(
            f"INSERT INTO files (path, path_key, name_key, folder_key, {', '.join(others)})"
            f" SELECT ?, ?, ?, ?, {', '.join(others)} FROM files LIMIT 1",
            rows,
        )
        connection.executemany(
            "INSERT INTO tags VALUES (?, ?, ?, 1)", [(n, f"t{n % 2000}", f"t{n % 2000}") for n in range(MANY)]
        )
    connection.close()
