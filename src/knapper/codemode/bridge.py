"""Run scripts over the vault: the tool for clients whose own model writes them, and the host side of `obsidian`.

The host checks a script's arguments, reads and proposes for it, and records what is read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NotRequired

from typing_extensions import TypedDict

from knapper.codemode import evidence
from knapper.errors import BadInput, KnapError, NotFound, RefusedError, SetupError, StorageError
from knapper.jsontypes import JSONValue
from knapper.tools import answers
from knapper.tools.context import (
    Context,
    ProposalRef,
    ScriptExit,
    ScriptInputs,
    ScriptLimits,
    ScriptProfile,
    ScriptResult,
    ToolSignature,
)
from knapper.tools.shapes.write import WriteResult
from knapper.vault import parser
from knapper.vault.parser import Note

_MAX_PATH: Final = 4_096
_MAX_ITEMS: Final = 1_000


def check_names(method: str, arguments: Mapping[str, JSONValue], known: Collection[str]) -> None:
    """Check that a method takes each of the arguments.

    Raises:
        BadInput: There is an argument of another name.
    """
    unknown = next((name for name in arguments if name not in known), None)
    if unknown is not None:
        raise BadInput(f"{method} takes no '{unknown[:100]}'", hint=f"it takes {', '.join(known)}")


def text_argument(arguments: Mapping[str, JSONValue], name: str, max_chars: int = _MAX_PATH) -> str:
    """Return a text argument.

    Raises:
        BadInput: It isn't a text, or is too long.
    """
    value = arguments.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{name} isn't a text")
    if len(value) > max_chars:
        raise BadInput(f"{name} has {len(value):,} characters, and {max_chars:,} are the most")
    return value


def optional_text_argument(arguments: Mapping[str, JSONValue], name: str) -> str:
    """Return a text argument; empty where there is none.

    Raises:
        BadInput: It isn't a text, or is too long.
    """
    return "" if arguments.get(name) is None else text_argument(arguments, name)


def texts_argument(arguments: Mapping[str, JSONValue], name: str) -> list[str]:
    """Return a list of texts; empty where there is none.

    Raises:
        BadInput: It isn't a list of texts, or is too long.
    """
    values = arguments.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or len(values) > _MAX_ITEMS:
        raise BadInput(f"{name} isn't a list of at most {_MAX_ITEMS:,} texts")
    return [text_argument({name: value}, name) for value in values]


def int_argument(arguments: Mapping[str, JSONValue], name: str, default: int) -> int:
    """Return an integer argument; *default* where there is none.

    Raises:
        BadInput: It isn't an integer.
    """
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} isn't a whole number")
    return value


def bool_argument(arguments: Mapping[str, JSONValue], name: str) -> bool:
    """Return a boolean argument; False where there is none.

    Raises:
        BadInput: It isn't a boolean.
    """
    value = arguments.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadInput(f"{name} is neither True nor False")
    return value


def mapping_argument(arguments: Mapping[str, JSONValue], name: str) -> dict[str, JSONValue]:
    """Return a dictionary; empty where there is none.

    Raises:
        BadInput: It isn't a dictionary.
    """
    value = arguments.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"{name} isn't a dictionary")
    return value


MAX_REPLY_TEXT: Final = 16_000_000
"""Most characters of notes in one answer: as many as fit into its frame."""


class ReplyBudget:
    """The budget for the text of notes in one answer; a note counts each time that it is requested."""

    def __init__(self, most: int = MAX_REPLY_TEXT) -> None:
        """Start with the whole budget."""
        self._left = most

    def take_text(self, note: Note | None) -> str:
        """Return a note's whole text, if the budget allows it.

        Raises:
            BadInput: It doesn't (code ``too_large``).
        """
        self._left -= len(note.raw) if note else 0
        if self._left < 0:
            raise BadInput(
                "the answer is too large for one call", hint="ask for fewer or smaller notes", code="too_large"
            )
        return evidence.note_text(note)


def parameter_names(tool: ToolSignature) -> list[str]:
    """Return the names of a tool's parameters, the required ones first."""
    properties = tool.parameters.get("properties")
    all_names = list(properties) if isinstance(properties, dict) else []
    required = required_names(tool)
    return sorted(all_names, key=lambda name: name not in required)


def required_names(tool: ToolSignature) -> frozenset[str]:
    """Return the names of the parameters that a tool needs."""
    required = tool.parameters.get("required")
    return frozenset(map(str, required)) if isinstance(required, list) else frozenset()


