"""Make the app over a small vault, and clients that ask it."""

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from starlette.testclient import TestClient

from knapper.app import Hub, open_hub
from knapper.config import ClientSettings, EmbeddingSettings, Settings, Vault
from knapper.config.sections import ServerSettings
from knapper.server import credentials, security
from knapper.server.http import app
from knapper.server.http.app import KnapperAPI, Mount, ServerRuntime
from knapper.server.workers import StopSignal, WorkerThreads
from tests.index import worlds

NOTES = {
    "Garden.md": "---\nstatus: open\n---\n# Garden\n\n## Watering\n\nEvery evening, with [[Rain]].\n",
    "Rain.md": "# Rain\n\nIt rains on the tomatoes.\n",
    "Private/Diary.md": "# Diary\n\nThe secret of the tomatoes.\n",
}
NO_LIMIT = ServerSettings(requests_per_minute=0)
HOST = "http://127.0.0.1:25627"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold a hub, its settings and who may ask it."""

    hub: Hub
    settings: Settings
    root: Path
    stop: StopSignal = field(default_factory=StopSignal)

    def app(self, *mounts: Mount) -> KnapperAPI:
        work = ServerRuntime(threads=WorkerThreads(self.settings.server.threads), stop=self.stop)
        return app.create_app(self.hub, self.settings.server, security.load_client_tokens(self.settings), work, mounts)

    def token(self, name: credentials.TokenName = "api") -> str:
        return credentials.read_or_make_token(self.settings.state_dir, name)

    @contextlib.contextmanager
    def client(self, token: str | None = None, *mounts: Mount, host: str = HOST) -> Generator[TestClient]:
        """Give a client with the API's token, or another one; an empty one is none."""
        shown = self.token() if token is None else token
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        with TestClient(self.app(*mounts), base_url=host, headers=headers, raise_server_exceptions=False) as asking:
            yield asking


def settings(base: Path, notes: Mapping[str, str] = NOTES, *, server: ServerSettings = NO_LIMIT) -> Settings:
    """Write notes below *base*."""
    root = worlds.fill(base / "vault", dict(notes)).resolve()
    return Settings(
        choice=Vault(name="v", path=root),
        state_dir=base / "state",
        embeddings=EmbeddingSettings(kind="none"),
        config_file=base / "config.toml",
        server=server,
    )


@contextlib.contextmanager
def world(
    base: Path, *clients: ClientSettings, server: ServerSettings = NO_LIMIT, notes: Mapping[str, str] = NOTES
) -> Generator[World]:
    """Open a vault below *base*."""
    found = replace(settings(base, notes, server=server), clients=clients)
    with open_hub(found) as hub:
        yield World(hub=hub, settings=found, root=found.vault.path)
