"""Transcribing: what is sent, what is read, and every way in which it can fail."""

import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knapper.errors import SetupError
from knapper.net.client import Oversized, Unreachable
from knapper.net.speech import Audio, Segment, TranscriberError, Transcript, remote, service
from knapper.net.speech.remote import RemoteTranscriber, ServerKind, ServerOptions
from knapper.net.speech.service import CachedTranscriber, SpeechSettings, TranscriptStore, WhisperTranscriber
from tests.net.recordings import Reply, Upload, listening

KEY = "fw-very-secret"
SOUND = b"\0\1RIFF" * 5_000
WORDS = [
    {"word": "Good", "start": 0.0, "end": 0.4, "speaker_id": "B"},
    {"word": "morning.", "start": 0.4, "end": 0.9, "speaker_id": "B"},
    {"word": "Hello.", "start": 1.0, "end": 1.5, "speaker_id": "A"},
]
TURNS = [
    Segment(text="Good morning.", start_s=0.0, stop_s=0.9, speaker="Speaker 1"),
    Segment(text="Hello.", start_s=1.0, stop_s=1.5, speaker="Speaker 2"),
]


def audio(name: str = "call.m4a", content: bytes = SOUND) -> Audio:
    return Audio.measure(name, io.BytesIO(content))


ACCESS = ServerOptions(form="server", base_url="", model="whisper-1", timeout_s=60.0)


def endpoint(url: str, access: ServerOptions = ACCESS) -> RemoteTranscriber:
    return RemoteTranscriber(replace(access, base_url=url), pause=lambda _: None)


def asked(*replies: Reply, access: ServerOptions = ACCESS) -> tuple[Transcript, Sequence[Upload]]:
    with listening(*replies) as server:
        return endpoint(server.url, access).transcribe(audio()), server.uploads


def refused(*replies: Reply, access: ServerOptions = ACCESS) -> TranscriberError:
    with listening(*replies) as server, pytest.raises(TranscriberError) as caught:
        endpoint(server.url, access).transcribe(audio())
    assert KEY not in caught.value.message + caught.value.hint
    return caught.value


def test_a_recording_is_sent_whole_with_its_name_and_the_key() -> None:
    said, (upload,) = asked(access=replace(ACCESS, api_key=KEY, language="de"))

    assert said.text == "Good morning."
    assert (upload.path, upload.file, upload.digest) == ("/v1/audio/transcriptions", "call.m4a", audio().digest)
    assert upload.headers["Authorization"] == f"Bearer {KEY}"
    assert upload.fields == {"model": "whisper-1", "language": "de", "response_format": "verbose_json"}


@pytest.mark.parametrize(
    ("form", "model", "expected"),
    [
        (
            "fireworks",
            "whisper-v3",
            {"response_format": "verbose_json", "timestamp_granularities": "word,segment", "diarize": "true"},
        ),
        ("openai", "whisper-1", {"response_format": "verbose_json"}),
        ("openai", "gpt-4o-transcribe", {"response_format": "json"}),
        ("openai", "gpt-4o-transcribe-diarize", {"response_format": "diarized_json", "chunking_strategy": "auto"}),
    ],
)
def test_each_provider_is_asked_in_its_own_words(form: ServerKind, model: str, expected: dict[str, str]) -> None:
    _, (upload,) = asked(access=replace(ACCESS, form=form, model=model))

    assert upload.fields == {"model": model, **expected}


def test_a_server_without_the_long_form_is_asked_for_the_short_one() -> None:
    said, uploads = asked(Reply(status=400), Reply())

    assert said.text == "Good morning."
    assert [upload.fields["response_format"] for upload in uploads] == ["verbose_json", "json"]
    assert uploads[0].digest == uploads[1].digest == audio().digest


