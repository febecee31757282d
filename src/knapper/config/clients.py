"""The section of one client, and what its owner lets it see and change by that."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from knapper.config import values
from knapper.config.declarations import SettingsSection, SettingValue, read_section, setting, settings_of
from knapper.config.files import ConfigDocument
from knapper.config.settings import ClientSettings
from knapper.errors import SetupError
from knapper.vault import access
from knapper.vault.access import (
    DEFAULT_MAX_FILES,
    PREFERENCES_NOTE,
    Capability,
    ClientKind,
    Confirmation,
    EditableScope,
    Grants,
    Outcome,
    Policy,
)

_TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_WITHOUT_TOKEN = frozenset({"cli", "page", "agent", "script"})
"""Persons, and what works inside the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSection(SettingsSection):
    """What the owner says in a section ``[clients.NAME]``; without *small* and *large* the client's kind tells."""

    kind: Literal["", "mcp", "http", "agent", "script"] = setting(
        "", "What the client is; for a name of your own, not for cli, page, mcp, http, agent and script."
    )
    token_hash: str = setting(
        "", "The hash of the token that it sends to the HTTP server; `knap token new` creates both.", secret=True
    )
    vaults: tuple[str, ...] = setting((), "Names of the vaults that it may open; empty for all.")
    read: tuple[str, ...] = setting((), "Patterns of the only paths that it can read; empty for all.")
    hidden: tuple[str, ...] = setting((), "Patterns of paths that it can't see.")
    write: tuple[str, ...] = setting((), "Patterns of the only paths that it may change; empty for all.")
    read_only: tuple[str, ...] = setting((), "Patterns of paths that it may not change.")
    access: Literal["write", "read"] = setting("write", "Whether it may change anything: write, or only read.")
    capabilities: tuple[Capability, ...] = setting(
        ("add", "delete", "create", "navigate", "move", "properties"), "What it may do to files."
    )
    scope: EditableScope = setting(
        "all",
        "Which notes it may change: all, the current one, that one and the notes it links to, or those in its context.",
    )
    small: Literal[Outcome, ""] = setting(
        "", "What happens to a change in one exact place that overwrites, moves and trashes nothing."
    )
    large: Literal[Outcome, ""] = setting(
        "",
        "What happens to any other change, by default the same as to a small one; "
        "with more files than max_files it is at most a proposal.",
    )
    max_files: int = setting(
        DEFAULT_MAX_FILES,
        "How many files it may change at once without a person's approval; updated links don't count.",
        least=1,
        most=1_000,
    )
    guarded: tuple[str, ...] = setting(
        (PREFERENCES_NOTE,),
        "Patterns of paths that change only with a person's approval; none by default for the kinds mcp and http.",
    )
    confirm: Literal[Confirmation, ""] = setting(
        "",
        "What happens to a proposal if the client's program can ask a person: it asks (ask), or the proposal waits "
        "for review (propose); ask by default for the kinds mcp and http.",
    )


CLIENT_SETTINGS = settings_of(ClientSection)
"""Settings of one client."""
_IDENTITY = frozenset({"kind", "token_hash"})
RIGHTS = tuple(setting for setting in CLIENT_SETTINGS if setting.name not in _IDENTITY)
"""Those that say what it may see and change; the others say who it is."""


def rights_of(client: ClientSettings) -> dict[str, SettingValue]:
    """Return what a client may see and change by the names of `RIGHTS`, with what is usual where nothing is said."""
    grants = client.grants
    order: Sequence[str] = get_args(Capability)
    return {
        "vaults": client.vaults,
        "read": client.read,
        "hidden": client.hidden,
        "write": grants.write,
        "read_only": grants.read_only,
        "access": "read" if grants.is_read_only else "write",
        "capabilities": tuple(name for name in order if name in grants.capabilities),
        "scope": grants.editable,
        "small": grants.small,
        "large": grants.large,
        "max_files": grants.max_files,
        "guarded": grants.guarded,
        "confirm": grants.confirm,
    }


