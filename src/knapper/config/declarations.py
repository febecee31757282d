"""Declare settings as fields of dataclasses, derive their table and their reader from these, and check their values."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypedDict, TypeVar, Unpack, cast, get_args, get_origin

from knapper.config.files import ConfigDocument
from knapper.errors import SetupError
from knapper.jsontypes import is_list, is_sequence

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
        if not isinstance(member, Setting):
            arguments[each.name] = read_section(member, values, each.name)
        elif each.type is bool:
            arguments[each.name] = values[member.name] in ON_WORDS
        elif each.type is Path:
            arguments[each.name] = Path(str(values[member.name]))
        else:
            value = values[member.name]
            arguments[each.name] = _declared(each)[1].get("aliases", {}).get(str(value), value)
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
    return each.metadata[_DECLARED]


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
    default = "" if each.default is MISSING else each.default
    if isinstance(default, bool):
        return next(word for word in choices if (word in ON_WORDS) is default)
    if isinstance(default, str | int):
        return default
    if not is_sequence(default):
        raise TypeError(f"the field '{each.name}' can't have a default of the type {type(default).__name__}")
    return tuple(map(str, default))


_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_SWITCH_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("true", "yes", "on"), ON_WORDS),
    **dict.fromkeys(("false", "no", "off"), OFF_WORDS),
}
_EXPECTED_KINDS = {
    "text": "a text",
    "verbatim": "a text",
    "path": "a path",
    "url": "an address that begins with http:// or https://",
    "texts": "a list of texts",
}
_MIN_LIKENESS = 60
"""From 0 to 100: a word that is less like another is no misspelling of it."""


def check_value(setting: Setting, raw: object, *, place: str, base: Path) -> SettingValue:
    """Turn a raw value into a setting's.

    Args:
        setting: Says what is wanted.
        raw: As TOML has it; text, where it comes from elsewhere.
        place: Where it comes from, for the message.
        base: The folder that a relative path starts at.

    Raises:
        SetupError: The value isn't of the setting's kind.
    """
    value: SettingValue | None = None
    if setting.kind == "count":
        value = _parse_count(setting, raw)
    elif setting.kind == "texts":
        value = _parse_texts(setting, raw)
    elif setting.kind == "choice" and str(raw).strip().casefold() in _SWITCH_WORDS:
        words = _SWITCH_WORDS[str(raw).strip().casefold()]  # its own word for ``true``, ``no`` and the like
        value = next((word for word in words if word in setting.choices), None)
    elif setting.kind == "choice" and isinstance(raw, int) and str(raw) in setting.choices:
        value = str(raw)  # a number among words needs no quotes
    elif isinstance(raw, str) and "\0" not in raw:
        value = raw if setting.kind == "verbatim" else _parse_text(setting, raw.strip(), base)
    if value is None:
        wanted = _EXPECTED_KINDS.get(setting.kind, "")
        if setting.choices:
            wanted = ("one of " if setting.kind == "choice" else "a list with some of ") + ", ".join(setting.choices)
        if setting.kind == "count":
            wanted = f"a whole number from {setting.least} to {setting.most}"
        shown = "its value" if setting.secret else repr(raw)[:80]
        raise SetupError(
            f"{setting.name} in {place} must be {wanted}, not {shown}",
            code="config_invalid",
            hint=f"{setting.name}: {setting.doc}",
        )
    return value


def check_section(
    document: ConfigDocument, name: str, raw_values: Mapping[str, object], settings: Sequence[Setting]
) -> dict[str, SettingValue]:
    """Read the settings of one section, with the defaults of those that it doesn't give.

    Args:
        document: The file.
        name: The section's, dotted.
        raw_values: What it says.
        settings: What it may say.

    Raises:
        SetupError: A value isn't of its setting's kind.
    """
    checked_values: dict[str, SettingValue] = {}
    for setting in settings:
        checked_values[setting.name] = setting.default
        if setting.name in raw_values:
            place = document.place(f"{name}.{setting.name}")
            checked_values[setting.name] = check_value(
                setting, raw_values[setting.name], place=place, base=document.path.parent
            )
    return checked_values


def expand_path(raw: str, base: Path) -> Path:
    """Make a path absolute; ``~`` is the home folder."""
    try:
        path = Path(raw).expanduser()
    except RuntimeError:  # no such user
        path = Path(raw)
    return base / path


def _parse_text(setting: Setting, raw: str, base: Path) -> str | None:
    if setting.kind == "choice":
        return raw if raw in setting.choices else None
    if setting.kind == "url":
        return raw.rstrip("/") if not raw or _URL.fullmatch(raw) else None
    if setting.kind == "path":
        return str(expand_path(raw, base)) if raw else None
    return raw


def _parse_count(setting: Setting, raw: object) -> int | None:
    if isinstance(raw, str):
        raw = int(raw) if re.fullmatch(r"\s*\d{1,9}\s*", raw) else None
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    return raw if setting.least <= raw <= setting.most else None


def _parse_texts(setting: Setting, raw: object) -> tuple[str, ...] | None:
    if not is_list(raw):
        return None
    texts = tuple(item for item in raw if isinstance(item, str) and "\0" not in item)
    if setting.choices:
        texts = tuple(item for item in texts if item in setting.choices)
    return texts if len(texts) == len(raw) else None


def nearest_word(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most like *word*; empty where none is."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415  # 30 ms that only a mistyped word should cost

    hit = process.extractOne(word.casefold(), sorted(known), scorer=fuzz.ratio, score_cutoff=_MIN_LIKENESS)
    return hit[0] if hit else ""


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Make a hint of the nearest known word, or return *otherwise*."""
    near = nearest_word(word, known)
    return f"did you mean '{near}'?" if near else otherwise


def free_name(wanted: str, taken: Collection[str], fold: Callable[[str], str] = str) -> str:
    """Return a name, with a number behind it where it is taken, such as ``Phone 2``.

    Args:
        wanted: The name.
        taken: Names of others, as *fold* gives them.
        fold: Makes names alike that count as the same.
    """
    numbered = (f"{wanted} {number}" for number in range(2, len(taken) + 3))
    return next(each for each in (wanted, *numbered) if fold(each) not in taken)