@pytest.mark.parametrize(
    "body",
    [
        {"words": WORDS},
        {"words": WORDS, "segments": [{"text": "Good morning. Hello.", "start": 0, "end": 1.5}]},
        {"segments": [{"text": " Good morning.", "start": 0, "end": 0.9, "speaker_id": "SPEAKER_01"}, {
            "text": "Hello.", "start": 1.0, "end": 1.5, "speaker_id": "SPEAKER_00"}]},
        {"segments": [{"text": "Good morning.", "start": 0, "end": 0.9, "speaker": "agent"}, {
            "text": "Hello.", "start": 1.0, "end": 1.5, "speaker": "B"}]},
        {"segments": [{"text": "x", "start": 0, "end": 1}], "speaker_segments": [
            {"text": "Good morning.", "start": 0, "end": 0.9, "speaker_id": 1},
            {"text": "Hello.", "start": "1.0", "end": "1.5", "speaker_id": 2}]},
    ],
)  # fmt: skip
def test_speakers_are_numbered_as_they_begin(body: dict[str, object]) -> None:
    said, _ = asked(Reply(body={"text": "Good morning. Hello.", "language": "en", "duration": 1.5, **body}))

    assert said.segments == TURNS
    assert said.shown == "Speaker 1: Good morning.\n\nSpeaker 2: Hello."
    assert (said.language, said.duration_s) == ("en", 1.5)


def test_without_speakers_there_are_times_and_the_plain_text() -> None:
    said, _ = asked(Reply(body={"text": " Hello. ", "segments": [{"text": "Hello.", "start": 0, "end": 1}]}))

    assert said.shown == said.text == "Hello."
    assert said.segments == [Segment(text="Hello.", start_s=0.0, stop_s=1.0)]
    assert said.duration_s == 1.0


def test_half_of_a_character_becomes_a_question_mark(tmp_path: Path) -> None:
    half = "\ud83d"
    said, _ = asked(Reply(body={"text": f"Hi {half}", "segments": [{"text": half, "start": 0, "end": 1}]}))
    TranscriptStore(tmp_path).save("digest", said)

    assert (said.text, said.segments[0].text) == ("Hi ?", "?")
    assert TranscriptStore(tmp_path).find("digest", said.model_id)


@pytest.mark.parametrize(
    "body", [b"", b"<html>log in</html>", b"\xff\xfe", b"[" * 100_000, b"[]", b"{}", b'{"text":1}']
)
def test_garbage_is_said_to_be_garbage(body: bytes) -> None:
    assert refused(Reply(body=body)).code == "transcriber_answer"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["text", "segments", "words", "word", "start", "end", "speaker", "speaker_id"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_odd_answers_are_read_or_refused(value: object) -> None:
    try:
        said = remote.parse_transcript(json.dumps(value).encode())
    except ValueError:
        return

    assert all(0 <= one.start_s <= one.stop_s for one in said.segments)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "transcriber_refused"),
        (401, "transcriber_key"),
        (403, "transcriber_key"),
        (404, "transcriber_refused"),
        (302, "transcriber_refused"),
        (413, "transcriber_too_large"),
        (429, "transcriber_busy"),
        (500, "transcriber_busy"),
    ],
)
def test_a_refusal_says_who_can_mend_it(status: int, code: str) -> None:
    error = refused(
        Reply(status=status, body={"error": {"code": "the_code", "message": KEY}}), access=replace(ACCESS, api_key=KEY)
    )

    assert error.code == code
    assert f"HTTP {status}, the_code" in error.message


def test_a_failure_that_passes_is_passed_over() -> None:
    said, uploads = asked(Reply(status=503), Reply())

    assert said.text == "Good morning."
    assert len(uploads) == 2


def test_a_server_that_hangs_is_given_up() -> None:
    with listening(Reply(hang=True)) as server, pytest.raises(Unreachable) as caught:
        endpoint(server.url, replace(ACCESS, timeout_s=0.3)).transcribe(audio())

    assert caught.value.code == "timeout"


def test_an_endless_answer_is_given_up() -> None:
    with listening(Reply(body=b" " * 1_000_000, repeat=70)) as server, pytest.raises(Oversized):
        endpoint(server.url).transcribe(audio())


def test_nobody_listening_is_said() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9 can't be reached"):
        endpoint("http://127.0.0.1:9/v1").transcribe(audio())


class Pieces:
    def __init__(self, *texts: str) -> None:
        self.pieces = [Piece(text, float(at), at + 0.5) for at, text in enumerate(texts)]
        self.asked: list[tuple[str | None, bool]] = []

    def __call__(self, model: str, *, device: str, compute_type: str) -> "Pieces":
        if model == "missing":
            raise RuntimeError(device, compute_type)
        return self

    def transcribe(self, audio: BinaryIO, *, language: str | None, vad_filter: bool) -> tuple[list["Piece"], "About"]:
        if not audio.read(4).startswith(b"\0\1"):
            raise RuntimeError("no sound")
        self.asked.append((language, vad_filter))
        return self.pieces, About()


