"""Hold scripts as models write them; each ends with what `__result__` has to be."""

# ruff: noqa: E501 - scripts stand here as models write them

SCRIPTS = {
    "dataclasses": """
from dataclasses import dataclass, field, asdict

@dataclass(order=True)
class Hit:
    score: float
    path: str = ""
    tags: list[str] = field(default_factory=list)

hits = sorted([Hit(0.2, "B.md"), Hit(0.9, "A.md", ["x"])], reverse=True)
__result__ = [asdict(h) for h in hits]
expected = [{"score": 0.9, "path": "A.md", "tags": ["x"]}, {"score": 0.2, "path": "B.md", "tags": []}]
""",
    "dataclass_as_result": """
from dataclasses import dataclass

@dataclass
class Found:
    path: str
    n: int

__result__ = {"first": Found("A.md", 1)}
expected = {"first": {"path": "A.md", "n": 1}}
""",
    "generators": """
def numbers():
    n = yield 1
    while True:
        n = yield (n or 0) * 2

g = numbers()
out = [next(g), g.send(4), g.send(5)]
def flat(xs):
    for x in xs:
        if isinstance(x, list):
            yield from flat(x)
        else:
            yield x
__result__ = out + list(flat([1, [2, [3]]]))
expected = [1, 8, 10, 1, 2, 3]
""",
    "classes_and_inheritance": """
class Node:
    count = 0
    def __init__(self, name):
        self.name = name
        Node.count += 1
    def __repr__(self):
        return f"{type(self).__name__}({self.name!r})"
    @property
    def upper(self):
        return self.name.upper()
    @classmethod
    def make(cls, name): return cls(name)
    @staticmethod
    def two(): return 2

class Leaf(Node):
    def __init__(self, name, size):
        super().__init__(name)
        self.size = size

leaf = Leaf("a", 3)
__result__ = [repr(leaf), leaf.upper, Leaf.two(), Node.make("b").name, Node.count]
expected = ["Leaf('a')", "A", 2, "b", 2]
""",
    "regular_expressions": r"""
import re
text = obsidian.read_note("Projects/Alpha.md")
links = re.findall(r"\[\[([^\]|#]+)(?:[#|][^\]]*)?\]\]", text)
heads = [m.group(2) for m in re.finditer(r"^(#+)\s+(.+)$", text, re.MULTILINE)]
__result__ = {"links": links, "heads": heads, "sub": re.sub("\d+", "N", "a1b22")}
expected = {"links": ["Beta", "Gamma"], "heads": ["Alpha", "Tasks"], "sub": "aNbN"}
""",
    "yaml": """
import yaml
data = yaml.safe_load("a: 1\\nb: [x, 2.5, true, null, 2024-05-01]\\nc: {d: 'e'}\\nf: |\\n  text\\n  more\\n")
__result__ = [data, yaml.safe_dump({"x": [1, 2]}), list(yaml.safe_load_all("1\\n---\\n2\\n"))]
expected = [{"a": 1, "b": ["x", 2.5, True, None, "2024-05-01"], "c": {"d": "e"}, "f": "text\\nmore\\n"},
            "x:\\n- 1\\n- 2\\n", [1, 2]]
""",
    "datetime": """
from datetime import date, datetime, timedelta, timezone
day = date(2026, 2, 28) + timedelta(days=1)
when = datetime.fromisoformat("2026-01-02T03:04:05+01:00")
parsed = datetime.strptime("12 Mar 2025 14:30", "%d %b %Y %H:%M")
__result__ = [day, when.astimezone(timezone.utc).isoformat(), parsed.strftime("%Y-%m-%d %A"), (day - date(2026, 1, 1)).days,
              max(date(2020, 1, 1), date(2021, 1, 1)), isinstance(when, date), when.isocalendar()[1]]
expected = ["2026-03-01", "2026-01-02T02:04:05+00:00", "2025-03-12 Wednesday", 59, "2021-01-01", True, 1]
""",
    "now": """
import datetime as dt
__result__ = [dt.datetime.now().isoformat(), dt.date.today().isoformat(), dt.datetime.now(dt.timezone.utc).isoformat(),
              dt.datetime.now() - dt.timedelta(days=7) < dt.datetime.now(), dt.datetime.now().astimezone().isoformat()]
expected = ["2026-03-01T13:00:00", "2026-03-01", "2026-03-01T12:00:00+00:00", True, "2026-03-01T13:00:00+01:00"]
""",
    "itertools": """
import itertools
from itertools import groupby, chain, islice
rows = [("a", 1), ("a", 2), ("b", 3)]
__result__ = [
    {k: [v for _, v in g] for k, g in groupby(rows, key=lambda r: r[0])},
    list(chain.from_iterable([[1], [2, 3]])),
    list(islice(itertools.count(5), 2)),
    list(itertools.combinations("abc", 2))[:2],
    list(itertools.accumulate([1, 2, 3])), list(itertools.pairwise([1, 2, 3])), list(itertools.batched("abc", 2)),
]
expected = [{"a": [1, 2], "b": [3]}, [1, 2, 3], [5, 6], [["a", "b"], ["a", "c"]], [1, 3, 6], [[1, 2], [2, 3]],
            [["a", "b"], ["c"]]]
""",
    "collections": """
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Mapping
words = Counter("the cat and the hat and the".split())
index = defaultdict(list)
for i, w in enumerate(["x", "y", "x"]):
    index[w].append(i)
P = namedtuple("P", "a b")
q = deque([1, 2, 3], maxlen=2)
__result__ = [words.most_common(1), index, P(1, 2)._asdict(), list(q), isinstance({}, Mapping), OrderedDict(a=1)]
expected = [[["the", 3]], {"x": [0, 2], "y": [1]}, {"a": 1, "b": 2}, [2, 3], True, {"a": 1}]
""",
    "functools_and_math": """
import functools, math
from functools import lru_cache, partial, reduce
@lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.wraps(fib)
def other(*a): return fib(*a)
__result__ = [fib(50), reduce(lambda a, b: a * b, [1, 2, 3, 4]), partial(pow, 2)(8), math.isclose(math.log2(8), 3), math.ceil(1.2),
              other.__name__, math.dist((0, 0), (3, 4))]
expected = [12586269025, 24, 256, True, 2, "fib", 5.0]
""",
    "walrus_and_comprehensions": """
lines = ["x: 1", "y", "z: 3"]
pairs = {p[0]: int(p[1]) for line in lines if len(p := line.split(": ")) == 2}
nested = [[i * j for j in range(3)] for i in range(2)]
total = sum(n for row in nested for n in row)
__result__ = [pairs, nested, total, {x % 3 for x in range(9)}]
expected = [{"x": 1, "z": 3}, [[0, 0, 0], [0, 1, 2]], 3, [0, 1, 2]]
""",
    "match_statements": """
def kind(x):
    match x:
        case {"type": "note", "path": str(path)}: return f"note {path}"
        case [first, *rest] if rest: return f"list {first} {len(rest)}"
        case int() | float(): return "number"
        case _: return "other"
__result__ = [kind({"type": "note", "path": "A"}), kind([1, 2, 3]), kind(2.5), kind("x")]
expected = ["note A", "list 1 2", "number", "other"]
""",
    "format_strings": """
name, value = "score", 0.123456
__result__ = [f"{name:>8}|{value:.2%}|{value=:.3f}", f"{'a' if value else 'b'!r}", f"{1234567:,}", "{:04d}".format(7), "%s-%d" % ("x", 3),
              f"{{literal}} {name.upper()[:3]} {', '.join(str(i) for i in range(3))}"]
expected = ["   score|12.35%|value=0.123", "'a'", "1,234,567", "0007", "x-3", "{literal} SCO 0, 1, 2"]
""",
    "enum": """
from enum import Enum, IntEnum, auto
class Level(IntEnum):
    LOW = auto()
    HIGH = auto()
class Color(str, Enum):
    RED = "red"
class Plain(Enum):
    A = "a"
__result__ = [Level.HIGH, Level["LOW"].name, Color.RED, [c.value for c in Color], Plain.A, Level(2) > Level.LOW]
expected = [2, "LOW", "red", ["red"], "a", True]
""",
    "pathlib": """
from pathlib import Path, PurePosixPath
p = Path("Projects/Sub/Note.md")
__result__ = [p.stem, p.suffix, str(p.parent), p.with_suffix(".txt").name, PurePosixPath("a") / "b", [str(x) for x in p.parents],
              p.is_relative_to("Projects")]
expected = ["Note", ".md", "Projects/Sub", "Note.txt", "a/b", ["Projects/Sub", "Projects", "."], True]
""",
    "typing": """
from __future__ import annotations
from typing import Any, Iterable, NamedTuple, Optional, Protocol, TypedDict, TypeVar
T = TypeVar("T")
class Row(NamedTuple):
    path: str
    n: int = 0
class Opt(TypedDict, total=False):
    a: int
def first(xs: Iterable[T], default: Optional[T] = None) -> T | None:
    return next(iter(xs), default)
row: Row = Row("A.md")
o: Opt = {"a": 1}
__result__ = [first([]), first([3]), row._asdict(), o]
expected = [None, 3, {"path": "A.md", "n": 0}, {"a": 1}]
""",
    "hashlib_and_json": """
import hashlib, json
digest = hashlib.sha256("text".encode()).hexdigest()
short = hashlib.md5(b"x").hexdigest()[:6]
data = json.loads('{"a": [1, 2.5, null, "\\u00e9"]}')
__result__ = [digest[:8], short, json.dumps(data, ensure_ascii=False, sort_keys=True), hashlib.blake2b(b"").digest_size]
expected = ["982d9e3e", "9dd4e4", '{"a": [1, 2.5, null, "é"]}', 64]
""",
    "exceptions": """
class Missing(Exception):
    def __init__(self, path):
        super().__init__(f"no {path}")
        self.path = path
log = []
def read(path):
    try:
        text = obsidian.read_note(path)
        if not text:
            raise Missing(path)
        return text
    except Missing as e:
        log.append(str(e))
        raise
    finally:
        log.append("done")
try:
    read("Nowhere.md")
except (KeyError, Missing) as e:
    log.append(e.path)
else:
    log.append("no error")
try:
    raise ValueError("x") from KeyError("y")
except ValueError as e:
    log.append(type(e.__cause__).__name__)
__result__ = log
expected = ["no Nowhere.md", "done", "Nowhere.md", "KeyError"]
""",
    "context_managers": """
class Timer:
    def __enter__(self):
        self.log = ["in"]
        return self
    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else "out")
        return True
with Timer() as a:
    a.log.append("body")
with (Timer() as b, Timer() as c):
    raise KeyError
__result__ = [a.log, b.log, c.log]
expected = [["in", "body", "out"], ["in", "out"], ["in", "KeyError"]]
""",
    "decorators_and_closures": """
def counted(f):
    calls = 0
    def inner(*args, **kwargs):
        nonlocal calls
        calls += 1
        return f(*args, **kwargs), calls
    return inner
@counted
def add(a, /, b, *, c=0): return a + b + c
def outer(x):
    return lambda y: x + y
__result__ = [add(1, 2), add(1, b=2, c=3), outer(2)(3), (lambda *a, **k: len(a) + len(k))(1, 2, z=3)]
expected = [[3, 1], [6, 2], 5, 3]
""",
    "sorting_and_slicing": """
notes = [{"p": "b", "s": 2}, {"p": "a", "s": 2}, {"p": "c", "s": 5}]
by = sorted(notes, key=lambda n: (-n["s"], n["p"]))
a, *middle, z = [n["p"] for n in by] + ["x"]
__result__ = [a, middle, z, [1, 2, 3, 4][::-2], "hello"[1:-1], list(zip("ab", (1, 2), strict=True)), list(enumerate("ab", 1)),
              any(n["s"] > 4 for n in notes), all([]), min(notes, key=lambda n: n["s"])["p"], list(map(str.upper, "ab"))]
expected = ["c", ["a", "b"], "x", [4, 2], "ell", [["a", 1], ["b", 2]], [[1, "a"], [2, "b"]], True, True, "b", ["A", "B"]]
""",
    "async_functions": """
import typing
async def get(): return 3
async def both():
    return [await get(), [x async for x in many()]]
async def many():
    for i in range(2):
        yield i
def drive(c):
    try:
        c.send(None)
    except StopIteration as e:
        return e.value
__result__ = drive(both())
expected = [3, [0, 1]]
""",
    "search_and_cite": """
results = obsidian.search("alpha project", limit=5)
seen, parts, citations = set(), [], []
for r in results:
    if r["path"] in seen or r["score"] <= 0:
        continue
    seen.add(r["path"])
    start = r["content"].lower().find("alpha")
    parts.append(r["content"][:50])
    citations.append({"vault": "main", "path": r["path"], "snip_start": max(start, 0), "snip_end": start + 20})
__result__ = {"first": citations[0]["path"], "enough": len(parts) >= 1, "confidence": round(min(1.0, len(parts) / 2), 2) > 0}
expected = {"first": "Projects/Alpha.md", "enough": True, "confidence": True}
""",
    "walk_folders": """
counts = {}
for entry in obsidian.list_notes():
    if entry.endswith("/"):
        counts[entry] = len(obsidian.list_notes(entry, recursive=True))
__result__ = {"counts": counts, "top": [e for e in obsidian.list_notes() if not e.endswith("/")],
              "all": len(obsidian.list_notes(recursive=True))}
expected = {"counts": {"Daily/": 2, "Projects/": 3}, "top": ["Index.md"], "all": 6}
""",
    "frontmatter_report": """
open_projects = []
for path in obsidian.list_notes("Projects", recursive=True):
    meta = obsidian.get_frontmatter(path)
    if meta.get("status") == "open" and "work" in meta.get("tags", []):
        open_projects.append((meta.get("due", "9999"), path))
__result__ = [p for _, p in sorted(open_projects)]
expected = ["Projects/Beta.md", "Projects/Alpha.md"]
""",
    "link_graph": r"""
import re
from collections import defaultdict
texts = obsidian.read_notes(obsidian.list_notes(recursive=True))
graph = defaultdict(set)
for path, text in texts.items():
    for target in re.findall(r"\[\[([^\]|#]+)", text):
        graph[path].add(target)
incoming = defaultdict(int)
for targets in graph.values():
    for t in targets:
        incoming[t] += 1
__result__ = {"most": max(incoming.items(), key=lambda kv: kv[1])[0], "edges": sum(map(len, graph.values()))}
expected = {"most": "Beta", "edges": 6}
""",
    "tasks_by_note": r"""
import re
todo = {}
for path in obsidian.list_notes("Projects", recursive=True):
    tasks = re.findall(r"^- \[ \] (.+)$", obsidian.read_note(path), flags=re.M)
    if tasks:
        todo[path] = tasks
__result__ = todo
expected = {"Projects/Alpha.md": ["write plan", "call Ben"]}
""",
    "daily_notes_of_a_week": """
from datetime import date, timedelta
start = date(2026, 2, 23)
texts = {}
for i in range(7):
    name = f"Daily/{start + timedelta(days=i):%Y-%m-%d}.md"
    if (text := obsidian.read_note(name)):
        texts[name] = text.splitlines()[-1].strip()
__result__ = texts
expected = {"Daily/2026-02-24.md": "Met Ben about [[Alpha]].", "Daily/2026-02-26.md": "Wrote [[Beta]]."}
""",
    "hash_and_link": """
h = obsidian.get_hash("Index.md")
__result__ = [h.startswith("sha256:") and len(h) == 71, obsidian.get_hash("Nowhere.md"), obsidian.create_wikilink("Projects/Alpha.md"),
              obsidian.create_wikilink("New/Idea")]
expected = [True, "", "[[Projects/Alpha]]", "[[New/Idea]]"]
""",
    "propose_a_summary": """
parts = [f"- {obsidian.create_wikilink(p)}" for p in obsidian.list_notes("Projects", recursive=True)]
done = obsidian.write_note("Summaries/Projects.md", "# Projects\\n\\n" + "\\n".join(parts), note_type="summary",
                           frontmatter={"tags": ["summary"]})
__result__ = [done["status"], done["path"], obsidian.read_note("Summaries/Projects.md")]
expected = ["proposed", "Summaries/Projects.md", ""]
""",
    "errors_that_can_be_caught": """
out = []
try:
    obsidian.search("")
except obsidian.Error as e:
    out.append(e.code)
try:
    obsidian.read_note("../outside.md")
except Exception as e:
    out.append(type(e).__name__)
__result__ = out
expected = ["bad_input", "ObsidianError"]
""",
    "printing": """
print("found", 3, sep=": ")
import json
print(json.dumps({"a": 1}), end="")
__result__ = None
expected = None
""",
    "main_guard": """
def main():
    global __result__
    __result__ = {"ok": True}
if __name__ == "__main__":
    main()
expected = {"ok": True}
""",
    "unicode": """
text = "Zoë — 日本語 😀"
__result__ = [text, len(text), text.encode("utf-8")[:4].hex(), text.casefold(), "é" == "e\\u0301", sorted("äb")]
expected = ["Zoë — 日本語 😀", 11, "5a6fc3ab", "zoë — 日本語 😀", False, ["b", "ä"]]
""",
    "big_loop": """
total = 0
for i in range(200_000):
    total += i % 7
__result__ = total
expected = 599994
""",
}
NOTES = {
    "Index.md": "# Index\n\nSee [[Alpha]] and [[Beta]].\n",
    "Projects/Alpha.md": "---\nstatus: open\ntags: [work]\ndue: 2026-05-01\n---\n# Alpha\n\nThe alpha project needs [[Beta]] and "
    "[[Gamma|the third]].\n\n## Tasks\n\n- [ ] write plan\n- [x] done\n- [ ] call Ben\n",
    "Projects/Beta.md": "---\nstatus: open\ntags: [work, small]\ndue: 2026-03-01\n---\n# Beta\n\nA small project.\n",
    "Projects/Gamma.md": "---\nstatus: closed\n---\n# Gamma\n\nOver.\n",
    "Daily/2026-02-24.md": "# Tuesday\n\nMet Ben about [[Alpha]].\n",
    "Daily/2026-02-26.md": "# Thursday\n\nWrote [[Beta]].\n",
}
