"""Load all that scripts may import before the memory is kept: later there is nothing to load from."""

import importlib
import sys
import warnings
from typing import Any, Final, cast

_LAZY: Final = (
    *("__future__", "_strptime", "calendar", "locale", "copy", "reprlib", "textwrap", "string", "bisect", "heapq"),
    *("collections.abc", "json.scanner", "html.entities", "unicodedata", "stringprep", "difflib", "fnmatch", "glob"),
    *("encodings.ascii", "encodings.latin_1", "encodings.cp1252", "encodings.utf_8_sig", "encodings.utf_16"),
    *("encodings.utf_16_le", "encodings.utf_16_be", "encodings.utf_32", "encodings.raw_unicode_escape"),
    *("encodings.unicode_escape", "encodings.idna", "encodings.punycode", "encodings.hex_codec", "encodings.aliases"),
    *("encodings.base64_codec", "encodings.rot_13", "encodings.charmap", "inspect", "annotationlib", "contextlib"),
    *("operator", "random"),  # what joins the guest to its world loads the last one itself, after this
)
"""What the allowed modules import only when they are used."""
_GUEST: Final = "knapper.codemode.guest"
_JOB: Final = '{"script": "import datetime\\n__result__ = str(datetime.date.today())"}'


def prepare() -> None:
    """Load everything, run a first script, and close what isn't to be had."""
    cast("dict[str, object]", sys.modules)["_datetime"] = None  # the compiled one reads a clock that isn't there
    dates = importlib.import_module("_pydatetime")
    rules, clock, yaml_subset, interpreter, closing = map(
        _guest, ("rules", "clock", "yaml_subset", "interpreter", "closing")
    )
    for name in (*rules.ALLOWED, *_LAZY):
        _ = importlib.import_module(name)
    clock.install(dates)
    yaml_subset.install()
    warnings.simplefilter("ignore")  # scripts are full of "\d"
    _ = interpreter.run(_JOB, str, str)
    closing.close()


def _guest(name: str) -> Any:  # noqa: ANN401 - modules, which mustn't be imported before the dates are in place
    return importlib.import_module(f"{_GUEST}.{name}")
