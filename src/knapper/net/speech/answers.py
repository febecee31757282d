"""Read what transcribing servers say: ``json``, ``verbose_json`` and ``diarized_json``."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, cast

from knapper.net import texts
from knapper.net.speech.transcripts import Segment, Transcript

_WORD: Final = re.compile(r"\w{1,60}", re.ASCII)
_MOST: Final = 500_000
"""Segments or words of one answer."""

_Row = Mapping[str, object]


def transcript(body: bytes) -> Transcript:
    """Read a transcript.

    Speakers come from segments, from stretches of speakers, or else from words; they are numbered as they begin.

    Raises:
        ValueError: With what is wrong with the answer; nothing of its own text is in it.
    """
    try:
        answer: object = json.loads(body)
    except (ValueError, RecursionError):
        kind = "HTML" if body.lstrip()[:1] == b"<" else "no JSON"
        raise ValueError(f"it is {kind}") from None
    said = _row(answer)
    text = _text(said)
    segments = _numbered(_segments(said))
    language = said.get("language")
    return Transcript(
        text=text.strip(),
        segments=segments,
        language=texts.whole(language[:40]) if isinstance(language, str) else "",
        duration_s=_number(said.get("duration")) or (segments[-1].stop_s if segments else 0.0),
    )


def reason(body: bytes) -> str:
    """Find the short code that a server gives for a refusal; empty where there is none.

    A server's sentences may repeat what was sent, so none of them is shown.
    """
    try:
        error: object = json.loads(body)["error"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    codes = (str(_row(error).get(name) or "") for name in ("code", "type"))
    return next((code for code in codes if _WORD.fullmatch(code)), "")


def _row(value: object) -> _Row:
    return cast("_Row", value) if isinstance(value, dict) else dict[str, object]()


def _text(said: _Row) -> str:
    match said.get("text"):
        case str(text):
            return texts.whole(text)
        case _:
            raise ValueError("it has no text")


def _segments(said: _Row) -> list[Segment]:
    segments = [*_read(said.get("segments"), "text")]
    turns = [*_read(said.get("speaker_segments"), "text")]
    if turns and not any(one.speaker for one in segments):
        return turns
    words = [*_read(said.get("words"), "word")]
    told_apart = bool(segments) and all(one.speaker for one in segments)
    if any(one.speaker for one in words) and not told_apart:
        return [_joined(list(turn)) for _, turn in groupby(words, key=lambda word: word.speaker)]
    return segments


def _read(rows: object, name: str) -> Iterator[Segment]:
    if not isinstance(rows, list):
        return
    for row in cast("list[object]", rows)[:_MOST]:
        values = _row(row)
        text = values.get(name)
        if isinstance(text, str) and text.strip():
            start, stop = _number(values.get("start")), _number(values.get("end"))
            speaker = values.get("speaker_id") or values.get("speaker")
            yield Segment(
                text=texts.whole(text).strip(),
                start_s=start,
                stop_s=max(start, stop),
                speaker="" if speaker is None else str(speaker)[:80],
            )


def _joined(words: Sequence[Segment]) -> Segment:
    text = " ".join(word.text for word in words)
    return Segment(text=text, start_s=words[0].start_s, stop_s=words[-1].stop_s, speaker=words[0].speaker)


def _numbered(segments: Sequence[Segment]) -> list[Segment]:
    """Call speakers by the order in which they begin: servers' own labels mean nothing."""
    labels = dict.fromkeys(segment.speaker for segment in segments if segment.speaker)
    names = {label: f"Speaker {number}" for number, label in enumerate(labels, 1)} | {"": ""}
    return [
        Segment(text=one.text, start_s=one.start_s, stop_s=one.stop_s, speaker=names[one.speaker]) for one in segments
    ]


def _number(value: object) -> float:
    """Read seconds; 0 for what isn't any."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return round(float(value), 3) if math.isfinite(value) and 0 <= value < 1e9 else 0.0
