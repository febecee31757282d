"""Declare settings as fields of dataclasses, and derive their table and their reader from these."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypedDict, TypeVar, Unpack, cast, get_args, get_origin

SettingKind = Literal["text", "verbatim", "path", "url", "count", "choice", "texts"]
SettingValue = str | int | tuple[str, ...]
SettingValues = Mapping[str, SettingValue]
"""Checked values, by the settings' names."""

Url = Annotated[str, "url"]
"""An address that begins with http:// or https://; empty for none."""
Verbatim = Annotated[str, "verbatim"]
"""A text whose spaces at both ends count."""
FilePath = Annotated[str, "path"]
"""A file's absolute path; empty for none."""

ON_WORDS: Final = ("on", "yes")
OFF_WORDS: Final = ("off", "no")

T = TypeVar("T")
S = TypeVar("S", bound="SettingsSection")

_DECLARED: Final = "setting"
"""The key of a declaration in a field's metadata."""
_KINDS: Final[Mapping[object, SettingKind]] = {str: "text", int: "count", Path: "path"}


class SettingOptions(TypedDict, total=False):
    """What a declaration may say beyond default and purpose."""

    name: str
    """What the file calls it, where that isn't the field's name; with a dot where it stands in another section."""
    env: tuple[str, ...]
    """Variables that set it; the first one that is set counts."""
    flag: str
    least: int
    most: int
    choices: tuple[str, ...]
    """The words that it may be, or hold, where its type doesn't tell them."""
    words: tuple[str, str]
    """What the two values of a bool are called, in the order in which they are shown: off and on by default."""
    aliases: Mapping[str, str]
    """Further words that may be written for one of the choices."""
    secret: bool
    """Whether its value is never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting, as its field declares it: a row of the table of settings."""

    name: str
    """Dotted, as in the file: ``embeddings.kind`` is ``kind`` in the section ``[embeddings]``."""
    doc: str
    kind: SettingKind = "text"
    default: SettingValue = ""
    """As the file would say it."""
    env: tuple[str, ...] = ()
    """Variables that set it; the first one that is set counts."""
    flag: str = ""
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSection:
    """A frozen dataclass whose fields declare the settings of one section.

    A field is declared by `setting`, or is a section itself and then named after it. Its type tells the kind of value::

        tools: Literal["full", "essential"] = setting("full", "Which tools the model is offered.")
        timeout_s: int = setting(300, "How long to wait, in seconds.", least=1, most=86_400)
        is_allowed: bool = setting(False, "Whether tools may search the web.", name="access")

    A field that is neither isn't a setting; whoever reads the section gives its value.
    """

    def checked(self) -> Self:
        """Return the section as the program gets it; one overrides this whose values depend on one another.

        It is called when a section is read, and not when one is made directly.

        Raises:
            SetupError: The values can't be used.
        """
        return self


def setting(default: T, doc: str, **options: Unpack[SettingOptions]) -> T:
    """Declare a field of a section as a setting.

    Args:
        default: The field's value where no source gives one.
        doc: What it is for, in a sentence.
        **options: Its name in the file, its variables, its range and the like.

    Returns:
        The field, typed as its value.
    """
    is_secret = options.get("secret", False)
    return field(default=default, repr=not is_secret, metadata=declaration(doc, **options))


def declaration(doc: str, **options: Unpack[SettingOptions]) -> Mapping[str, object]:
    """Return the metadata of a setting without a default, for ``dataclasses.field``."""
    return {_DECLARED: (doc, options)}


def settings_of(section: type[SettingsSection], name: str = "") -> tuple[Setting, ...]:
    """List the settings that a section and the sections in it declare, in the order of the fields.

    Args:
        section: The dataclass.
        name: What its settings' names begin with; empty for those that stand in no section, or in one that the
            person names.

    Raises:
        TypeError: A field's type isn't one of a setting.
    """
    rows: list[Setting] = []
    for each, member in _members(section, name):
        rows += [member] if isinstance(member, Setting) else settings_of(member, each.name)
    return tuple(rows)


def read_section(section: type[S], values: SettingValues, name: str = "", /, **others: object) -> S:
    """Build a section from the values of its settings.

    Args:
        section: The dataclass.
        values: Of all its settings, by their names.
        name: What its settings' names begin with, as in `settings_of`.
        **others: Its fields that aren't settings.

    Raises:
        SetupError: The values can't be used together.
    """
    arguments = others
    for each, member in _members(section, name):
        if isinstance(member, Setting):
            arguments[each.name] = _field_value(each, values[member.name])
        else:
            arguments[each.name] = read_section(member, values, each.name)
    return cast("Callable[..., S]", section)(**arguments).checked()


def _members(
    section: type[SettingsSection], name: str
) -> Iterator[tuple[Field[object], Setting | type[SettingsSection]]]:
    """Yield the fields that declare a setting, with its row, and those that are sections, with their class."""
    for each in fields(section):
        if isinstance(each.type, type) and issubclass(each.type, SettingsSection):
            yield each, each.type
        elif _DECLARED in each.metadata:
            yield each, _row(each, name)


def _row(each: Field[object], section: str) -> Setting:
    doc, options = _declared(each)
    name = options.get("name", each.name)
    kind, choices = _kind(each, options)
    return Setting(
        name=name if not section or "." in name else f"{section}.{name}",
        doc=doc,
        kind=kind,
        default=_written_default(each, choices),
        env=options.get("env", ()),
        flag=options.get("flag", ""),
        choices=choices,
        least=options.get("least", 0),
        most=options.get("most", 0),
        secret=options.get("secret", False),
    )


def _declared(each: Field[object]) -> tuple[str, SettingOptions]:
    return cast("tuple[str, SettingOptions]", each.metadata[_DECLARED])


def _kind(each: Field[object], options: SettingOptions) -> tuple[SettingKind, tuple[str, ...]]:
    """Return a field's kind of value, and the words that it may be or hold; none where any will do."""
    origin, arguments = get_origin(each.type), get_args(each.type)
    if each.type is bool:
        return "choice", options.get("words", ("off", "on"))
    if origin is Literal:
        return "choice", (*filter(None, arguments), *options.get("aliases", ()))
    if origin is tuple:
        return "texts", options.get("choices", get_args(arguments[0]))
    kind = arguments[1] if origin is Annotated else _KINDS.get(each.type)
    if kind is None:
        raise TypeError(f"the field '{each.name}' can't be a setting: no kind of value has the type {each.type}")
    return kind, ()


def _written_default(each: Field[object], choices: tuple[str, ...]) -> SettingValue:
    """Return a field's default as the file would say it; empty where it has none."""
    default = cast("SettingValue | bool", "" if each.default is MISSING else each.default)
    if isinstance(default, bool):
        return next(word for word in choices if (word in ON_WORDS) is default)
    return default


def _field_value(each: Field[object], value: SettingValue) -> object:
    """Return a checked value as the field has it."""
    if each.type is bool:
        return value in ON_WORDS
    if each.type is Path:
        return Path(str(value))
    return _declared(each)[1].get("aliases", {}).get(str(value), value)
