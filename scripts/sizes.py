"""Measure an environment: bytes and packages, by distribution. scripts/sizes calls it in the environment itself.

Everything counts that an installation writes, the compiled modules included; nothing that came with the environment.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

MB: Final = 1_000_000
_TOOLS: Final = frozenset({"pip", "setuptools", "wheel"})
_SHOWN: Final = 25


def measure() -> dict[str, int]:
    """Return the bytes of each installed distribution, largest first."""
    sizes = {
        distribution.metadata["Name"]: sum(file_sizes(distribution))
        for distribution in metadata.distributions()
        if distribution.metadata["Name"].lower() not in _TOOLS
    }
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def file_sizes(distribution: metadata.Distribution) -> Iterator[int]:
    """Yield the sizes of a distribution's files that are there."""
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.is_file():
            yield path.stat().st_size


def parts_of_knapper() -> dict[str, int]:
    """Return the bytes of each part of Knapper itself: its data by folder, and its code."""
    parts: dict[str, int] = {}
    distribution = metadata.distribution("knapper")
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.is_file():
            folder = file.parts[1:2]
            name = "/".join(file.parts[1:3]) if folder == ("data",) else "code"
            parts[name] = parts.get(name, 0) + path.stat().st_size
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def print_table(sizes: Mapping[str, int], parts: Mapping[str, int]) -> None:
    """Print the largest distributions, and what Knapper itself consists of."""
    print(f"{'MB':>7}  package")
    for name, size in list(sizes.items())[:_SHOWN]:
        print(f"{size / MB:7.1f}  {name} {metadata.version(name)}")
    rest = list(sizes.values())[_SHOWN:]
    if rest:
        print(f"{sum(rest) / MB:7.1f}  {len(rest)} more")
    print(f"{sum(sizes.values()) / MB:7.1f}  together, in {len(sizes)} packages")
    print("of knapper: " + ", ".join(f"{name} {size / MB:.1f}" for name, size in parts.items()))


def main(arguments: list[str]) -> int:
    """Print the sizes; return 1 if a limit is passed."""
    parser = argparse.ArgumentParser(prog="scripts/sizes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--max-mb", type=float)
    parser.add_argument("--max-packages", type=int)
    options = parser.parse_args(arguments)
    sizes = measure()
    total = sum(sizes.values()) / MB
    if options.json:
        report = {"mb": round(total, 1), "packages": len(sizes), "sizes": sizes, "knapper": parts_of_knapper()}
        print(json.dumps(report))
    else:
        print_table(sizes, parts_of_knapper())
    problems: list[str] = []
    if options.max_mb and total > options.max_mb:
        problems.append(f"{total:.1f} MB, at most {options.max_mb:g}")
    if options.max_packages and len(sizes) > options.max_packages:
        problems.append(f"{len(sizes)} packages, at most {options.max_packages}")
    for problem in problems:
        print(f"sizes: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
