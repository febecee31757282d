"""What registries and other installers are told: one version, one address, and files of the forms that they take."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import hatch_build
from scripts import distribution, plugin, version

ROOT = Path(__file__).parents[2]
FACTS = version.read_facts(ROOT)
PLUGIN = ROOT / "packaging" / "claude-code-plugin"


def read_json(path: str) -> Mapping[str, Any]:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def copy_places(folder: Path) -> Path:
    for name in ["pyproject.toml", "CHANGELOG.md", *version.PLACES]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def test_every_place_has_the_one_version_and_the_one_address() -> None:
    assert list(version.write_all(ROOT, FACTS, check=True)) == [], "run scripts/version"


def test_a_place_that_differs_is_told_and_written(tmp_path: Path) -> None:
    root = copy_places(tmp_path)
    version.set_version(root, "9.8.7rc1")
    facts = version.read_facts(root)

    told = list(version.write_all(root, facts, check=True))
    list(version.write_all(root, facts, check=False))
    after = list(version.write_all(root, facts, check=True))

    assert {line.partition(":")[0] for line in told} >= {"packaging/server.json", "packaging/Containerfile"}
    assert after == []
    assert '__version__ = "9.8.7rc1"' in (root / "src/knapper/__init__.py").read_text(encoding="utf-8")
    assert "v9.8.7rc1/knapper-9.8.7rc1-py3" in (root / "packaging/homebrew/knapper.rb").read_text(encoding="utf-8")


def test_another_owner_of_the_repository_reaches_every_place(tmp_path: Path) -> None:
    root = copy_places(tmp_path)
    facts = version.Facts(version=FACTS.version, repository="https://github.com/ada/notes")
    list(version.write_all(root, facts, check=False))

    assert json.loads((root / "packaging/server.json").read_text(encoding="utf-8"))["name"] == "io.github.ada/notes"
    pages = (root / "docs/how-to/install.md").read_text(encoding="utf-8")
    assert "/plugin marketplace add ada/notes\n" in pages
    assert pages.count("`brew install ada/tap/knapper`") == 2
    left = [
        file
        for file in version.PLACES
        if (root / file).is_file() and FACTS.repository in (root / file).read_text(encoding="utf-8")
    ]
    assert left == []


def plugin_release(folder: Path, main: str = "// all good\n") -> Path:
    """Copy what `scripts.plugin release` makes, with a main.js of a line."""
    for name, source in {"manifest.json": "plugin/manifest.json", "versions.json": "versions.json"}.items():
        _ = shutil.copyfile(ROOT / source, folder / name)
    _ = (folder / "main.js").write_text(main, encoding="utf-8")
    return folder


def test_the_plugin_stands_at_the_root_as_the_directory_of_plugins_reads_it(tmp_path: Path) -> None:
    assert plugin.inspect(plugin_release(tmp_path), tag=FACTS.version) == []


@pytest.mark.parametrize("tag", [f"v{FACTS.version}", "9.9.9"])
def test_a_tag_that_is_not_the_plugins_version_is_told(tmp_path: Path, tag: str) -> None:
    (problem,) = plugin.inspect(plugin_release(tmp_path), tag=tag)

    assert f"the tag is {tag}" in problem


def test_what_the_directory_of_plugins_would_refuse_is_told(tmp_path: Path) -> None:
    folder = plugin_release(tmp_path, "element.innerHTML = text; retrieval();")
    manifest = {**read_json("plugin/manifest.json"), "version": "9.9.9"}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    problems = plugin.inspect(folder)

    assert problems == [
        "main.js has innerHTML",
        f"manifest.json has version 9.9.9, the project {FACTS.version}",
        f'versions.json needs "9.9.9": "{manifest["minAppVersion"]}"',
    ]


def test_a_file_that_is_missing_or_has_no_version_is_told(tmp_path: Path) -> None:
    root = copy_places(tmp_path)
    (root / "packaging/server.json").write_text("{}", encoding="utf-8")
    (root / "packaging/Containerfile").unlink()

    told = list(version.write_all(root, FACTS, check=True))

    assert "packaging/Containerfile: missing" in told
    assert [line for line in told if line.startswith("packaging/server.json: nothing there")]


@pytest.mark.parametrize("wrong", ["1.2", "v1.2.3", "1.2.3 ", "latest", "1.2.3'"])
def test_what_is_no_version_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ValueError, match="is no version"):
        version.set_version(copy_places(tmp_path), wrong)


def test_a_release_needs_its_tag_its_repository_and_its_changelog(tmp_path: Path) -> None:
    root = copy_places(tmp_path)
    changelog = root / "CHANGELOG.md"
    right = {"GITHUB_REF_NAME": f"v{FACTS.version}", "GITHUB_REPOSITORY": FACTS.repository.partition(".com/")[2]}
    wrong = list(version.problems_of_release(root, {"GITHUB_REF_NAME": "main", "GITHUB_REPOSITORY": "eve/knapper"}))
    changelog.write_text(f"## [{FACTS.version}] - 2026-12-01\n", encoding="utf-8")

    assert any("the tag is 'main'" in problem for problem in wrong)
    assert any("this is eve/knapper" in problem for problem in wrong)
    assert list(version.problems_of_release(root, right)) == []


def test_the_formula_gets_the_hashes_of_a_release(tmp_path: Path) -> None:
    for name in (f"knapper-{FACTS.version}.tar.gz", f"knapper-{FACTS.version}-py3-none-any.whl"):
        (tmp_path / name).write_bytes(name.encode())

    hashes = re.findall(r'sha256 "([0-9a-f]{64})"', version.formula(ROOT, tmp_path))

    assert len(set(hashes)) == 2
    assert "0" * 64 not in hashes


def test_the_registry_is_told_what_it_takes() -> None:
    server = read_json("packaging/server.json")
    (package,) = server["packages"]

    assert server["$schema"].endswith("/2025-12-11/server.schema.json")
    assert 1 <= len(server["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert (package["registryType"], package["identifier"]) == ("pypi", "knapper")
    assert package["transport"] == {"type": "stdio"}
    assert [argument.get("name") or argument["value"] for argument in package["packageArguments"]] == ["--vault", "mcp"]


def test_a_client_of_the_registry_finds_a_program_by_the_packages_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["scripts"]["knapper"] == project["scripts"]["knap"]


def test_the_bundle_starts_the_server_with_uv() -> None:
    manifest = read_json("packaging/mcpb/manifest.json")
    project = tomllib.loads((ROOT / "packaging/mcpb/pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert manifest["manifest_version"] == "0.4"
    assert manifest["server"]["type"] == "uv"
    assert (ROOT / "packaging/mcpb" / manifest["server"]["entry_point"]).is_file()
    assert manifest["server"]["mcp_config"]["args"][-3:] == ["--vault", "${user_config.vault}", "mcp"]
    assert project["dependencies"] == [f"knapper=={FACTS.version}"]


def test_the_skill_names_tools_that_there_are() -> None:
    from knapper.app import tables  # noqa: PLC0415 - only this test makes the schemas

    text = (PLUGIN / "skills/knapper/SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    front = yaml.safe_load(head)
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", body)) - {"expected_hash", "dry_run"}
    essential = {row.name for row in tables.build_table().specs if row.profile == "essential"}

    assert front["name"] == "knapper"
    assert len(front["description"]) <= 1_024
    assert named == essential


def test_the_plugin_and_its_market_belong_together() -> None:
    market, plugin = (
        read_json(".claude-plugin/marketplace.json"),
        json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text(encoding="utf-8")),
    )
    (entry,) = market["plugins"]

    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert entry["name"] == plugin["name"]
    assert json.loads((PLUGIN / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["knapper"]["args"] == ["mcp"]


def test_the_container_is_no_root_and_tells_its_health() -> None:
    lines = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8").splitlines()

    assert lines.index("USER knapper") > max(n for n, line in enumerate(lines) if line.startswith("RUN"))
    assert 'VOLUME ["/vault", "/state"]' in lines
    assert any(line.startswith("HEALTHCHECK") for line in lines)
    assert any("--require-hashes" in line for line in lines)


def test_a_release_publishes_by_trust_and_without_secrets() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]

    assert "secrets." not in text
    assert workflow["permissions"] == {"contents": "read"}
    assert jobs["package-index"]["permissions"] == {"id-token": "write"}
    assert jobs["package-index"]["environment"] == "release"
    assert all(job.get("needs") or name == "build" for name, job in jobs.items())
    assert {step["run"] for step in jobs["build"]["steps"] if "run" in step} >= {".ci/run"}
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [one for one in used if not re.search(r"@(v\d+|release/v1)$", one)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md)", "[a](https://x/blob/v1/docs/a.md)"),
        ("![a](docs/a.png)", "![a](https://x/raw/v1/docs/a.png)"),
        ("[a](https://y/z) [b](#part) [c](mailto:a@b)", "[a](https://y/z) [b](#part) [c](mailto:a@b)"),
        ("`a[0](x)`", "`a[0](https://x/blob/v1/x)`"),
    ],
)
def test_a_readme_gets_whole_addresses(text: str, expected: str) -> None:
    assert hatch_build.whole_addresses(text, "https://x", "v1") == expected


def test_the_readme_is_whole_where_an_index_shows_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = hatch_build.whole_addresses(text, FACTS.repository, f"v{FACTS.version}")
    paths = [path for path in distribution.relative_addresses(text) if not path.startswith("#")]

    assert list(distribution.relative_addresses(shown)) == []
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("script", ["version", "sizes", "distribution", "lock"])
def test_scripts_of_a_release_are_sound_bash(script: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")

    assert subprocess.run([bash, "-n", ROOT / "scripts" / script], check=False).returncode == 0
