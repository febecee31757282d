"""Write the one version, and the one address of the repository, wherever they stand: pyproject.toml is the source."""

import argparse
import hashlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

ROOT: Final = Path(__file__).parents[1]
_VERSION: Final = r"[0-9]+(?:\.[0-9A-Za-z]+)*"
_ADDRESS: Final = r"https://github\.com/[\w.-]+/[\w.-]+?(?=[/\"\s>]|$)"
_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What all places have to say."""

    version: str
    repository: str
    """``https://github.com/OWNER/NAME``, without a slash at its end."""

    @property
    def registry_name(self) -> str:
        """Return the name in the MCP registry, which belongs to the repository's owner."""
        return f"io.github.{self.slug}"

    @property
    def slug(self) -> str:
        """Return ``OWNER/NAME``, by which Claude Code finds the repository."""
        return urlsplit(self.repository).path.strip("/")

    @property
    def owner(self) -> str:
        """Return whose the repository is, and the tap of Homebrew."""
        return self.slug.partition("/")[0]


_AS_JSON: Final = rf'"version": "(?P<version>{_VERSION})"'
_OF_NPM: Final = rf'^  "version": "(?P<version>{_VERSION})"'
_QUOTED: Final = rf'"(?P<repository>{_ADDRESS})"'
_CLAUDE: Final = ".claude-plugin/"
PLACES: Final[Mapping[str, Sequence[str]]] = {
    "src/knapper/__init__.py": [rf'__version__ = "(?P<version>{_VERSION})"'],
    "packaging/server.json": [
        _AS_JSON,
        rf'"url": "(?P<repository>{_ADDRESS})"',
        r'"name": "(?P<name>io\.github\.[^"]+)"',
    ],
    "README.md": [r"mcp-name: (?P<name>io\.github\.\S+)"],
    "packaging/mcpb/manifest.json": [_AS_JSON, rf'"url": "(?P<repository>{_ADDRESS})"'],
    "packaging/mcpb/pyproject.toml": [rf'^version = "(?P<version>{_VERSION})"', rf'"knapper==(?P<version>{_VERSION})"'],
    f"packaging/claude-code-plugin/{_CLAUDE}plugin.json": [_AS_JSON, _QUOTED],
    f"{_CLAUDE}marketplace.json": [_AS_JSON],
    "packaging/homebrew/knapper.rb": [
        rf'"(?P<repository>{_ADDRESS})[/"]',
        rf"/v(?P<version>{_VERSION})/knapper-",
        rf"/knapper-(?P<version>{_VERSION})(?:\.tar\.gz|-py3)",
    ],
    "packaging/Containerfile": [rf"KNAPPER_VERSION=(?P<version>{_VERSION})", _QUOTED],
    "docs/how-to/install.md": [
        rf"(?P<repository>{_ADDRESS})",
        r"/plugin marketplace add (?P<slug>[\w.-]+/[\w.-]+)",
        r"brew install (?P<owner>[\w.-]+)/tap/",
    ],
    "plugin/manifest.json": [_AS_JSON],
    "manifest.json": [_AS_JSON],
    "plugin/package.json": [_OF_NPM],
    "ui/package.json": [_OF_NPM],
}
"""The patterns of each file that names the facts; the group of each is a fact's name."""


def read_facts(root: Path = ROOT) -> Facts:
    """Return the version and the repository's address."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Facts(version=project["version"], repository=project["urls"]["Repository"].rstrip("/"))


def rewrite(text: str, pattern: str, facts: Facts) -> tuple[str, int]:
    """Return a text with the facts in it, and how often the pattern stands there."""
    values = {"version": facts.version, "repository": facts.repository, "name": facts.registry_name}
    values |= {"slug": facts.slug, "owner": facts.owner}

    def replace(match: re.Match[str]) -> str:
        (group,) = match.groupdict()
        start, stop = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:start] + values[group] + match[0][stop:]

    return re.subn(pattern, replace, text, flags=re.MULTILINE)


def write_all(root: Path, facts: Facts, *, check: bool) -> Iterator[str]:
    """Write the facts into every place, or only look; yield what differed, or isn't as it should be."""
    for file, patterns in PLACES.items():
        path = root / file
        if not path.is_file():
            yield f"{file}: missing"
            continue
        text = rewritten = path.read_text(encoding="utf-8")
        for pattern in patterns:
            rewritten, count = rewrite(rewritten, pattern, facts)
            if not count:
                yield f"{file}: nothing there is like {pattern}"
        if rewritten != text:
            yield f"{file}: differs"
            if not check:
                _ = path.write_text(rewritten, encoding="utf-8")


def set_version(root: Path, version: str) -> None:
    """Enter a version into pyproject.toml.

    Raises:
        ValueError: It has no form of one.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", version):
        message = f"'{version}' is no version; write it as 1.2.3, or 1.2.3rc1"
        raise ValueError(message)
    path = root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    _ = path.write_text(
        re.sub(r'^version = "[^"]*"', f'version = "{version}"', text, count=1, flags=re.MULTILINE), encoding="utf-8"
    )


def formula(root: Path, folder: Path) -> str:
    """Return the Homebrew formula with the hashes of the files of a release.

    Raises:
        FileNotFoundError: One isn't in the folder.
    """
    version = read_facts(root).version
    text = (root / "packaging" / "homebrew" / "knapper.rb").read_text(encoding="utf-8")
    for name in (f"knapper-{version}.tar.gz", f"knapper-{version}-py3-none-any.whl"):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        text = text.replace(_NO_HASH, digest, 1)
    return text


def problems_of_release(root: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what forbids a release: another tag or repository, or a changelog without the version."""
    facts = read_facts(root)
    tag, repository = environment.get("GITHUB_REF_NAME", ""), environment.get("GITHUB_REPOSITORY", "")
    if tag != f"v{facts.version}":
        yield f"the tag is '{tag}', and pyproject.toml has the version {facts.version}"
    if repository and f"https://github.com/{repository}" != facts.repository:
        yield f"this is {repository}, and pyproject.toml names {facts.repository}"
    if f"## [{facts.version}]" not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md has no section [{facts.version}]"


def main(arguments: Sequence[str], echo: Callable[[str], None] = print) -> int:
    """Write, check or set the version; return 1 if something differed or forbids a release."""
    parser = argparse.ArgumentParser(prog="scripts/version", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="change nothing; fail where a place differs")
    choice.add_argument("--set", metavar="VERSION", help="enter it into pyproject.toml first")
    choice.add_argument("--formula", metavar="FOLDER", type=Path, help="print the formula for a release's files")
    choice.add_argument("--release", action="store_true", help="check that tag, repository and changelog fit")
    options = parser.parse_args(arguments)
    if options.formula:
        echo(formula(ROOT, options.formula).rstrip("\n"))
        return 0
    if options.set:
        set_version(ROOT, options.set)
    facts = read_facts()
    problems = list(write_all(ROOT, facts, check=options.check or options.release))
    if options.release:
        problems += problems_of_release(ROOT, os.environ)  # noqa: TID251 - a script of the build server
    for problem in problems:
        echo(f"version: {problem}")
    echo(f"version: {json.dumps({'version': facts.version, 'repository': facts.repository})}")
    return 1 if problems and (options.check or options.release) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
