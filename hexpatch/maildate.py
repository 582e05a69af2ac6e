"""Dates of mails, as git keeps them: `<unix seconds> <+hhmm>`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MAIL = re.compile(
    r"(?:[A-Z][a-z]{2}, *)?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) ([+-]\d{4})\Z"
)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ]+(\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)? *(Z|[+-]\d\d:?\d\d)?\Z"
)
_GIT = re.compile(
    r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})(?: ([+-]\d{4}))?\Z"
)
_RAW = re.compile(r"@?(-?\d+) ([+-])(\d\d)(\d\d)\Z")


def parse_date(text: str) -> str | None:
    """A date of RFC 2822, ISO 8601 or git's own forms; without a zone it is UTC."""
    text = " ".join(text.split())
    if match := _MAIL.match(text):
        day, month, year, hour, minute, second, zone = match.groups()
        return _stamp(year, month, day, hour, minute, second, zone)
    if match := _RAW.match(text):
        sign = "+" if match[3] + match[4] == "0000" else match[2]
        return f"{int(match[1])} {sign}{match[3]}{match[4]}"
    if match := _ISO.match(text):
        year, month, day, hour, minute, second, zone = match.groups()
        return _stamp(year, month, day, hour, minute, second or "0", zone)
    if match := _GIT.match(text):
        month, day, hour, minute, second, year, zone = match.groups()
        return _stamp(year, month, day, hour, minute, second, zone)
    from email.utils import parsedate_tz  # seldom needed, and it brings in sockets

    parsed = parsedate_tz(text)
    if parsed is None or (parsed[9] is None and not re.search(r"[A-Za-z]", text)):
        return None
    offset = (parsed[9] or 0) // 60
    sign = "-" if offset < 0 else "+"
    zone = f"{sign}{abs(offset) // 60:02}{abs(offset) % 60:02}"
    year, month, day, hour, minute, second = (str(n) for n in parsed[:6])
    return _stamp(year, month, day, hour, minute, second, zone)


def _stamp(
    year: str, month: str, day: str, hour: str, minute: str, second: str, zone: str | None
) -> str | None:
    try:
        number = int(month) if month.isdigit() else _MONTHS.index(month) + 1
        until = datetime(int(year), number, int(day), int(hour), int(minute))
    except ValueError:
        return None
    if int(second) > 60:
        return None
    zone = "+0000" if zone in (None, "Z", "-0000", "-00:00") else str(zone).replace(":", "")
    since = until - _EPOCH
    local = since.days * 86400 + since.seconds + int(second)
    return f"{local - _offset(zone)} {zone}"


def _offset(zone: str) -> int:
    seconds = int(zone[1:3]) * 3600 + int(zone[3:5]) * 60
    return -seconds if zone[0] == "-" else seconds


def mail_date(date: str) -> str:
    """A date in git's mail form, the day not padded; what has no such form becomes the epoch."""
    match = _RAW.match(date)
    try:
        assert match is not None
        zone = date.split(" ")[1]
        local = _EPOCH + timedelta(seconds=int(match[1]) + _offset(zone))
    except (AssertionError, OverflowError):
        local, zone = _EPOCH, "+0000"
    return (
        f"{_DAYS[local.weekday()]}, {local.day} {_MONTHS[local.month - 1]} {local.year:04} "
        f"{local:%H:%M:%S} {zone}"
    )
