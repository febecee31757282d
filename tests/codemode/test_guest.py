"""Test the guest's modules outside the sandbox, where they can be looked into."""

# ruff: noqa: E501 - outcomes stand in a line each
import datetime
import json
import sys
import time
from pathlib import PurePosixPath

import pytest
import yaml

from knapper.codemode import authoring, bridge
from knapper.codemode.guest import clock, interpreter, results, rules, streams, yaml_subset
from knapper.codemode.guest.obsidian import Host, Obsidian, ObsidianError
from knapper.tools.context import ToolSignature


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back what running a script replaces."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)


def run(script: str) -> tuple[dict[str, object], str]:
    printed: list[str] = []
    told = interpreter.run(json.dumps({"script": script, "now": 5.0, "offset": 60}), lambda _: "{}", printed.append)
    return json.loads(told), "".join(printed)


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("__result__ = [1]", {"kind": "ok", "result": [1]}),
        ("x = ", {"kind": "syntax", "error": "line 1: SyntaxError: invalid syntax"}),
        ("raise SystemExit", {"kind": "ok", "result": None}),
        ("raise SystemExit('why')", {"kind": "error", "error": "line 1: SystemExit: why"}),
        ("raise KeyError('a')", {"kind": "error", "error": "line 1: KeyError: 'a'"}),
        ("exec('1')", {"kind": "refused", "error": "line 1: Refused: exec() is disabled in scripts"}),
        ("__import__", {"kind": "refused", "error": "line 1: ImportError: __import__ is disabled in scripts; write an import statement"}),
        ("raise MemoryError", {"kind": "memory", "error": "line 1: MemoryError"}),
        ("class E(Exception):\n  def __str__(self): raise self\nraise E", {"kind": "error", "error": "line 3: E"}),
    ],
)  # fmt: skip
def test_a_script_ends_so(script: str, told: dict[str, object]) -> None:
    assert run(script)[0] == told


@pytest.mark.usefixtures("guest")
def test_what_a_script_prints_is_emitted_in_stretches() -> None:
    told, printed = run("import json\nfor i in range(2000): print('line', i)\n__result__ = 1")

    assert told["result"] == 1
    assert printed.splitlines()[-1] == "line 1999"


def test_printed_halves_of_characters_are_replaced() -> None:
    given: list[str] = []
    stream = streams.Printed(given.append)

    assert stream.writable()
    assert stream.write("a\ud800") == 2
    stream.flush()
    stream.flush()

    assert given == ["a?"]


@pytest.mark.parametrize(
    "name", ["os", "sys", "subprocess", "jsonx", "os.path", "importlib", "socket", "time", "random"]
)
def test_other_modules_cant_be_imported(name: str) -> None:
    with pytest.raises(ImportError, match="can't be imported"):
        _ = rules.load(name)


def test_allowed_modules_are_imported_as_the_statement_does() -> None:
    import collections.abc  # noqa: PLC0415 - what is compared with

    assert rules.load("json") is json
    assert rules.load("collections.abc").__name__ == "collections"
    assert rules.load("collections.abc", wanted=("Mapping",)) is collections.abc
    with pytest.raises(ImportError, match="there is no module"):
        _ = rules.load("json.nothing")
    with pytest.raises(ImportError):
        _ = rules.load("json", level=1)


def test_builtins_lack_what_is_disabled() -> None:
    names = rules.namespace()

    assert "exit" not in names
    assert names["len"] is len
    for name in rules.DISABLED:
        function = names[name]
        assert callable(function)
        with pytest.raises(rules.Refused):
            function("1")


