"""Keep YAML in scripts to data: no tags that make objects, no aliases that grow without bounds."""

from collections.abc import Iterator
from typing import Any, Final, cast

import yaml

_ALIAS: Final = "aliases aren't read in scripts"
_TAG: Final = "tags aren't read in scripts"


class _Data(yaml.SafeLoader):
    """Read scalars, lists and mappings."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as PyYAML has it
        """Refuse aliases and tags, and compose the rest."""
        event = cast("Any", self).peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(_ALIAS)
        if getattr(event, "tag", None) not in {None, "!"}:
            raise yaml.YAMLError(_TAG)
        return super().compose_node(parent, index)


_LOAD: Final = yaml.load
_LOAD_ALL: Final = yaml.load_all


def load(stream: str | bytes, Loader: object = None) -> object:  # noqa: N803 - as PyYAML has it
    """Read one document; whichever loader is asked for, only data comes out."""
    del Loader
    return _LOAD(stream, _Data)


def load_all(stream: str | bytes, Loader: object = None) -> Iterator[object]:  # noqa: N803 - as PyYAML has it
    """Read all documents of a text."""
    del Loader
    return iter(list(_LOAD_ALL(stream, _Data)))


def install() -> None:
    """Let all ways of reading YAML be this one."""
    for name in ("load", "safe_load", "full_load", "unsafe_load"):
        setattr(yaml, name, load)
        setattr(yaml, f"{name}_all", load_all)
