"""Search the vault by an address that can be kept: ``GET /search?query=garden``."""

from typing import Final

from knapper.server.http.faces import Face

FACES: Final = (Face(method="GET", path="/search", tool="search_vault", tag="search"),)
