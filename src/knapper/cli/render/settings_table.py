"""Show settings and where they come from."""

from knapper.cli.output import plain
from knapper.config import Settings

_NONE = "-"


def text(settings: Settings) -> str:
    """Lay them out in columns: name, value, origin."""
    rows = [(each.name, plain(each.value) or _NONE, plain(each.source)) for each in settings.origins]
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(max(len(value) for _, value, _ in rows), 40)
    lines = [f"{name:<{name_width}}  {value:<{value_width}}  {source}".rstrip() for name, value, source in rows]
    there = "" if settings.config_file.exists() else " (not there: all is as by default)"
    return "\n".join([*lines, "", f"configuration file: {settings.config_file}{there}"])


def as_dict(settings: Settings) -> dict[str, object]:
    """Give them to a program."""
    rows = {each.name: {"value": each.value, "source": each.source, "doc": each.doc} for each in settings.origins}
    return {
        "success": True,
        "config_file": str(settings.config_file),
        "env_file": str(settings.env_file) if settings.env_file else "",
        "settings": rows,
    }
