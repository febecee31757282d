"""Whatever moves, every link leads where it led, and the way back gives every file its bytes."""

import json
import posixpath
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from knapper.errors import KnapError
from knapper.vault import links, paths
from tests.changes import relinking
from tests.changes.relinking import World
from tests.properties import scaled

FOLDERS = ("", "a", "a/bb", "c d", "c d/a", "\u00c4")
NOTES = ("B.md", "C.md", "N o.md", "v1.2.md", "x.md.md", "p (1).md", "it's.md", "a & b.md", "100%.md", "e\u0301.md")
OTHERS = ("B.png", "p q.png", "B.canvas")
RARE = ("B#1.md", "[B].md", "a^b.md", "k; v.md", "B")
FORMS = ("wiki", "embed", "alias", "heading", "markdown", "angle", "image", "definition", "property", "plain", "card")
STYLES = ("name", "absolute", "relative", "rooted", "below", "suffix", "case")


@st.composite
def vaults(draw: st.DrawFn) -> dict[str, str]:
    """Make a vault in which several files have one name, and link to one another in every way."""
    places = [f"{folder}/{name}".lstrip("/") for folder in FOLDERS for name in (*NOTES, *OTHERS, *RARE)]
    chosen = draw(st.lists(st.sampled_from(places), min_size=3, max_size=9, unique_by=paths.name_key))
    files = dict.fromkeys(chosen, "")
    for path in chosen:
        wanted = st.tuples(st.sampled_from(chosen), st.sampled_from(FORMS), st.sampled_from(STYLES))
        if path.endswith(".md"):
            files[path] = note(path, draw(st.lists(wanted, max_size=6)))
        elif path.endswith(".canvas"):
            files[path] = canvas(path, draw(st.lists(wanted, max_size=4)))
    return files


def said(source: str, target: str, style: str) -> str:
    """Say where a file lies, in a way that may or may not lead there: other files may come first."""
    bare = target.removesuffix(".md")
    way = posixpath.relpath(target, posixpath.dirname(source) or ".")
    ways = {
        "name": paths.base_name(bare),
        "case": paths.base_name(bare).upper(),
        "relative": way if way.startswith("../") else f"./{way}",
        "rooted": f"/{target}",
        "below": way,
        "suffix": "/".join(bare.split("/")[-2:]),
        "absolute": bare,
    }
    return ways[style]


def note(source: str, wanted: list[tuple[str, str, str]]) -> str:
    head: list[str] = []
    body: list[str] = []
    for number, (target, form, style) in enumerate(wanted):
        text = said(source, target, style)
        encoded = quote(text, safe="/.-_~'&;")
        match form:
            case "property":
                head.append(f"p{number}: {json.dumps(f'[[{text}]]', ensure_ascii=False)}")
            case "plain":
                head.append(f"p{number}: see [[{text}]]")
            case _:
                body.append(_line(form, text, encoded, number))
    front = ["---", *head, "---"] if head else []
    return "\n".join([*front, "# H", "", *body, ""])


def _line(form: str, text: str, encoded: str, number: int) -> str:
    lines = {
        "wiki": f"- [[{text}]] and `[[{text}]]`",
        "embed": f"![[{text}]]",
        "alias": f"| a |\n|---|\n| [[{text}\\|al]] |\n",
        "heading": f"[[{text}#H|x]] [[{text}^id]]",
        "markdown": f"[t]({encoded}) text",
        "angle": f"[t](<{text.replace('%', '%25').replace('#', '%23')}#h> 'title')",
        "image": f"![alt]({encoded})",
        "definition": f"[t][r{number}] [r{number}]\n\n[r{number}]: {encoded}\n",
        "card": f"[t](./{encoded})",
    }
    return lines[form]


