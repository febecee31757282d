"""Serve the settings to persons: show them without keys, and save them in the configuration file."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NotRequired

from starlette.requests import Request
from typing_extensions import TypedDict

from knapper.config import editing, files
from knapper.config.declarations import SettingKind, SettingValue, settings_of
from knapper.config.sections import AgentSettings, ModelSettings, RunSettings
from knapper.config.settings import RIGHTS, SETTINGS, rights_of, usual_rights
from knapper.errors import NotFound, RefusedError
from knapper.jsontypes import object_or_empty
from knapper.server import security
from knapper.server.http import binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import Parameter, ParameterKind
from knapper.server.http.openapi import RouteSpec
from knapper.vault import access

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from knapper.app import Hub
    from knapper.config import Settings
    from knapper.config.declarations import Setting
    from knapper.server.http.binding import RequestArguments
    from knapper.server.workers import WorkerThreads


_LIVE_SECTIONS: Final = (("agents", AgentSettings), ("model", ModelSettings), ("runs", RunSettings))
_READ_AT_OPENING: Final = frozenset({"model.session_days", "model.sessions_mb", "runs.days"})
_LIVE_NAMES: Final = frozenset(
    setting.name
    for name, section in _LIVE_SECTIONS
    for setting in settings_of(section, name)
    if setting.name not in _READ_AT_OPENING
)
"""Settings that each message, task and run reads anew; a server uses the others as it found them at its start."""
_MAX_VALUE_CHARS: Final = 20_000
_PARAMETER_KINDS: Final[Mapping[SettingKind, ParameterKind]] = {"count": "count", "texts": "texts"}
_WHAT: Final = "see and change the settings"
_WHAT_RIGHTS: Final = "see and change what programs may do"


class SettingRow(TypedDict):
    """A setting or a right, and where its value comes from."""

    name: str
    value: SettingValue | None
    """Null for a key, which is never told."""
    default: SettingValue | None
    source: str
    """``default``, a variable, or a file and line."""
    doc: str
    kind: SettingKind
    secret: bool
    is_set: bool
    """Whether a source says it."""
    savable: bool
    """False for what is changed in the file only."""
    restart: bool
    """Whether it counts from the server's next start only."""
    choices: NotRequired[list[str]]
    """What it may be, or hold; not there for anything."""
    least: NotRequired[int]
    """Of a number."""
    most: NotRequired[int]
    """Of a number."""


class SettingList(TypedDict):
    """Settings as their sources say them now."""

    config_file: str
    settings: list[SettingRow]


class RightList(SettingList):
    """What a program may see and change, as the configuration file says it now."""

    is_writable: bool
    """Whether the server can change the file."""


class SettingsService:
    """The settings of one server, as its sources say them now; safe to use from any thread."""

    def __init__(self, hub: Hub) -> None:
        """Start with what the server was started with.

        Args:
            hub: Whose settings those are; what can be changed while it runs is changed in it.
        """
        self._hub = hub
        self._started = {origin.name: origin.content for origin in hub.settings.origins}
        self._saved: set[str] = set()
        self._lock = threading.Lock()

    def show(self) -> SettingList:
        """Return all settings.

        Raises:
            SetupError: A source can't be read.
        """
        return self._describe(editing.read_settings_again(self._hub.settings), SETTINGS)

    def save(self, raw_values: Mapping[str, object]) -> SettingList:
        """Save settings, and return them as they are now; raises as `knapper.config.editing.save_settings` does."""
        with self._lock:
            saved = editing.save_settings(self._hub.settings, raw_values)
            self._saved |= raw_values.keys() - _LIVE_NAMES
            self._hub.settings = replace(self._hub.settings, agents=saved.agents, model=saved.model, runs=saved.runs)
        return self._describe(saved, [setting for setting in SETTINGS if setting.name in raw_values])

    def _describe(self, settings: Settings, shown: Iterable[Setting]) -> SettingList:
        origins = {origin.name: origin for origin in settings.origins}
        rows: list[SettingRow] = []
        for setting in shown:
            name, origin = setting.name, origins[setting.name]
            # The running server may still use another value.
            has_changed = name in self._saved or self._started.get(name, origin.content) != origin.content
            row: SettingRow = {
                "name": name,
                "value": None if setting.secret else origin.content,
                "default": None if setting.secret else setting.default,
                "source": origin.source,
                "doc": setting.doc,
                "kind": setting.kind,
                "secret": setting.secret,
                "is_set": bool(origin.value) if setting.secret else origin.source != "default",
                "savable": editing.is_savable(setting),
                "restart": has_changed and name not in _LIVE_NAMES,
            }
            rows.append(_add_range(row, setting))
        return {"config_file": str(settings.config_file), "settings": rows}


