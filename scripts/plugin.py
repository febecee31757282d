"""Build the Obsidian plugin of `plugin/` into the package, hold it to its rules, and make a release folder.

.venv/bin/python -m scripts.plugin build            build it into src/knapper/data/plugin; quick when nothing changed
.venv/bin/python -m scripts.plugin check            lint, types, unit tests, and that two builds give the same bytes
.venv/bin/python -m scripts.plugin release FOLDER   the files of a release, checked for the directory; --tag TAG: it too
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from scripts import page

ROOT: Final = Path(__file__).parents[1]
FILES: Final = ("manifest.json", "main.js", "styles.css")
VERSIONS: Final = "versions.json"
"""By the plugin's version, the oldest Obsidian that it runs in."""
_STAMP: Final = "sources.stamp"
_FILES: Final = ("esbuild.config.mjs", "layout.mjs", "manifest.json", "package-lock.json", "reset.css", "styles.css")
_FORBIDDEN: Final = (
    "child_process",
    'require("fs")',
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "eval(",
    "new Function",
    "document.activeElement",
    "document.getElementById",
    "document.getSelection",
    "document.querySelector",
)
"""What neither the directory's review nor a phone allows in a plugin, and what looks into the first window alone."""


def provide(root: Path = ROOT) -> bool:
    """Build the plugin into the package, unless it is there and made of these very sources.

    Returns:
        Whether it was built just now.

    Raises:
        page.Unreachable: Node or npm's packages can't be had.
        RuntimeError: The build failed.
    """
    target = root / "src" / "knapper" / "data" / "plugin"
    stamp, sources = target / _STAMP, page.sources_hash(root, _sources(root))
    if (
        stamp.is_file()
        and stamp.read_text(encoding="utf-8") == sources
        and all((target / one).is_file() for one in FILES)
    ):
        return False
    node = page.find_node(root)
    page.install(root / "plugin", node)
    build(root, node, target)
    _ = stamp.write_text(sources, encoding="utf-8")
    return True


def _sources(root: Path) -> Iterator[Path]:
    """Yield what the plugin is built from: its own sources, and those of `ui/` that it may use."""
    plugin = root / "plugin"
    for folder in (plugin / "src", root / "ui" / "client", root / "ui" / "parts"):
        yield from (path for path in folder.rglob("*") if path.is_file() and ".test." not in path.name)
    yield from (plugin / name for name in _FILES)


def build(root: Path, node: Path, target: Path) -> None:
    """Build the three files into a folder.

    Raises:
        RuntimeError: That failed.
    """
    command = [str(node), "esbuild.config.mjs", "--out", str(target)]
    done = subprocess.run(command, cwd=root / "plugin", capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(f"the plugin can't be built; it said:\n{(done.stdout + done.stderr).strip()[:3_000]}")


def release(target: Path, root: Path = ROOT, tag: str = "") -> list[str]:
    """Put the files of a release into a folder, as the directory of plugins wants them.

    Args:
        target: Gets manifest.json, main.js, styles.css and versions.json.
        root: The repository.
        tag: The tag of the release; empty where there is none yet.

    Returns:
        What is wrong with them; empty where all is good.
    """
    node = page.find_node(root)
    page.install(root / "plugin", node)
    build(root, node, target)
    _ = shutil.copyfile(root / VERSIONS, target / VERSIONS)
    with tempfile.TemporaryDirectory() as folder:
        build(root, node, Path(folder))
        differing = [one for one in FILES if (target / one).read_bytes() != (Path(folder) / one).read_bytes()]
    return [*(f"a second build gives another {one}" for one in differing), *inspect(target, root, tag)]


def inspect(target: Path, root: Path = ROOT, tag: str = "") -> list[str]:
    """Return what the directory of plugins would find wrong with a release, and with the repository's root."""
    main = (target / "main.js").read_text(encoding="utf-8")
    manifest = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    version, project = manifest["version"], _project_version(root)
    lock = json.loads((root / "plugin" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    versions = json.loads((target / VERSIONS).read_text(encoding="utf-8"))
    # As whole words: a function named Retrieval isn't eval.
    problems = [f"main.js has {word}" for word in _FORBIDDEN if re.search(rf"(?<!\w){re.escape(word)}", main)]
    problems += [f"the lock file has an address for {name}" for name, row in lock.items() if row.get("resolved")]
    if version != project:
        problems.append(f"manifest.json has version {version}, the project {project}")
    if tag and tag != version:
        problems.append(f"the tag is {tag}; the directory wants the version of manifest.json, {version}, without a v")
    if versions.get(version) != manifest["minAppVersion"]:
        problems.append(f'{VERSIONS} needs "{version}": "{manifest["minAppVersion"]}"')
    # The directory reads the default branch's root.
    if (root / "manifest.json").read_bytes() != (root / "plugin" / "manifest.json").read_bytes():
        problems.append("manifest.json at the root differs from plugin/manifest.json: copy it")
    if manifest["id"] != "knapper" or manifest["isDesktopOnly"] or not manifest["description"].endswith("."):
        problems.append("manifest.json: the id is knapper, phones are served, and the description is a sentence")
    return problems


def _project_version(root: Path) -> str:
    found = re.search(r'__version__[^=]*= "([^"]+)"', (root / "src/knapper/__init__.py").read_text(encoding="utf-8"))
    return found[1] if found else ""


def check(root: Path = ROOT) -> list[str]:
    """Return which steps failed: lint, types, unit tests, and what `release` finds."""
    node = page.find_node(root)
    page.install(root / "plugin", node)
    modules = root / "plugin" / "node_modules"
    rules = ["-c", "plugin/eslint.config.mjs", "plugin", "ui", "--max-warnings", "0"]
    steps = {
        "eslint": (root, ["eslint/bin/eslint.js", *rules]),  # from the root, as parts of ui/ go into main.js too
        "tsc": (root / "plugin", ["typescript/bin/tsc", "-p", "."]),
        "vitest": (root / "plugin", ["vitest/vitest.mjs", "run", "--reporter=dot"]),
    }
    failed = [
        name
        for name, (folder, (program, *words)) in steps.items()
        if subprocess.run([str(node), str(modules / program), *words], cwd=folder, check=False).returncode
    ]
    with tempfile.TemporaryDirectory() as folder:
        return [*failed, *release(Path(folder), root)]


def main(arguments: Sequence[str]) -> int:
    """Do what the command line asks.

    Returns:
        The exit code: 3 where Node or npm's packages can't be had.
    """
    try:
        match list(arguments):
            case ["build"]:
                print("plugin: built" if provide() else "plugin: nothing changed")  # noqa: T201
                return 0
            case ["check"]:
                problems = check()
            case ["release", folder]:
                problems = release(Path(folder))
            case ["release", folder, "--tag", tag]:
                problems = release(Path(folder), tag=tag)
            case _:
                print(__doc__)  # noqa: T201
                return 2
    except page.Unreachable as error:
        print(f"plugin: {error}; the rest of Knapper works without its plugin", file=sys.stderr)  # noqa: T201
        return 3
    except RuntimeError as error:
        print(f"plugin: {error}", file=sys.stderr)  # noqa: T201
        return 1
    for problem in problems:
        print(f"plugin: {problem}", file=sys.stderr)  # noqa: T201
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
