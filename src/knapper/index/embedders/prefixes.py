"""Know what some models want to read in front of a question and of a passage."""

from dataclasses import dataclass

from knapper.index.embed import EmbedSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Hold what is put in front of texts."""

    query: str = ""
    passage: str = ""


_KNOWN = (
    ("multilingual-e5", Prefixes(query="query: ", passage="passage: ")),
    ("e5-", Prefixes(query="query: ", passage="passage: ")),
    ("nomic-embed-text", Prefixes(query="search_query: ", passage="search_document: ")),
    ("mxbai-embed-large", Prefixes(query="Represent this sentence for searching relevant passages: ")),
)
"""Beginnings of model names without their owner, from the models' own descriptions."""


def choose(settings: EmbedSettings) -> Prefixes:
    """Take the configured prefixes; where they are None, those that the model is known to want."""
    name = settings.model.rsplit("/", 1)[-1].casefold()
    known = next((prefixes for start, prefixes in _KNOWN if name.startswith(start)), Prefixes())
    return Prefixes(
        query=known.query if settings.query_prefix is None else settings.query_prefix,
        passage=known.passage if settings.passage_prefix is None else settings.passage_prefix,
    )


def model_id(kind: str, settings: EmbedSettings) -> str:
    """Name the model with all that changes a passage's vector."""
    passage = choose(settings).passage
    return f"{kind}:{settings.model}" + (f"|{passage}" if passage else "")
