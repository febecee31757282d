"""Open the configured embedder."""

from knapper.index.embedders.base import Embedder, EmbedderSettings


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """Open the configured embedder; models are loaded on first use.

    Returns:
        The embedder; None for search by words only.

    Raises:
        EmbedderError: A setting is missing or can't be used.
    """
    if settings.kind == "static":
        from knapper.index.embedders.static import StaticEmbedder  # noqa: PLC0415 - each kind imports a library of its own

        return StaticEmbedder(settings.folder)
    if settings.kind == "endpoint":
        from knapper.index.embedders.endpoint import EndpointEmbedder  # noqa: PLC0415

        return EndpointEmbedder(settings)
    if settings.kind == "onnx":
        from knapper.index.embedders.onnx import OnnxEmbedder  # noqa: PLC0415

        return OnnxEmbedder(settings)
    return None
