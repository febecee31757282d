"""Make the engine: the same one to compile with and to run on."""

from typing import Final

import wasmtime

STACK_BYTES: Final = 1 << 20
"""For the interpreter's own recursion; Python's limit is met first."""
CHOSEN: Final = "speed"
"""Cranelift's level of optimisation: bench/scripts.py compares them."""


def make() -> wasmtime.Engine:
    """Make an engine that can be interrupted at any point of a script."""
    config = wasmtime.Config()
    config.epoch_interruption = True
    config.cranelift_opt_level = CHOSEN
    config.max_wasm_stack = STACK_BYTES
    config.wasm_threads = False
    return wasmtime.Engine(config)
