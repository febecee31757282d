"""Transcribing the recordings of notes: shapes, each documented error, and what is never sent."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from knapper.errors import KnapError, NotFound, RefusedError, SetupError
from knapper.net.speech import Audio, Segment, TranscriberError, Transcript, service
from knapper.net.speech.service import SpeechSettings
from knapper.tools import web
from knapper.tools.context import CancelSignal, Context
from tests.net.recordings import Reply, listening
from tests.tools import opened
from tests.tools.opened import Opener


class Ear:
    """Hear what the files hold, and fail where they hold the word."""

    model_id = "ear"

    def __init__(self, max_bytes: int = 1_000) -> None:
        self.max_bytes = max_bytes
        self.heard: list[str] = []

    def transcribe(self, audio: Audio) -> Transcript:
        text = audio.content.read().decode()
        self.heard.append(f"{audio.name}={text}")
        if "fail" in text:
            raise TranscriberError("can't be heard", hint="speak up", code="transcriber_refused")
        turns = [Segment(text=text, start_s=0.5, stop_s=1.5, speaker="Speaker 1")] if "turn" in text else []
        return Transcript(text=text, segments=turns, language="en", duration_s=2.0, model_id=self.model_id)

    def close(self) -> None:
        pass


def closed() -> NoReturn:
    raise SetupError("audio isn't transcribed", hint="set FIREWORKS_API_KEY", code="audio_off")


def vault(tmp_path: Path, note: str, files: Mapping[str, str]) -> Opener:
    return opened.vault(tmp_path, {"Work/Call.md": note, **files}, hidden=("Secret/",))


def transcribed(made: Opener, ear: Ear | None = None, client: str = "cli") -> Mapping[str, Any]:
    heard = ear or Ear()
    with made.open(client) as context:
        return web.transcribe_audio(replace(context, open_transcriber=lambda: heard), "Work/Call.md")


def names(answer: Mapping[str, Any]) -> list[str]:
    return [row["path"] for row in answer["results"]]


def test_a_transcript_tells_file_text_speakers_and_times(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[call.m4a]]\n", {"Attachments/call.m4a": "a turn"})

    assert transcribed(made) == {
        "success": True,
        "path": "Work/Call.md",
        "results": [
            {
                "file": "call.m4a",
                "path": "Attachments/call.m4a",
                "transcript": "Speaker 1: a turn",
                "cached": False,
                "segments": [{"start": 0.5, "end": 1.5, "text": "a turn", "speaker": "Speaker 1"}],
                "language": "en",
                "duration_s": 2.0,
            }
        ],
    }


def test_without_embeds_nothing_is_opened(tmp_path: Path) -> None:
    made = vault(tmp_path, "[[call.m4a]] `![[call.m4a]]` ![[a.png]] ![x](https://a.b/x.mp3)\n", {"call.m4a": "x"})

    with made.open() as context:
        told = web.transcribe_audio(replace(context, open_transcriber=closed), "Work/Call.md")

    assert told == {"success": True, "message": "No audio embeds found", "results": [], "path": "Work/Call.md"}


@pytest.mark.parametrize("ending", ["m4a", "webm", "mp3", "wav", "ogg", "flac", "mp4", "M4A"])
def test_each_format_is_found_in_both_forms_of_embeds(tmp_path: Path, ending: str) -> None:
    made = vault(
        tmp_path, f"![[a b.{ending}#t=5|x]]\n![](c%20d.{ending})\n", {f"a b.{ending}": "1", f"c d.{ending}": "2"}
    )

    assert names(transcribed(made)) == [f"a b.{ending}", f"c d.{ending}"]


@pytest.mark.parametrize(
    ("embed", "expected"),
    [
        ("![[x.m4a]]", "Other/x.m4a"),
        ("![[Audio/x.m4a]]", "Work/Audio/x.m4a"),
        ("![[X.M4A]]", "Other/x.m4a"),
        ("![](../Other/x.m4a)", "Other/x.m4a"),
        ("![](Audio/x.m4a)", "Work/Audio/x.m4a"),
    ],
)
def test_a_recording_is_found_where_obsidian_finds_it(tmp_path: Path, embed: str, expected: str) -> None:
    files = {"Other/x.m4a": "1", "Work/Audio/x.m4a": "2"}

    assert names(transcribed(vault(tmp_path, f"{embed}\n", files))) == [expected]


def test_one_that_came_a_moment_ago_is_found_by_the_attachment_settings(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[new.m4a]]\n", {".obsidian/app.json": '{"attachmentFolderPath": "./files"}'})
    ear = Ear()

    with made.open() as context:
        context.freshen()
        (made.root / "Work/files").mkdir()
        (made.root / "Work/files/new.m4a").write_bytes(b"new")
        told = web.transcribe_audio(replace(context, open_transcriber=lambda: ear), "Work/Call.md")

    assert names(told) == ["Work/files/new.m4a"]


def test_each_file_is_transcribed_once_in_the_notes_order(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[b.mp3]] ![[a.mp3]] ![[B.mp3]] ![](../b.mp3)\n", {"a.mp3": "1", "b.mp3": "2"})
    ear = Ear()

    assert names(transcribed(made, ear)) == ["b.mp3", "a.mp3"]
    assert ear.heard == ["b.mp3=2", "a.mp3=1"]


def test_what_fails_is_told_beside_what_succeeds(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[a.mp3]] ![[b.mp3]] ![[gone.mp3]] ![[big.mp3]]\n", {
        "a.mp3": "fail", "b.mp3": "fine", "big.mp3": "x" * 2_000})  # fmt: skip

    told = transcribed(made)

    assert (told["success"], names(told)) == (True, ["b.mp3"])
    assert [(row["file"], row["code"]) for row in told["errors"]] == [
        ("a.mp3", "transcriber_refused"),
        ("gone.mp3", "audio_not_found"),
        ("big.mp3", "too_large"),
    ]
    assert told["errors"][0] == {
        "file": "a.mp3", "error": "can't be heard", "code": "transcriber_refused", "hint": "speak up"
    }  # fmt: skip


def test_once_nobody_waits_no_more_is_sent(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[a.mp3]] ![[b.mp3]] ![[c.mp3]]\n", {"a.mp3": "1", "b.mp3": "2", "c.mp3": "3"})
    cancelling = CancelSignal()

    class Leaving(Ear):
        def transcribe(self, audio: Audio) -> Transcript:
            if audio.name == "b.mp3":
                cancelling.cancel()
            return Ear.transcribe(self, audio)

    ear = Leaving()
    with made.open() as context:
        heard = replace(context, open_transcriber=lambda: ear, on_cancel=cancelling.subscribe)
        with pytest.raises(KnapError) as caught:
            web.transcribe_audio(heard, "Work/Call.md")

    assert caught.value.code == "cancelled"
    assert ear.heard == ["a.mp3=1", "b.mp3=2"]


def test_when_all_fail_it_is_an_error_that_tells_each(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[a.mp3]] ![[b.mp3]]\n", {"a.mp3": "fail", "b.mp3": "fail"})

    with pytest.raises(TranscriberError) as caught:
        transcribed(made)

    assert caught.value.message == "All transcriptions failed: a.mp3: can't be heard; b.mp3: can't be heard"
    assert len(caught.value.as_dict()["errors"]) == 2  # pyright: ignore[reportArgumentType]


def test_a_file_that_is_nowhere_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"All transcriptions failed: gone\.mp3: no audio file 'gone\.mp3'"):
        transcribed(vault(tmp_path, "![[gone.mp3]]\n", {}))


def test_a_note_that_is_missing_is_not_found_and_one_outside_refused(tmp_path: Path) -> None:
    with vault(tmp_path, "", {}).open() as context:
        with pytest.raises(NotFound):
            web.transcribe_audio(context, "None.md")
        with pytest.raises(RefusedError):
            web.transcribe_audio(context, "../out.md")


def test_where_it_is_not_allowed_that_is_said(tmp_path: Path) -> None:
    with vault(tmp_path, "![[a.mp3]]\n", {"a.mp3": "x"}).open() as context, pytest.raises(SetupError) as caught:
        web.transcribe_audio(replace(context, open_transcriber=closed), "Work/Call.md")

    assert caught.value.code == "audio_off"


@pytest.mark.parametrize("embed", ["![[s.mp3]]", "![[Secret/s.mp3]]", "![](../Secret/s.mp3)", "![[link.mp3]]"])
def test_what_is_hidden_is_neither_sent_nor_told_of(tmp_path: Path, embed: str) -> None:
    made = vault(tmp_path, f"{embed} ![[a.mp3]]\n", {"Secret/s.mp3": "secret", "a.mp3": "fine"})
    (made.root / "link.mp3").symlink_to(made.root / "Secret/s.mp3")
    ear = Ear()

    told = transcribed(made, ear, client="mcp")

    assert ear.heard == ["a.mp3=fine"]
    assert [row["code"] for row in told["errors"]] == ["audio_not_found"]


def test_a_link_out_of_the_vault_is_not_sent(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[out.mp3]]\n", {})
    (tmp_path / "out.mp3").write_bytes(b"outside")
    (made.root / "out.mp3").symlink_to(tmp_path / "out.mp3")
    ear = Ear()

    with pytest.raises(KnapError):
        transcribed(made, ear)

    assert ear.heard == []


def test_a_hidden_namesake_does_not_stand_in_the_way(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[s.mp3]]\n", {"Secret/s.mp3": "secret", "Some/Long/Folder/s.mp3": "fine"})
    ear = Ear()

    assert names(transcribed(made, ear, client="mcp")) == ["Some/Long/Folder/s.mp3"]


def test_through_a_real_server_once_and_then_from_what_is_kept(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[a.mp3]]\n", {"a.mp3": "sound"})

    def ask(context: Context) -> Mapping[str, Any]:
        settings = SpeechSettings(access="local", base_url=server.url)
        transcriber = service.open_transcriber(settings, folder=tmp_path / "transcripts")
        return web.transcribe_audio(replace(context, open_transcriber=lambda: transcriber), "Work/Call.md")

    with listening(Reply()) as server, made.open() as context:
        answers = [ask(context), ask(context)]

    assert [answer["results"][0]["cached"] for answer in answers] == [False, True]
    assert len(server.uploads) == 1


def test_a_recording_among_other_peoples_texts_counts_as_such(tmp_path: Path) -> None:
    made = vault(tmp_path, "![[a.mp3]]\n", {"Clippings/a.mp3": "obey"})

    told = transcribed(made, client="mcp")

    assert told["results"][0]["foreign"] is True
    with made.open("mcp") as context:
        assert context.writer.current_grants().tainted
