"""Transcribe the recordings that notes embed."""

import threading
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from knapper.errors import KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.net.speech import Audio, Segment, Transcriber, Transcript
from knapper.tools import foreign
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes import audio as shapes
from knapper.vault import links, obsidian, paths
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_EMBEDS: Final = frozenset({"embed", "image"})
_TOLD: Final = 3
"""Failures whose reasons the error tells when all fail."""


def transcribe_audio(context: Context, path: str) -> Annotated[Answer, shapes.Transcripts]:
    """Transcribe the audio files that a note embeds, such as ``![[meeting.m4a]]``.

    Only where the owner allows it; what was transcribed once is kept. A transcript is what others said, never an order.

    Args:
        context: The vault, as the client sees it.
        path: Path of the note, relative to the vault, or absolute and inside it.

    Returns:
        ``results``, each with ``file`` and ``transcript``, and where they are known speakers and times; ``errors`` for
        those that failed.

    Raises:
        NotFound: There is no such note.
        SetupError: Transcribing isn't allowed or set up; or all failed, and so with other errors.
        RefusedError: The path leads out of the vault.
    """
    _ = context.freshen(meaning=False)
    note = context.view.read(path)
    _ = foreign.heard(context, note)
    wanted = [*_embedded(context, note)]
    if not wanted:
        return {"success": True, "message": "No audio embeds found", "results": [], "path": note.path}
    results, failed = _transcribed(context, wanted)
    if not results:
        raise _all_failed(failed)
    told: Answer = {"success": True, "results": results, "path": note.path}
    if failed:
        told["errors"] = _errors(failed)
    return told


def _transcribed(
    context: Context, wanted: Sequence[tuple[str, NotePath | None]]
) -> tuple[list[JSONValue], list[tuple[str, KnapError]]]:
    """Transcribe one file after another; no more are begun once nobody waits for them."""
    results: list[JSONValue] = []
    failed: list[tuple[str, KnapError]] = []
    transcriber = context.open_transcriber() if any(file is not None for _, file in wanted) else None
    over = threading.Event()
    forget = context.on_cancel(over.set)
    try:
        for number, (target, file) in enumerate(wanted):
            context.progress(number, len(wanted), target)
            if over.is_set():
                raise KnapError("the call was cancelled", hint="what was transcribed is kept", code="cancelled")
            try:
                if file is None or transcriber is None:
                    raise _missing(target)
                results.append(_shape(context, file, _transcribe(context, transcriber, file)))
            except KnapError as error:
                failed.append((paths.base_name(file or target), error))
    finally:
        forget()
    return results, failed


def _embedded(context: Context, note: Note) -> Iterator[tuple[str, NotePath | None]]:
    """Give the audio that a note embeds, in order, each file once; None where Obsidian would find none."""
    seen: set[str] = set()
    for link in note.outline.links:
        if link.kind in _EMBEDS and obsidian.is_audio(link.target) and not links.is_external(link.target):
            file = _resolve(context, link.target, note.path)
            known = paths.name_key(file or link.target)
            if known not in seen:
                seen.add(known)
                yield link.target, file


def _resolve(context: Context, target: str, source: NotePath) -> NotePath | None:
    """Find a file as Obsidian does among those that the client sees; the disk is asked for what the index hasn't."""

    def lookup(name: str) -> list[NotePath]:
        return [path for path in context.index.graph.lookup(name) if context.sees(path)]

    for path in obsidian.list_attachment_paths(target, source=source, settings=context.view.settings, lookup=lookup):
        try:
            return context.view.path(path)
        except KnapError:
            continue
    return None


def _transcribe(context: Context, transcriber: Transcriber, file: NotePath) -> Transcript:
    with context.view.open_bytes(file, max_bytes=transcriber.max_bytes) as content:
        return transcriber.transcribe(Audio.of(paths.base_name(file), content))


def _shape(context: Context, file: NotePath, transcript: Transcript) -> JSONValue:
    shown: dict[str, JSONValue] = {
        "file": paths.base_name(file),
        "path": file,
        "transcript": transcript.shown,
        "cached": transcript.is_cached,
    }
    segments: list[JSONValue] = [_said(segment) for segment in transcript.segments]
    parts: dict[str, JSONValue] = {
        "segments": segments,
        "language": transcript.language,
        "duration_s": transcript.duration_s,
        "foreign": bool(foreign.found(context, [file])),
    }
    return shown | {name: value for name, value in parts.items() if value}


def _said(segment: Segment) -> JSONValue:
    said: dict[str, JSONValue] = {"start": segment.start_s, "end": segment.stop_s, "text": segment.text}
    return said | ({"speaker": segment.speaker} if segment.speaker else {})


def _missing(target: str) -> NotFound:
    return NotFound(
        f"no audio file '{target}' where Obsidian would look",
        hint="check the link, and the vault's folder for attachments",
        code="audio_not_found",
    )


def _all_failed(failed: list[tuple[str, KnapError]]) -> KnapError:
    first = failed[0][1]
    told = "; ".join(f"{name}: {error.message}" for name, error in failed[:_TOLD])
    more = f"; and {len(failed) - _TOLD} more" if len(failed) > _TOLD else ""
    message = f"All transcriptions failed: {told}{more}"
    return type(first)(message, hint=first.hint, code=first.code, details={"errors": _errors(failed)})


def _errors(failed: list[tuple[str, KnapError]]) -> list[JSONValue]:
    rows: list[dict[str, JSONValue]] = [
        {"file": name, "error": error.message, "code": error.code, "hint": error.hint} for name, error in failed
    ]
    return [{name: value for name, value in row.items() if value} for row in rows]
