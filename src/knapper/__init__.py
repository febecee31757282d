"""Search, question and edit a Markdown vault, safely."""

__version__ = "0.1.0"
