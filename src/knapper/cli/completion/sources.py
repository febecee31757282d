"""Read what a command line may name: vaults, notes, tags and ids, as quickly as a key is pressed.

`knapper.config` and `knapper.index` would find the same, but take longer to import than a completion may last. Tests
hold both to the same answers.
"""

from __future__ import annotations

import contextlib
import os
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from knapper.cli import places
from knapper.cli.completion.line import Candidate

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
    found = places.ConfigPlaces(request.options, request.environment, str(request.folder))
    file, secrets = Path(found.file), Path(found.env_file)
    document, variables = found.read(), places.read_env(found.env_file)
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
    place = None if chosen is None else Place(chosen[1], _state_folder(Path(found.find_state()), *chosen))
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


def _state_folder(state: Path, name: str, root: Path) -> Path:
    """Return the folder of a vault's state, which ends with a digest of its path."""
    import hashlib  # noqa: PLC0415 - only for what a vault holds

    del name  # the folder keeps the name that the vault had first
    digest = hashlib.sha256(os.fsencode(os.path.normcase(root))).hexdigest()[:10]
    return next((folder for folder in sorted((state / "vaults").glob(f"*-{digest}"))), state / "vaults" / "none")


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
    candidates = list(islice(_walk_level(connection, begin, notes_only=notes_only), MAX_CANDIDATES))
    if len(candidates) == MAX_CANDIDATES and (last := _last_path(connection, begin)):
        candidates.append(last)
    if "/" not in begin and begin:
        candidates += _find_named(connection, begin, {each.value for each in candidates}, notes_only=notes_only)
    return candidates or _find_aliases(connection, begin)


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


def _last_path(connection: sqlite3.Connection, begin: str) -> Candidate | None:
    prefix = name_key(begin)
    sql = "SELECT path FROM files WHERE path_key >= ? AND path_key < ? ORDER BY path_key DESC LIMIT 1"
    row = connection.execute(sql, (prefix, prefix + _LAST)).fetchone()
    return Candidate(_protect(str(row[0]))) if row else None


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
    found = [each for each in alone if each.value not in known]
    if found or known:
        return found
    return [Candidate(_protect(path)) for paths in names.values() for path in paths]


def _find_aliases(connection: sqlite3.Connection, begin: str) -> list[Candidate]:
    if not begin:
        return []
    sql = (
        "SELECT alias, path FROM aliases JOIN files ON files.id = file_id WHERE key >= ? AND key < ? ORDER BY 1 LIMIT ?"
    )
    key = name_key(begin)
    rows = connection.execute(sql, (key, key + _LAST, MAX_CANDIDATES)).fetchall()
    return [Candidate(_protect(str(alias)), str(path)) for alias, path in rows]


def _find_notes(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    del request
    return _find_paths(connection, begin.removeprefix("./"), notes_only=True)


def _find_files(connection: sqlite3.Connection, begin: str, request: Request) -> list[Candidate]:
    del request
    return _find_paths(connection, begin.removeprefix("./"), notes_only=False)


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
    "note": ("index/index.db", _find_notes),
    "file": ("index/index.db", _find_files),
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
        "task_runs.db",
        _ids(
            "SELECT id, state || ' ' || created FROM runs WHERE id >= :begin AND id < :begin || :last"
            " ORDER BY created DESC LIMIT :most"
        ),
    ),
    "session": (
        "sessions.db",
        _ids(
            "SELECT id, name || ' ' || file FROM sessions WHERE id >= :begin AND id < :begin || :last"
            " ORDER BY updated DESC LIMIT :most"
        ),
    ),
    "preset": (
        "presets.db",
        _ids("SELECT name, '' FROM presets WHERE key >= :begin AND key < :begin || :last ORDER BY key LIMIT :most"),
    ),
}
"""What each kind is read from, below the folder of the vault's state."""
KINDS: Final = frozenset(_FINDERS)
"""Kinds of live values, beside vaults and clients."""