class RightsService:
    """What programs may see and change, as the configuration file says it; safe to use from any thread."""

    def __init__(self, hub: Hub) -> None:
        """Read nothing yet.

        Args:
            hub: Whose clients those are; it keeps the rights that it was started with.
        """
        self._hub = hub
        self._lock = threading.Lock()

    def show(self, client: str) -> RightList:
        """Return a client's rights.

        Raises:
            NotFound: There is no such client, or it is a paired device.
            SetupError: The file can't be read.
        """
        self._check_known(client)
        return self._describe(client, editing.read_settings_again(self._hub.settings), RIGHTS)

    def save(self, client: str, raw_values: Mapping[str, object]) -> RightList:
        """Save rights, and return them as they are now; raises as `show` and `editing.save_rights` do.

        Raises:
            RefusedError: The client is a person, whose rights the file alone says.
        """
        self._check_known(client)
        if self._hub.settings.client(client).grants.is_person:
            raise RefusedError(
                f"what you may do yourself, as '{client}', is changed in the configuration file only",
                hint="so that you can't lock yourself out; `knap config edit` opens it",
                code="file_only",
            )
        with self._lock:
            saved = editing.save_rights(self._hub.settings, client, raw_values)
        return self._describe(client, saved, [right for right in RIGHTS if right.name in raw_values])

    def _check_known(self, client: str) -> None:
        configured = [each.name for each in self._hub.settings.clients]
        if client not in {*access.CLIENT_KINDS, *configured}:
            raise NotFound(
                f"there is no program '{client[:60]}' in the configuration",
                hint="a paired device may do what you may, until it is revoked",
                code="unknown_client",
            )

    def _describe(self, client: str, settings: Settings, shown: Iterable[Setting]) -> RightList:
        file = settings.config_file
        is_writable, now = editing.is_writable(file), settings.client(client)
        is_savable = is_writable and not now.grants.is_person
        values, usual = rights_of(now), usual_rights(now)
        running = rights_of(self._hub.settings.client(client))
        document = files.read_toml(file) if file.exists() else files.ConfigDocument(path=file, values={}, lines={})
        # What a file says of a client, which was checked to be in order.
        clients = object_or_empty(document.values.get("clients"))
        written = object_or_empty(clients.get(client))
        rows: list[SettingRow] = []
        for right in shown:
            name, place = right.name, document.place(f"clients.{client}.{right.name}")
            row: SettingRow = {
                "name": name,
                "value": values[name],
                "default": usual[name],
                "source": place if name in written else "default",
                "doc": right.doc,
                "kind": right.kind,
                "secret": False,
                "is_set": name in written,
                "savable": is_savable,
                "restart": values[name] != running[name],
            }
            rows.append(_add_range(row, right))
        return {"config_file": str(file), "is_writable": is_writable, "settings": rows}


def _add_range(row: SettingRow, setting: Setting) -> SettingRow:
    if setting.choices:
        row["choices"] = [choice for choice in setting.choices if choice]
    if setting.kind == "count":
        row["least"], row["most"] = setting.least, setting.most
    return row


def _value_parameter(setting: Setting) -> Parameter:
    kind: ParameterKind = _PARAMETER_KINDS.get(setting.kind, "text")
    is_number = kind == "count"
    return Parameter(
        name=setting.name,
        doc=setting.doc,
        kind=kind,
        minimum=setting.least if is_number else 0,
        maximum=setting.most if is_number else _MAX_VALUE_CHARS,
        choices=setting.choices,
    )


_VALUES: Final = Parameter(
    name="values",
    doc="New values by the settings' names; null takes one out of the file, so that its default counts.",
    kind="object",
    required=True,
    fields=tuple(map(_value_parameter, SETTINGS)),
)
_SAVE_PARAMETERS: Final = (_VALUES, *binding.ANY_VAULT)
_RIGHT_VALUES: Final = Parameter(
    name="values",
    doc="New rights by their names; null takes one out of the file, so that what is usual counts.",
    kind="object",
    required=True,
    fields=tuple(map(_value_parameter, RIGHTS)),
)
_SAVE_RIGHTS_PARAMETERS: Final = (_RIGHT_VALUES, *binding.ANY_VAULT)


def mount_settings(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/settings`` and ``/clients/NAME/rights``.

    Args:
        hub: Whose settings these are; the caller closes it.
        threads: Where files are read and written; the caller closes them.
    """
    service = SettingsService(hub)

    async def show(request: Request, _: RequestArguments) -> Mapping[str, object]:
        """Show the settings.

        As all sources say them now; of keys, only whether they are set. Only for persons.
        """
        security.check_person(hub.settings, request.scope, _WHAT)
        return await threads.run("read", service.show)

    async def save(request: Request, args: RequestArguments) -> Mapping[str, object]:
        """Save settings in the configuration file.

        All of them or none; comments and other lines of the file stay. Replies with the named ones, of which `source`
        says where a stronger source keeps another value. Only for persons.
        """
        security.check_person(hub.settings, request.scope, _WHAT)
        raw_values = dict(args.object("values").values)
        return await threads.run("write", lambda: service.save(raw_values))

    content = openapi.type_content(SettingList)
    specs = (
        openapi.bind_route("GET", "/settings", "settings", show, binding.ANY_VAULT, content),
        openapi.bind_route("PUT", "/settings", "settings", save, _SAVE_PARAMETERS, content),
        *_rights_routes(hub, threads),
    )
    return Mount(routes=[*map(openapi.make_route, specs)])


def _rights_routes(hub: Hub, threads: WorkerThreads) -> Sequence[RouteSpec]:
    service = RightsService(hub)

    async def show(request: Request, _: RequestArguments) -> Mapping[str, object]:
        """Show what a program may see and change.

        As the configuration file says it now, each right with what is usual. Only for the page.
        """
        security.check_owner(hub.settings, request.scope, _WHAT_RIGHTS)
        name = str(request.path_params["name"])
        return await threads.run("read", lambda: service.show(name))

    async def save(request: Request, args: RequestArguments) -> Mapping[str, object]:
        """Change what a program may see and change.

        In its section of the configuration file, all of them or none; comments and other lines stay. They count from
        the server's next start. Only for the page, and not for persons' own rights.
        """
        security.check_owner(hub.settings, request.scope, _WHAT_RIGHTS)
        name = str(request.path_params["name"])
        raw_values = dict(args.object("values").values)
        return await threads.run("write", lambda: service.save(name, raw_values))

    path, tag, content = "/clients/{name}/rights", "clients", openapi.type_content(RightList)
    return (
        openapi.bind_route("GET", path, tag, show, binding.ANY_VAULT, content),
        openapi.bind_route("PUT", path, tag, save, _SAVE_RIGHTS_PARAMETERS, content),
    )
