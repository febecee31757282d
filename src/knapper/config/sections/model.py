"""Name the language model that writes and reasons."""

from dataclasses import dataclass, field

from knapper.config.setting import Setting, Values, text

SETTINGS = (
    Setting(
        name="model.name",
        doc="The language model that writes and reasons; empty for none.",
        env=("KNAP_MODEL", "FIREWORKS_MODEL", "LLM_MODEL"),
    ),
    Setting(
        name="model.base_url",
        doc="The address of an OpenAI-compatible endpoint for the model.",
        kind="url",
        env=("KNAP_BASE_URL",),
    ),
    Setting(
        name="model.api_key",
        doc="The key for the model.",
        env=("KNAP_API_KEY", "FIREWORKS_API_KEY"),
        secret=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Name the language model, if there is one."""

    name: str = ""
    """Empty where no model is set."""
    base_url: str = ""
    api_key: str = field(default="", repr=False)


def read(values: Values) -> Model:
    """Give the section."""
    return Model(
        name=text(values, "model.name"),
        base_url=text(values, "model.base_url"),
        api_key=text(values, "model.api_key"),
    )
