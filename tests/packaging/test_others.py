"""What other programs take of us: the entry in the MCP registry, the bundle for clients of MCP, Homebrew's formula."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from knapper import config

ROOT = Path(__file__).parents[2]
TEXT = {"type": "string", "minLength": 1, "maxLength": 255}
ADDRESS = {"type": "string", "pattern": "^https://[^\\s]+$"}
ARGUMENT = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["named", "positional"]},
        "name": TEXT,
        "value": TEXT,
        "valueHint": TEXT,
        "description": TEXT,
        "format": {"enum": ["string", "number", "boolean", "filepath"]},
        "isRequired": {"type": "boolean"},
    },
    "oneOf": [
        {"properties": {"type": {"const": "named"}}, "required": ["name"]},
        {
            "properties": {"type": {"const": "positional"}},
            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
        },
    ],
    "additionalProperties": False,
}
PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "version", "transport"],
    "properties": {
        "registryType": {"enum": ["npm", "pypi", "cargo", "oci", "nuget", "mcpb"]},
        "identifier": TEXT,
        "version": {**TEXT, "pattern": r"^\d+\.\d+\.\d+[0-9A-Za-z.+-]*$"},
        "runtimeHint": TEXT,
        "transport": {"const": {"type": "stdio"}},
        "packageArguments": {"type": "array", "items": ARGUMENT},
    },
    "additionalProperties": False,
}
SERVER = {
    "type": "object",
    "required": ["$schema", "name", "description", "version"],
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {**TEXT, "pattern": r"^\d+\.\d+\.\d+[0-9A-Za-z.+-]*$"},
        "repository": {
            "type": "object",
            "required": ["url", "source"],
            "properties": {"url": ADDRESS, "source": {"enum": ["github", "gitlab"]}},
            "additionalProperties": False,
        },
        "packages": {"type": "array", "minItems": 1, "items": PACKAGE},
    },
    "additionalProperties": False,
}
"""The registry's rules for what our entry says, and nothing that it doesn't say.

Source: server.schema.json of modelcontextprotocol/registry, 2025-12-11: required members, lengths and patterns.
"""
FAKE_UV = """\
#!/bin/sh
# Does what `uv run --directory FOLDER SCRIPT ARGUMENTS` does once the project's packages are there: they are ours.
[ "$1 $2" = "run --directory" ] || exit 64
cd "$3" && shift 3 && exec "$PYTHON_OF_TEST" "$@"
"""


def read_json(path: str) -> dict[str, Any]:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def keeps_rules(entry: Mapping[str, Any]) -> bool:
    try:
        jsonschema.validate(dict(entry), SERVER, jsonschema.Draft202012Validator)
    except jsonschema.ValidationError:
        return False
    return True


def test_the_registrys_rules_are_kept() -> None:
    assert keeps_rules(read_json("packaging/server.json"))


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("description", "x" * 101),
        ("name", "no-namespace"),
        ("version", "1.x"),
        ("licence", "MIT"),
        ("packages", [{"registryType": "pypi"}]),
    ],
)
def test_what_the_registry_would_refuse_is_seen(member: str, value: object) -> None:
    assert not keeps_rules({**read_json("packaging/server.json"), member: value})


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="uv is played by a script for the shell")
def test_the_bundle_starts_a_server_that_answers(tmp_path: Path) -> None:
    folder = unpack(pack(tmp_path / "knapper.mcpb"), tmp_path / "my bundle Ж")
    vault = tmp_path / "my Notes"
    vault.mkdir()
    (vault / "Fence.md").write_text("# Fence\n\nThe fence is green.\n", encoding="utf-8")

    answers = call(folder, vault, tmp_path / "programs")

    assert answers[1]["serverInfo"]["name"].lower() == "knapper"
    assert "Fence.md" in json.dumps(answers[2])


def pack(bundle: Path) -> Path:
    """Pack the bundle as its own tool does: a zip file of the folder."""
    with zipfile.ZipFile(bundle, "w") as packed:
        for file in sorted((ROOT / "packaging" / "mcpb").iterdir()):
            packed.write(file, file.name)
    return bundle


def unpack(bundle: Path, folder: Path) -> Path:
    with zipfile.ZipFile(bundle) as packed:
        packed.extractall(folder)
    return folder


def call(folder: Path, vault: Path, programs: Path) -> dict[int, Any]:
    """Start what the manifest says, and ask it; return results by the number of the request."""
    programs.mkdir()
    (programs / "uv").write_text(FAKE_UV, encoding="utf-8")
    (programs / "uv").chmod(0o755)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    setting = manifest["server"]["mcp_config"]
    values = {"${__dirname}": str(folder), "${user_config.vault}": str(vault)}
    requests = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "search_vault", "arguments": {"query": "green fence"}}},
    ]  # fmt: skip
    words: list[str] = [setting["command"], *setting["args"]]
    with subprocess.Popen(
        [values.get(word, word) for word in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={
            **config.environment_variables(),
            **setting["env"],
            "PATH": f"{programs}:/usr/bin:/bin",
            "PYTHON_OF_TEST": sys.executable,
        },
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        server.stdin.flush()
        answers: dict[int, Any] = {}
        while len(answers) < 2 and (line := server.stdout.readline()):
            message = json.loads(line)
            if "id" in message:
                answers[message["id"]] = message["result"]
        server.stdin.close()
    return answers


@pytest.mark.skipif(not shutil.which("ruby"), reason="there is no ruby here to read the formula with")
def test_the_formula_can_be_read_as_ruby() -> None:
    formula = ROOT / "packaging" / "homebrew" / "knapper.rb"

    assert subprocess.run(["ruby", "-c", formula], capture_output=True, check=False).returncode == 0
