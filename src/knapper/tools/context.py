"""What a tool call works with: its context, and its arguments checked and parsed."""

import datetime as dt
import re
import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NoReturn, Protocol, Self, get_args
from urllib.parse import quote

from typing_extensions import TypedDict

from knapper.errors import BadInput, NotFound, RefusedError, SetupError
from knapper.index.catalog import ListingQuery
from knapper.index.documents import Filter, PropertyOp, PropertyTest
from knapper.jsontypes import JSONValue
from knapper.tools.shapes import Answer
from knapper.vault import files, paths
from knapper.vault.paths import NotePath
from knapper.vault.view import View, strip_brackets

if TYPE_CHECKING:
    from knapper.changes.proposals.taint import Taints
    from knapper.changes.reviewer import Reviewer
    from knapper.changes.writer import SubmitOptions, Writer
    from knapper.index.engine import Engine
    from knapper.index.refresh import Freshness
    from knapper.net.speech import Transcriber
    from knapper.net.web import Web
    from knapper.vault.access import Grants, Policy


ToolSelection = Literal["essential", "standard", "full", "read-only"]
"""The few that most work needs; those of daily use; all; all that change nothing."""
TOOL_SELECTIONS: Final[tuple[ToolSelection, ...]] = get_args(ToolSelection)

OnCancel = Callable[[Callable[[], None]], Callable[[], None]]
"""Subscribes a function to a call's cancellation, in any thread; returns a function that unsubscribes it."""


def never_cancelled(listener: Callable[[], None]) -> Callable[[], None]:
    """Accept a listener and never call it: the call can't be cancelled."""
    del listener
    return _do_nothing


def _do_nothing() -> None:
    pass


class CancelSignal:
    """The cancellation of a call, sent at most once; any thread may send it or subscribe."""

    def __init__(self) -> None:
        """Create a signal that hasn't been sent."""
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._listeners: dict[object, Callable[[], None]] = {}

    @property
    def is_cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel the call, and call every listener once."""
        with self._lock:
            self._is_cancelled = True
            listeners = list(self._listeners.values())
            self._listeners.clear()
        # Outside the lock: a listener may unsubscribe another one, or take long.
        for listener in listeners:
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call *listener* on cancellation, or now if that has happened; return a function that unsubscribes it."""
        key = object()

        def forget() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        with self._lock:
            if not self._is_cancelled:
                self._listeners[key] = listener
                return forget
        listener()
        return _do_nothing


ScriptProfile = Literal["strict", "local", "extended"]
"""What a script may read: the vaults only; also the owner's folders; also the owner's web hosts."""
SCRIPT_PROFILES: Final[tuple[ScriptProfile, ...]] = get_args(ScriptProfile)
ScriptExit = Literal["ok", "syntax", "error", "refused", "result", "timeout", "memory", "crash"]
"""How a script ended: normally, or with a syntax error, an exception, a refused operation, an unusable result,
a timeout, too much memory, or a crash of its interpreter."""
HostFunction = Callable[[str, Mapping[str, JSONValue]], JSONValue]
"""Carries out a method that a script called; raises a `KnapError` where that fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """Limits on what a script may use."""

    timeout_s: float = 60
    """From start to result, host calls included."""
    memory_mb: int = 512
    result_bytes: int = 200_000
    """Of the result as JSON."""
    stdout_bytes: int = 64_000
    """What is printed beyond that is dropped."""
    script_bytes: int = 200_000
    calls: int = 10_000
    """Number of host calls."""
    request_bytes: int = 1_000_000
    """Of one call, as JSON."""
    reply_bytes: int = 16_000_000
    """Of one answer, as JSON."""

    def within(self, most: "ScriptLimits") -> "ScriptLimits":
        """Return these limits, each capped at that of *most*."""
        return ScriptLimits(**{one.name: min(getattr(self, one.name), getattr(most, one.name)) for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPlaces:
    """Where a person decides on proposals for a vault."""

    vault: str = ""
    """The vault's name, where a command has to say it; else empty."""
    page: str = ""
    """What the page's address of a proposal begins with; empty where no server runs."""

    def command(self, proposal_id: str) -> str:
        """Return the command that shows a proposal and asks about it."""
        vault = f" -v {shlex.quote(self.vault)}" if self.vault else ""
        return f"knap edits review {proposal_id}{vault}"

    def url(self, proposal_id: str) -> str:
        """Return the page's address of a proposal; empty where no server runs."""
        return f"{self.page}{proposal_id}" if self.page else ""


