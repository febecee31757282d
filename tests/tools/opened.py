"""Open a small vault as the program does, for any client."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from knapper import app
from knapper.app import tables
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings, EmbeddingSettings, Settings, Vault
from knapper.tools.context import Context
from tests.index import worlds


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """Open one vault, again and again."""

    root: Path
    state: Path
    hidden: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def settings(self, *clients: ClientSettings) -> Settings:
        return Settings(
            choice=Vault(name="v", path=self.root, hidden=self.hidden),
            clients=clients,
            state_dir=self.state,
            embeddings=EmbeddingSettings(kind="none"),
            config_file=self.state / "config.toml",
        )

    def open(self, client: str | ClientSettings = "cli", asked: SubmitOptions | None = None) -> Context:
        named = client if isinstance(client, str) else client.name
        settings = self.settings() if isinstance(client, str) else self.settings(client)
        return replace(app.open_vault(settings, client=named), submit_options=asked)


def vault(base: Path, notes: Mapping[str, str], *, hidden: tuple[str, ...] = ()) -> Opener:
    """Write notes below *base*."""
    root = worlds.fill(base / "vault", dict(notes)).resolve()
    return Opener(root=root, state=base / "state", hidden=hidden)


def call(context: Context, name: str, /, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Call a tool of the whole table; an error is an answer too."""
    return cast("dict[str, Any]", tables.build_table().answer(name, arguments, lambda _: context))
