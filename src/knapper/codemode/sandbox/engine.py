"""Make the engine: the same one to compile with and to run on.

A module of its own, since its hash is part of the key of compiled machine code.
"""

from typing import Final

import wasmtime

STACK_BYTES: Final = 1 << 20
"""For the interpreter's own recursion; Python's limit is met first."""
CHOSEN: Final = "speed"
"""Cranelift's level of optimisation: bench/scripts.py compares them."""


def make_engine() -> wasmtime.Engine:
    """Make an engine that can be interrupted at any point of a script."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.cranelift_opt_level = CHOSEN
    config.max_wasm_stack = STACK_BYTES
    config.wasm_threads = False
    return wasmtime.Engine(config)