def test_plain_things_become_json() -> None:
    assert results.plain({3, 1}) == [1, 3]
    assert results.plain(datetime.time(1, 2)) == "01:02:00"
    assert results.plain(PurePosixPath("a/b")) == "a/b"
    with pytest.raises(TypeError):
        _ = results.plain(object())


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x", "!!python/name:os.system", "a: !!int 3", "- !custom {}", "*x"])
def test_yaml_has_no_aliases_and_no_tags(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        _ = yaml_subset.load(text, Loader=yaml.Loader)


def test_yaml_is_read_as_data() -> None:
    assert yaml_subset.load("a: [1, x, null]\nb: {c: 2.5}") == {"a": [1, "x", None], "b": {"c": 2.5}}
    assert list(yaml_subset.load_all("1\n---\n'x'")) == [1, "x"]


def test_the_clock_tells_the_time_of_the_job() -> None:
    told = clock.Clock()
    told.now, told.offset = 86_400.5, -5_400

    assert (told.time(), told.time_ns()) == (86_400.5, 86_400_500_000_000)
    assert tuple(told.gmtime())[:5] == (1970, 1, 2, 0, 0)
    local = told.localtime()
    assert (tuple(local)[:5], local.tm_gmtoff, local.tm_zone) == ((1970, 1, 1, 22, 30), -5_400, "-01:30")
    assert told.mktime(tuple(local)[:9]) == 86_400
    assert told.localtime(0).tm_mday == 31
    told.offset = 0
    assert told.localtime().tm_zone == "UTC"
    assert time.gmtime is not told.gmtime


class Recorder:
    """Be a host that tells what it was asked."""

    def __init__(self, reply: object) -> None:
        self.reply = reply
        self.asked: list[dict[str, object]] = []

    def __call__(self, request: str) -> str:
        self.asked.append(json.loads(request))
        return json.dumps(self.reply)


def test_each_method_is_one_call_of_the_host() -> None:
    host = Recorder({"result": "x"})
    obsidian = Obsidian(Host(host), ("read_file", "http_get"))

    _ = obsidian.search("q", 3, path_filter="P/", vaults=["a"])
    _ = [obsidian.read_note("A.md"), obsidian.read_notes(["A.md"]), obsidian.list_notes("F", recursive=True)]
    _ = [obsidian.get_frontmatter("A"), obsidian.get_hash("A"), obsidian.create_wikilink("A")]
    _ = obsidian.write_note("A.md", "x", "type", {"k": 1})
    _ = [obsidian.read_file("f"), obsidian.http_get("https://example.org")]
    _ = [obsidian.tools.note_info("A.md", limit=2), obsidian.tools.status()]

    assert [one["method"] for one in host.asked] == [
        *("search", "read_note", "read_notes", "list_notes", "get_frontmatter", "get_hash", "create_wikilink"),
        *("write_note", "read_file", "http_get", "tools.note_info", "tools.status"),
    ]
    assert host.asked[0]["arguments"] == {
        "query": "q",
        "limit": 3,
        "path_filter": "P/",
        "type_filter": None,
        "vault": None,
        "vaults": ["a"],
    }
    assert host.asked[-2]["arguments"] == {"": ["A.md"], "limit": 2}


def test_an_error_of_the_host_is_raised_with_code_and_hint() -> None:
    host = Host(Recorder({"error": {"code": "c", "message": "m", "hint": "h"}}))

    with pytest.raises(ObsidianError, match=r"m \(h\)") as caught:
        _ = host("get_hash", {})
    assert (caught.value.code, caught.value.hint) == ("c", "h")
    with pytest.raises(TypeError, match="isn't JSON"):
        _ = host("get_hash", {"path": object()})


def test_methods_of_other_profiles_say_what_they_need() -> None:
    obsidian = Obsidian(Host(Recorder({})), ())

    with pytest.raises(ObsidianError, match="needs the profile local"):
        _ = obsidian.read_file("x")
    with pytest.raises(ObsidianError, match="needs the profile extended"):
        _ = obsidian.http_get("x")
    with pytest.raises(AttributeError):
        _ = obsidian.tools._private


def test_the_interface_shows_what_a_script_has() -> None:
    tool = ToolSignature(
        name="note_info",
        summary="Tell about a note.",
        parameters={
            "properties": {
                "limit": {"type": "integer", "default": 5},
                "path": {"type": "string"},
                "kind": {"enum": ["a", "b"], "default": "a"},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
                "any": True,
            },
            "required": ["path"],
        },
    )
    text = authoring.interface_stub(("read_file",), [tool])

    assert "def search(query: str, limit: int = 10, path_filter: str | None = None" in text
    assert "def read_file(path: str) -> str" in text
    assert "http_get" not in text
    assert "knapper" not in text
    assert (
        "def note_info(path: str, limit: int = 5, kind: Literal['a', 'b'] = 'a', tags: list[str] | None = None, "
        "any: object = None) -> dict: ...  # Tell about a note."
    ) in text
    assert "class tools" not in authoring.interface_stub()
    assert bridge.parameter_names(ToolSignature(name="x")) == []
