"""Write dates in the patterns of Moment.js that Obsidian's settings use, with English names."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Final

_TOKEN: Final = re.compile(
    r"\[[^\[\]]*\]|\\.|Y{4,6}|YY|Y|Qo|Q|M{3,4}|Mo|MM|M|DDDD|DDDo|DDD|Do|DD|D|d{3,4}|do|dd|d|e|E|ww|wo|w|WW|Wo|W"
    r"|gggg|gg|GGGG|GG|hh|h|HH|H|kk|k|mm|m|ss|s|S{1,9}|A|a|ZZ|Z|X|x|LTS|LT|L{1,4}|l{1,4}",
    re.DOTALL,
)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LOCALE: Final[Mapping[str, str]] = {
    "LT": "h:mm A",
    "LTS": "h:mm:ss A",
    "L": "MM/DD/YYYY",
    "LL": "MMMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "l": "M/D/YYYY",
    "ll": "MMM D, YYYY",
    "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}
_PLAIN: Final[Mapping[str, Callable[[datetime], str]]] = {
    "YYYYYY": lambda at: f"+{at.year:06}",
    "YYYYY": lambda at: f"{at.year:05}",
    "YYYY": lambda at: f"{at.year:04}",
    "YY": lambda at: f"{at.year % 100:02}",
    "Y": lambda at: str(at.year),
    "Q": lambda at: str(_quarter(at)),
    "Qo": lambda at: _ordinal(_quarter(at)),
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02}",
    "Mo": lambda at: _ordinal(at.month),
    "M": lambda at: str(at.month),
    "DDDD": lambda at: f"{_day_of_year(at):03}",
    "DDDo": lambda at: _ordinal(_day_of_year(at)),
    "DDD": lambda at: str(_day_of_year(at)),
    "DD": lambda at: f"{at.day:02}",
    "Do": lambda at: _ordinal(at.day),
    "D": lambda at: str(at.day),
    "dddd": lambda at: _DAYS[_weekday(at)],
    "ddd": lambda at: _DAYS[_weekday(at)][:3],
    "dd": lambda at: _DAYS[_weekday(at)][:2],
    "do": lambda at: _ordinal(_weekday(at)),
    "d": lambda at: str(_weekday(at)),
    "e": lambda at: str(_weekday(at)),
    "E": lambda at: str(at.isoweekday()),
    "gggg": lambda at: f"{_week(at)[0]:04}",
    "gg": lambda at: f"{_week(at)[0] % 100:02}",
    "ww": lambda at: f"{_week(at)[1]:02}",
    "wo": lambda at: _ordinal(_week(at)[1]),
    "w": lambda at: str(_week(at)[1]),
    "GGGG": lambda at: f"{at.isocalendar().year:04}",
    "GG": lambda at: f"{at.isocalendar().year % 100:02}",
    "WW": lambda at: f"{at.isocalendar().week:02}",
    "Wo": lambda at: _ordinal(at.isocalendar().week),
    "W": lambda at: str(at.isocalendar().week),
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour % 12 or 12:02}",
    "h": lambda at: str(at.hour % 12 or 12),
    "kk": lambda at: f"{at.hour or 24:02}",
    "k": lambda at: str(at.hour or 24),
    "mm": lambda at: f"{at.minute:02}",
    "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02}",
    "s": lambda at: str(at.second),
    "A": lambda at: "AM" if at.hour < 12 else "PM",
    "a": lambda at: "am" if at.hour < 12 else "pm",
    "ZZ": lambda at: at.strftime("%z") or "+0000",
    "Z": lambda at: _zone(at),
    "X": lambda at: str(int(at.timestamp())),
    "x": lambda at: str(int(at.timestamp() * 1000)),
}


def write(at: datetime, pattern: str) -> str:
    """Write a time in a pattern.

    ``dddd, Do MMMM YYYY [at] HH:mm`` gives ``Sunday, 22nd November 2026 at 14:05``. Text between brackets stays as it
    is, and so do letters that stand for nothing. Weeks of ``w`` and ``g`` begin on Sunday, those of ``W`` and ``G`` on
    Monday.

    Source: momentjs.com/docs/#/displaying/format.
    """
    return _TOKEN.sub(lambda found: _token(at, found.group()), pattern)


def _token(at: datetime, token: str) -> str:
    if token.startswith("["):
        return token[1:-1]
    if token.startswith("\\"):
        return token[1:]
    if token.startswith("S"):
        return f"{at.microsecond:06}000"[: len(token)]
    if token in _LOCALE:
        return write(at, _LOCALE[token])
    return _PLAIN[token](at) if token in _PLAIN else token


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"


def _quarter(at: datetime) -> int:
    return (at.month + 2) // 3


def _day_of_year(at: datetime) -> int:
    return at.timetuple().tm_yday


def _weekday(at: datetime) -> int:
    """Count from Sunday, 0."""
    return at.isoweekday() % 7


def _week(at: datetime) -> tuple[int, int]:
    """Give year and number of the week that begins on Sunday; the first one holds the 1st of January."""
    sunday = at.date() - timedelta(days=_weekday(at))
    year = (sunday + timedelta(days=6)).year
    new_year = date(year, 1, 1)
    first = new_year - timedelta(days=new_year.isoweekday() % 7)
    return year, (sunday - first).days // 7 + 1


def _zone(at: datetime) -> str:
    offset = at.strftime("%z") or "+0000"
    return f"{offset[:3]}:{offset[3:5]}"
