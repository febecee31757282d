"""Turn speech into text: servers of OpenAI's form, or a model on this machine."""

from knapper.net.speech.transcripts import Audio, Segment, Transcriber, TranscriberError, Transcript

__all__ = ["Audio", "Segment", "Transcriber", "TranscriberError", "Transcript"]
