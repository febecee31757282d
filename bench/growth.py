"""Ask for a fixed number of notes in vaults of growing size: what an index answers shouldn't take longer."""

import argparse
import shutil
from contextlib import suppress
from pathlib import Path

from bench import frame, generate, tools, vaults
from bench.frame import Goal, Report, Row
from bench.places import Places
from knapper.config import files
from knapper.errors import NotFound
from knapper.index.feed import ChangeFeed
from knapper.tools import links, notes, reading, search
from knapper.tools.context import Context

SUMMARY = "tools that ask for a fixed number of notes, in vaults of growing size"
_SIZES = (1_000, 10_000, 100_000)
_FOUND = 20
"""Notes with the property, each with a link to one note."""
_TARGET = "zqtarget"
_PROPERTY = "zqproperty"
_LIMIT = 2.0
"""Times as long as in the smallest vault: a tree's one more level and colder memory are no growth."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, nargs="+", default=_SIZES, help="sizes of the generated vaults")
    parser.add_argument("--runs", type=int, default=200, help="calls of each tool")


def run(places: Places, options: argparse.Namespace) -> Report | str:
    files.keep_libraries_to_one_thread()
    found: dict[int, dict[str, list[float]]] = {}
    for size in options.notes:
        generated = generate.vault(places, size)
        if generated is None:
            return "there are no real vaults to generate one from"
        indexed = places.cache / f"tools-{size}"
        frame.say(f"indexing {size:,} notes")
        frame.in_child(vaults.index, generated, indexed)
        with vaults.scratch(places.cache) as folder:
            shutil.copytree(generated, folder / "vault")
            shutil.copytree(indexed, folder / "index")
            _add(folder / "vault")
            frame.in_child(vaults.index, folder / "vault", folder / "index")
            found[size] = frame.in_child(measure, folder / "vault", folder / "index", options.runs)
    first = found[options.notes[0]]
    rows = [
        Row(what=f"{name}, {size:,} notes, p50", values=[frame.percentile(times, 0.5)], unit="ms")
        for name in first
        for size, times in ((size, found[size][name]) for size in options.notes)
    ]
    last = found[options.notes[-1]]
    rows += [
        Row(
            what=f"{name}, the largest against the smallest",
            values=[frame.percentile(last[name], 0.5) / frame.percentile(first[name], 0.5)],
            unit="times",
            goal=Goal(limit=_LIMIT) if name in _STEADY else None,
        )
        for name in first
    ]
    about = (
        f"{options.runs} calls of each tool, in process, over generated vaults to which {_FOUND} notes with one "
        "property and a link to one note were added."
    )
    return Report(title="Growth", about=about, rows=rows)


def measure(vault: Path, folder: Path, runs: int) -> dict[str, list[float]]:
    """Call all tools; gives milliseconds by tool."""
    with vaults.opened(vault, folder) as engine:
        context = tools.reading_context(engine)
        times: dict[str, list[float]] = {}
        with ChangeFeed(engine.view.root, folder) as feed, engine.followed_by(feed):
            for name, call in _CALLS.items():
                for _ in range(3):
                    call(context)
                times[name] = [tools.timed(lambda: call(context)) for _ in range(runs)]  # noqa: B023
        return times


def _add(vault: Path) -> None:
    (vault / f"{_TARGET}.md").write_text("Here all links lead.\n", encoding="utf-8")
    for number in range(_FOUND):
        text = f"---\n{_PROPERTY}: yes\n---\nSee [[{_TARGET}]].\n"
        (vault / f"zqnote {number:02}.md").write_text(text, encoding="utf-8")


def _backlinks(context: Context) -> None:
    assert links.find_backlinks(context, _TARGET)["total"] == _FOUND


def _by_property(context: Context) -> None:
    assert search.list_files_by_frontmatter(context, _PROPERTY, "yes")["total"] == _FOUND


def _find(context: Context) -> None:
    assert notes.find_notes(context, properties=[f"{_PROPERTY}=yes"], sort="-modified")["total"] == _FOUND


def _read(context: Context) -> None:
    assert reading.read_file(context, f"{_TARGET}.md")["total_chars"]


def _mistyped(context: Context) -> None:
    with suppress(NotFound):
        reading.read_file(context, "zqtagret.md")


_CALLS = {
    "find_backlinks": _backlinks,
    "list_files_by_frontmatter": _by_property,
    "find_notes by a property": _find,
    "read_file": _read,
    "read_file of a mistyped path": _mistyped,
}
_STEADY = frozenset(_CALLS) - {"read_file of a mistyped path"}
"""Only names like a mistyped one are looked for among all."""
