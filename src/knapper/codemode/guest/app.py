"""Join the guest to its world; the build runs this, and keeps the memory as it is then.

The build puts this file beside the guest's package and the pure Python part of PyYAML. Everything that a script may
import, and what those modules import only when they are used, is loaded here: later there is nothing to load from.
"""

# ruff: noqa: E402, I001 - the order matters: the first line keeps the compiled datetime out, which reads a clock
import sys

sys.modules["_datetime"] = None  # pyright: ignore[reportArgumentType]

import _pydatetime  # pyright: ignore[reportMissingImports]
import importlib
import warnings
from typing import Final

import wit_world  # pyright: ignore[reportMissingImports]

from knapper.codemode.guest import clock, closing, interpreter, rules, yaml_subset

LAZY: Final = (
    *(
        "__future__",
        "_strptime",
        "calendar",
        "locale",
        "copy",
        "reprlib",
        "textwrap",
        "string",
        "bisect",
        "heapq",
        "operator",
    ),
    *("collections.abc", "json.scanner", "html.entities", "unicodedata", "stringprep", "difflib", "fnmatch", "glob"),
    *("encodings.ascii", "encodings.latin_1", "encodings.cp1252", "encodings.utf_8_sig", "encodings.utf_16"),
    *("encodings.utf_16_le", "encodings.utf_16_be", "encodings.utf_32", "encodings.raw_unicode_escape"),
    *("encodings.unicode_escape", "encodings.idna", "encodings.punycode", "encodings.hex_codec", "encodings.aliases"),
    *("encodings.base64_codec", "encodings.rot_13", "encodings.charmap", "inspect", "annotationlib", "contextlib"),
    "random",  # what joins the guest to its world loads it last
)

for name in (*rules.ALLOWED, *LAZY):
    _ = importlib.import_module(name)
clock.install(_pydatetime)
yaml_subset.install()
_ = interpreter.run('{"script": "__result__ = 1"}', lambda _: "{}", lambda _: None)
warnings.simplefilter("ignore")  # scripts are full of "\\d"
closing.close()


class WitWorld:
    """Implement the world."""

    def run(self, job: str) -> str:
        """Run one script."""
        return interpreter.run(job, wit_world.call, wit_world.emit)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