class Piece:
    def __init__(self, text: str, start: float, end: float) -> None:
        self.text, self.start, self.end = text, start, end


class About:
    language = "en"
    duration = 2.0


def test_a_model_here_leaves_silence_out_and_gives_times() -> None:
    models = Pieces(" Good morning.", " Hello.")
    said = WhisperTranscriber("small", models=models).transcribe(audio())

    assert said.text == "Good morning. Hello."
    assert said.segments[1] == Segment(text="Hello.", start_s=1.0, stop_s=1.5)
    assert models.asked == [(None, True)]


def test_a_model_here_says_what_it_cannot_do() -> None:
    codes: list[str] = []
    for model, content in (("missing", SOUND), ("small", b"text")):
        with pytest.raises(TranscriberError) as caught:
            WhisperTranscriber(model, models=Pieces()).transcribe(audio(content=content))
        codes.append(caught.value.code)

    assert codes == ["transcriber_model", "transcriber_refused"]


def test_a_wrong_call_of_the_library_is_not_taken_for_a_bad_recording() -> None:
    class Narrow(Pieces):
        def transcribe(self, audio: BinaryIO, *, language: str | None, vad_filter: bool) -> NoReturn:
            raise TypeError(audio, language, vad_filter)

    with pytest.raises(TypeError):
        WhisperTranscriber("small", models=Narrow()).transcribe(audio())


def test_without_the_extra_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(SetupError) as caught:
        WhisperTranscriber("small").transcribe(audio())

    assert caught.value.code == "transcriber_extra"
    assert "audio" in caught.value.hint


class Counting:
    max_bytes = 10**9

    def __init__(self) -> None:
        self.model_id = "m"
        self.asked: list[str] = []

    def transcribe(self, audio: Audio) -> Transcript:
        self.asked.append(audio.name)
        return Transcript(text=f"{len(self.asked)}", segments=TURNS, language="en", duration_s=1.5)

    def close(self) -> None:
        pass


def test_what_was_transcribed_is_kept_by_content_and_model(tmp_path: Path) -> None:
    counting = Counting()
    first = CachedTranscriber(counting, TranscriptStore(tmp_path / "kept")).transcribe(audio("a.m4a"))
    again = CachedTranscriber(counting, TranscriptStore(tmp_path / "kept")).transcribe(audio("b.mp3"))
    other = CachedTranscriber(counting, TranscriptStore(tmp_path / "kept")).transcribe(audio(content=b"\0\1other"))
    counting.model_id = "n"
    newer = CachedTranscriber(counting, TranscriptStore(tmp_path / "kept")).transcribe(audio("a.m4a"))

    assert (first.text, again.text, other.text, newer.text) == ("1", "1", "2", "3")
    assert (first.is_cached, again.is_cached) == (False, True)
    assert again.segments == TURNS
    assert (again.language, again.duration_s) == ("en", 1.5)


WRONG_TYPES = [
    b'{"form": 1, "text": "x", "language": "en", "duration_s": 1, "model_id": "m", "segments": 5}',
    b'{"form": 1, "text": "x", "language": "en", "duration_s": 1, "model_id": "m", "segments": [5]}',
    b'{"form": 1, "text": "x", "language": "en", "duration_s": [], "model_id": "m", "segments": []}',
]


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"[]", b"\xff", b'{"form": 1, "text": 1}', b"[" * 100_000, *WRONG_TYPES]
)
def test_a_damaged_transcript_is_made_again(tmp_path: Path, damage: bytes) -> None:
    kept = CachedTranscriber(Counting(), TranscriptStore(tmp_path))
    kept.transcribe(audio())
    next(tmp_path.glob("*.json")).write_bytes(damage)

    assert kept.transcribe(audio()).text == "2"
    assert kept.transcribe(audio()).is_cached


def test_only_so_many_transcripts_are_kept(tmp_path: Path) -> None:
    store = TranscriptStore(tmp_path, most=3)
    for number in range(6):
        store.save(f"{number}", Transcript(text="x", model_id="m"))

    assert len([*tmp_path.iterdir()]) == 3


