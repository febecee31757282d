"""Carry out what scripts ask of `obsidian`, on behalf of the client whose script it is.

Nothing here is above what the client may do by itself: reading goes through its views, and writing makes proposals.
"""

from collections.abc import Callable, Mapping
from typing import Final

from knapper.codemode import arguments, files, reading, stubs
from knapper.codemode.room import Room
from knapper.errors import BadInput, KnapError, NotFound, RefusedError, SetupError, StorageError
from knapper.jsontypes import JSONValue
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.tools.sandboxes import Profile, Proposed, Signature
from knapper.vault.parser import Note

MAIN: Final = "main"
"""Names the vault that is meant where none is named."""
MOST_FOUND: Final = 200
"""Notes of one search."""
MOST_PROPOSALS: Final = 50
"""Of one script."""
_CONTENT: Final = 1_000_000
_QUERY: Final = 2_000
_SAFE_HINT: Final = "the owner is told more: `knap doctor`"

Given = Mapping[str, JSONValue]


class Bridge:
    """Be the host of one script.

    ``Bridge(context)("read_note", {"path": "A.md"})`` gives the note's text.
    """

    def __init__(self, context: Context, profile: Profile = "strict") -> None:
        """Make one for one run of one script.

        Args:
            context: The vault that is meant where none is named, as the client sees it.
            profile: Whether files and pages that the owner allows can be read too.
        """
        self._own = context
        self._others: dict[str, Context] = {}
        self._profile: Profile = profile
        self._read: dict[tuple[str, str], str] = {}
        self._pages: list[str] = []
        self._asked_to_write = 0
        self._proposals: list[Proposed] = []
        self._methods: Mapping[str, tuple[Callable[[Given], JSONValue], tuple[str, ...]]] = {
            "search": (self._search, ("query", "limit", "path_filter", "type_filter", "vault", "vaults")),
            "read_note": (self._read_note, ("path", "vault")),
            "read_notes": (self._read_notes, ("paths", "vault")),
            "list_notes": (self._list_notes, ("directory", "recursive", "vault")),
            "get_frontmatter": (self._get_frontmatter, ("path", "vault")),
            "get_hash": (self._get_hash, ("path", "vault")),
            "create_wikilink": (self._create_wikilink, ("path", "vault")),
            "write_note": (self._write_note, ("path", "content", "note_type", "frontmatter", "vault")),
            "read_file": (self._read_file, ("path",)),
            "http_get": (self._http_get, ("url",)),
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """Name the methods that not every script has."""
        scripting = self._own.scripting
        can_read = self._profile != "strict" and bool(scripting.roots)
        can_get = self._profile == "extended" and scripting.http_get is not None
        return (*(("read_file",) if can_read else ()), *(("http_get",) if can_get else ()))

    @property
    def others(self) -> tuple[str, ...]:
        """Name the other vaults that the script has looked into."""
        return tuple(self._others)

    @property
    def reads(self) -> Mapping[tuple[str, str], str]:
        """Give the hashes of the notes that the script has read, by vault and path."""
        return dict(self._read)

    @property
    def proposals(self) -> tuple[Proposed, ...]:
        """Name what the script has proposed, in its order."""
        return tuple(self._proposals)

    def __call__(self, method: str, given: Given) -> JSONValue:
        """Carry out one method.

        Raises:
            KnapError: It can't be done; the message tells nothing of this machine.
        """
        try:
            return self._do(method, given)
        except (SetupError, StorageError) as error:
            raise StorageError("the vault can't do that right now", hint=_SAFE_HINT, code=error.code) from error
        except KnapError as error:
            raise type(error)(self._clean(error.message), hint=self._clean(error.hint), code=error.code) from error

    def _do(self, method: str, given: Given) -> JSONValue:
        if method == "tools":
            return [tool.name for tool in self._own.scripting.tools()]
        if method.startswith("tools."):
            return self._tool(method.removeprefix("tools."), given)
        known = self._methods.get(method)
        if known is None:
            raise BadInput(f"there is no method '{method[:100]}'")
        function, names = known
        arguments.check(method, given, names)
        return function(given)

    def _search(self, given: Given) -> JSONValue:
        named = [*arguments.texts(given, "vaults"), *filter(None, [arguments.maybe_text(given, "vault")])]
        query = arguments.text(given, "query", _QUERY)
        limit = arguments.whole(given, "limit", 10)
        path_filter, type_filter = (arguments.maybe_text(given, name) for name in ("path_filter", "type_filter"))
        if limit < 1:
            raise BadInput(f"limit is {limit}", hint="give 1 or more")
        found: list[dict[str, JSONValue]] = []
        room = Room()
        for name in dict.fromkeys(named or [MAIN]):
            context = self._vault(name)
            for note, score in reading.found(context, query, min(limit, MOST_FOUND), path_filter, type_filter):
                self._keep(context, note)
                hit: dict[str, JSONValue] = {"path": note.path, "content": room.text(note), "score": score}
                found.append({**hit, "vault": name} if named else hit)
        found.sort(key=_score, reverse=True)
        return [*found[:limit]]

    def _read_note(self, given: Given) -> JSONValue:
        return Room().text(self._note(self._of(given), arguments.text(given, "path")))

    def _read_notes(self, given: Given) -> JSONValue:
        context = self._of(given)
        room = Room()
        return {path: room.text(self._note(context, path)) for path in arguments.texts(given, "paths")}

    def _list_notes(self, given: Given) -> JSONValue:
        directory = arguments.maybe_text(given, "directory")
        return [*reading.listed(self._of(given), directory, recursive=arguments.flag(given, "recursive"))]

    def _get_frontmatter(self, given: Given) -> JSONValue:
        return reading.properties(self._note(self._of(given), arguments.text(given, "path")))

    def _get_hash(self, given: Given) -> JSONValue:
        note = self._note(self._of(given), arguments.text(given, "path"))
        return note.hash if note else ""

    def _create_wikilink(self, given: Given) -> JSONValue:
        return reading.wikilink(self._of(given), arguments.text(given, "path"))

    def _write_note(self, given: Given) -> JSONValue:
        context = self._of(given)
        raw, content = arguments.text(given, "path"), arguments.text(given, "content", _CONTENT)
        values = arguments.mapping(given, "frontmatter")
        if note_type := arguments.maybe_text(given, "note_type"):
            values = {"type": note_type, **values}
        self._asked_to_write += 1
        if self._asked_to_write > MOST_PROPOSALS:
            raise RefusedError(
                f"a script may propose {MOST_PROPOSALS} notes", hint="put more into each", code="too_many"
            )
        for page in self._pages:
            foreign.mark(context, page)
        from knapper.codemode import proposing  # noqa: PLC0415 - scripts that only read needn't pay for it

        note = reading.note(context, raw)
        base = self._read.get((context.vault, note.path), note.hash) if note else ""
        answer = proposing.propose(context, raw, content, values, (note, base) if note else None)
        if name := answer.get("proposal_id"):
            self._proposals.append(Proposed(id=str(name), vault=context.vault))
        return answer

    def _read_file(self, given: Given) -> JSONValue:
        if "read_file" not in self.methods:
            raise _closed("read_file", "local", "a folder: --fs-read, or scripts.fs_read")
        return files.read(self._own.scripting.roots, arguments.text(given, "path"))

    def _http_get(self, given: Given) -> JSONValue:
        get = self._own.scripting.http_get
        if "http_get" not in self.methods or get is None:
            raise _closed("http_get", "extended", "a host: --net-allow, or scripts.net_allow")
        url = arguments.text(given, "url")
        foreign.mark(self._own, url)
        self._pages.append(url)
        return get(url)

    def _tool(self, name: str, given: Given) -> JSONValue:
        scripting = self._own.scripting
        known = scripting.tools()
        tool = next((tool for tool in known if tool.name == name), None)
        if tool is None:
            hint = f"there are: {', '.join(tool.name for tool in known)}"
            raise NotFound(f"there is no tool '{name[:100]}' in scripts", hint=hint, code="no_tool")
        named = _named(tool, given)
        answer = scripting.call(self._own, name, named)
        vault = named.get("vault")
        if isinstance(vault, str) and vault:
            _ = self._vault(vault)  # that it was looked into is remembered
        return answer

    def _of(self, given: Given) -> Context:
        return self._vault(arguments.maybe_text(given, "vault") or MAIN)

    def _vault(self, name: str) -> Context:
        if name in {MAIN, self._own.vault}:
            return self._own
        if name not in self._others:
            self._others[name] = self._own.scripting.open_vault(name)
        return self._others[name]

    def _note(self, context: Context, raw: str) -> Note | None:
        note = reading.note(context, raw)
        if note is not None:
            self._keep(context, note)
        return note

    def _keep(self, context: Context, note: Note) -> None:
        """Keep the hash of what a script has read first, so that what it writes over that is bound to it."""
        _ = self._read.setdefault((context.vault, note.path), note.hash)

    def _clean(self, text: str) -> str:
        """Take this machine's folders out of a message."""
        roots = [self._own.view.root, *(context.view.root for context in self._others.values())]
        for root in (*roots, *self._own.scripting.roots):
            text = text.replace(f"{root}/", "").replace(str(root), "the vault")
        return text


def _score(hit: Mapping[str, JSONValue]) -> float:
    score = hit["score"]
    return float(score) if isinstance(score, int | float) else 0.0


def _named(tool: Signature, given: Given) -> Given:
    """Give arguments without names those that they have by their place."""
    placed = given.get("", [])
    names = stubs.names(tool)
    if not isinstance(placed, list) or len(placed) > len(names):
        raise BadInput(f"{tool.name} takes {', '.join(names) or 'nothing'}")
    named = {name: value for name, value in given.items() if name}
    return {**dict(zip(names, placed, strict=False)), **named}


def _closed(method: str, profile: str, needed: str) -> RefusedError:
    hint = f"it needs the profile {profile}, and that the owner allows {needed}"
    return RefusedError(f"obsidian.{method} isn't there in this profile", hint=hint, code="not_in_profile")