def page_places(address: str, vault: str = "") -> str:
    """Return what the page's addresses of proposals begin with.

    Args:
        address: The server's, such as ``http://127.0.0.1:25627``.
        vault: The vault's name, where the page has several.
    """
    named = f"vault={quote(vault, safe='')}&" if vault else ""
    return f"{address.rstrip('/')}/#{named}proposal="


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRef:
    """A proposal that a script made."""

    id: str
    vault: str
    review: ReviewPlaces = ReviewPlaces()
    """Where a person decides on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptResult:
    """The outcome of a script."""

    kind: ScriptExit
    result: JSONValue = None
    """What `__result__` held."""
    stdout: str = ""
    error: str = ""
    """The line and the cause; empty on success."""
    wall_s: float = 0.0
    peak_mb: float = 0.0
    """Of the worker process; 0 where the system doesn't tell."""
    calls: int = 0
    """Number of host calls that it made."""
    proposals: tuple[ProposalRef, ...] = ()
    """Proposals that await a person's decision, however it ended."""
    walls: tuple[str, ...] = ()
    """Parts of the second wall that stood around it; none where it wasn't begun."""
    missing_walls: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parts that this system should have and that didn't stand, each with the reason."""

    @property
    def wall_notice(self) -> str:
        """Return what a person should know of the second wall; empty where all of it stood."""
        if not self.missing_walls:
            return ""
        parts = ", ".join(f"{name} ({why})" for name, why in self.missing_walls.items())
        return f"the script ran without a part of the second wall: {parts}"

    @property
    def ok(self) -> bool:
        """Return whether it ran to its end."""
        return self.kind == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptInputs:
    """Inputs of a script besides its text."""

    now: float = 0.0
    """The time that it sees, in seconds since 1970, UTC; it doesn't advance."""
    offset_s: int = 0
    """Of local time from UTC."""
    methods: tuple[str, ...] = ()
    """Optional methods of its `obsidian` object."""


class Sandbox(Protocol):
    """A sandbox for scripts, which reach nothing but a host function."""

    @property
    def limits(self) -> ScriptLimits:
        """Return what the owner allows."""
        ...

    def run(
        self,
        script: str,
        host: HostFunction,
        *,
        limits: ScriptLimits | None = None,
        given: ScriptInputs | None = None,
        on_cancel: OnCancel = never_cancelled,
    ) -> ScriptResult:
        """Run one script; limits above the owner's have no effect, and a cancellation ends it.

        Raises:
            SetupError: Scripts can't be run here.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSignature:
    """A tool as authors of scripts see it."""

    name: str
    summary: str = ""
    parameters: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """A JSON schema of the arguments."""


REFRESH_VALID_S: Final = 2.0
"""How long a refresh counts as current; an agent's own changes are indexed at once all the same."""