def propose_note(
    context: Context, raw: str, content: str, values: Mapping[str, JSONValue], existing: tuple[Note, str] | None
) -> WriteResult:
    """Propose a new note, or a new text of an existing one.

    Args:
        context: The vault, as the client sees it.
        raw: The path, as the script wrote it.
        content: The text.
        values: The note's properties.
        existing: The note of that path, and the hash that the new text is bound to; None where there is none.

    Raises:
        KnapError: It can't be created, the client may not, or the note has changed since it was read.
    """
    # 0.15 s that a script that only reads needn't wait for
    from knapper.changes.drafts import Create, Rewrite  # noqa: PLC0415
    from knapper.changes.text import replacement  # noqa: PLC0415
    from knapper.changes.writer import SubmitOptions  # noqa: PLC0415

    request = Create(path=raw, content=content, properties=values or None)
    if existing is not None:
        note, base_hash = existing
        request = Rewrite(
            path=note.path, content=parser.decode_text(replacement.compose_note(content, values)), base=base_hash
        )
    # Always a proposal: a note may have misled the model that wrote the script.
    options = replace(context.submit_options or SubmitOptions(), propose=True)
    if not options.reason:
        options = replace(options, reason="a script")
    return answers.submit_one(replace(context, submit_options=options), request)


MAIN_VAULT: Final = "main"
"""The name for the vault that is meant where none is named."""
MAX_HITS: Final = 200
"""Most notes of one search."""
MAX_PROPOSALS: Final = 50
"""Most proposals of one script."""
_MAX_CONTENT: Final = 1_000_000
_MAX_QUERY: Final = 2_000
_SAFE_HINT: Final = "`knap doctor` tells the owner more"

Arguments = Mapping[str, JSONValue]


