"""A vault opened with its index, and the external services that its clients may use."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from knapper.config import files, loading
from knapper.errors import KnapError, SetupError, StorageError
from knapper.index import database
from knapper.index.engine import Engine, RankFusion
from knapper.index.models.base import Embedder, EmbedderError, EmbedderSettings
from knapper.system import private
from knapper.tools.context import Context, ReviewPlaces, Rights
from knapper.vault import access, obsidian, walk
from knapper.vault.access import Policy
from knapper.vault.view import View

if TYPE_CHECKING:
    from knapper.changes.disk.apply import Recovered
    from knapper.changes.proposals.taint import Taints
    from knapper.changes.writer import SubmitOptions, VaultWriters
    from knapper.config import ClientSettings, Settings, Vault
    from knapper.config.sections import RerankSettings
    from knapper.index.models.base import Reranker, Reranking
    from knapper.index.postgres.connection import PostgresServer
    from knapper.index.refresh import IndexPublisher
    from knapper.net.speech import Transcriber
    from knapper.net.web import Web


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """Open the configured embedder; models are loaded on first use.

    Returns:
        The embedder; None for search by words only.

    Raises:
        EmbedderError: A setting is missing or can't be used.
    """
    if settings.kind == "static":
        from knapper.index.models.static import StaticEmbedder  # noqa: PLC0415 - a library for each kind
        from knapper.index.models.tables import MODEL  # noqa: PLC0415

        if settings.model not in {"", MODEL}:
            raise EmbedderError(
                f"embeddings.kind is static, which doesn't know the model '{settings.model}'",
                hint="set embeddings.kind to onnx or endpoint; or take embeddings.model out, and set embeddings.folder "
                "to a folder that model2vec wrote",
            )
        return StaticEmbedder(settings.folder)
    if settings.kind == "e5":
        from knapper.index.models import e5  # noqa: PLC0415 - as above

        if settings.model not in {"", e5.NAME} or settings.folder is None:
            raise EmbedderError(
                f"embeddings.kind is e5, which is the model {e5.NAME} alone",
                hint="take embeddings.model out, or set embeddings.kind to onnx or endpoint",
            )
        return e5.E5Embedder(settings.folder, threads=settings.threads)
    if settings.kind == "endpoint":
        if settings.folder is not None:
            raise EmbedderError(
                "embeddings.kind is endpoint, where embeddings.folder means nothing",
                hint="take embeddings.folder out, or set embeddings.kind to static or onnx",
            )
        from knapper.index.models.endpoint import EndpointEmbedder  # noqa: PLC0415

        return EndpointEmbedder(settings)
    if settings.kind == "onnx":
        from knapper.index.models.onnx import OnnxEmbedder  # noqa: PLC0415

        return OnnxEmbedder(settings)
    return None


Close = Callable[[], None]


class ExternalServices:
    """The web and the transcriber, opened on first use."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Store the configuration; nothing is opened yet.

        Args:
            settings: What the configuration says.
            folder: The vault's state folder.
        """
        self._settings = settings
        self._folder = folder
        self._lock = threading.Lock()
        self._web: Web | None = None
        self._transcriber: Transcriber | None = None

    def web(self) -> Web:
        """Return the client that searches the web and fetches pages.

        Raises:
            SetupError: The owner hasn't allowed it.
        """
        if not self._settings.web.is_allowed:
            raise SetupError(
                "web access is off",
                hint='the owner can allow it: access = "on" below [web] in the configuration, or KNAP_WEB_ACCESS=on',
                code="web_off",
            )
        with self._lock:
            if self._web is None:
                from knapper.app import models  # noqa: PLC0415 - needed by few
                from knapper.net import web  # noqa: PLC0415 - slow to import, and off for most

                self._web = web.open_web(models.web_options(self._settings))
            return self._web

    def close(self) -> None:
        """Close what was opened."""
        with self._lock:
            if self._web is not None:
                self._web.close()
            if self._transcriber is not None:
                self._transcriber.close()

    def transcriber(self) -> Transcriber:
        """Return the transcriber of audio.

        Raises:
            SetupError: The owner hasn't configured one.
        """
        with self._lock:
            if self._transcriber is None:
                from knapper.net.speech import service  # noqa: PLC0415 - needed by few

                audio, provider_keys = self._settings.audio, dict(self._settings.model.keys)
                self._transcriber = service.open_transcriber(
                    service.SpeechSettings(
                        access=audio.access,
                        provider=audio.provider,
                        model=audio.model,
                        base_url=audio.base_url,
                        api_key=audio.api_key,
                        fireworks_key=provider_keys.get("fireworks", ""),
                        openai_key=provider_keys.get("openai", ""),
                        language=audio.language,
                        max_bytes=audio.max_mb * 1_000_000,
                        timeout_s=audio.timeout_s,
                    ),
                    folder=self._folder / "transcripts",
                )
            return self._transcriber


_KEYRING = "keyring"
"""What stands for a password that the system's keyring has."""
_RULE_FILES = (walk.IGNORE_FILE, obsidian.APP_FILE)


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*, with its index; what writing needs is opened on first use.

    Args:
        settings: What the configuration says.
        client: The client whose policy applies.

    Raises:
        SetupError: No vault could be chosen, or the state folder lies inside it.
        StorageError: The index can't be opened.
    """
    opened_vault = OpenedVault(settings, settings.vault)
    return opened_vault.context(client, close=opened_vault.close)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutShort:
    """A change that was cut short by a kill, told to readers."""

    text: str
    brief: str
    """The same without what is only for a client that sees everything."""

    @classmethod
    def settled(cls, outcome: Recovered) -> Self:
        """Describe how it was settled."""
        done = f"that was cut short was {outcome.outcome}"
        count = len(outcome.paths)
        return cls(text=f"a change of {count} file{'s' * (count != 1)} {done}", brief=f"a change {done}")

    @classmethod
    def standing(cls, error: Exception) -> Self:
        """Describe one that can't be settled now."""
        message = "the vault stands half changed: a change was cut short, and can't be finished or taken back now"
        cause = error.__cause__ or error
        reason = cause.strerror if isinstance(cause, OSError) else str(cause)
        return cls(text=f"{message}: {reason or type(cause).__name__}", brief=message)