class SharedRefresh:
    """One refresh of an index that simultaneous calls share: the first call runs it, and the others wait for it.

    Without it, each of an agent's parallel calls would walk the whole vault where no watcher runs.
    """

    def __init__(self, index: "Engine", clock: Callable[[], float] = time.monotonic) -> None:
        """Share the refreshes of *index*."""
        self._index = index
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, Policy, Freshness] | None = None

    def __call__(self, policy: "Policy", *, meaning: bool) -> "Freshness":
        """Return what answers may miss, as `Engine.freshen` does.

        Args:
            policy: The client's.
            meaning: Whether vectors are wanted too.
        """
        # Held during the refresh on purpose: calls that come meanwhile wait for its result.
        with self._lock:
            # Kept for one policy: what an answer may miss depends on what the client may see.
            # Not kept beside a watcher: asking it costs little, and it may just have been told of a change.
            kept = None if self._index.is_followed else self._kept
            if kept is None or kept[1] is not policy or self._clock() - kept[0] > REFRESH_VALID_S:
                freshness = self._index.freshen(policy=policy)
                kept = self._kept = (self._clock(), policy, freshness)
            freshness = kept[2]
        return freshness if meaning else replace(freshness, pending=0)


def _not_configured() -> NoReturn:
    raise SetupError("this isn't set up here", hint="`knap config` shows the settings")


def _no_other_vault(vault: str) -> "Context":
    raise NotFound(f"there is no vault '{vault}'", code="no_vault")


