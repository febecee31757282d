"""Open the embedder that is configured."""

from knapper.index.embed import Embedder, EmbedSettings


def open_embedder(settings: EmbedSettings) -> Embedder | None:
    """Open the configured embedder; what is slow to load is loaded on first use.

    Returns:
        The embedder; None where search goes by words only.

    Raises:
        EmbedderError: A setting is missing or can't be used.
    """
    if settings.kind == "static":
        from knapper.index.embedders.static import Static  # noqa: PLC0415 - each kind imports a library of its own

        return Static(settings.folder)
    if settings.kind == "endpoint":
        from knapper.index.embedders.endpoint import Endpoint  # noqa: PLC0415

        return Endpoint(settings)
    if settings.kind == "onnx":
        from knapper.index.embedders.onnx import Onnx  # noqa: PLC0415

        return Onnx(settings)
    return None