def canvas(source: str, wanted: list[tuple[str, str, str]]) -> str:
    nodes: list[dict[str, str]] = []
    for number, (target, form, style) in enumerate(wanted):
        if form == "card":
            nodes.append({"id": str(number), "type": "file", "file": target, "subpath": "#H"})
        elif form not in {"property", "plain"}:
            text = said(source, target, style)
            line = _line(form, text, quote(text, safe="/.-_~'&;"), number)
            nodes.append({"id": str(number), "type": "text", "text": f'\u00fc "q"\n{line}'})
    return json.dumps({"nodes": nodes, "edges": []}, ensure_ascii=len(wanted) % 2 == 0)


@st.composite
def moves(draw: st.DrawFn, files: Mapping[str, str]) -> list[tuple[str, str]]:
    sources = sorted({*files, *(path.split("/")[0] for path in files if "/" in path)})
    wanted: list[tuple[str, str]] = []
    for source in draw(st.lists(st.sampled_from(sources), min_size=1, max_size=3, unique=True)):
        folder = draw(st.sampled_from((*FOLDERS, "new/deep")))
        name = paths.base_name(source)
        if draw(st.integers(0, 3)) == 0:
            endings = [*NOTES, "k; v.md", "C#.md"] if source.endswith(".md") else [name, f"other {name}"]
            name = draw(st.sampled_from(endings))
        wanted.append((source, f"{folder}/{name}".lstrip("/")))
    return wanted


@pytest.mark.slow
@settings(
    max_examples=scaled(80), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(data=st.data())
def test_every_link_leads_where_it_led_and_the_way_back_gives_every_byte(data: st.DataObject) -> None:
    files = data.draw(vaults())
    wanted = data.draw(moves(files))
    with tempfile.TemporaryDirectory() as folder:
        world = relinking.make(Path(folder), files)
        if data.draw(st.booleans()):
            (world.root / ".obsidian").mkdir()
        check(world, wanted)
        world.engine.close()
        world.state.journal.shut()


def check(world: World, wanted: list[tuple[str, str]]) -> None:
    before, meant = world.files(), world.meanings()
    try:
        draft = world.draft(*wanted)
    except KnapError:
        assume(False)
        return
    place = {str(file.path): str(file.place) for file in draft.files}
    world.do(draft)
    now, means = world.files(), world.meanings()
    touched = {one.path for one in draft.rewritten}
    strayed = 0

    for path, here in meant.items():
        there = means[place.get(path, path)]
        assert len(there) == len(here)
        for (text, old), (new_text, new) in zip(here, there, strict=True):
            if old is not None and new != place.get(old, old):
                strayed += 1
            if old is None and not text.startswith("."):
                assert new_text == text
        if path not in touched:
            assert now[place.get(path, path)] == before[path]
    assert strayed == told(draft.notices)
    if strayed or any("led nowhere" in notice for notice in draft.notices):
        return  # what lost and healed links say means other files from here on
    world.remember(*((new, old) for old, new in reversed(wanted)))
    back = world.files()
    assert back.keys() == before.keys()
    assert world.meanings().keys() == meant.keys()
    for path, raw in back.items():
        # a Markdown link that only Obsidian could follow may have become one that every reader of Markdown follows
        is_loose = any(old and not is_literal(path, text, old) for text, old in meant[path])
        assert (masked(raw) == masked(before[path])) if is_loose else (raw == before[path])


def is_literal(source: str, target: str, path: str) -> bool:
    """Tell whether every reader of Markdown would follow a link to that file."""
    return paths.fold_target(links.join_relative(paths.parent_folder(source), target)) == paths.fold_target(path)


def masked(raw: bytes) -> bytes:
    """Leave out the destinations of Markdown links."""
    return re.sub(rb"\]\([^)\n]*\)|\]: [^\n]*", b"", raw)


def told(notices: tuple[str, ...]) -> int:
    """Count the links that were said to be lost."""
    single = sum("can't be written so that it leads" in notice for notice in notices)
    more = [int(notice.split(" ", 1)[0]) for notice in notices if "more links can't be written" in notice]
    return single + sum(more)
