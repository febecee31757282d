"""Answer a shell that completes a line of `knap`: what the unfinished word may be, read in a tenth of a second."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from knapper.cli import places
from knapper.cli.completion import line
from knapper.cli.completion.line import Candidate, Word

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence


MAX_CANDIDATES: Final = 500
"""Beyond these a list helps nobody; the last one is always among them, so that what all share is right."""
_LAST: Final = "\U0010ffff"
_BUSY_S: Final = 0.05
_PAGE: Final = 200
_ABOUT_CHARACTERS: Final = 60
_NOTE_SUFFIX: Final = re.compile(r"(?<=.)\.(?:md?)?$")


class Request(NamedTuple):
    """What the words before the unfinished one say."""

    options: Mapping[str, str]
    """Values of the options that were given, by their long names: ``--vault``."""
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    """The current one."""


class Place(NamedTuple):
    """A vault, and where its state is kept."""

    root: Path
    state: Path


class Setup(NamedTuple):
    """What the configuration says of vaults and clients."""

    vaults: Mapping[str, Path]
    clients: Sequence[str]
    place: Place | None
    """Of the chosen vault; None where none is chosen."""


def name_key(text: str) -> str:
    """Fold a name as `knapper.vault.paths.name_key` does."""
    if text.isascii():
        return text.lower()
    import unicodedata  # noqa: PLC0415 - most names are ASCII

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def read_setup(request: Request) -> Setup:
    """Read the configuration as `knapper.config.load` does; what can't be read is taken for empty."""
    config_places = places.ConfigPlaces(request.options, request.environment, str(request.folder))
    file, secrets = Path(config_places.file), Path(config_places.env_file)
    document, variables = config_places.read(), places.read_env(config_places.env_file)
    vaults = {
        name: _resolve(_expand(str(section["path"]).strip(), file.parent))
        for name in _section(document, "vaults")
        if "path" in (section := _section(_section(document, "vaults"), name))
    }
    named = [
        (request.options.get("--vault", ""), request.folder),
        (request.environment.get("VAULT_PATH", ""), request.folder),
        (variables.get("VAULT_PATH", ""), secrets.parent),
        (str(document.get("default_vault", "")), file.parent),
    ]
    chosen = _choose_vault(named, vaults, request.folder)
    place = None
    if chosen is not None:
        import hashlib  # noqa: PLC0415 - only for what a vault holds

        root, state = chosen[1], Path(config_places.find_state())
        # By the digest of its path alone: the folder of its state keeps the name that the vault had first.
        digest = hashlib.sha256(os.fsencode(os.path.normcase(root))).hexdigest()[:10]
        folders = sorted((state / "vaults").glob(f"*-{digest}"))
        place = Place(root, folders[0] if folders else state / "vaults" / "none")
    return Setup(vaults, list(_section(document, "clients")), place)


def _section(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    section = document.get(name)
    return cast("Mapping[str, object]", section) if isinstance(section, dict) else {}


def _choose_vault(
    named: Sequence[tuple[str, Path]], vaults: Mapping[str, Path], folder: Path
) -> tuple[str, Path] | None:
    """Return the name and the folder of the vault that the command would work on."""
    for text, base in named:
        if text.strip():
            return _find_vault(text.strip(), base, vaults)
    if len(vaults) == 1:
        return next(iter(vaults.items()))
    here = _resolve(folder)
    inside = next((each for each in (here, *here.parents) if (each / ".obsidian").is_dir()), None)
    return None if inside is None else _find_vault(str(inside), inside, vaults)


def _find_vault(text: str, base: Path, vaults: Mapping[str, Path]) -> tuple[str, Path] | None:
    if text in vaults:
        return text, vaults[text]
    folder = _resolve(_expand(text, base))
    configured = next((name for name, path in vaults.items() if path == folder), "")
    return (configured or folder.name or "vault", folder) if folder.is_dir() else None


def _expand(text: str, base: Path) -> Path:
    return Path(places.expand(text, str(base)))


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def find(kind: str, request: Request, begin: str) -> list[Candidate]:
    """Return what a word that begins so may be; nothing where the state can't be read.

    Args:
        kind: What the command line expects: ``note``, ``tag``, ``run``, ….
        request: What the words before it say.
        begin: What was typed; letters of either case fit.
    """
    setup = read_setup(request)
    if kind == "vault":
        return _starting([Candidate(name, str(path)) for name, path in setup.vaults.items()], begin)
    if kind == "client":
        known = dict.fromkeys([*setup.clients, "agent", "http", "mcp"])
        return _starting([Candidate(name) for name in known], begin)
    if setup.place is None or kind not in _FINDERS:
        return []
    file, finder = _FINDERS[kind]
    with _open(setup.place.state / file) as connection:
        return [] if connection is None else finder(connection, begin, request)


@contextlib.contextmanager
def _open(file: Path) -> Generator[sqlite3.Connection | None]:
    """Open a database to read; None where there is none, or it can't be read at once."""
    import sqlite3  # noqa: PLC0415 - only for live values

    try:
        connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)
    except (sqlite3.Error, ValueError):
        yield None
        return
    with contextlib.closing(connection), contextlib.suppress(sqlite3.Error):
        yield connection
        return


