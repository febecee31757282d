"""Open the configured embedder."""

from knapper.index.embedders.base import Embedder, EmbedderError, EmbedderSettings


def open_embedder(settings: EmbedderSettings) -> Embedder | None:
    """Open the configured embedder; models are loaded on first use.

    Returns:
        The embedder; None for search by words only.

    Raises:
        EmbedderError: A setting is missing or can't be used.
    """
    if settings.kind == "static":
        from knapper.index.embedders.static import MODEL, StaticEmbedder  # noqa: PLC0415 - a library for each kind

        if settings.model not in {"", MODEL}:
            raise EmbedderError(
                f"embeddings.kind is static, which doesn't know the model '{settings.model}'",
                hint="set embeddings.kind to onnx or endpoint; or take embeddings.model out, and set embeddings.folder "
                "to a folder that model2vec wrote",
            )
        return StaticEmbedder(settings.folder)
    if settings.kind == "endpoint":
        if settings.folder is not None:
            raise EmbedderError(
                "embeddings.kind is endpoint, where embeddings.folder means nothing",
                hint="take embeddings.folder out, or set embeddings.kind to static or onnx",
            )
        from knapper.index.embedders.endpoint import EndpointEmbedder  # noqa: PLC0415

        return EndpointEmbedder(settings)
    if settings.kind == "onnx":
        from knapper.index.embedders.onnx import OnnxEmbedder  # noqa: PLC0415

        return OnnxEmbedder(settings)
    return None
