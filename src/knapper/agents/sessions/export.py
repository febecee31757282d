"""Write a session as a note."""

from collections.abc import Sequence
from typing import Final

from knapper.agents.sessions.records import Exchange, Session

_MAX_NAME: Final = 40


def markdown(session: Session, turns: Sequence[Exchange]) -> str:
    """Give a session as Markdown: questions under headings, answers as they were given."""
    parts = [f"# {session.name or 'Chat'}"]
    for turn in turns:
        heading = " ".join(turn.question.split())[:80]
        parts.append(f"## {turn.at:%Y-%m-%d %H:%M} {heading}")
        quoted = "\n".join(f"> {line}".rstrip() for line in turn.question.splitlines())
        parts.append(quoted)
        answer = str(turn.outcome.get("answer", "")).strip()
        if answer:
            parts.append(answer)
    return "\n\n".join(parts) + "\n"


def place(session: Session, turns: Sequence[Exchange]) -> str:
    """Name the note that a session becomes: ``Chats/2026-03-14 0926 What grows.md``; there is a turn at least."""
    kept = "".join(sign if sign.isalnum() or sign in " -_" else " " for sign in session.name)
    return f"Chats/{turns[0].at:%Y-%m-%d %H%M} {' '.join(kept.split())[:_MAX_NAME].strip() or 'Chat'}.md"