def _starting(candidates: Sequence[Candidate], begin: str) -> list[Candidate]:
    key = name_key(begin)
    return [each for each in candidates if name_key(each.value).startswith(key)]


def _find_paths(connection: sqlite3.Connection, begin: str, *, notes_only: bool) -> list[Candidate]:
    """Return the files and folders below a path, one level at a time, or else the files of that name anywhere."""
    begin = begin.removeprefix("./")
    candidates = list(islice(_walk_level(connection, begin, notes_only=notes_only), MAX_CANDIDATES))
    if len(candidates) == MAX_CANDIDATES:
        prefix = name_key(begin)
        sql = "SELECT path FROM files WHERE path_key >= ? AND path_key < ? ORDER BY path_key DESC LIMIT 1"
        row = connection.execute(sql, (prefix, prefix + _LAST)).fetchone()
        candidates += [Candidate(_protect(str(row[0])))] if row else []
    if "/" not in begin and begin:
        candidates += _find_named(connection, begin, {each.value for each in candidates}, notes_only=notes_only)
    if candidates or not begin:
        return candidates
    sql = (
        "SELECT alias, path FROM aliases JOIN files ON files.id = file_id WHERE key >= ? AND key < ? ORDER BY 1 LIMIT ?"
    )
    key = name_key(begin)
    rows = connection.execute(sql, (key, key + _LAST, MAX_CANDIDATES)).fetchall()
    return [Candidate(_protect(str(alias)), str(path)) for alias, path in rows]


def _walk_level(connection: sqlite3.Connection, begin: str, *, notes_only: bool) -> Iterator[Candidate]:
    """Yield by the order of their keys; behind a folder the search goes on after all that lies in it."""
    prefix = name_key(begin)
    at, stop, page = prefix, prefix + _LAST, 1
    only = " AND kind = 'note'" if notes_only else ""
    sql = (
        "SELECT path, path_key FROM files INDEXED BY files_path_key WHERE path_key >= ? AND path_key < ?"  # noqa: S608 - constants
        f"{only} ORDER BY path_key LIMIT ?"
    )
    while rows := connection.execute(sql, (at, stop, page)).fetchall():
        page = min(page * 2, _PAGE)  # as long as no folder is in the way
        for path, key in rows:
            end = str(key).find("/", len(prefix))
            if end >= 0:
                parts = str(key).count("/", 0, end) + 1
                yield Candidate(f"{_protect('/'.join(str(path).split('/')[:parts]))}/", goes_on=True)
                at, page = f"{str(key)[:end]}0", 1  # "0" is what follows "/"
                break
            yield Candidate(_protect(str(path)))
            at = f"{key}\0"


def _protect(path: str) -> str:
    """Return a path that no command reads as an option."""
    return f"./{path}" if path.startswith("-") else path


def _find_named(connection: sqlite3.Connection, begin: str, known: set[str], *, notes_only: bool) -> list[Candidate]:
    """Return files in folders by their names alone, as every command takes them; several of a name by their paths."""
    key = _NOTE_SUFFIX.sub("", name_key(begin))  # notes are known without it
    only = "AND kind = 'note'" if notes_only else ""
    sql = (
        "SELECT path FROM files INDEXED BY files_name_key WHERE name_key >= ? AND name_key < ?"  # noqa: S608 - constants
        f" {only} ORDER BY name_key LIMIT ?"
    )
    names: dict[str, list[str]] = {}
    for (path,) in connection.execute(sql, (key, key + _LAST, MAX_CANDIDATES)):
        names.setdefault(str(path).rpartition("/")[2], []).append(str(path))
    alone = [
        Candidate(_protect(name), paths[0])
        for name, paths in names.items()
        if len(paths) == 1 and name_key(name).startswith(name_key(begin))
    ]
    candidates = [each for each in alone if each.value not in known]
    if candidates or known:
        return candidates
    return [Candidate(_protect(path)) for paths in names.values() for path in paths]