class OpenedVault:
    """A vault's open index, and the state that its writers share.

    Safe to use from any thread.
    """

    def __init__(self, settings: Settings, vault: Vault, *, reads_only: bool = False) -> None:
        """Open the index.

        Args:
            settings: What the configuration says.
            vault: The vault.
            reads_only: Leave changes that were cut short to another process.

        Raises:
            SetupError: The state folder lies inside the vault.
            StorageError: The index can't be opened.
        """
        # what the owner hides from everybody is kept out of the index too, and so from an embedder elsewhere
        policy = Policy(client=access.OWNER, read=vault.read, hidden=vault.hidden)
        self.vault = vault
        private.tighten(settings.state_dir)
        self.folder = loading.state_folder(settings, vault)  # the index makes it
        self._settings = settings
        self._reads_only = reads_only
        self._stack = contextlib.ExitStack()
        self._without_state = ""
        """Why the index is in a temporary folder; empty where it is with the state."""
        self._policies: dict[str, Policy] = {}
        self.engine = self._open_index(policy)
        self._stack.callback(self.engine.close)
        self._lock = threading.Lock()
        self._vault_writers: VaultWriters | None = None
        self._taints: Taints | None = None
        self._outside = ExternalServices(settings, self.folder)
        self._stack.callback(self._outside.close)
        self._rules = _stamp_rule_files(vault.path)
        self._untold: list[CutShort] = []
        self._half_changed: CutShort | None = None
        try:
            self._settle_cut_short()
        except BaseException:
            self._stack.close()
            raise

    def context(
        self, client: str, *, submit_options: SubmitOptions | None = None, close: Close = lambda: None
    ) -> Context:
        """Return the vault as *client* sees it.

        Args:
            client: The client whose policy applies.
            submit_options: How changes are submitted.
            close: What closing the context does.
        """
        allowed = self._settings.client(client)
        self._settle_cut_short()
        self._reload_changed_rules()
        view = self.engine.view.with_policy(self._policy(allowed))
        # Whether a command has to name the vault, and can.
        names = [vault.name for vault in self._settings.vaults]
        is_one_of_several = len(names) > 1 and self.vault.name in names
        # Each outcome of a change that was cut short is told once.
        with self._lock:
            untold, self._untold = self._untold, []
        standing = [self._half_changed] if self._half_changed else []
        notices = [notice.text if view.policy.sees_all else notice.brief for notice in (*untold, *standing)]
        if self._without_state:
            notices.append(self._without_state)
        return Context(
            vault=self.vault.name,
            view=view,
            index=self.engine,
            open_writer=functools.cache(lambda: self._open_writers().writer(view, allowed.grants)),
            open_rights=lambda: Rights(grants=allowed.grants, taints=self._open_taints()),
            close=close,
            submit_options=submit_options,
            open_web=self._outside.web,
            open_transcriber=self._outside.transcriber,
            review=ReviewPlaces(vault=self.vault.name if is_one_of_several else ""),
            notices=tuple(notices),
        )

    def settle(self) -> bool:
        """Bring the vault itself into order, as each call does; return whether its clients need to be told nothing."""
        self._settle_cut_short()
        self._reload_changed_rules()
        with self._lock:
            return not (self._untold or self._half_changed or self._without_state)

    def _open_index(self, policy: Policy) -> Engine:
        """Open the index; where the state can't be written and there is none yet, in a folder for this run only."""
        folder = self.folder / "index"
        try:
            return self._open_index_in(folder, policy)
        except StorageError as error:
            if (folder / database.INDEX_FILE).exists():
                raise
            existing = next(path for path in (folder, *folder.parents) if path.exists())
            if os.access(existing, os.W_OK):
                raise
            cause = error.__cause__
            reason = cause.strerror if isinstance(cause, OSError) else str(cause or error)
            self._without_state = f"the state can't be written ({reason}): what is indexed is forgotten after this run"
            temporary = tempfile.TemporaryDirectory(prefix="knap-index-", ignore_cleanup_errors=True)
            self._stack.callback(temporary.cleanup)
            return self._open_index_in(Path(temporary.name), policy)

    def _open_index_in(self, folder: Path, policy: Policy) -> Engine:
        """Open the index in a folder: of the vault's files, or without these of what another machine has published.

        Raises:
            SetupError: There are neither files nor a database.
        """
        settings, vault = self._settings, self.vault
        open_own_embedder = functools.partial(open_embedder, _embedder_settings(settings))
        if not vault.has_files:
            from knapper.index.postgres.reader import ReaderEngine  # noqa: PLC0415 - most vaults have files

            if not settings.index.is_shared:
                raise SetupError(
                    f"the vault '{vault.name}' has no files here, and index.engine names no database to read it from",
                    hint='set engine = "postgresql://…" below [index], or the path of its files',
                    code="no_vault",
                )
            server, fusion = _open_server(settings, vault), _rank_fusion(settings)
            return ReaderEngine(folder, vault.path, policy, server, open_embedder=open_own_embedder, fusion=fusion)
        publisher: IndexPublisher | None = None
        if settings.index.is_shared:
            from knapper.index.postgres.publish import Publisher  # noqa: PLC0415 - most indexes are local

            pairs = (reader.partition("=") for reader in settings.index.readers)
            readers = {role: self._policy(settings.client(client)) if client else None for role, _, client in pairs}
            publisher = Publisher(_open_server(settings, vault), readers=readers)
        return Engine(
            folder,
            View.open(vault.path, policy),
            open_embedder=open_own_embedder,
            fusion=_rank_fusion(settings),
            compare_every_s=60.0 * settings.index_interval_minutes,
            publisher=publisher,
        )

    def _settle_cut_short(self) -> None:
        """Finish or take back a change that was cut short, unless its writer is still at work."""
        if self._reads_only or not private.is_marked(self.folder):
            self._half_changed = None
            return
        from knapper.changes.disk import storage  # noqa: PLC0415 - as in `_open_writers`

        try:
            # Opening what writes may wait for the lock, which a reader shouldn't.
            if storage.is_being_written(self.folder):
                return
            writers = self._open_writers()
            writers.recover()
        except (KnapError, OSError, sqlite3.Error) as error:
            self._half_changed = CutShort.standing(error)
            return
        self._half_changed = None
        with self._lock:
            outcomes, writers.untold[:] = [*writers.untold], []
            self._untold += map(CutShort.settled, outcomes)
        import logging  # noqa: PLC0415 - 15 ms that only such a change should cost

        for outcome in outcomes:
            logging.getLogger(__name__).info("%s: %s", self.vault.name, CutShort.settled(outcome).text)

    def close(self) -> None:
        """Close all that is open."""
        self._stack.close()

    def _policy(self, client: ClientSettings) -> Policy:
        policy = self._policies.get(client.name)
        if policy is None:
            vault = self.vault
            policy = self._policies[client.name] = Policy(
                client=client.name,
                read=vault.read,
                within=client.read,
                hidden=vault.hidden + client.hidden,
                foreign_folders=vault.foreign_folders,
                foreign_properties=vault.foreign_properties,
            )
        return policy

    def _open_taints(self) -> Taints:
        """Open the record of who has read foreign text, once."""
        from knapper.changes.proposals import taint  # noqa: PLC0415 - a search needn't pay for it

        with self._lock:
            if self._taints is None:
                minutes = self._settings.taint_minutes
                lifetime = timedelta(minutes=minutes) if minutes else None
                self._taints = taint.open_taints(self._settings.state_dir, lifetime=lifetime)
                self._stack.callback(self._taints.shut)
            return self._taints

    def _open_writers(self) -> VaultWriters:
        """Open what the writers share, once; that recovers what was cut short.

        Raises:
            RefusedError: The vault's files are on another machine.
        """
        if not self.vault.has_files:
            from knapper.index.postgres.reader import no_files_error  # noqa: PLC0415 - only a reader has it

            raise no_files_error(self.vault.name)
        taints = self._open_taints()
        with self._lock:
            if self._vault_writers is None:
                # Searching needn't pay for it.
                from knapper.changes.writer import VaultWriters, WritingSettings  # noqa: PLC0415 - see above

                limits = self._settings.journal
                writing = WritingSettings(
                    state_dir=self._settings.state_dir,
                    proposal_days=self._settings.proposal_days,
                    journal_bytes=limits.max_mb * 1_000_000,
                    journal_days=limits.max_age_days,
                    backup_bytes=limits.backup_mb * 1_000_000,
                    git_environment=files.environment_variables if self._settings.commits_to_git else None,
                )
                self._vault_writers = VaultWriters.open(writing, self.engine, self.folder, taints, self._stack)
            return self._vault_writers

    def _reload_changed_rules(self) -> None:
        """Reload the vault's own ignore rules if they have changed, since a server runs for days."""
        stamps = _stamp_rule_files(self.vault.path)
        if stamps != self._rules:
            self.engine.read_rules()
            self._rules = stamps


