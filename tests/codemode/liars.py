"""Be workers that were taken over: processes that say what no worker says."""

# ruff: noqa: E501 - programs stand as one text each
import subprocess
import sys
from typing import Final

_READY: Final = "send(b'R', b'{}')\n"
_PRELUDE: Final = """
import os, struct, sys, time
def send(letter, content, length=None):
    data = letter + struct.pack("<I", len(content) if length is None else length) + content
    while data:
        data = data[os.write(1, data):]
def receive():
    head = b""
    while len(head) < 5:
        part = os.read(0, 5 - len(head))
        if not part:
            sys.exit()
        head += part
    left = struct.unpack("<I", head[1:])[0]
    while left:
        left -= len(os.read(0, left))
"""
LIES: Final = {
    "says_nothing_and_stays": "receive()\ntime.sleep(60)",
    "says_nothing_and_ends": "receive()",
    "ends_amid_a_frame": "receive()\nos.write(1, b'D\\x10\\x00\\x00\\x00abc')",
    "huge_length": "receive()\nos.write(1, b'D\\xff\\xff\\xff\\xffabc')\ntime.sleep(60)",
    "large_length_and_slow": "receive()\nos.write(1, b'D' + struct.pack('<I', 190_000))\ntime.sleep(60)",
    "no_such_letter": "receive()\nsend(b'X', b'')\ntime.sleep(60)",
    "a_job_back": "receive()\nsend(b'J', b'{}')\ntime.sleep(60)",
    "result_that_isnt_json": "receive()\nsend(b'D', b'\\xff\\xfe')",
    "result_of_another_shape": "receive()\nsend(b'D', b'[1, 2]')",
    "result_of_no_kind": 'receive()\nsend(b\'D\', b\'{"kind": "owner", "error": {"a": 1}}\')',
    "deep_result": "receive()\nsend(b'D', b'{\"kind\": \"ok\", \"result\": ' + b'[' * 90_000 + b']' * 90_000 + b'}')",
    "long_number": "receive()\nsend(b'D', b'{\"kind\": \"ok\", \"result\": ' + b'9' * 100_000 + b'}')",
    "half_a_character": 'receive()\nsend(b\'D\', b\'{"kind": "ok", "result": "\\\\ud800"}\')',
    "not_a_number": 'receive()\nsend(b\'D\', b\'{"kind": "ok", "result": NaN}\')',
    "strange_trap": "receive()\nsend(b'T', b'\\xff' * 1000)",
    "endless_output": "receive()\nwhile True: send(b'O', b'x' * 60_000)",
    "endless_empty_output": "receive()\nwhile True: send(b'O', b'')",
    "endless_calls": 'receive()\nwhile True: send(b\'C\', b\'{"method": "get_hash", "arguments": {}}\')',
    "calls_that_arent": "receive()\nfor i in range(50):\n    send(b'C', b'\\x80\\x04cposix')\n    receive()\nsend(b'D', b'{}')",
    "huge_call": "receive()\nsend(b'C', b'x' * 3_000_000)\ntime.sleep(60)",
    "reads_nothing_more": 'receive()\nfor i in range(50): send(b\'C\', b\'{"method": "big", "arguments": {}}\')\ntime.sleep(60)',
}


def start(name: str) -> subprocess.Popen[bytes]:
    """Start one that gets ready as workers do, and lies from then on."""
    program = _PRELUDE + _READY + LIES[name]
    return run(program)


def run(program: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", program]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