def test_a_folder_that_cannot_be_written_keeps_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept = CachedTranscriber(Counting(), TranscriptStore(tmp_path / "file" / "kept"))

    assert kept.transcribe(audio()).text == "1"


def test_a_recording_that_goes_on_meanwhile_is_not_kept(tmp_path: Path) -> None:
    growing = io.BytesIO(SOUND)
    recording = Audio.measure("a.m4a", growing)
    growing.seek(0, io.SEEK_END)
    growing.write(b"more")

    CachedTranscriber(Counting(), TranscriptStore(tmp_path)).transcribe(recording)

    assert [*tmp_path.glob("*.json")] == []


LOCAL = "http://127.0.0.1:8000/v1"
AWAY = "https://speech.example.org/v1"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (SpeechSettings(), "audio_off"),
        (SpeechSettings(access="off", fireworks_key=KEY), "audio_off"),
        (SpeechSettings(access="on"), "audio_key"),
        (SpeechSettings(provider="openai"), "audio_key"),
        (SpeechSettings(provider="openai", fireworks_key=KEY), "audio_key"),
        (SpeechSettings(provider="server"), "audio_address"),
        (SpeechSettings(openai_key=KEY), "audio_off"),
        (SpeechSettings(access="local", fireworks_key=KEY), "audio_local"),
        (SpeechSettings(access="local", base_url=AWAY), "audio_local"),
        (SpeechSettings(access="local", base_url="http://localhost.example.org"), "audio_local"),
        (SpeechSettings(access="local", base_url="http://localhost@example.org"), "audio_local"),
        (SpeechSettings(access="local", base_url="http://192.168.1.5"), "audio_local"),
    ],
)
def test_nothing_is_sent_that_the_owner_has_not_allowed(settings: SpeechSettings, code: str) -> None:
    with pytest.raises(TranscriberError) as caught:
        service.open_transcriber(settings)

    assert caught.value.code == code
    assert KEY not in repr(settings)


def test_where_it_is_switched_off_no_key_is_asked_for() -> None:
    with pytest.raises(TranscriberError) as caught:
        service.open_transcriber(SpeechSettings(access="off", fireworks_key=KEY))

    assert caught.value.hint == "set audio.access to auto, local or on"


@pytest.mark.parametrize(
    ("settings", "model_id"),
    [
        (SpeechSettings(fireworks_key=KEY), "fireworks|https://audio-prod.api.fireworks.ai|whisper-v3|"),
        (
            SpeechSettings(fireworks_key=KEY, model="whisper-v3-turbo"),
            "fireworks|https://audio-turbo.api.fireworks.ai|whisper-v3-turbo|",
        ),
        (SpeechSettings(provider="openai", openai_key=KEY), "openai|https://api.openai.com|whisper-1|"),
        (SpeechSettings(access="local", base_url=LOCAL, model="whisper-v3"), "server|http://127.0.0.1:8000|whisper-1|"),
        (SpeechSettings(access="local", base_url="http://[::1]:1/v1"), "server|http://[::1]:1|whisper-1|"),
        (SpeechSettings(base_url=AWAY, language="de"), "server|https://speech.example.org|whisper-1|de"),
        (SpeechSettings(access="local", provider="whisper"), "whisper|small|"),
        (SpeechSettings(provider="whisper", model="tiny.en"), "whisper|tiny.en|"),
    ],
)
def test_what_transcribes_follows_from_the_settings(settings: SpeechSettings, model_id: str) -> None:
    assert service.open_transcriber(settings).model_id == model_id


def test_a_providers_key_goes_to_no_other_server() -> None:
    with listening() as server:
        settings = SpeechSettings(provider="fireworks", base_url=server.url, fireworks_key=KEY)
        service.open_transcriber(settings).transcribe(audio())

        assert "Authorization" not in server.uploads[0].headers


def test_openai_takes_less_than_others() -> None:
    sizes = [
        service.open_transcriber(settings).max_bytes
        for settings in (SpeechSettings(provider="openai", api_key=KEY), SpeechSettings(fireworks_key=KEY))
    ]

    assert sizes == [25_000_000, 200_000_000]
