"""What a client sends over the pipe that is no message is answered, and takes nobody's turn."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ValidationError

from knapper.server.mcp import stdio
from tests.tools import opened

PING = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'
OPENING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def answered(line: str) -> JSONRPCError | None:
    with pytest.raises(ValidationError) as caught:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    return stdio.make_error_response(caught.value)


@pytest.mark.slow
def test_lines_that_are_no_message_are_answered_between_those_that_are(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"A.md": "# A\n"})
    line = [sys.executable, "-m", "knapper.cli", "mcp", "--vault", str(vault.root)]
    environment = {
        "KNAP_STATE_DIR": str(vault.state),
        "KNAP_EMBEDDINGS": "none",
        "PATH": "/usr/bin:/bin",
        "HOME": str(vault.state),
    }
    sent = [
        b"{before anything else",
        json.dumps(OPENING).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search_vault","arguments":{"query":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":4,"method":"tools/call",'
        b'"params":{"name":"append_to_file","arguments":{"path":"A.md","content":"caf\xe9"}}}',
        b"",
        b'{"jsonrpc":"2.0","id":3}',
        PING,
    ]

    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"\n".join(sent) + b"\n")
        server.stdin.flush()
        answers: list[dict[str, Any]] = []
        while not answers or answers[-1]["id"] != "last":
            answers.append(json.loads(server.stdout.readline()))
        rest, _ = server.communicate(timeout=60)

    errors = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
    assert sorted(errors, key=str) == [(2, -32700), (3, -32600), (4, -32700), (None, -32700)]
    assert [one["id"] for one in answers if "result" in one] == [1, "last"]
    assert (rest, server.returncode) == (b"", 0)
    assert vault.text("A.md") == "# A\n"


@pytest.mark.parametrize(
    ("line", "code", "name"),
    [
        ("{", -32700, None),
        ('{"id": 5, "x": "\\ud800"}', -32700, 5),
        ('{"id": "a\\ud800"}', -32700, None),
        ('{"id": true, "x": "\\udfff"}', -32700, None),
        ("[" * 100_000, -32700, None),
        ('{"id": 6, "x": "caf\udce9"}', -32700, 6),
        ("[]", -32600, None),
        ('{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
        ('{"id": "seven", "method": "ping"}', -32600, "seven"),
    ],
)
def test_an_error_has_the_id_that_can_be_told(line: str, code: int, name: object) -> None:
    found = answered(line)

    assert found is not None
    assert (found.error.code, found.id) == (code, name)


@pytest.mark.parametrize("line", ["", "\n", " \r\n"])
def test_an_empty_line_is_nothing_to_answer(line: str) -> None:
    assert answered(line) is None


@given(st.text() | st.dictionaries(st.text(), st.integers() | st.text()).map(json.dumps))
def test_whatever_is_no_message_gets_an_answer_that_can_be_sent(line: str) -> None:
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        found = stdio.make_error_response(error)
        if found is None:
            assert not line.strip()
            return

        assert json.loads(found.model_dump_json(by_alias=True, exclude_unset=True))["error"]["code"] in {-32700, -32600}
