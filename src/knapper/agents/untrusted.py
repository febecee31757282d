"""Put text that others wrote into a prompt so that it can't pass for anything else.

It stands as JSON in a block with a mark that nobody could have known when the text was written. No ``<`` that opens
something survives unescaped inside, and neither do the signs by which models tell roles apart, nor invisible
characters; as JSON the text is still exactly what it was.
"""

import json
import re
import secrets
from typing import Final

_OPENING: Final = re.compile(r"<(?=\S)")
_ROLES: Final = re.compile(r"\[(?=/?(?:INST|SYS|SYSTEM|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\b)", re.IGNORECASE)
_INVISIBLE: Final = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
_PLAIN: Final = re.compile(r"[^\x00-\x1f\"\\<\[" + _INVISIBLE.pattern[1:-1] + "]*")
"""Text that stands in JSON as it is."""
TAG: Final = "vault-data"


def new_mark() -> str:
    """Make a mark that no text can have guessed."""
    return secrets.token_hex(6)


def escape(data: object) -> str:
    r"""Write data as JSON that holds nothing a model could take for the prompt's own marks.

    ``{"a": "</vault-data>"}`` becomes ``{"a": "\\u003c/vault-data>"}``.
    """
    if isinstance(data, str) and _PLAIN.fullmatch(data):
        return f'"{data}"'
    text = json.dumps(data, ensure_ascii=False)
    text = _OPENING.sub(r"\\u003c", text)
    text = _ROLES.sub(r"\\u005b", text)
    return _INVISIBLE.sub(lambda found: json.dumps(found.group())[1:-1], text)


def enclose(source: str, escaped: str, mark: str) -> str:
    """Put escaped text into a block.

    Args:
        source: Where it comes from, in words of our own: a tool's name.
        escaped: From `escape`, or a stretch of that.
        mark: The block's.
    """
    return f'<{TAG} source="{source}" mark="{mark}">\n{escaped}\n</{TAG} mark="{mark}">'


def plain(text: str) -> str:
    """Write a text outside of a block so that it holds none of the prompt's own marks.

    ``</vault-data>`` becomes ``&lt;/vault-data>``; invisible characters are left out.
    """
    return _ROLES.sub("&#91;", _OPENING.sub("&lt;", _INVISIBLE.sub("", text)))
