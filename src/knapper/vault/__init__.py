"""Read text and files of a vault; no network, no database."""
