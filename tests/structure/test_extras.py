"""What is said of a part that isn't installed: its name, and the command of the tool that installed Knapper."""

import importlib.util
import json
import shlex
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from knapper import extras
from knapper.extras import EXTRAS, NAMES, Installation
from knapper.index.models.base import EmbedderError


@pytest.mark.parametrize(
    ("installation", "expected"),
    [
        (Installation(installer="uv tool"), ["uv", "tool", "install", "knapper[models]"]),
        (Installation(installer="pipx"), ["pipx", "install", "--force", "knapper[models]"]),
        (
            Installation(installer="pip", python="/a b/python"),
            ["/a b/python", "-m", "pip", "install", "knapper[models]"],
        ),
        (Installation(installer="uv", python="/p"), ["uv", "pip", "install", "--python", "/p", "knapper[models]"]),
        (
            Installation(installer="pipx", extras=frozenset({"web"})),
            ["pipx", "install", "--force", "knapper[models,web]"],
        ),
        (
            Installation(installer="pipx", source="file:///a%20b/knapper"),
            ["pipx", "install", "--force", "knapper[models] @ file:///a%20b/knapper"],
        ),
    ],
)
def test_the_command_is_that_of_the_tool_that_installed_it(installation: Installation, expected: list[str]) -> None:
    assert installation.command("models") == expected


def test_a_shell_gets_the_command_as_it_is_meant() -> None:
    shown = Installation(installer="pip", python="/a b/python", system="linux").shown_command("web")
    windows = Installation(installer="pip", python=r"C:\a b\python.exe", system="win32").shown_command("web")

    assert shlex.split(shown) == ["/a b/python", "-m", "pip", "install", "knapper[web]"]
    assert windows.startswith('"C:\\a b\\python.exe" -m pip')


@pytest.mark.parametrize(("file", "installer"), [("uv-receipt.toml", "uv tool"), ("pipx_metadata.json", "pipx")])
def test_the_installer_is_known_by_its_record(tmp_path: Path, file: str, installer: str) -> None:
    (tmp_path / file).touch()

    assert extras.find_installation(tmp_path).installer == installer


def test_without_a_record_it_is_pip_or_uv(tmp_path: Path) -> None:
    expected = "uv" if importlib.util.find_spec("pip") is None else "pip"

    assert extras.find_installation(tmp_path).installer == expected


def test_a_missing_module_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)

    with pytest.raises(ImportError) as caught:
        importlib.import_module("trafilatura.nowhere")  # that no other test has imported
    problem = extras.explain_import(caught.value)

    assert problem is not None
    assert problem.code == "missing_extra"
    assert "'web'" in problem.message
    assert "web" in problem.hint.partition("knapper[")[2]


def test_another_missing_module_is_a_mistake_of_ours() -> None:
    assert extras.explain_import(ModuleNotFoundError("no", name="nowhere")) is None
    assert extras.explain_import(ModuleNotFoundError("no", name="pydantic_ai.nowhere")) is None


def test_the_error_has_the_class_and_code_that_were_asked_for() -> None:
    problem = extras.missing("embeddings", "embeddings.kind = onnx", error=EmbedderError, code="embedder_extra")

    assert type(problem) is EmbedderError
    assert problem.code == "embedder_extra"
    assert problem.message == "embeddings.kind = onnx needs Knapper's extra 'embeddings', which isn't installed"


def test_the_project_has_the_extras_that_are_named() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(project["optional-dependencies"]) == {*NAMES, "all"}
    assert set(EXTRAS) == set(NAMES)
    assert project["optional-dependencies"]["all"] == [f"knapper[{','.join(sorted(NAMES))}]"]


def _distribution(found: object, _: str) -> object:
    return found


def test_a_source_of_another_kind_than_an_index_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        def __init__(self, origin: object) -> None:
            self.origin = origin

        def read_text(self, name: str) -> str:
            assert name == "direct_url.json"
            return json.dumps(self.origin)

    origins: dict[str, object] = {
        "": {"url": 3},
        "file:///x": {"url": "file:///x", "dir_info": {}},
        "git+https://example.org/k@abc": {
            "url": "https://example.org/k",
            "vcs_info": {"vcs": "git", "commit_id": "abc"},
        },
    }
    sources: list[str] = []
    for origin in origins.values():
        monkeypatch.setattr("importlib.metadata.distribution", partial(_distribution, Distribution(origin)))
        sources.append(extras.find_installation().source)

    assert sources == list(origins)


_BLOCKED = "import sys\nsys.modules |= dict.fromkeys({names!r})\n"
"""Makes each import of these fail, as where they aren't installed."""
_IMPORT = "import importlib\nfor name in {modules!r}:\n    importlib.import_module(name)\n"


def test_every_command_is_imported_without_extras() -> None:
    brought = sorted({module for extra in EXTRAS.values() for module in extra.modules} | {"turbovec", "pydantic_ai"})
    folder = Path(extras.__file__).parent / "cli" / "commands"
    modules = [f"knapper.cli.commands.{file.stem}" for file in sorted(folder.glob("*.py")) if file.stem != "__init__"]
    program = _BLOCKED.format(names=brought) + _IMPORT.format(
        modules=[*modules, "knapper.app.hub", "knapper.cli.onboarding"]
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert len(modules) > 30
    assert done.stderr == ""
