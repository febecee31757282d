"""Change a note's bytes, purely: bytes in, bytes or a typed refusal out."""
