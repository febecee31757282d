"""Run scripts in the pool: limits, kinds of outcome, warm workers, many at once."""

# ruff: noqa: E501 - scripts stand as one text each

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.codemode.sandbox.pool import WorkerPool
from knapper.errors import ConflictError, NotFound, SetupError
from knapper.jsontypes import JSONValue
from knapper.tools.context import ScriptExit, ScriptInputs, ScriptLimits


def echo(method: str, given: Mapping[str, JSONValue]) -> JSONValue:
    return {"method": method, **given}


@pytest.mark.parametrize(
    ("script", "kind", "error"),
    [
        ("__result__ = 1", "ok", ""),
        ("x = 1", "ok", ""),
        ("x = (", "syntax", "line 1: SyntaxError: '(' was never closed"),
        ("x = 1\n  y = 2", "syntax", "line 2: IndentationError: unexpected indent"),
        ("\0", "syntax", "SyntaxError: source code string cannot contain null bytes"),
        ("x = 1\n1/0", "error", "line 2: ZeroDivisionError: division by zero"),
        ("def f():\n    return {}['a']\n\nf()", "error", "line 2 in f (called from line 4): KeyError: 'a'"),
        ("raise SystemExit(3)", "error", "line 1: SystemExit: 3"),
        ("raise SystemExit", "ok", ""),
        ("import os", "refused", "line 1: ImportError: 'os' can't be imported in scripts"),
        ("from . import x", "refused", "line 1: ImportError"),
        ("eval('1')", "refused", "line 1: Refused: eval() is disabled in scripts"),
        ("open('x')", "refused", "line 1: Refused: open() is disabled"),
        ("__result__ = print", "result", "__result__ isn't JSON: a value is of type builtin_function_or_method"),
        ("__result__ = float('nan')", "result", "__result__ isn't JSON"),
        ("__result__ = {(1, 2): 3}", "result", "__result__ isn't JSON"),
        ("__result__ = 'x' * 300_000", "result", "__result__ has 300,002 bytes of JSON, and 200,000 are the most"),
        ("__result__ = 'x' * 10**9", "memory", "the script needed more than 512 MB"),
        ("raise MemoryError", "memory", "the script needed more than 512 MB"),
        ("class E(Exception):\n    __str__ = None\nraise E", "error", "line 3: E"),
    ],
)
def test_an_outcome_tells_its_kind_and_its_line(sandbox: WorkerPool, script: str, kind: ScriptExit, error: str) -> None:
    outcome = sandbox.run(script, echo)

    assert outcome.kind == kind
    assert outcome.error.startswith(error)
    assert outcome.ok == (kind == "ok")
    if kind == "ok":
        assert outcome.error == ""


def test_a_result_of_plain_things_becomes_json(sandbox: WorkerPool) -> None:
    script = "import datetime, pathlib\n__result__ = [{1, 2}, (3,), datetime.date(2026, 1, 2), pathlib.Path('a/b'), {4: 'x'}]"

    assert sandbox.run(script, echo).result == [[1, 2], [3], "2026-01-02", "a/b", {"4": "x"}]


def test_a_script_calls_its_host(sandbox: WorkerPool) -> None:
    outcome = sandbox.run("__result__ = [obsidian.get_hash('Zoë 😀.md'), obsidian.get_hash('B')]", echo)

    assert outcome.result == [
        {"method": "get_hash", "path": "Zoë 😀.md", "vault": None},
        {"method": "get_hash", "path": "B", "vault": None},
    ]
    assert outcome.calls == 2


