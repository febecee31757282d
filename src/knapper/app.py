"""Wire the parts together: the only place that knows all of them."""

from knapper import config
from knapper.config import Settings, Vault
from knapper.index.embed import EmbedSettings, open_embedder
from knapper.index.engine import Engine
from knapper.tools.context import Context
from knapper.vault.policy import Policy
from knapper.vault.view import View


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*, with its index.

    Args:
        settings: What the configuration says.
        client: Whose policy holds.

    Raises:
        SetupError: No vault could be chosen, or the state folder lies inside it.
        StorageError: The index can't be opened.
    """
    vault = settings.vault
    owner = View.open(vault.path, Policy(client="owner"))
    allowed = settings.client(client)
    policy = Policy(
        client=client,
        read=vault.read,
        within=allowed.read,
        hidden=vault.hidden + allowed.hidden,
        foreign_folders=vault.foreign_folders,
        foreign_properties=vault.foreign_properties,
    )
    return Context(vault=vault.name, view=owner.seen_by(policy), index=_open_index(settings, vault, owner))


def _open_index(settings: Settings, vault: Vault, view: View) -> Engine:
    embeddings = settings.embeddings
    chosen = EmbedSettings(
        kind=embeddings.kind, model=embeddings.model, base_url=embeddings.base_url, api_key=embeddings.api_key
    )
    return Engine(
        config.state_folder(settings, vault) / "index",
        view,
        open_embedder=lambda: open_embedder(chosen),
        fusion=settings.search.fusion,
    )
