"""Tell what the owner lets each client see and change."""

import re
from collections.abc import Mapping
from typing import cast

from knapper.config import values
from knapper.config.declarations import SettingValue
from knapper.config.files import ConfigDocument
from knapper.config.settings import CLIENT_SETTINGS, ClientSettings
from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import Capability, ClientKind, EditableScope, Grants, Outcome, Policy

_TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_WITHOUT_TOKEN = frozenset({"cli", "page", "agent", "script"})
"""Persons, and what works inside the program."""


def read_clients(document: ConfigDocument, sections: Mapping[str, Mapping[str, object]]) -> tuple[ClientSettings, ...]:
    """Read the clients of a configuration file.

    Args:
        document: The file, for messages.
        sections: What stands below ``[clients]``, by name.

    Raises:
        SetupError: A value isn't of its setting's kind, a pattern isn't one, or nobody can tell what a client is.
    """
    return tuple(_read_client(document, name, section) for name, section in sections.items())


def _read_client(document: ConfigDocument, name: str, section: Mapping[str, object]) -> ClientSettings:
    found = values.check_section(document, f"clients.{name}", section, CLIENT_SETTINGS)
    kind = _client_kind(document, name, found)
    small, large = access.default_outcomes(kind)
    read, hidden = values.get_section_texts(found, "read"), values.get_section_texts(found, "hidden")
    Policy(client=name, within=read, hidden=hidden)  # so that a broken pattern is told now
    allowed = Grants(
        client=name,
        kind=kind,
        capabilities=frozenset(cast("tuple[Capability, ...]", values.get_section_texts(found, "capabilities"))),
        write=values.get_section_texts(found, "write"),
        read_only=values.get_section_texts(found, "read_only"),
        is_read_only=found["access"] == "read",
        editable=cast("EditableScope", found["scope"]),
        small=cast("Outcome", found["small"] or small),
        large=cast("Outcome", found["large"] or large),
        guarded=values.get_section_texts(found, "guarded"),
    )
    return ClientSettings(grants=allowed, read=read, hidden=hidden, token_hash=_check_token_hash(document, name, found))


def _check_token_hash(document: ConfigDocument, name: str, found: Mapping[str, SettingValue]) -> str:
    said = str(found["token_hash"])
    place = document.place(f"clients.{name}.token_hash")
    if said and name in _WITHOUT_TOKEN:
        raise SetupError(
            f"the client '{name}' can't have a token of its own ({place})",
            code="config_invalid",
            hint="give it to a client with a name and a kind of your own",
        )
    if said and not _TOKEN_HASH.fullmatch(said):
        raise SetupError(
            f"{place} isn't the hash of a token",
            code="config_invalid",
            hint="take the line that `knap token new` prints",
        )
    return said


def _client_kind(document: ConfigDocument, name: str, found: Mapping[str, SettingValue]) -> ClientKind:
    said = cast("ClientKind | None", found["kind"] or None)
    own = access.CLIENT_KINDS.get(name)
    if own and said and said != own:
        place = document.place(f"clients.{name}.kind")
        raise SetupError(
            f"the client '{name}' in {place} can't be of another kind",
            code="config_invalid",
            hint="take the line out, or give the client a name of your own",
        )
    if own or said:
        return own or said or "named"
    raise SetupError(
        f"the client '{name}' in {document.place(f'clients.{name}')} has no kind",
        code="config_invalid",
        hint=values.did_you_mean(name, access.CLIENT_KINDS, 'add a line to its section, such as: kind = "mcp"'),
    )
