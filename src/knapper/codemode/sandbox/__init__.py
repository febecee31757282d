"""Run scripts in CPython built to WebAssembly, in worker processes that can reach nothing."""
