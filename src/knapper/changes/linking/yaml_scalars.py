"""Find the YAML scalars of a note's properties or of a base, and how each is quoted."""

from dataclasses import dataclass
from typing import Final, Literal

from knapper.vault import frontmatter
from knapper.vault.outline import Outline
from knapper.vault.walk import FileKind

ScalarStyle = Literal["plain", "single", "double", "block"]

_STYLES: Final[dict[str, ScalarStyle]] = {"'": "single", '"': "double", "|": "block", ">": "block"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """Hold one text of a YAML document."""

    style: ScalarStyle
    start: int
    """In bytes of the file, quotes included."""
    stop: int
    value: str


def read(raw: bytes, kind: FileKind, outline: Outline) -> list[Scalar]:
    """List the scalars of a note's properties, or of a base, that was read without problems.

    Args:
        raw: The file.
        kind: ``note`` or ``base``.
        outline: What was read from it.
    """
    block = outline.frontmatter
    if kind == "base":
        start, stop = frontmatter.find_text_start(raw), len(raw)
    elif block is not None and block.valid:
        start, stop = block.yaml_start, block.yaml_stop
    else:
        return []
    text = raw[start:stop].decode(errors="replace")
    root = frontmatter.compose_yaml(text)
    offsets = frontmatter.list_byte_offsets(text, start)
    return [
        Scalar(
            style=_STYLES.get(str(node.style or ""), "plain"),
            start=offsets[node.start_mark.index],
            stop=offsets[node.end_mark.index],
            value=str(node.value),
        )
        for _, node in (frontmatter.list_scalars(root) if root is not None else ())
    ]
