"""Say what transcribes audio."""

from dataclasses import dataclass

from knapper.config.setting import Setting, Values, text

SETTINGS = (
    Setting(
        name="audio.model",
        doc="The model that transcribes audio.",
        default="whisper-v3",
        env=("WHISPER_MODEL",),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """Say what transcribes audio."""

    model: str = "whisper-v3"


def read(values: Values) -> Audio:
    """Give the section."""
    return Audio(model=text(values, "audio.model"))
