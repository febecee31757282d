"""Write a session as a note."""

from collections.abc import Sequence

from knapper.agents.sessions.records import Exchange, Session


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
