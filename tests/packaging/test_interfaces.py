"""The page and the Obsidian plugin in the package: built where that can be done, and missed politely where it can't."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import knapper
from knapper.cli import plugin
from tests.index import worlds
from tests.server import apps, servers

ROOT = Path(__file__).parents[2]
PARTS = ("src", "scripts", "ui", "plugin", "docs/man", "hatch_build.py", "pyproject.toml", "README.md", "LICENSE")
LEFT_OUT = shutil.ignore_patterns("node_modules", ".node", "__pycache__")
UNREACHABLE = "http://127.0.0.1:9"


@pytest.mark.skipif(not (plugin.PLUGIN_FOLDER / "main.js").is_file(), reason="the plugin isn't built here")
def test_the_packaged_plugin_is_found_and_of_this_version() -> None:
    assert plugin.load_built().version == knapper.__version__


@pytest.fixture
def offline(tmp_path: Path) -> Mapping[str, str]:
    """Give an environment in which neither package registry answers, and no cache has what was asked for before."""
    inherited = dict(os.environ)  # noqa: TID251 - for a process of its own
    return {
        **inherited,
        "PIP_INDEX_URL": f"{UNREACHABLE}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
        "npm_config_registry": UNREACHABLE,
        "npm_config_cache": str(tmp_path / "npm"),
        "npm_config_fetch_retries": "0",
    }


def copy_sources(target: Path) -> Path:
    """Copy what a wheel is built from, without what was built of page and plugin."""
    for name in PARTS:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=LEFT_OUT)
        else:
            shutil.copyfile(ROOT / name, place)
    for name in ("page", "plugin"):
        shutil.rmtree(target / "src" / "knapper" / "data" / name, ignore_errors=True)
    return target


@pytest.mark.slow
def test_without_npm_the_rest_is_built_and_says_what_is_missing(
    tmp_path: Path, own_home: Path, offline: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, site = copy_sources(tmp_path / "source"), tmp_path / "site"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    done = subprocess.run(
        build, cwd=source, env=dict(offline), capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = " ".join((done.stdout + done.stderr).split())
    assert "Knapper is installed without its page" in told
    assert "`scripts/page build` builds it later" in told
    assert "Knapper is installed without its Obsidian plugin" in told
    assert UNREACHABLE not in told
    with zipfile.ZipFile(next((tmp_path / "dist").glob("*.whl"))) as wheel:
        names = wheel.namelist()
        wheel.extractall(site)
    assert "knapper/data/embeddings/table.safetensors" in names
    assert not [name for name in names if name.startswith(("knapper/data/page/", "knapper/data/plugin/"))]

    monkeypatch.setenv("PYTHONPATH", str(site))
    vault = worlds.fill(tmp_path / "vault", {**apps.NOTES, ".obsidian/app.json": "{}"})
    with servers.serving(vault, home=own_home) as server:
        assert server.process.stderr is not None
        said = server.process.stderr.readline() + server.process.stderr.readline()  # two were read
        with server.client() as client:
            page, health = client.get("/"), client.get("/health")
        server.stop()
    install = [*servers.KNAP, "--vault", str(vault), "plugin", "install", "--json"]
    refused = subprocess.run(install, capture_output=True, text=True, encoding="utf-8", check=False)

    assert (page.status_code, health.status_code) == (503, 200)
    assert "scripts/page build" in page.text
    assert "the page wasn't built when Knapper was installed; in a clone, scripts/page build builds it" in said
    assert (refused.returncode, "plugin_not_built" in refused.stdout + refused.stderr) == (3, True)