def _stamp_rule_files(root: Path) -> tuple[tuple[int, int] | None, ...]:
    stamps: list[tuple[int, int] | None] = []
    for name in _RULE_FILES:
        try:
            status = (root / name).stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _embedder_settings(settings: Settings) -> EmbedderSettings:
    embeddings = settings.embeddings
    folder = Path(embeddings.folder) if embeddings.folder else None
    if embeddings.kind == "e5":
        from knapper.app import e5_model  # noqa: PLC0415 - only this model needs it

        folder = e5_model.model_folder(settings)
    return EmbedderSettings(
        kind=embeddings.kind,
        model=embeddings.model,
        base_url=embeddings.base_url,
        api_key=embeddings.api_key,
        query_prefix=_known_prefix(embeddings.query_prefix),
        passage_prefix=_known_prefix(embeddings.passage_prefix),
        folder=folder,
    )


def _open_server(settings: Settings, vault: Vault) -> PostgresServer:
    """Return the team's PostgreSQL for a vault; it is asked only when something is read or published."""
    from knapper.index.postgres.connection import PostgresServer  # noqa: PLC0415 - most indexes are local

    password = settings.index.password
    if password == _KEYRING:
        from knapper.agents.model import names  # noqa: PLC0415 - the same

        password = names.read_keyring(settings.index.engine)
        if not password:
            raise SetupError(
                "index.password is keyring, and the system's keyring has none for this address",
                hint=f"run: keyring set {names.KEYRING_SERVICE} {settings.index.engine}",
                code="no_password",
            )
    return PostgresServer(settings.index.engine, vault.name, password)