def test_an_error_of_the_host_is_one_of_the_script(sandbox: WorkerPool) -> None:
    def refuse(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        raise NotFound("no such thing", hint="try another", code="narrow")

    caught = "try:\n    obsidian.read_note('A')\nexcept obsidian.Error as e:\n    __result__ = [str(e), e.code, e.hint]"

    assert sandbox.run(caught, refuse).result == ["no such thing (try another)", "narrow", "try another"]
    assert sandbox.run("obsidian.read_note('A')", refuse).error == "line 1: ObsidianError: no such thing (try another)"


def test_a_fault_of_the_host_is_raised_and_ends_the_script(sandbox: WorkerPool) -> None:
    def fail(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _ = sandbox.run("obsidian.read_note('A')", fail)

    assert sandbox.run("__result__ = 1", echo).result == 1


def test_an_answer_that_isnt_json_is_an_error_of_the_script(sandbox: WorkerPool) -> None:
    outcome = sandbox.run("obsidian.read_note('A')", lambda _method, _given: float("inf"))

    assert outcome.kind == "error"
    assert "can't be written as JSON" in outcome.error


def test_time_spent_in_the_host_counts(code_folder: Path) -> None:
    def sleep(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        time.sleep(0.3)
        return None

    with WorkerPool(code_folder, ScriptLimits(timeout_s=0.5), workers=1) as made:
        outcome = made.run("while True: obsidian.read_note('A')", sleep)

    assert outcome.kind == "timeout"
    assert outcome.calls <= 3


def test_callers_lower_limits_and_never_raise_them(code_folder: Path) -> None:
    with WorkerPool(code_folder, ScriptLimits(timeout_s=30, result_bytes=1_000), workers=1) as made:
        late = made.run("while True: pass", echo, limits=ScriptLimits(timeout_s=0.3))
        large = made.run("__result__ = 'x' * 2000", echo, limits=ScriptLimits(timeout_s=60, result_bytes=10**9))

    assert late.error == "the script took longer than 0.3 s, with all that it asked for"
    assert large.error.startswith("__result__ has 2,002 bytes of JSON, and 1,000 are the most")


def test_limits_within_others_are_the_lower_ones() -> None:
    most = ScriptLimits(timeout_s=10, memory_mb=100)

    assert ScriptLimits(timeout_s=5, memory_mb=200).within(most) == replace(most, timeout_s=5)


def test_what_is_printed_beyond_its_limit_is_dropped(code_folder: Path) -> None:
    with WorkerPool(code_folder, ScriptLimits(stdout_bytes=1_000), workers=1) as made:
        outcome = made.run("for i in range(10_000): print('ä' * 50)\n__result__ = 1", echo)

    assert outcome.result == 1
    assert len(outcome.stdout.encode()) < 1_100


def test_calls_are_counted_and_limited(code_folder: Path) -> None:
    with WorkerPool(code_folder, ScriptLimits(calls=5), workers=1) as made:
        caught = "n = 0\ntry:\n    while True:\n        obsidian.get_hash('A')\n        n += 1\nexcept obsidian.Error: pass\n__result__ = n"
        stubborn = "while True:\n    try: obsidian.get_hash('A')\n    except obsidian.Error: pass"

        assert made.run(caught, echo).result == 5
        outcome = made.run(stubborn, echo)

    assert (outcome.kind, outcome.calls) == ("refused", 5)


def test_an_argument_or_an_answer_that_is_too_large_is_refused(code_folder: Path) -> None:
    with WorkerPool(code_folder, ScriptLimits(request_bytes=1_000, reply_bytes=1_000), workers=1) as made:
        script = "try:\n    obsidian.get_hash('x' * SIZE)\nexcept obsidian.Error as e:\n    __result__ = e.code"
        argument = made.run(script.replace("SIZE", "2000"), echo)
        answer = made.run(script.replace("SIZE", "1"), lambda _method, _given: "y" * 2_000)

    assert [argument.result, argument.calls] == ["too_large", 0]
    assert answer.result == "too_large"


def test_a_script_that_is_too_large_is_not_run(sandbox: WorkerPool) -> None:
    assert sandbox.run("#" * 300_000, echo).kind == "syntax"


def test_the_time_is_what_the_script_is_given(sandbox: WorkerPool) -> None:
    script = "import datetime\n__result__ = [str(datetime.datetime.now()), str(datetime.datetime.now(datetime.timezone.utc))]"
    given = ScriptInputs(now=0.0, offset_s=-12_600)

    assert sandbox.run(script, echo, given=given).result == ["1969-12-31 20:30:00", "1970-01-01 00:00:00+00:00"]


def test_the_same_job_gives_the_same_outcome_again(sandbox: WorkerPool) -> None:
    script = "import datetime\n__result__ = [list({'a', 'b', 'c', 'd'}), hash('x'), str(datetime.datetime.now())]"

    assert len({str(sandbox.run(script, echo).result) for _ in range(3)}) == 1


def test_nothing_is_left_for_the_next_script(code_folder: Path) -> None:
    with WorkerPool(code_folder, workers=1) as made:
        _ = made.run("import json\njson.LEFT = LEFT = 1\nimport typing\ntyping.sys.modules['LEFT'] = 1", echo)
        script = "import json, typing\n__result__ = [hasattr(json, 'LEFT'), 'LEFT' in globals(), 'LEFT' in typing.sys.modules]"

        assert made.run(script, echo).result == [False, False, False]


def test_a_worker_is_used_again_after_a_good_end_and_not_after_a_bad_one(code_folder: Path) -> None:
    with WorkerPool(code_folder, workers=1) as made:
        first = worker(made)
        assert made.run("1/0", echo).kind == "error"
        assert worker(made) == first

        assert made.run("while True: pass", echo, limits=ScriptLimits(timeout_s=0.2)).kind == "timeout"
        assert worker(made) != first


def test_a_script_that_nobody_waits_for_is_ended_and_the_next_one_runs(sandbox: WorkerPool) -> None:
    heard: list[Callable[[], None]] = []

    def on_cancel(end: Callable[[], None]) -> Callable[[], None]:
        heard.append(end)
        return heard.clear

    def cancel(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        heard[0]()
        return None

    ended = sandbox.run("obsidian.get_hash('x')\nwhile True: pass", cancel, on_cancel=on_cancel)
    after = sandbox.run("__result__ = [1]", cancel)

    assert (ended.ok, ended.kind, heard) == (False, "timeout", [])
    assert "nobody waited" in ended.error
    assert ended.wall_s < sandbox.limits.timeout_s
    assert after.result == [1]


def test_several_scripts_at_once_dont_disturb_each_other(sandbox: WorkerPool) -> None:
    def run(number: int) -> tuple[JSONValue, ScriptExit]:
        script = f"x = [obsidian.get_hash(str(i))['own'] for i in range(20)]\n__result__ = [set(x), {number}]"
        if number == 3:
            script = "while True: pass"
        outcome = sandbox.run(
            script, lambda _method, _given: {"own": number}, limits=ScriptLimits(timeout_s=20 if number != 3 else 0.3)
        )
        return outcome.result, outcome.kind

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(run, range(8)))

    assert done == [([[n], n], "ok") if n != 3 else (None, "timeout") for n in range(8)]


def test_more_scripts_than_workers_wait_their_turn(code_folder: Path) -> None:
    seen: list[int] = []
    lock = threading.Lock()
    most: list[int] = []

    def count(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        with lock:
            seen.append(1)
            most.append(len(seen))
        time.sleep(0.05)
        with lock:
            seen.pop()
        return None

    with WorkerPool(code_folder, workers=2) as made, ThreadPoolExecutor(5) as pool:
        run: Callable[[int], object] = lambda _number: made.run("obsidian.get_hash('A')", count).kind  # noqa: E731
        assert list(pool.map(run, range(5))) == ["ok"] * 5

    assert max(most) <= 2


def test_a_closed_sandbox_runs_nothing(code_folder: Path) -> None:
    made = WorkerPool(code_folder)
    made.close()

    with pytest.raises(SetupError, match="closed"):
        _ = made.run("1", echo)


def test_a_worker_that_ends_while_it_waits_is_replaced(code_folder: Path) -> None:
    with WorkerPool(code_folder, workers=1) as made:
        _ = made.warm()
        for waiting in made.idle:
            waiting.close()

        assert made.run("__result__ = 2", echo).result == 2


def test_errors_of_any_kind_reach_the_script_with_their_code(sandbox: WorkerPool) -> None:
    def conflict(_method: str, _given: Mapping[str, JSONValue]) -> JSONValue:
        raise ConflictError("changed meanwhile")

    outcome = sandbox.run(
        "try:\n    obsidian.get_hash('A')\nexcept obsidian.Error as e:\n    __result__ = e.code", conflict
    )

    assert outcome.result == "conflict"


def worker(made: WorkerPool) -> int:
    _ = made.warm()
    return made.idle[0].pid
