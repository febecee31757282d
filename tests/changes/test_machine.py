"""Tools, undo and other programs' saves in any order: only what was asked for changes, and undo gives it back."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from knapper import app
from knapper.changes.disk import files
from knapper.config import EmbeddingSettings, Settings, Vault
from knapper.vault import links, parser, paths
from knapper.vault.paths import NotePath
from knapper.vault.source import Outline
from tests.changes import generated
from tests.properties import scaled

Tree = dict[str, bytes]
NAMES: Final = ("A.md", "B.md", "sub/A.md", "sub/C d.md", "x/é.md", "P (1).md", "v1.2.md")
PLACES: Final = (*NAMES, "new/N.md", "sub/", "y/", "Z z (2).md", "sub", "[x].md", "100%.md")
HEADS: Final = ("# One\n\n## Same\ntext\n\n## Same\nmore ^id-1\n", "# One\n## Two ##\n#x #x/y\n", "Set\n---\n", "")
FRONTS: Final = (
    "---\nup: \"[[A]]\" # c\nrel:\n  - '[[sub/C d|see]]'\ntags: [x, y/z]\n---\n",
    "---\nk: &a {q: 1}\nj: *a\n---\n",
    "---\nk: 1\nk: 2\n---\n",
    "---\nbad: [\n---\n",
    "",
)
SLOW: Final = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)
VALUES: Final = (1, "a: b", "[[A]]", ["a", "b"], True, None, {"a": [1]}, "two\nlines", " #c")


def spelled(name: str) -> list[str]:
    """Write links to a note in many forms."""
    stem, last = name.removesuffix(".md"), name.rpartition("/")[2].removesuffix(".md")
    path = name.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    whole = [f"[[{stem}]]", f"[t]({path})", f'[t](<{name}> "title")', f"[t]({path}#One)", f"[t](../{path})"]
    short = [f"[[{last}|al]]", f"![[{last}#One|100x20]]", f"[[{last.upper()}]]", f"[[./{last}]]"]
    table = f"| [[{stem}\\|c]] | ![[{last}\\|50]] |\n|---|---|\n"
    around = [table, f"[r][k]\n\n[k]: <{name}> 'k'\n", f"> [!note] [[{stem}#^id-1|b]]"]
    return [*whole, *short, *around, f"`[[{last}]]`", f"%% [[{last}]] %%", f"```\n[[{stem}]]\n```"]


PIECES: Final = st.sampled_from([link for name in NAMES for link in spelled(name)]) | st.sampled_from(generated.PIECES)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    """Make a note full of links, in any line endings and with bytes that are no text."""
    pieces = "\n".join(draw(st.lists(PIECES, max_size=6)))
    text = draw(generated.rewritten(draw(st.sampled_from(FRONTS)) + draw(st.sampled_from(HEADS)) + pieces))
    mark = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return mark + text.encode() + draw(st.sampled_from([b"", b"\n", b"\xff\xfe"]))


def led(tree: Tree) -> dict[str, list[tuple[str, str | None]]]:
    """Tell where each link of each note leads."""
    known: dict[str, list[NotePath]] = {}
    for path in sorted(tree):
        known.setdefault(paths.lookup_key(path.rpartition("/")[2]), []).append(NotePath(path))

    def end(target: str, source: str) -> str | None:
        return links.resolve(target, NotePath(source), lambda key: known.get(key, [])).path

    outlines = {path: parser.parse_note(raw) for path, raw in tree.items()}
    return {path: [(one.kind, end(one.target, path)) for one in found.links] for path, found in outlines.items()}


def around_links(raw: bytes) -> list[bytes]:
    """Give what of a note is no link's target; a move may put angle brackets around one."""
    parts, at = list[bytes](), 0
    for one in sorted(parser.parse_note(raw).links, key=lambda link: link.target_start):
        if one.target_start >= at:
            parts.append(raw[at : one.target_start])
            at = one.target_stop
    return [part.removesuffix(b"<").removeprefix(b">") for part in (*parts, raw[at:])]


def body(raw: bytes, outline: Outline) -> bytes:
    return raw[outline.frontmatter.stop :] if outline.frontmatter else raw.removeprefix(b"\xef\xbb\xbf")