def _find_folders(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    del request
    level = islice(_walk_level(connection, begin.removeprefix("./"), notes_only=False), MAX_CANDIDATES)
    return [each for each in level if each.goes_on]


def _find_tags(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    del request
    mark = "#" if begin.startswith("#") else ""
    key = name_key(begin.removeprefix("#"))
    sql = "SELECT MIN(name), COUNT(DISTINCT file_id) FROM tags WHERE key >= ? AND key < ? GROUP BY key LIMIT ?"
    rows = connection.execute(sql, (key, key + _LAST, MAX_CANDIDATES))
    return [Candidate(f"{mark}{name}", f"{count} notes" if count > 1 else "1 note") for name, count in rows]


def _find_properties(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    del request
    candidates: list[Candidate] = []
    at = name_key(begin)
    stop = at + _LAST
    sql = "SELECT key, name FROM properties WHERE key >= ? AND key < ? ORDER BY key LIMIT 1"
    while len(candidates) < MAX_CANDIDATES and (row := connection.execute(sql, (at, stop)).fetchone()):
        candidates.append(Candidate(str(row[1])))
        at = f"{row[0]}\0"
    return candidates


def _find_headings(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    """Return the headings of the note that the line names."""
    if not request.arguments:
        return []
    key = name_key(request.arguments[0].removeprefix("./"))
    stem = key.removesuffix(".md")
    sql = (
        "SELECT title FROM headings JOIN (SELECT id FROM files WHERE path_key IN (?, ?) OR name_key IN (?, ?)"
        " ORDER BY path_key LIMIT 1) ON id = file_id ORDER BY line LIMIT ?"
    )
    rows = connection.execute(sql, (key, f"{key}.md", key, stem, MAX_CANDIDATES))
    return _starting([Candidate(str(title)) for (title,) in rows], begin)


def _ids(sql: str) -> Callable[[sqlite3.Connection, str, Request], list[Candidate]]:
    """Return a finder of ids, the newest first, each with a few words about it."""

    def finder(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
        del request
        rows = connection.execute(sql, {"last": _LAST, "begin": begin, "most": MAX_CANDIDATES})
        return [Candidate(str(row[0]), " ".join(str(row[1] or "").split())[:_ABOUT_CHARACTERS]) for row in rows]

    return finder


_PROPOSALS: Final = (
    "SELECT id, status || ' ' || reason FROM proposals WHERE id >= :begin AND id < :begin || :last{only}"
    " ORDER BY seq DESC LIMIT :most"
)
_FINDERS: Final[Mapping[str, tuple[str, Callable[[sqlite3.Connection, str, Request], list[Candidate]]]]] = {
    "note": ("index/index.db", lambda connection, begin, _: _find_paths(connection, begin, notes_only=True)),
    "file": ("index/index.db", lambda connection, begin, _: _find_paths(connection, begin, notes_only=False)),
    "folder": ("index/index.db", _find_folders),
    "tag": ("index/index.db", _find_tags),
    "property": ("index/index.db", _find_properties),
    "heading": ("index/index.db", _find_headings),
    "proposal": ("proposals.db", _ids(_PROPOSALS.format(only=""))),
    "open-proposal": ("proposals.db", _ids(_PROPOSALS.format(only=" AND status = 'open'"))),
    "change": (
        "journal.db",
        _ids(
            "SELECT id, at || ' ' || client || ' ' || reason FROM changes"
            " WHERE phase = 'done' AND id >= :begin AND id < :begin || :last ORDER BY seq DESC LIMIT :most"
        ),
    ),
    "run": (
        "work.db",
        _ids(
            "SELECT id, state || ' ' || created FROM runs WHERE id >= :begin AND id < :begin || :last"
            " ORDER BY created DESC LIMIT :most"
        ),
    ),
    "session": (
        "work.db",
        _ids(
            "SELECT id, name || ' ' || file FROM sessions"
            " WHERE client_key = '' AND id >= :begin AND id < :begin || :last ORDER BY updated DESC LIMIT :most"
        ),
    ),
    "preset": (
        "work.db",
        _ids("SELECT name, '' FROM presets WHERE key >= :begin AND key < :begin || :last ORDER BY key LIMIT :most"),
    ),
}
"""What each kind is read from, below the folder of the vault's state."""
KINDS: Final = frozenset(_FINDERS)
"""Kinds of live values, beside vaults and clients."""


COMMAND: Final = "__complete"
"""The word by which the shells' scripts call this; it isn't among the commands."""
TABLE: Final = Path(__file__).parents[2] / "data" / "commands.json"
FLAG: Final = "flag"
"""Kind of an option without a value."""
NAMES: Final = "="
"""Row of the table with names that are fixed, by their kind; no command is called so."""
_SHELL_KINDS: Final = ("files", "folders")
"""Kinds that the shell completes itself."""
_VARIABLES: Final = ("KNAP_CONFIG", "KNAP_STATE_DIR", "VAULT_PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


class Expected(NamedTuple):
    """What the words before the unfinished one leave open."""

    command: str
    """Of the commands and groups, such as ``edits accept``; empty before any."""
    kind: str | Sequence[str]
    """What the word may be: a kind of `knapper.cli.completion.answering`, or the choices; empty for any text."""
    begin: str
    """What was typed of it."""
    before: str
    """What stands before that in the same word: ``--tag=``."""
    options: Mapping[str, str]
    arguments: Sequence[str]


def main(arguments: Sequence[str]) -> None:
    """Print the answer for a shell: a line that says what it may add itself, then a line for each candidate.

    Args:
        arguments: The shell's name; then for bash the line up to the cursor and COMP_WORDBREAKS, for others the words.
    """
    try:
        text = answer(arguments)
    except (OSError, ValueError):  # such as a folder that is gone: a completion never complains
        text = ""
    _ = sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.flush()


def answer(arguments: Sequence[str]) -> str:
    """Return what `main` prints."""
    if not arguments:
        return ""
    shell, *rest = arguments
    words = _read_words(shell, rest)
    if len(words) < 2:
        return ""
    expected = expect([word.value for word in words], read_table())
    directive, candidates = suggest(expected)
    whole = [each._replace(value=f"{expected.before}{each.value}") for each in candidates]
    match shell:
        case "bash":
            rows = line.render_bash(whole, words[-1])
        case "zsh":
            rows = line.render_zsh(whole)
        case "fish":
            rows = line.render_fish(whole)
        case _:
            rows = line.render_powershell(whole)
    if candidates and all(each.goes_on for each in candidates):
        directive += " nospace"
    return "".join(f"{row}\n" for row in [directive, *rows])


def read_table() -> Mapping[str, Any]:
    """Return the table of commands: by the command's words its summary, arguments, options and subcommands."""
    return json.loads(TABLE.read_bytes())


def _read_words(shell: str, rest: Sequence[str]) -> list[Word]:
    if shell == "bash":
        return line.read_bash(*rest[:2]) if rest else []
    values = list(rest)
    if rest and shell == "fish":
        values[-1] = line.read_fish(rest[-1])
    elif rest and shell == "powershell":
        values[-1] = rest[-1].removeprefix("=")
    return [Word(value, 0, "", "") for value in values]


def expect(words: Sequence[str], table: Mapping[str, Any]) -> Expected:
    """Return what the last of the words may be.

    ``["knap", "edits", "accept", "a"]`` expects an open proposal that begins with ``a``.

    Args:
        words: Of the line, with the program's name first and the unfinished word last.
        table: From `read_table`.
    """
    reader = _LineReader(table)
    for word in words[1:-1]:
        reader.read(word)
    return reader.expect(words[-1])


class _LineReader:
    """Goes over the words as the program's own parser would."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._command = ""
        self._options: dict[str, str] = {}
        self._arguments: list[str] = []
        self._waiting = ""
        """An option whose value is the next word."""
        self._only_arguments = False

    def _option(self, name: str) -> tuple[str, Any]:
        """Return an option's long name and its kind; the kind of one that isn't known is a flag's."""
        for options in (self._table[self._command]["options"], self._table[""]["options"]):
            if name in options:
                row = options[name]
                return (name, row[0]) if name.startswith("--") else (row[2], row[0])
        return name, FLAG

    def read(self, word: str) -> None:
        """Take in a whole word."""
        if self._waiting:
            self._options[self._waiting], self._waiting = word, ""
        elif self._only_arguments or word == "-" or not word.startswith("-"):
            below = f"{self._command} {word}".strip()
            if not self._arguments and not self._only_arguments and below in self._table:
                self._command = below
            else:
                self._arguments.append(word)
        elif word == "--":
            self._only_arguments = True
        elif word.startswith("--"):
            name, is_given, value = word.partition("=")
            long_name, kind = self._option(name)
            if kind != FLAG and not is_given:
                self._waiting = long_name
            else:
                self._options[long_name] = value
        else:
            self._read_short(word)

    def _read_short(self, word: str) -> None:
        for position in range(1, len(word)):
            long_name, kind = self._option(f"-{word[position]}")
            if kind == FLAG:
                self._options[long_name] = ""
                continue
            rest = word[position + 1 :]
            if rest:
                self._options[long_name] = rest
            else:
                self._waiting = long_name
            return

    def expect(self, word: str) -> Expected:
        """Return what the unfinished word may be."""
        kind: str | Sequence[str]
        before, begin = "", word
        name, is_given, value = word.partition("=")
        if self._waiting:
            kind = self._option(self._waiting)[1]
        elif word.startswith("--") and is_given and not self._only_arguments:
            kind, before, begin = self._option(name)[1], f"{name}=", value
        elif word.startswith("-") and not self._only_arguments:
            kind = "option"
        else:
            row = self._table[self._command]
            kinds, at = row["arguments"], len(self._arguments)
            if row["commands"] and not at:
                kind = "command"
            elif at < len(kinds):
                kind = kinds[at]
            else:
                kind = kinds[-1] if kinds and row["repeats"] else ""
        return Expected(self._command, kind, begin, before, self._options, self._arguments)


def suggest(expected: Expected) -> tuple[str, list[Candidate]]:
    """Return what the shell may add itself (``none``, ``files`` or ``folders``), and the candidates."""
    kind = expected.kind
    if isinstance(kind, str) and kind in _SHELL_KINDS:
        return kind, []
    candidates = _list_candidates(expected, kind)
    return ("folders" if kind == "vault" and not candidates else "none"), candidates


def _list_candidates(expected: Expected, kind: str | Sequence[str]) -> list[Candidate]:
    if not isinstance(kind, str):
        return _fixed(kind, expected.begin)
    table = read_table()
    if kind in {"option", "command"}:
        row = table[expected.command]
        if expected.kind == "command":
            names = row["commands"]
            return [
                Candidate(name, table[f"{expected.command} {name}".strip()]["about"])
                for name in names
                if name.startswith(expected.begin)
            ]
        options = {**row["options"], **table[""]["options"]}
        return [
            Candidate(name, text[1])
            for name, text in options.items()
            if name.startswith(expected.begin)
            and (name.startswith("--") or len(expected.begin) > 1 or expected.begin == name)
        ]
    fixed = table[NAMES]
    if kind in {"", FLAG, *fixed}:
        names = [*fixed.get(kind, ())]
        if kind == "setting":  # also those of the configured vaults and clients: ``vaults.Notes.path``
            setup = read_setup(_request(expected))
            names += [
                f"{section}.{name}.{setting}"
                for section, named in (("vaults", setup.vaults), ("clients", setup.clients))
                for name in named
                if name.replace("-", "").replace("_", "").isalnum()  # others have to be quoted there
                for setting in fixed[section]
            ]
        return _fixed(names, expected.begin)
    return find(kind, _request(expected), expected.begin)


def _fixed(names: Sequence[str], begin: str) -> list[Candidate]:
    return [Candidate(name) for name in names if name.lower().startswith(begin.lower())]


def _request(expected: Expected) -> Request:
    return Request(
        options=expected.options,
        arguments=expected.arguments,
        environment={name: os.environ.get(name, "") for name in _VARIABLES},  # noqa: TID251 - `knapper.config` takes too long to import
        folder=Path.cwd(),
    )