def _rank_fusion(settings: Settings) -> RankFusion:
    percent, rerank = settings.search.meaning_percent, settings.search.rerank
    reranking: Reranking | None = None
    if rerank.kind != "off":
        from knapper.index.models.base import Reranking  # noqa: PLC0415 - off for most

        reranking = Reranking(open=lambda: open_reranker(rerank), passages=rerank.passages)
    return RankFusion(
        method=settings.search.fusion,
        meaning=percent / 100 if percent else None,
        reranking=reranking,
    )


def open_reranker(settings: RerankSettings) -> Reranker:
    """Open the configured reranker; it is asked, or its model loaded, on first use.

    Raises:
        RerankerError: A setting is missing or can't be used.
    """
    from knapper.index.models.base import RerankerError, RerankerSettings  # noqa: PLC0415 - as above

    key = settings.api_key
    if key == _KEYRING:
        from knapper.agents.model import names  # noqa: PLC0415 - as above

        address = settings.base_url.rstrip("/")
        key = names.read_keyring(address)
        if not key:
            raise RerankerError(
                "rerank.api_key is keyring, and the system's keyring has none for this address",
                hint=f"run: knap models key {address}",
                code="reranker_key",
            )
    chosen = RerankerSettings(
        kind=settings.kind,
        base_url=settings.base_url,
        model=settings.model,
        api_key=key,
        folder=Path(settings.folder) if settings.folder else None,
        timeout_s=float(settings.timeout_s),
    )
    if settings.kind == "onnx":
        from knapper.index.models.onnx import OnnxReranker  # noqa: PLC0415 - as above

        return OnnxReranker(chosen)
    from knapper.index.models.endpoint import EndpointReranker  # noqa: PLC0415 - as above

    return EndpointReranker(chosen)


def _known_prefix(prefix: str) -> str | None:
    return None if prefix == "auto" else prefix
