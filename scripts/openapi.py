"""Print the server's OpenAPI document, from which the types of `ui/client` are generated."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from knapper.app import open_hub
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.server import credentials, lifecycle, security
from knapper.server.http import app
from knapper.server.http.app import ServerRuntime
from knapper.server.workers import WorkerThreads


def document() -> dict[str, Any]:
    """Make the application over an empty vault, and return its document."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        (base / "vault").mkdir()
        settings = Settings(
            choice=Vault(name="v", path=base / "vault"),
            state_dir=base / "state",
            embeddings=EmbeddingSettings(kind="none"),
            config_file=base / "config.toml",
        )
        with open_hub(settings) as hub:
            work = ServerRuntime(threads=WorkerThreads(1))
            sessions = credentials.open_browser_sessions(settings.state_dir)
            mounts = lifecycle.list_mounts(hub, sessions, work, watch=False)
            made = app.create_app(hub, settings.server, security.load_client_tokens(settings), work, mounts)
            found = made.openapi()
            work.threads.close()
    return {**found, "info": {"title": found["info"]["title"], "version": "0"}}  # a release changes no type


if __name__ == "__main__":
    _ = sys.stdout.write(json.dumps(document(), indent=1, sort_keys=True))
