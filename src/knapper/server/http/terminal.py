"""Answer this account's own commands, so that they needn't load the index: ``/terminal``.

A command gets what it would have found itself, or nothing: then it looks itself. So whatever isn't the same for both,
such as a setting, another vault or a tool that writes, is declined, and an error is left to the command's own process.
`knapper.server.terminal` tells how both prove who they are.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from knapper import __version__
from knapper.app import Hub
from knapper.config import Settings, Vault, files, loading
from knapper.errors import KnapError, RefusedError
from knapper.server import credentials, security
from knapper.server import terminal as protocol
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal
from knapper.system import private

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from starlette.requests import Request

    from knapper.server.http.app import ServerRuntime
    from knapper.tools.context import Context
    from knapper.tools.registry import ToolSpec

LOG: Final = logging.getLogger("knapper.server.failures")
CLIENT: Final = "cli"
"""Whose rights count: a command's own."""
_TOOLS_PACKAGE: Final = "knapper.tools"
_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_OWN_SECTIONS: Final = frozenset({"model", "audio", "web", "agents", "runs", "scripts", "server"})
"""Settings that no tool reads which only reads notes."""
_CHOICE_FIELDS: Final = frozenset(
    {"choice", "passed_by", "default_vault", "config_file", "env_file", "origins", "unused"}
)
"""What a configuration was read from, and which of its vaults is chosen; that is compared apart."""


class Declined(Exception):
    """The command has to find its own answer; the text says why."""


