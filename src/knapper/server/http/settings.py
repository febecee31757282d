"""Serve the settings to persons: show them without keys, and save them in the configuration file."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from starlette.requests import Request
from starlette.responses import Response

from knapper.config import editing
from knapper.config.declarations import SettingKind, settings_of
from knapper.config.sections import AgentSettings, ModelSettings, RunSettings
from knapper.config.settings import SETTINGS
from knapper.server import replies, security
from knapper.server.http import binding, openapi
from knapper.server.http.app import Mount
from knapper.server.http.binding import Parameter, ParameterKind
from knapper.server.http.openapi import RouteSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from knapper.app import Hub
    from knapper.config import SettingOrigin, Settings
    from knapper.config.declarations import Setting, SettingValue
    from knapper.jsontypes import JSONValue
    from knapper.server.http.binding import Endpoint
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
_PATH: Final = "/settings"
_TAG: Final = "settings"
_WHAT: Final = "see and change the settings"


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

    def show(self) -> dict[str, JSONValue]:
        """Return all settings.

        Raises:
            SetupError: A source can't be read.
        """
        return self._describe(editing.read_settings_again(self._hub.settings), SETTINGS)

    def save(self, raw_values: Mapping[str, object]) -> dict[str, JSONValue]:
        """Save settings, and return them as they are now; raises as `knapper.config.editing.save_settings` does."""
        with self._lock:
            saved = editing.save_settings(self._hub.settings, raw_values)
            self._saved |= raw_values.keys() - _LIVE_NAMES
            self._hub.settings = replace(self._hub.settings, agents=saved.agents, model=saved.model, runs=saved.runs)
        return self._describe(saved, [setting for setting in SETTINGS if setting.name in raw_values])

    def _describe(self, settings: Settings, shown: Iterable[Setting]) -> dict[str, JSONValue]:
        origins = {origin.name: origin for origin in settings.origins}
        rows: list[JSONValue] = [self._describe_one(setting, origins[setting.name]) for setting in shown]
        return {"config_file": str(settings.config_file), "settings": rows}

    def _describe_one(self, setting: Setting, origin: SettingOrigin) -> JSONValue:
        row: dict[str, JSONValue] = {
            "name": setting.name,
            "value": None if setting.secret else _as_json(origin.content),
            "default": None if setting.secret else _as_json(setting.default),
            "source": origin.source,
            "doc": setting.doc,
            "kind": setting.kind,
            "secret": setting.secret,
            "is_set": bool(origin.value) if setting.secret else origin.source != "default",
            "savable": editing.is_savable(setting),
            "restart": self._needs_restart(setting, origin),
        }
        if setting.choices:
            row["choices"] = [*setting.choices]
        if setting.kind == "count":
            row |= {"least": setting.least, "most": setting.most}
        return row

    def _needs_restart(self, setting: Setting, origin: SettingOrigin) -> bool:
        """Return whether the running server still uses another value."""
        if setting.name in _LIVE_NAMES:
            return False
        return setting.name in self._saved or self._started.get(setting.name, origin.content) != origin.content


def _as_json(value: SettingValue) -> JSONValue:
    return [*value] if isinstance(value, tuple) else value


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
_STRING: Final[Mapping[str, Any]] = {"type": "string"}
_BOOLEAN: Final[Mapping[str, Any]] = {"type": "boolean"}
_VALUE_SCHEMA: Final[Mapping[str, Any]] = {"type": ["string", "integer", "array", "null"], "items": {"type": "string"}}
_RANGE_SCHEMA: Final[Mapping[str, Any]] = {
    "choices": {"type": "array", "items": _STRING, "description": "What it may be, or hold; not there for anything."},
    "least": {"type": "integer", "description": "Of a number."},
    "most": {"type": "integer", "description": "Of a number."},
}
_REQUIRED_SCHEMA: Final = openapi.object_schema(
    {
        "name": _STRING,
        "value": {**_VALUE_SCHEMA, "description": "Null for a key, which is never told."},
        "default": _VALUE_SCHEMA,
        "source": {"type": "string", "description": "`default`, a variable, or a file and line."},
        "doc": _STRING,
        "kind": {"enum": [*get_args(SettingKind)]},
        "secret": _BOOLEAN,
        "is_set": {"type": "boolean", "description": "Whether a source says it."},
        "savable": {"type": "boolean", "description": "False for what is changed in the file only."},
        "restart": {"type": "boolean", "description": "Whether it counts from the server's next start only."},
    }
)
_SETTING_SCHEMA: Final = {
    **_REQUIRED_SCHEMA,
    "properties": {**_REQUIRED_SCHEMA["properties"], **_RANGE_SCHEMA},
}
SETTINGS_CONTENT: Final = openapi.json_content(
    {"config_file": _STRING, "settings": {"type": "array", "items": _SETTING_SCHEMA}}
)


def mount_settings(hub: Hub, threads: WorkerThreads) -> Mount:
    """Create the mount for ``/settings``.

    Args:
        hub: Whose settings these are; the caller closes it.
        threads: Where files are read and written; the caller closes them.
    """
    service = SettingsService(hub)
    specs = (
        RouteSpec(
            "GET",
            _PATH,
            _TAG,
            "Show the settings.",
            _make_show(hub, service, threads),
            "As all sources say them now; of keys, only whether they are set. Only for persons.",
            binding.ANY_VAULT,
            SETTINGS_CONTENT,
        ),
        RouteSpec(
            "PUT",
            _PATH,
            _TAG,
            "Save settings in the configuration file.",
            _make_save(hub, service, threads),
            "All of them or none; comments and other lines of the file stay. Replies with the named ones, of which "
            "`source` says where a stronger source keeps another value. Only for persons.",
            _SAVE_PARAMETERS,
            SETTINGS_CONTENT,
        ),
    )
    return Mount(routes=[*map(openapi.make_route, specs)])


def _make_show(hub: Hub, service: SettingsService, threads: WorkerThreads) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        _ = await binding.read_arguments(request, binding.ANY_VAULT)
        security.check_person(hub.settings, request.scope, _WHAT)
        return replies.JsonReply({"success": True, **await threads.run("read", service.show)})

    return endpoint


def _make_save(hub: Hub, service: SettingsService, threads: WorkerThreads) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        args = await binding.read_arguments(request, _SAVE_PARAMETERS)
        security.check_person(hub.settings, request.scope, _WHAT)
        raw_values = dict(args.object("values").values)
        return replies.JsonReply({"success": True, **await threads.run("write", lambda: service.save(raw_values))})

    return endpoint