class Machine(RuleBasedStateMachine):
    """Write to a vault by its tools and past them."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp()).resolve()
        self.root = self.base / "vault"
        self.made: list[tuple[str, Tree, Tree]] = []
        """Changes, each with the vault before and after."""

    @initialize(notes=st.dictionaries(st.sampled_from(NAMES), contents(), min_size=3), is_app=st.booleans())
    def fill(self, notes: dict[str, bytes], is_app: bool) -> None:
        for name, raw in notes.items():
            self.save(name, raw)
        if is_app:
            self.save(".obsidian/app.json", b'{"trashOption": "local"}')
        chosen = Vault(name="v", path=self.root)
        state, none = self.base / "state", EmbeddingSettings(kind="none")
        self.hub = app.open_hub(
            Settings(choice=chosen, state_dir=state, embeddings=none, config_file=self.base / "c.toml")
        )

    def save(self, name: str, raw: bytes) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(raw)

    def teardown(self) -> None:
        self.hub.close()
        shutil.rmtree(self.base)

    def tree(self, *, trash: bool = False) -> Tree:
        files = {file.relative_to(self.root).as_posix(): file for file in self.root.rglob("*") if file.is_file()}
        return {path: file.read_bytes() for path, file in files.items() if trash or not path.startswith(".")}

    def one(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.tree()) or ["A.md"]), label="path")

    def call(self, tool: str, **given: object) -> dict[str, Any]:
        return cast("dict[str, Any]", self.hub.table.answer(tool, given, lambda _: self.hub.context(client="cli")))

    def act(self, tool: str, **given: object) -> tuple[dict[str, Any], Tree, Tree]:
        """Call a tool, accept what it proposes, and see that only files change that it names."""
        before, whole = self.tree(), self.tree(trash=True)
        answer = self.call(tool, **given)
        if answer.get("status") == "proposed":
            shown = self.call("show_proposal", proposal_id=answer["proposal_id"])
            assert self.tree(trash=True) == whole
            answer = self.call("accept_proposal", proposal_id=shown["id"], digest=shown["digest"])
        after = self.tree()
        if not answer["success"]:
            assert self.tree(trash=True) == whole
            return answer, before, after
        named = {file.get(end) for file in answer.get("files", []) for end in ("path", "target")}
        assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} <= named
        if answer.get("change_id"):
            self.made.append((answer["change_id"], before, after))
        return answer, before, after

    @rule(data=st.data(), places=st.lists(st.sampled_from(PLACES), min_size=1, max_size=3))
    def move(self, data: st.DataObject, places: list[str]) -> None:
        known = [*self.tree(), "sub", "x"]
        moves = [
            {"source": data.draw(st.sampled_from(known), label="source"), "destination": place} for place in places
        ]
        answer, before, after = self.act("batch_move_files", moves=moves)
        if not answer["success"]:
            return
        moved = {file["path"]: file["target"] for file in answer.get("files", []) if file.get("target")}
        then, now = led(before), led(after)
        for path, raw in before.items():
            place = moved.get(path, path)
            assert around_links(raw) == around_links(after[place])
            wanted = [(kind, moved.get(end, end)) for kind, end in then[path] if end]
            if "can't be written" not in str(answer.get("notes")):
                pairs = zip(then[path], now[place], strict=True)
                assert wanted == [found for (_, end), found in pairs if end]

    @rule(data=st.data(), content=generated.texts, tool=st.sampled_from(["append_to_file", "prepend_to_file"]))
    def add(self, data: st.DataObject, content: str, tool: str) -> None:
        path = self.one(data)
        answer, before, after = self.act(tool, path=path, content=content)

        if answer["success"]:
            old = before[path]
            start = old if tool == "append_to_file" else old[: len(old) - len(body(old, parser.parse_note(old)))]
            assert after[path].startswith(start)
            assert after[path].endswith(old[len(start) :])

    @rule(data=st.data(), old=st.sampled_from(["text", "more", "One", "[[A]]", "al"]), new=generated.texts)
    def edit(self, data: st.DataObject, old: str, new: str) -> None:
        path = self.one(data)
        answer, before, after = self.act("edit_file", path=path, old_text=old, new_text=new)

        if answer["success"]:
            start, _, stop = before[path].partition(old.encode())
            assert after[path].startswith(start)
            assert after[path].endswith(stop)

    @rule(
        data=st.data(),
        field=st.sampled_from(["tags", "up", "rel", "k", "j", "new"]),
        operation=st.sampled_from(["set", "remove", "append", "rename"]),
        value=st.sampled_from(VALUES),
    )
    def change_property(self, data: st.DataObject, field: str, operation: str, value: object) -> None:
        path = self.one(data)
        given = "renamed" if operation == "rename" else value
        answer, before, after = self.act("update_frontmatter", path=path, field=field, operation=operation, value=given)

        if answer["success"]:
            old, new = parser.parse_note(before[path]), parser.parse_note(after[path])
            assert body(after[path], new).endswith(body(before[path], old))
            kept = dict(old.frontmatter.values) if old.frontmatter else {}
            values = dict(new.frontmatter.values) if new.frontmatter else {}
            others = [name for name in kept if paths.name_key(name) != field]
            assert {name: kept[name] for name in others} == {name: values.get(name) for name in others}

    @rule(data=st.data(), content=generated.texts, tool=st.sampled_from(["replace_section", "append_to_section"]))
    def change_section(self, data: st.DataObject, content: str, tool: str) -> None:
        path = self.one(data)
        raw = self.tree().get(path, b"")
        sections = [one for one in parser.parse_note(raw).sections if one.level]
        if sections:
            one = data.draw(st.sampled_from(sections), label="section")
            heading = f"{'#' * one.level} {one.title}"
            answer, _, after = self.act(tool, path=path, heading=heading, content=content)

            assert after[path].startswith(raw[: one.start])
            assert after[path].endswith(raw[one.stop :])
            assert tool == "replace_section" or after[path].startswith(raw[: one.stop].rstrip()), answer

    @rule(old=st.sampled_from(["x", "y"]), new=st.sampled_from(["zz", "x/q"]))
    def rename_tag(self, old: str, new: str) -> None:
        self.act("rename_tag", old=old, new=new)

    @rule(data=st.data(), anchor=st.sampled_from(["# One", "## Two", "^id-1"]), name=st.sampled_from(["Neu", "id-2"]))
    def rename_anchor(self, data: st.DataObject, anchor: str, name: str) -> None:
        self.act("rename_anchor", path=self.one(data), anchor=anchor, name=name)

    @rule(data=st.data())
    def trash(self, data: st.DataObject) -> None:
        path = self.one(data)
        self.act("delete_file", path=path)

    @rule(name=st.sampled_from(NAMES), content=generated.texts)
    def create(self, name: str, content: str) -> None:
        self.act("create_file", path=name, content=content)

    @rule(data=st.data(), raw=contents(), is_gone=st.booleans())
    def change_outside(self, data: st.DataObject, raw: bytes, is_gone: bool) -> None:
        path = self.one(data)
        if is_gone:
            (self.root / path).unlink(missing_ok=True)
        elif (self.root / path).is_file():
            self.save(path, raw)

    @precondition(lambda self: self.made)
    @rule(data=st.data(), partial=st.booleans())
    def undo(self, data: st.DataObject, partial: bool) -> None:
        change, before, after = data.draw(st.sampled_from(self.made[-4:]), label="change")
        now = self.tree()
        answer = self.call("undo_change", change_id=change, partial=partial)
        later = self.tree()

        touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        fits = {path for path in touched if now.get(path) == after.get(path)}
        if not answer["success"]:
            assert now == later
            assert answer["code"] == "already_undone" or fits != touched
            return
        if fits == touched:
            assert {path: later.get(path) for path in touched} == {path: before.get(path) for path in touched}
        if all("before_hash" in file or "hash" in file for file in answer["files"]):  # else a folder with what is in it
            assert {path for path in now.keys() | later.keys() if now.get(path) != later.get(path)} <= fits
        self.made.append((answer["change_id"], now, later))

    @invariant()
    def nothing_is_left_over(self) -> None:
        assert not list(self.root.rglob(f"{files.TEMP_PREFIX}*"))


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=scaled(20), stateful_step_count=15, deadline=None, suppress_health_check=SLOW
)
