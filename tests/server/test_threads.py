"""Threads of the server, and of the libraries that it calls."""

import os
from pathlib import Path

import pytest

from knapper.config import environment
from knapper.server.http import calling
from knapper.tools.context import Context
from knapper.tools.rows import Row
from knapper.tools.shapes import Answer


def test_numpy_computes_in_the_callers_thread_unless_the_owner_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VECLIB_MAXIMUM_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "9")  # so that it is put back
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    environment.keep_numpy_to_one_thread()

    said = os.environ  # noqa: TID251 - what is tested is what it holds
    assert (said["OPENBLAS_NUM_THREADS"], said["VECLIB_MAXIMUM_THREADS"]) == ("1", "3")


def nothing(context: Context) -> Answer:
    return {"vault": context.vault, "here": str(Path())}


def test_what_waits_for_other_machines_has_threads_of_its_own() -> None:
    kinds = [
        calling.kind_of(Row(function=nothing)),
        calling.kind_of(Row(function=nothing, effect="destructive")),
        calling.kind_of(Row(function=nothing, effect="write", open_world=True)),
    ]

    assert kinds == ["read", "write", "world"]
