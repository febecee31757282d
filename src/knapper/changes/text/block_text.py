"""Write one waiting edit as a block, under an id that tells whether somebody changed it."""

import hashlib
import json
import re
from typing import Final

from knapper.vault.pending import PendingBlock

_SUM_DIGITS: Final = 6
_OWN_ID: Final = re.compile(r"[0-9a-f]{8}-(?P<sum>[0-9a-f]{6})")
_TICKS: Final = re.compile("`{3,}")
_BREAKS: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_MIN_FENCE: Final = 3


def name(hunk_id: str, before: str, after: str) -> str:
    """Make a block's id: that of its first hunk, and a sum over both sides."""
    return f"{hunk_id}-{_sum(before, after)}"


def _sum(before: str, after: str) -> str:
    return hashlib.sha256(json.dumps([before, after]).encode()).hexdigest()[:_SUM_DIGITS]


def is_own(block: PendingBlock) -> bool:
    """Tell whether this program made a block; others' hold lines without endings, and no sum."""
    return _OWN_ID.fullmatch(block.id) is not None


def is_intact(block: PendingBlock) -> bool:
    """Tell whether both sides are what they were made; true of another program's block, which can't tell."""
    own = _OWN_ID.fullmatch(block.id)
    return own is None or own["sum"] == _sum(block.before, block.after)


def write(block_id: str, before: str, after: str) -> str:
    """Write a block's four lines; the fence is longer than any run of backticks inside."""
    kind = "replace" if before and after else "delete" if before else "add"
    edit = {"id": block_id, "type": kind, "before": before, "after": after}
    text = json.dumps(edit, ensure_ascii=False, separators=(",", ":"))
    text = _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    fence = "`" * max([_MIN_FENCE, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return f"{fence}ai-edit\n{text}\n{fence}\n#ai_edit\n"
