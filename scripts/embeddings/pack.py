"""Turn a trained table into the two files of the package: fewer numbers a row, and pieces that can be mapped.

The rows are cut to the ``DIMENSIONS`` directions in which they differ most, and turned at random, so that all numbers
of a row are alike in size; then 4 bits each, and two scales a row, are enough. Rows are sorted by the hashes of their
pieces, so that a piece is found without a table of its own in memory.
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from knapper.index.models import static, tables

DIMENSIONS: Final = 160
"""Of 256: ``docs/benchmarks.md`` has the figures of others."""
_BLOCK: Final = 80
_SEED: Final = 0
_LOWEST_SCORE: Final = -20.0
SOURCE: Final = "distilled from intfloat/multilingual-e5-small (MIT); see NOTICE.md"


def pack(source: Path, target: Path) -> None:
    """Write the package's files.

    Args:
        source: Contains ``table.safetensors`` and ``tokenizer.json``, as the training writes them.
        target: Gets ``table.safetensors`` and ``pieces.safetensors``.
    """
    vocabulary = read_vocabulary(source / "tokenizer.json")
    table = tables.read_table(source)
    rows = turn(table.vectors(np.arange(table.vocabulary)), [score for _, score in vocabulary])
    order = sort_pieces([piece for piece, _ in vocabulary])
    packed, scales = quantize(rows[order])
    metadata = {
        "source": SOURCE,
        "layout": "4 bits: blocks of 80 numbers; byte j = number j (low) and j + 40 (high); value = (n - 8) * scale",
        "pooling": "sum of rows, then length 1",
    }
    target.mkdir(parents=True, exist_ok=True)
    tables.write_tensors(target / tables.TABLE_FILE, {"q": packed, "scale": scales}, metadata)
    write_pieces(target / tables.PIECES_FILE, [vocabulary[place] for place in order])


def read_vocabulary(path: Path) -> list[tuple[str, float]]:
    """Return a tokenizer's pieces with the logarithms of their probabilities; the first stands for unknown ones."""
    model = json.loads(path.read_text(encoding="utf-8"))["model"]
    if model["type"] != "Unigram" or model["unk_id"] != static.UNKNOWN or model["byte_fallback"]:
        raise SystemExit(f"{path} isn't a Unigram tokenizer whose first piece is the unknown one")
    return [(piece, float(score)) for piece, score in model["vocab"]]


def turn(rows: NDArray[np.float32], scores: Sequence[float]) -> NDArray[np.float32]:
    """Return the rows along the directions in which frequent pieces differ most, turned by a fixed random rotation."""
    weights = np.exp(np.clip(np.array(scores), _LOWEST_SCORE, 0) / 2)
    weights[static.UNKNOWN] = 0
    spread = (rows * weights[:, None]).T.astype(np.float64) @ rows
    directions = np.linalg.eigh(spread).eigenvectors[:, ::-1][:, :DIMENSIONS]
    # Libraries differ in the signs of such directions.
    largest = np.abs(directions).argmax(axis=0)
    directions *= np.sign(directions[largest, np.arange(DIMENSIONS)])
    rotation, upper = np.linalg.qr(np.random.default_rng(_SEED).standard_normal((DIMENSIONS, DIMENSIONS)))
    rotation *= np.sign(np.diagonal(upper))
    turned = rows @ (directions @ rotation).astype(np.float32)
    turned[static.UNKNOWN] = 0
    return turned


def quantize(rows: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return rows in 4 bits, and the scale of each block; the largest number of a block becomes -8 or 8 exactly."""
    blocks = rows.reshape(len(rows), -1, _BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2)[:, :, None], axis=2)
    scales = (largest / -8).astype(np.float16)
    divisors = scales.astype(np.float32)
    steps = np.divide(blocks, divisors, out=np.zeros_like(blocks), where=divisors != 0)
    numbers = (np.clip(np.round(steps), -8, 7) + 8).astype(np.uint8)
    half = _BLOCK // 2
    packed = (numbers[:, :, :half] | numbers[:, :, half:] << 4).astype(np.uint8)
    return packed.reshape(len(rows), -1), scales[:, :, 0]


def sort_pieces(names: Sequence[str]) -> list[int]:
    """Return the places of pieces by bucket, the unknown one first.

    Raises:
        SystemExit: Two share bucket and print, or one is longer than the reader looks.
    """
    keys = [static.hash_piece(name) for name in names[1:]]
    if len(set(keys)) != len(keys):
        raise SystemExit("two pieces have the same hashes: change how knapper.index.models.static makes them")
    if max(map(len, names[1:])) > static.LONGEST or any(static.WORD_START in name[1:] for name in names):
        raise SystemExit("a piece is longer than LONGEST, or holds the sign of a word's beginning further on")
    return [0, *(1 + place for place in sorted(range(len(keys)), key=keys.__getitem__))]


def write_pieces(path: Path, vocabulary: Sequence[tuple[str, float]]) -> None:
    """Write pieces, in their order by bucket, as arrays that are read in place."""
    keys = [static.hash_piece(piece) for piece, _ in vocabulary[1:]]
    counts = np.bincount([bucket for bucket, _ in keys], minlength=1 << static.BUCKET_BITS)
    # The unknown one is before the first bucket.
    buckets = np.concatenate(([1], 1 + np.cumsum(counts))).astype(np.uint32)
    scores = np.array([round(score * static.SCORE_UNITS) for _, score in vocabulary], np.int32)
    if any(score / static.SCORE_UNITS != given for score, (_, given) in zip(scores.tolist(), vocabulary, strict=True)):
        raise SystemExit("a score has more than four digits after the point")
    text = gzip.compress("\n".join(piece for piece, _ in vocabulary).encode(), 9, mtime=0)
    arrays = {
        "buckets": buckets,
        "prints": np.array([0, *(number for _, number in keys)], np.uint32),
        "scores": scores,
        "text": np.frombuffer(text, np.uint8),
    }
    tables.write_tensors(path, arrays, {"source": "the pieces of XLM-RoBERTa (MIT), in lower case; see NOTICE.md"})
