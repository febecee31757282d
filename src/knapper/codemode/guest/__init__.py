"""Hold what runs inside the sandbox; built into a WebAssembly component, and never imported by the program."""