def _no_tool_calls(context: "Context", name: str, arguments: Mapping[str, JSONValue]) -> Answer:
    del context, arguments
    raise SetupError(f"the tool '{name}' can't be called from scripts here")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptAccess:
    """What scripts may use beyond their vault, as the owner allows it; by default nothing."""

    roots: tuple[Path, ...] = ()
    """Folders that the profiles local and extended may read."""
    http_get: Callable[[str], str] | None = None
    """Gets the text at an address, through the guard, of the owner's hosts only; for the profile extended."""
    hosts: tuple[str, ...] = ()
    """Those hosts."""
    open_vault: "Callable[[str], Context]" = _no_other_vault
    """Opens another vault for the same client, by its name."""
    tools: Callable[[], Sequence[ToolSignature]] = lambda: ()
    """Lists the reading tools that scripts can call."""
    call: "Callable[[Context, str, Mapping[str, JSONValue]], Answer]" = _no_tool_calls
    """Calls one of them by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """By which rights a client acts, and the record of the foreign text that it has read."""

    grants: "Grants"
    """As the owner configured them."""
    taints: "Taints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A vault as one client sees it; the first parameter of every tool."""

    vault: str
    """The vault's name."""
    view: View
    """What the client may read."""
    index: "Engine"
    open_writer: "Callable[[], Writer]"
    """Opens what writing needs, once."""
    close: "Callable[[], None]"
    """Closes what the context holds open."""
    open_rights: "Callable[[], Rights] | None" = None
    """Returns the client's rights, without what writing needs; None for those of the writer."""
    submit_options: "SubmitOptions | None" = None
    """How changes are submitted: reason, run, dry run; None for the defaults."""
    open_web: "Callable[[], Web]" = _not_configured
    """Opens what searches the web and fetches pages, where the owner allows that."""
    open_transcriber: "Callable[[], Transcriber]" = _not_configured
    """Opens what turns audio into text, where the owner allows that."""
    open_sandbox: Callable[[], Sandbox] = _not_configured
    """Opens what runs scripts, once for all vaults."""
    scripting: ScriptAccess = field(default_factory=ScriptAccess)
    """What scripts may use beyond this vault."""
    vaults: tuple[str, ...] = ()
    """Names of the vaults that the client may open, the default one first."""
    progress: Callable[[float, float, str], None] = lambda _done, _total, _what: None
    """Receives done, total and a label during long work; may end the work by raising."""
    on_cancel: OnCancel = never_cancelled
    """Subscribes to the call's cancellation."""
    shared_refresh: SharedRefresh | None = None
    """Refreshes the index for simultaneous calls; None lets each call refresh it by itself."""
    tool_selection: ToolSelection = "full"
    """Which tools the client can call."""
    review: ReviewPlaces = ReviewPlaces()
    """Where a person decides on what the client proposes."""
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()
    """Returns the time, with its zone."""
    mark_foreign: Callable[[str], None] | None = None
    """Receives each note or address with foreign text that is shown, where another process records it; None for the
    writer's own record."""
    notices: tuple[str, ...] = ()
    """What the client should know of the vault as it was opened, such as a change that was cut short."""

    @property
    def rights(self) -> Rights:
        """Return the client's rights; neither the journal nor the proposals are opened for it."""
        if self.open_rights is not None:
            return self.open_rights()
        writer = self.open_writer()
        return Rights(grants=writer.grants, taints=writer.taints)

    @property
    def writer(self) -> "Writer":
        """Return the client's writer; the journal is opened on first use."""
        writer, rights = self.open_writer(), self.rights
        if writer.grants is rights.grants and writer.taints is rights.taints:
            return writer
        return replace(writer, grants=rights.grants, taints=rights.taints)

    @property
    def reviewer(self) -> "Reviewer":
        """Return the reviewer that decides on proposals on the client's behalf."""
        from knapper.changes.reviewer import Reviewer  # noqa: PLC0415 - searching needn't pay for it

        return Reviewer(writer=self.writer)

    def sees(self, path: NotePath) -> bool:
        """Return whether the client may know of a file in the index, and of what it leads to if it is a link."""
        if not self.view.visible(path):
            return False
        return self.view.policy.sees_all or self.view.visible(self.index.store.target_of(path))

    def freshen(self, *, meaning: bool = True) -> "Freshness":
        """Bring the index up to date where that is quick, and return what the client's answers may miss."""
        if self.shared_refresh is not None:
            freshness = self.shared_refresh(self.view.policy, meaning=meaning)
        else:
            freshness = self.index.freshen(meaning=meaning, policy=self.view.policy)
        return replace(freshness, notices=(*freshness.notices, *self.notices)) if self.notices else freshness

    def with_shared_refresh(self) -> "Context":
        """Return a context whose simultaneous or consecutive calls share one refresh of the index."""
        return self if self.shared_refresh is not None else replace(self, shared_refresh=SharedRefresh(self.index))

    def restrict(self, where: Filter) -> Filter:
        """Restrict a filter to what the client may see."""
        return replace(where, policy=self.view.policy)

    def __enter__(self) -> Self:
        """Use the context in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


_ROOT_SPELLINGS = frozenset({"", ".", "/", "./"})
MAX_TEXT = 10_000
"""Most characters of a name or value to look for."""


def check_text(name: str, value: str) -> str:
    """Check that a text is valid Unicode and not too long.

    Args:
        name: The parameter's, for the message.
        value: Its value.

    Raises:
        BadInput: It isn't valid Unicode, or is too long.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        hint = "give it as UTF-8 text"
        raise BadInput(f"{name} isn't valid Unicode", hint=hint, code="not_unicode") from None
    if len(value) > MAX_TEXT:
        raise BadInput(f"{name} is {len(value)} characters long", hint=f"give at most {MAX_TEXT}")
    return value