class Bridge:
    """The host of one script, which carries out the methods of its `obsidian` object.

    ``Bridge(context)("read_note", {"path": "A.md"})`` returns the note's text.
    """

    def __init__(self, context: Context, profile: ScriptProfile = "strict") -> None:
        """Create a bridge for one run of one script.

        Args:
            context: The vault that is meant where none is named, as the client sees it.
            profile: Whether files and pages that the owner allows can be read too.
        """
        self._main = context
        self._others: dict[str, Context] = {}
        self._profile: ScriptProfile = profile
        self._read: dict[tuple[str, str], str] = {}
        self._pages: list[str] = []
        self._write_count = 0
        self._proposals: list[ProposalRef] = []
        self._methods: Mapping[str, tuple[Callable[[Arguments], JSONValue], tuple[str, ...]]] = {
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
        """Return the optional methods that this script has."""
        scripting = self._main.scripting
        can_read = self._profile != "strict" and bool(scripting.roots)
        can_get = self._profile == "extended" and scripting.http_get is not None
        return (*(("read_file",) if can_read else ()), *(("http_get",) if can_get else ()))

    @property
    def others(self) -> tuple[str, ...]:
        """Return the other vaults that the script has opened."""
        return tuple(self._others)

    @property
    def reads(self) -> Mapping[tuple[str, str], str]:
        """Return the hashes of the notes that the script has read, by vault and path."""
        return dict(self._read)

    @property
    def proposals(self) -> tuple[ProposalRef, ...]:
        """Return what the script has proposed, in its order."""
        return tuple(self._proposals)

    def __call__(self, method: str, given: Arguments) -> JSONValue:
        """Carry out one method.

        Raises:
            KnapError: It fails; the message reveals nothing of this machine.
        """
        try:
            if method == "tools":
                return [tool.name for tool in self._main.scripting.tools()]
            if method.startswith("tools."):
                return self._call_tool(method.removeprefix("tools."), given)
            entry = self._methods.get(method)
            if entry is None:
                raise BadInput(f"there is no method '{method[:100]}'")
            function, names = entry
            check_names(method, given, names)
            return function(given)
        # These errors name folders and settings of this machine, which a script must not learn.
        except (SetupError, StorageError) as error:
            raise StorageError("the vault can't do that right now", hint=_SAFE_HINT, code=error.code) from error
        except KnapError as error:
            raise type(error)(
                self._strip_folders(error.message), hint=self._strip_folders(error.hint), code=error.code
            ) from error

    def _search(self, given: Arguments) -> JSONValue:
        vault_names = [*texts_argument(given, "vaults"), *filter(None, [optional_text_argument(given, "vault")])]
        query = text_argument(given, "query", _MAX_QUERY)
        limit = int_argument(given, "limit", 10)
        path_filter, type_filter = (optional_text_argument(given, name) for name in ("path_filter", "type_filter"))
        if limit < 1:
            raise BadInput(f"limit is {limit}", hint="give 1 or more")
        hits: list[tuple[float, JSONValue]] = []
        budget = ReplyBudget()
        for name in dict.fromkeys(vault_names or [MAIN_VAULT]):
            context = self._open_vault(name)
            for note, score in evidence.search_notes(context, query, min(limit, MAX_HITS), path_filter, type_filter):
                self._record_read(context, note)
                hit: dict[str, JSONValue] = {"path": note.path, "content": budget.take_text(note), "score": score}
                hits.append((score, {**hit, "vault": name} if vault_names else hit))
        hits.sort(key=lambda one: one[0], reverse=True)
        return [hit for _, hit in hits[:limit]]

    def _read_note(self, given: Arguments) -> JSONValue:
        return ReplyBudget().take_text(self._read_and_record(self._context_for(given), text_argument(given, "path")))

    def _read_notes(self, given: Arguments) -> JSONValue:
        context = self._context_for(given)
        budget = ReplyBudget()
        return {path: budget.take_text(self._read_and_record(context, path)) for path in texts_argument(given, "paths")}

    def _list_notes(self, given: Arguments) -> JSONValue:
        directory = optional_text_argument(given, "directory")
        return [*evidence.list_paths(self._context_for(given), directory, recursive=bool_argument(given, "recursive"))]

    def _get_frontmatter(self, given: Arguments) -> JSONValue:
        return evidence.note_properties(self._read_and_record(self._context_for(given), text_argument(given, "path")))

    def _get_hash(self, given: Arguments) -> JSONValue:
        note = self._read_and_record(self._context_for(given), text_argument(given, "path"))
        return note.hash if note else ""

    def _create_wikilink(self, given: Arguments) -> JSONValue:
        return evidence.make_wikilink(self._context_for(given), text_argument(given, "path"))

    def _write_note(self, given: Arguments) -> JSONValue:
        context = self._context_for(given)
        raw_path, content = text_argument(given, "path"), text_argument(given, "content", _MAX_CONTENT)
        values = mapping_argument(given, "frontmatter")
        if note_type := optional_text_argument(given, "note_type"):
            values = {"type": note_type, **values}
        # Counted before it is tried, so that failed proposals count too.
        self._write_count += 1
        if self._write_count > MAX_PROPOSALS:
            raise RefusedError(
                f"a script may propose {MAX_PROPOSALS} notes", hint="put more into each", code="too_many"
            )
        # A page may have been read with another vault's context: the one that is written to is tainted too.
        for page in self._pages:
            answers.mark_tainted(context, page)

        note = evidence.read_note(context, raw_path)
        base_hash = self._read.get((context.vault, note.path), note.hash) if note else ""
        answer = propose_note(context, raw_path, content, values, (note, base_hash) if note else None)
        if name := answer.get("proposal_id"):
            self._proposals.append(ProposalRef(id=name, vault=context.vault, review=context.review))
        return answers.as_json(answer)

    def _read_file(self, given: Arguments) -> JSONValue:
        if "read_file" not in self.methods:
            raise _not_in_profile("read_file", "local", "a folder: --fs-read, or scripts.fs_read")
        return evidence.read_allowed_file(self._main.scripting.roots, text_argument(given, "path"))

    def _http_get(self, given: Arguments) -> JSONValue:
        get = self._main.scripting.http_get
        if "http_get" not in self.methods or get is None:
            raise _not_in_profile("http_get", "extended", "a host: --net-allow, or scripts.net_allow")
        url = text_argument(given, "url")
        answers.mark_tainted(self._main, url)
        self._pages.append(url)
        return get(url)

    def _call_tool(self, name: str, given: Arguments) -> JSONValue:
        scripting = self._main.scripting
        callable_tools = scripting.tools()
        tool = next((tool for tool in callable_tools if tool.name == name), None)
        if tool is None:
            hint = f"there are: {', '.join(tool.name for tool in callable_tools)}"
            raise NotFound(f"there is no tool '{name[:100]}' in scripts", hint=hint, code="no_tool")
        positional = given.get("", [])
        parameters = parameter_names(tool)
        if not isinstance(positional, list) or len(positional) > len(parameters):
            raise BadInput(f"{tool.name} takes {', '.join(parameters) or 'nothing'}")
        by_name = {name: value for name, value in given.items() if name}
        named_arguments = {**dict(zip(parameters, positional, strict=False)), **by_name}
        answer = scripting.call(self._main, name, named_arguments)
        vault = named_arguments.get("vault")
        if isinstance(vault, str) and vault:
            # Opened here only so that `others` lists it: the tool has opened it by itself.
            _ = self._open_vault(vault)
        return answer

    def _context_for(self, given: Arguments) -> Context:
        return self._open_vault(optional_text_argument(given, "vault") or MAIN_VAULT)

    def _open_vault(self, name: str) -> Context:
        if name in {MAIN_VAULT, self._main.vault}:
            return self._main
        if name not in self._others:
            self._others[name] = self._main.scripting.open_vault(name)
        return self._others[name]

    def _read_and_record(self, context: Context, raw: str) -> Note | None:
        note = evidence.read_named_note(context, raw)
        if note is not None:
            self._record_read(context, note)
        return note

    def _record_read(self, context: Context, note: Note) -> None:
        """Keep the hash of a note at its first read, so that a later write is bound to what the script saw."""
        _ = self._read.setdefault((context.vault, note.path), note.hash)

    def _strip_folders(self, text: str) -> str:
        """Remove this machine's folders from a message."""
        roots = [self._main.view.root, *(context.view.root for context in self._others.values())]
        for root in (*roots, *self._main.scripting.roots):
            text = text.replace(f"{root}/", "").replace(str(root), "the vault")
        return text


def _not_in_profile(method: str, profile: str, needed: str) -> RefusedError:
    hint = f"it needs the profile {profile}, and that the owner allows {needed}"
    return RefusedError(f"obsidian.{method} isn't there in this profile", hint=hint, code="not_in_profile")


OUTSIDE_METHODS: Final = frozenset({"read_file", "http_get"})
MAX_RECORDED: Final = 4_000_000
"""Most characters that are recorded; later texts still reach the script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRead:
    """A note that a script has read, with its hash at that time."""

    vault: str
    path: str
    hash: str


class RecordingHost:
    """A host that passes a script's calls on to its bridge, and records what it returns."""

    def __init__(self, bridge: Bridge) -> None:
        """Pass calls on to *bridge*."""
        self._bridge = bridge
        self._recorded_chars = 0
        self._texts: dict[str, None] = {}
        self.used_tools = False
        """Whether it called the table's tools, whose reads aren't recorded."""
        self.used_outside = False
        """Whether it read files or pages outside the vaults."""

    def __call__(self, method: str, given: Mapping[str, JSONValue]) -> JSONValue:
        """Carry out one method, and record the texts that it returns.

        Raises:
            KnapError: As the bridge raises it.
        """
        answer = self._bridge(method, given)
        self.used_tools = self.used_tools or method.startswith("tools.")
        self.used_outside = self.used_outside or method in OUTSIDE_METHODS
        for text in _collect_texts(answer):
            if text not in self._texts and self._recorded_chars < MAX_RECORDED:
                self._recorded_chars += len(text)
                self._texts[text] = None
        return answer

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts that the script was given, each once."""
        return tuple(self._texts)

    @property
    def reads(self) -> tuple[NoteRead, ...]:
        """Return the notes that the script has read."""
        return tuple(NoteRead(vault=vault, path=path, hash=one) for (vault, path), one in self._bridge.reads.items())

    @property
    def others(self) -> tuple[str, ...]:
        """Return the other vaults that the script has opened."""
        return self._bridge.others


def _collect_texts(answer: JSONValue) -> Iterator[str]:
    """Yield the texts in an answer, keys of dictionaries included: some name notes."""
    stack: list[JSONValue] = [answer]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            yield from value
            stack.extend(value.values())


_EXIT_HINTS: Final[Mapping[ScriptExit, str]] = {
    "syntax": "write it as Python 3, and correct the line that is named",
    "error": "correct the line that is named, and run the script again",
    "refused": "do without that: a script has `obsidian`, and the modules that the tool's description lists",
    "result": "set `__result__` to less, and to lists, dicts, texts, numbers, booleans and None alone",
    "timeout": "do less in one script; a longer timeout_s helps where the owner allows it",
    "memory": "keep less at once: read notes one by one, and keep of each what is needed",
    "crash": "nest calls and data less deeply",
}
"""What to try next, by how a script ended."""
_OBSIDIAN_HINT: Final = "the vault's functions are called on `obsidian`, as in obsidian.search(query, limit)"


_PROPOSED_MESSAGE: Final = (
    "nothing has changed yet: each of the proposals waits for a person's yes, which its review_command takes"
)


class ScriptProposal(TypedDict):
    """A proposal, and the vault that it is for."""

    id: str
    vault: str
    review_command: str
    """With which a person decides on it."""
    review_url: NotRequired[str]
    """The page's address of it, where a server runs."""


class ScriptAnswer(TypedDict):
    """The outcome of a script."""

    success: bool
    ok: bool
    kind: str
    result: object
    stdout: str
    error: str
    wall_s: float
    peak_mb: float
    calls: int
    proposals: list[ScriptProposal]
    message: NotRequired[str]
    """That nothing has changed yet, where there are proposals."""
    walls: list[str]
    notes: NotRequired[list[str]]
    """That a part of the second wall didn't stand, and why."""
    code: NotRequired[str]
    """``script_`` and the kind, where it failed."""
    hint: NotRequired[str]


def run_script(
    context: Context, code: str, profile: ScriptProfile = "strict", timeout_s: float | None = None
) -> ScriptAnswer:
    """Run a Python script over the vault in a sandbox: many searches and reads in one call; only its result comes back.

    The script has `obsidian` with search(query, limit), read_note(path), read_notes(paths), list_notes(directory,
    recursive), get_frontmatter(path), get_hash(path), create_wikilink(path), write_note(path, content), which only
    proposes, and the reading tools as obsidian.tools.NAME(...). It sets `__result__` to JSON of at most 200 KB. It may
    import json, re, datetime, collections, itertools, functools, math, hashlib, pathlib, typing, dataclasses, enum and
    yaml.

    Args:
        context: The vault, as the client sees it.
        code: The script, in Python 3: ``obsidian.search(query, limit)``, ``obsidian.read_note(path)``, reading tools
            as ``obsidian.tools.NAME(...)``; it sets ``__result__``.
        profile: What else it may read, where the owner allows any: local for files, extended for files and pages.
        timeout_s: How long it may take, in seconds; never longer than the owner allows.

    Returns:
        ``ok``, ``result``, ``stdout``, ``error`` with line and cause, and ``hint``; ``proposals`` that wait for a
        person's decision; ``walls``, the parts of the system's confinement that stood.

    Raises:
        BadInput: The script is empty, or the time isn't positive.
        SetupError: Scripts can't be run here.
    """
    return result_answer(execute_script(context, code, profile, timeout_s))


def execute_script(
    context: Context, code: str, profile: ScriptProfile = "strict", timeout_s: float | None = None
) -> ScriptResult:
    """Run a script as `run_script` does, and return its typed outcome."""
    if not code.strip():
        raise BadInput("the script is empty", hint="give Python that sets `__result__`")
    if timeout_s is not None and not timeout_s > 0:
        raise BadInput(f"timeout_s is {timeout_s:g}", hint="give more than 0")
    sandbox = context.open_sandbox()
    script_limits = sandbox.limits if timeout_s is None else ScriptLimits(timeout_s=timeout_s).within(sandbox.limits)
    bridge = Bridge(context, profile)
    outcome = sandbox.run(
        code, bridge, limits=script_limits, given=script_inputs(context, bridge), on_cancel=context.on_cancel
    )
    return replace(outcome, proposals=bridge.proposals)


def script_inputs(context: Context, bridge: Bridge) -> ScriptInputs:
    """Return the inputs of a script besides its text."""
    now = context.now()
    offset = now.utcoffset()
    return ScriptInputs(
        now=now.timestamp(),
        offset_s=int(offset.total_seconds()) if offset else 0,
        methods=bridge.methods,
    )


def result_answer(outcome: ScriptResult) -> ScriptAnswer:
    """Return an outcome as every surface shows it."""
    rows: list[ScriptProposal] = []
    for one in outcome.proposals:
        row: ScriptProposal = {"id": one.id, "vault": one.vault, "review_command": one.review.command(one.id)}
        if url := one.review.url(one.id):
            row["review_url"] = url
        rows.append(row)
    fields: ScriptAnswer = {
        "success": outcome.ok,
        "ok": outcome.ok,
        "kind": outcome.kind,
        "result": outcome.result,
        "stdout": outcome.stdout,
        "error": outcome.error,
        "wall_s": outcome.wall_s,
        "peak_mb": outcome.peak_mb,
        "calls": outcome.calls,
        "proposals": rows,
        "walls": list(outcome.walls),
    }
    if outcome.proposals:
        fields["message"] = _PROPOSED_MESSAGE
    if outcome.wall_notice:
        fields["notes"] = [outcome.wall_notice]
    if not outcome.ok:
        fields["code"], fields["hint"] = f"script_{outcome.kind}", _exit_hint(outcome)
    return fields


def _exit_hint(outcome: ScriptResult) -> str:
    hint = _EXIT_HINTS[outcome.kind]
    return f"{hint}; {_OBSIDIAN_HINT}" if "NameError: " in outcome.error else hint