class TerminalService:
    """The answers of one server to this account's own commands."""

    def __init__(self, hub: Hub, runtime: ServerRuntime, url: str, key: bytes) -> None:
        """Answer for a hub.

        Args:
            hub: The vaults.
            runtime: The worker threads, and which server it is.
            url: The address in the server's record.
            key: What commands and server prove themselves with.
        """
        self._hub = hub
        self._runtime = runtime
        self._url = url.encode()
        self._key = key
        facts = {
            "instance": runtime.instance,
            "version": __version__,
            "variables": loading.variable_names(secret=False),
        }
        self._hello = json.dumps(facts).encode()

    async def greet(self, request: Request) -> Response:
        """Prove to whoever asks that this is the account's server, by a nonce of theirs."""
        nonce = request.query_params.get("nonce", "")
        if _NONCE.fullmatch(nonce) is None:
            raise _not_proved()
        proof = protocol.prove(self._key, "server", nonce.encode(), self._url, self._hello)
        headers = {**security.REPLY_HEADERS, protocol.PROOF_HEADER: proof}
        return Response(self._hello, media_type="application/json", headers=headers)

    async def answer(self, request: Request) -> Response:
        """Answer a command that proves to have the key, with a sign of life now and then until the answer is there.

        Raises:
            RefusedError: It doesn't prove that.
        """
        body = await request.body()
        expected = protocol.prove(self._key, "terminal", self._runtime.instance.encode(), body)
        if not hmac.compare_digest(expected.encode(), request.headers.get(protocol.PROOF_HEADER, "").encode()):
            raise _not_proved()
        return StreamingResponse(
            self._stream(body), media_type="application/json", headers=dict(security.REPLY_HEADERS)
        )

    async def _stream(self, body: bytes) -> AsyncGenerator[bytes]:
        cancelling = StopSignal()
        task = asyncio.ensure_future(self._runtime.threads.run("read", lambda: self.find_answer(body, cancelling)))
        try:
            while True:
                yield b" "
                done, _ = await asyncio.wait((task,), timeout=protocol.BEAT_S)
                if done:
                    break
            try:
                reply = task.result()
            except (Declined, KnapError) as reason:
                reply = _dump({"declined": str(reason)})
            except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:  # a question of another form
                reply = _dump({"declined": type(error).__name__})
            yield reply
        finally:  # the command may have gone
            _ = task.cancel()
            cancelling.cancel()

    def find_answer(self, body: bytes, cancelling: StopSignal) -> bytes:
        """Return the reply to a question, as JSON.

        Args:
            body: The question, as a `knapper.server.terminal.TerminalQuestion` is sent.
            cancelling: Sent when nobody waits for the answer any more.

        Raises:
            Declined: The command has to find it itself.
        """
        question = cast("Mapping[str, Any]", json.loads(body))
        own_variables = files.environment_variables()
        if not hmac.compare_digest(question["same"], protocol.prove_same(self._key, own_variables)):
            raise Declined("a variable differs")
        options = question["options"]
        settings = loading.load(
            {"default_vault": options["vault"]},
            config_file=options["config"],
            env_file=options["env_file"],
            cwd=Path(question["folder"]),
            variables=question["variables"],
        )
        if not settings.server.answers_commands:
            raise Declined("server.answers_commands is no")
        own_settings = self._hub.settings  # read once: the page may save others meanwhile
        for name in (each.name for each in fields(Settings) if each.name not in _OWN_SECTIONS | _CHOICE_FIELDS):
            if getattr(settings, name) != getattr(own_settings, name):
                raise Declined(f"the setting {name} differs")
        if not question["is_quiet"] and not files.are_told(
            settings.unused, settings.state_dir / private.TOLD_VARIABLES_NAME
        ):
            raise Declined("a variable that means nothing has to be named")
        find = self._prepare_named if question["by_name"] else self._prepare_direct
        run, notices = find(question, settings, cancelling)
        reply: dict[str, object] = {"notices": notices, "answer": None}
        try:
            reply["answer"] = run()
        except KnapError as error:  # the command meets it again in its own process, and tells it
            LOG.debug("a command finds its own answer: %s", error.code)
        except Exception:
            LOG.exception("A command's question failed, so that it finds its own answer")
        return _dump(reply)

    def _prepare_direct(
        self, question: Mapping[str, Any], settings: Settings, cancelling: StopSignal
    ) -> tuple[Callable[[], object], tuple[str, ...]]:
        """Return a function that calls a tool as a command does in its own process, and the vault's notices."""
        # A command names the function, such as ``search.search_vault``, and not the tool.
        place = f"{_TOOLS_PACKAGE}.{question['tool']}"
        row = next(
            (row for row in self._hub.table.specs if f"{row.function.__module__}.{row.function.__name__}" == place),
            None,
        )
        if row is None:
            raise Declined("there is no such tool")
        _check_reads(row)
        vault = settings.choice
        if not isinstance(vault, Vault) or vault not in self._hub.vault_folders:
            raise Declined("the vault isn't served")
        context = self._hub.open(vault.name).context(CLIENT)
        notices = context.notices
        context = replace(context, on_cancel=cancelling.subscribe, notices=notices if question["keeps_notices"] else ())
        return lambda: row.function(context, **question["arguments"]), notices

    def _prepare_named(
        self, question: Mapping[str, Any], settings: Settings, cancelling: StopSignal
    ) -> tuple[Callable[[], object], tuple[str, ...]]:
        """Return a function that calls a tool by its name with checked arguments, as `knap tool` does."""
        table, name = self._hub.table, str(question["tool"])
        _check_reads(table.find(name))
        own = Hub(settings, only=bool(question["only"]))
        if own.vault_folders != self._hub.vault_folders:
            raise Declined("other vaults are served")

        def open_vault(vault: str) -> Context:
            context = self._hub.context(client=CLIENT, vault=vault)
            review = replace(context.review, page="")  # a command knows of no page
            return replace(context, on_cancel=cancelling.subscribe, review=review)

        return lambda: table.call(name, question["arguments"], open_vault), ()


def mount_terminal(hub: Hub, runtime: ServerRuntime, url: str) -> Mount:
    """Mount the route; the key is made if there is none.

    It needs no token, since both sides prove that they have the key; it isn't in the document, since only this
    version's own commands can use it.

    Raises:
        StorageError: The key can't be read or made.
    """
    key = credentials.read_or_make_token(hub.settings.state_dir, "terminal").encode()
    service = TerminalService(hub, runtime, url, key)
    return Mount(
        routes=(
            Route(protocol.PATH, service.greet, methods=["GET"], include_in_schema=False),
            Route(protocol.PATH, service.answer, methods=["POST"], include_in_schema=False),
        ),
        open_paths=frozenset({protocol.PATH}),
    )


def _not_proved() -> RefusedError:
    return RefusedError("this is for commands of the account that runs the server", code="unauthorized")


def _check_reads(row: ToolSpec) -> None:
    """Decline what writes, what reaches other machines, and what may go on for minutes."""
    if row.effect != "read" or row.open_world or row.takes_long:
        raise Declined(f"{row.name} doesn't only read the vault")


def _dump(reply: Mapping[str, object]) -> bytes:
    """Write JSON that is read as it was: lone surrogates are escaped, and numbers keep all their digits."""
    return json.dumps(reply).encode("ascii")