def check_texts(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Check each of several texts."""
    return tuple(check_text(name, value) for value in values)


def check_name(name: str, value: str) -> str:
    """Check a text that mustn't be empty, and return it without surrounding space.

    Raises:
        BadInput: It is empty.
    """
    if not check_text(name, value).strip():
        raise BadInput(f"{name} is empty", hint="give its name")
    return value.strip()


def parse_day(name: str, value: str, *, needed: bool = False) -> str:
    """Parse a day such as ``2026-01-31``; empty stands for none.

    Raises:
        BadInput: It isn't a day, or is missing where it is *needed*.
    """
    if not value and not needed:
        return ""
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        hint = "write it like 2026-01-31"
        raise BadInput(f"{name} is no day: {paths.quote_path(value)}", hint=hint, code="invalid_date") from None


def resolve_folder(context: Context, raw: str) -> NotePath:
    """Resolve a folder as a caller wrote it to its path in the vault; empty for the vault's root.

    Raises:
        BadInput: The text isn't a valid path.
        NotFound: No visible folder is there (code ``no_such_folder``); the hint names the nearest.
        RefusedError: It lies outside the vault.
    """
    if raw.strip() in _ROOT_SPELLINGS:
        return NotePath("")
    path = context.view.parse(raw)
    listing_query = ListingQuery(where=context.restrict(Filter(folders=(path,))), limit=1)
    # The index comes first: a folder counts as visible only where the client sees one of its files.
    entries = context.index.catalog.find(listing_query).entries
    if entries:
        return NotePath("/".join(entries[0].path.split("/")[: path.count("/") + 1]))
    empty_folder = context.view.find_folder(path)
    if empty_folder is None:
        where = context.restrict(Filter())
        # A mistyped one may mean its siblings, and the folders at the vault's root.
        parents = (paths.parent_folder(path), "") if "/" in path else ("",)
        folders = [each.path for parent in parents for each in context.index.catalog.folders(where, parent)]
        nearest = files.nearest_paths(path, folders)
        hint = "nearest: " + ", ".join(map(repr, nearest)) if nearest else "explore the vault for its folders"
        message = f"no folder {paths.quote_path(path)} in the vault"
        raise NotFound(message, hint=hint, code="no_such_folder", details={"nearest": nearest})
    return empty_folder


def resolve_filter(context: Context, raw: str, has_rows: Callable[[str], bool]) -> str:
    """Return the path that a filter means: of a folder, or of a file by its path or a name as in Obsidian.

    What was changed under a path that is gone by now is asked for by that path, so a path with rows counts first, then
    a folder. A text that means nothing visible is returned as it is, and nothing will match it.

    Args:
        context: The vault, as the client sees it.
        raw: The path or name, as a caller wrote it; empty for no filter.
        has_rows: Returns whether anything is listed for a path.

    Raises:
        BadInput: The text isn't a valid path.
        Ambiguous: Several visible files have the name; they are listed.
        RefusedError: The path leads outside the vault.
    """
    path = context.view.parse(strip_brackets(raw)) if raw.strip() else ""
    if not path or has_rows(path):
        return path
    with suppress(NotFound):
        return resolve_folder(context, path)
    with suppress(NotFound):
        return context.view.locate(raw)
    return path


_OPERATOR: Final = re.compile(r"!~|!=|~|=")
_OPERATORS: Mapping[str, PropertyOp] = {"!~": "not_contains", "!=": "not_equals", "~": "contains", "=": "equals"}
_MAX_TESTS: Final = 50
"""Tests of one kind."""


class NoteFilters(TypedDict, total=False):
    """Filters on notes, all of which must match."""

    exclude_folders: Sequence[str]
    tags: Sequence[str]
    exclude_tags: Sequence[str]
    properties: Sequence[str]
    modified_from: str
    modified_to: str
    created_from: str
    created_to: str


class SearchFilters(NoteFilters, total=False):
    """Filters on notes, with the folders that they lie in."""

    folders: Sequence[str]


def build_filter(
    where: SearchFilters | NoteFilters, *, kinds: tuple[str, ...] = (), include_log: bool = False
) -> Filter:
    """Build a filter from a tool's arguments.

    Args:
        where: The arguments.
        kinds: Kinds of file that pass; empty for all.
        include_log: Whether entries that this program logged are found too.

    Raises:
        BadInput: A test names no property, a day isn't valid, or a text isn't.
    """
    return Filter(
        folders=_filter_texts("folders", where.get("folders", ())),
        exclude_folders=_filter_texts("exclude_folders", where.get("exclude_folders", ())),
        tags=_filter_texts("tags", where.get("tags", ())),
        exclude_tags=_filter_texts("exclude_tags", where.get("exclude_tags", ())),
        properties=tuple(
            parse_property_test(each) for each in _filter_texts("properties", where.get("properties", ()))
        ),
        modified_from=parse_day("modified_from", where.get("modified_from", "")),
        modified_to=parse_day("modified_to", where.get("modified_to", "")),
        created_from=parse_day("created_from", where.get("created_from", "")),
        created_to=parse_day("created_to", where.get("created_to", "")),
        kinds=kinds,
        include_log=include_log,
    )


def parse_property_test(text: str) -> PropertyTest:
    """Parse a test of a property: ``name``, ``!name``, ``name=value``, ``name!=value``, ``name~part``, ``name!~part``.

    Raises:
        BadInput: It names no property.
    """
    sign = _OPERATOR.search(text, 1)  # the first one: a value may hold others
    if sign is not None and text[: sign.start()].strip():
        name, value = text[: sign.start()].strip(), text[sign.end() :].strip()
        return PropertyTest(name=name, op=_OPERATORS[sign.group()], value=value)
    name = text.removeprefix("!").strip()
    if not name:
        raise BadInput(
            f"'{text}' tests no property", hint="write name, !name, name=value, name!=value, name~part or name!~part"
        )
    return PropertyTest(name=name, op="missing" if text.startswith("!") else "exists")


def _filter_texts(name: str, values: Sequence[str]) -> tuple[str, ...]:
    items = (values,) if isinstance(values, str) else tuple(values)
    if len(items) > _MAX_TESTS:
        raise BadInput(f"{name} has {len(items)} items", hint=f"give at most {_MAX_TESTS}")
    return check_texts(name, items)


_NEEDS_PROPERTY: Final[frozenset[PropertyOp]] = frozenset({"contains", "equals", "exists", "is"})
_NOTE_KINDS: Final = ("note",)
_MAX_NAMES: Final = 10
"""Most names of a kind that are looked up."""


def missing_names(context: Context, where: Filter) -> Iterator[str]:
    """Yield a remark for each required tag and property that no visible note has, and one where there is no note."""
    if not _has_note(context, Filter(kinds=_NOTE_KINDS)):
        yield "the index holds no note of this vault: `knap status` shows which folder it is"
        return
    for tag in where.tags[:_MAX_NAMES]:
        if not _has_note(context, Filter(tags=(tag,), kinds=_NOTE_KINDS)):
            yield f"no note has the tag #{tag.removeprefix('#')}: the list of tags (`knap tags`) has the others"
    for test in where.properties[:_MAX_NAMES]:
        if test.op in _NEEDS_PROPERTY and not has_property(context, test.name):
            yield f"no note has the property '{test.name}'"


def _has_note(context: Context, where: Filter) -> bool:
    return bool(context.index.catalog.find(ListingQuery(where=context.restrict(where), limit=1)).entries)


def missing_exclusions(context: Context, where: Filter) -> Iterator[str]:
    """Yield a remark for each folder and tag to exclude that isn't there: a mistyped one excludes nothing."""
    yield from missing_folders(context, where.exclude_folders)
    for tag in where.exclude_tags[:_MAX_NAMES]:
        if not _has_note(context, Filter(tags=(tag,), kinds=_NOTE_KINDS)):
            yield f"no note has the tag #{tag.removeprefix('#')}, so that nothing is excluded with it"


def missing_folders(context: Context, excluded: Iterable[str]) -> Iterator[str]:
    """Yield a remark for each excluded folder that isn't there, with the nearest: a mistyped one excludes nothing."""
    for raw in excluded:
        try:
            _ = resolve_folder(context, raw)
        except NotFound as error:
            yield f"{error.message}, so that nothing is excluded with it; {error.hint}"
        except (BadInput, RefusedError) as error:
            yield f"{error.message}, so that nothing is excluded with it"


def has_property(context: Context, name: str) -> bool:
    """Return whether some note has a property."""
    return context.index.catalog.is_set(name, context.restrict(Filter(kinds=_NOTE_KINDS)))
