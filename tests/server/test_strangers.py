"""What goes on for one client is nobody else's, be it a turn or a task."""

from pathlib import Path

import pytest

from tests.server import chats, tasks

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    ("path", "said", "name", "code", "ends"),
    [
        pytest.param("/chat", {"message": "hello"}, "turn_id", "no_turn", "done", id="turn"),
        pytest.param("/ask", {"task": "rain?", "note": "Rain.md"}, "run_id", "no_run", "outcome", id="task"),
    ],
)
def test_another_client_hears_and_stops_nothing(
    tmp_path: Path, path: str, said: dict[str, str], name: str, code: str, ends: str
) -> None:
    gate = tasks.gate()
    with (
        chats.serving(tmp_path, gate.open, gate=gate) as server,
        server.client() as client,
        server.client("page") as other,
        chats.streaming(client, f"{path}/stream", said) as heard,
    ):
        one = f"{path}/{next(heard).data[name]}"
        gate.until_waiting()
        found = [other.get(f"{one}/events"), other.post(f"{one}/cancel")]
        gate.opened.set()
        end = list(heard)[-1]

    assert {(one.status_code, one.json()["code"]) for one in found} == {(404, code)}
    assert (end.name, end.data["state"]) == (ends, "complete")
