"""Transcription of speech, by servers with OpenAI's API or a model on this machine."""

from knapper.net.speech.remote import Audio, Segment, Transcriber, TranscriberError, Transcript

__all__ = ["Audio", "Segment", "Transcriber", "TranscriberError", "Transcript"]