def usual_rights(client: ClientSettings) -> dict[str, SettingValue]:
    """Return what `rights_of` would for a client of that kind of which the configuration says nothing.

    That is so for each right alone: what becomes of a large change depends on what becomes of its small ones.
    """
    usual = access.default_grants(client.name, client.grants.kind)
    large = access.stricter(client.grants.small, usual.large)
    return {**rights_of(ClientSettings(grants=usual)), "large": large}


def read_clients(
    document: ConfigDocument, sections: Mapping[str, Mapping[str, object]], vaults: Collection[str]
) -> tuple[ClientSettings, ...]:
    """Read the clients of a configuration file.

    Args:
        document: The file, for messages.
        sections: What stands below ``[clients]``, by name.
        vaults: Names of the vaults in the file.

    Raises:
        SetupError: A value isn't of its setting's kind, a pattern isn't one, nobody can tell what a client is, or there
            is no vault of a name.
    """
    read = tuple(_read_client(document, name, section) for name, section in sections.items())
    for client in read:
        _check_vaults(document, client, vaults)
    return read


def _check_vaults(document: ConfigDocument, client: ClientSettings, vaults: Collection[str]) -> None:
    for name in client.vaults:
        if name not in vaults:
            raise SetupError(
                f"there is no vault '{name}' ({document.place(f'clients.{client.name}.vaults')})",
                code="config_invalid",
                hint=values.did_you_mean(name, vaults, "give the vault a section [vaults.NAME]"),
            )


def _read_client(document: ConfigDocument, name: str, written: Mapping[str, object]) -> ClientSettings:
    checked_values = values.check_section(document, f"clients.{name}", written, CLIENT_SETTINGS)
    section = read_section(ClientSection, checked_values)
    kind = _client_kind(document, name, section)
    usual_small, usual_large = access.default_outcomes(kind)
    small = section.small or usual_small
    Policy(client=name, within=section.read, hidden=section.hidden)  # so that a broken pattern is told now
    client_grants = Grants(
        client=name,
        kind=kind,
        capabilities=frozenset(section.capabilities),
        write=section.write,
        read_only=section.read_only,
        is_read_only=section.access == "read",
        editable=section.scope,
        small=small,
        # Whoever only proposes small changes isn't meant to apply large ones because the owner said nothing of them.
        large=section.large or access.stricter(small, usual_large),
        max_files=section.max_files,
        confirm=section.confirm or access.default_confirmation(kind),
        guarded=section.guarded if "guarded" in written else access.default_guarded(kind),
    )
    _check_token_hash(document, name, section.token_hash)
    return ClientSettings(
        grants=client_grants,
        vaults=section.vaults,
        read=section.read,
        hidden=section.hidden,
        token_hash=section.token_hash,
    )


def _check_token_hash(document: ConfigDocument, name: str, token_hash: str) -> None:
    place = document.place(f"clients.{name}.token_hash")
    if token_hash and name in _WITHOUT_TOKEN:
        raise SetupError(
            f"the client '{name}' can't have a token of its own ({place})",
            code="config_invalid",
            hint="give it to a client with a name and a kind of your own",
        )
    if token_hash and not _TOKEN_HASH.fullmatch(token_hash):
        raise SetupError(
            f"{place} isn't the hash of a token",
            code="config_invalid",
            hint="take the line that `knap token new` prints",
        )


def _client_kind(document: ConfigDocument, name: str, section: ClientSection) -> ClientKind:
    fixed_kind = access.CLIENT_KINDS.get(name)
    if fixed_kind and section.kind and section.kind != fixed_kind:
        place = document.place(f"clients.{name}.kind")
        raise SetupError(
            f"the client '{name}' in {place} can't be of another kind",
            code="config_invalid",
            hint="take the line out, or give the client a name of your own",
        )
    if kind := fixed_kind or section.kind:
        return kind
    raise SetupError(
        f"the client '{name}' in {document.place(f'clients.{name}')} has no kind",
        code="config_invalid",
        hint=values.did_you_mean(name, access.CLIENT_KINDS, 'add a line to its section, such as: kind = "mcp"'),
    )
