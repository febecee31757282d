"""Check what the program needs: one subject a module."""
