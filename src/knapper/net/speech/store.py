"""Keep transcripts, so that no recording is transcribed, sent or paid for twice."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final, cast

from knapper.net.speech.transcripts import Audio, Segment, Transcriber, Transcript

MOST: Final = 2_000
"""Transcripts that are kept; those that weren't asked for the longest go first."""
_FORM: Final = 1


class Store:
    """Keep transcripts in a folder, a file each, by a recording's content and what transcribed it."""

    def __init__(self, folder: Path, *, most: int = MOST) -> None:
        """Keep them in *folder*, which is made when something is kept; at most so many."""
        self._folder = folder
        self._most = most

    def find(self, digest: str, model_id: str) -> Transcript | None:
        """Give what is kept; None where nothing is, or it is damaged."""
        file = self._file(digest, model_id)
        try:
            said: object = json.loads(file.read_text(encoding="utf-8"))
            found = _read(cast("Mapping[str, object]", said))
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        if found is None or found.model_id != model_id:
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return replace(found, is_cached=True)

    def keep(self, digest: str, transcript: Transcript) -> None:
        """Keep a transcript; where the disk doesn't let that happen, it is made again another time."""
        file = self._file(digest, transcript.model_id)
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self._folder)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as opened:
                    json.dump({"form": _FORM, **asdict(transcript)}, opened, ensure_ascii=False)
                _ = Path(name).replace(file)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._prune()

    def _file(self, digest: str, model_id: str) -> Path:
        name = hashlib.sha256(f"{digest}\n{model_id}".encode()).hexdigest()
        return self._folder / f"{name}.json"

    def _prune(self) -> None:
        kept = [*self._folder.glob("*.json")]
        if len(kept) <= self._most:
            return
        for file in sorted(kept, key=lambda one: one.stat().st_mtime_ns)[: len(kept) - self._most]:
            file.unlink(missing_ok=True)


class Kept(Transcriber):
    """Ask a transcriber only for what isn't kept."""

    def __init__(self, transcriber: Transcriber, store: Store) -> None:
        """Ask *transcriber*, and keep what it says in *store*."""
        self._transcriber = transcriber
        self._store = store

    @property
    def model_id(self) -> str:
        """Name what transcribes."""
        return self._transcriber.model_id

    @property
    def max_bytes(self) -> int:
        """Tell how large a recording may be."""
        return self._transcriber.max_bytes

    def transcribe(self, audio: Audio) -> Transcript:
        """Give what is kept, or transcribe; errors are the transcriber's, and aren't kept."""
        found = self._store.find(audio.digest, self.model_id)
        if found is not None:
            return found
        made = replace(self._transcriber.transcribe(audio), model_id=self.model_id)
        if Audio.of(audio.name, audio.content).digest == audio.digest:  # not where it was recorded on meanwhile
            self._store.keep(audio.digest, made)
        return made

    def close(self) -> None:
        """Close the transcriber."""
        self._transcriber.close()


def _read(said: Mapping[str, object]) -> Transcript | None:
    if said["form"] != _FORM or not isinstance(said["text"], str):
        return None
    segments = [
        Segment(
            text=str(one["text"]),
            start_s=float(cast("float", one["start_s"])),
            stop_s=float(cast("float", one["stop_s"])),
            speaker=str(one["speaker"]),
        )
        for one in cast("list[Mapping[str, object]]", said["segments"])
    ]
    return Transcript(
        text=said["text"],
        segments=segments,
        language=str(said["language"]),
        duration_s=float(cast("float", said["duration_s"])),
        model_id=str(said["model_id"]),
    )
