"""Put into the package what isn't kept as source: the interpreter of scripts, page and plugin.

The interpreter of scripts is CPython with our guest modules, built into a WebAssembly component and compressed: it is
read once, when it is compiled to machine code. It is built anew when the guest changes; nothing is fetched for it. No
two builds of it are alike, as it holds the memory of a started Python with its random hashes. So a source archive
contains it, and wheels from the same archive are alike.

The page is built from `ui/` by `scripts/page.py`, the Obsidian plugin from `plugin/` and `ui/` by `scripts/plugin.py`.
Both need Node and npm's registry; without them everything else is still installed, and `knap serve` and `knap plugin
install` say what is missing. A source archive contains both as they were built.
"""

import hashlib
import importlib
import importlib.metadata
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

GUEST = Path("src/knapper/codemode/guest")
COMPONENT = Path("src/knapper/data/scripts/interpreter.wasm.xz")
STAMP = "interpreter.stamp"
"""Lies beside the component; says what it was built from, and its own hash."""


class CustomBuildHook(BuildHookInterface[BuilderConfig]):
    """Make the data before a wheel, an editable install or an sdist is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the data files that are missing or differ.

        Args:
            version: Kind of build; all need the data.
            build_data: Left as it is.

        Raises:
            SystemExit: The interpreter can't be built; the message is printed.
        """
        del version, build_data
        root = Path(self.root)
        try:
            # Both mostly wait for programs that they start, so the build takes as long as the longer one.
            with ThreadPoolExecutor(1) as pool:
                interpreter = pool.submit(provide_interpreter, root)
                problems = provide_interfaces(root)
                interpreter.result()
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
