"""Generated specifications of schedules, valid and not, in the form that record.py describes."""

import random
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

ZONES = [
    "America/New_York", "US/Pacific", "Europe/Berlin", "Europe/Dublin", "Europe/London", "Asia/Kolkata", "Asia/Tokyo",
    "Asia/Kathmandu", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham",
    "America/Sao_Paulo", "America/St_Johns", "America/Havana", "Antarctica/Troll", "Africa/Cairo", "Africa/Casablanca",
    "Africa/Monrovia", "Asia/Tehran", "Asia/Gaza", "America/Santiago", "America/Caracas", "Asia/Pyongyang", "UTC", "GMT",
    "Etc/GMT+5", "EST5EDT", "Pacific/Kwajalein",
]
UNKNOWN_ZONES = ["Mars/Olympus", "europe/berlin", "../etc/passwd", "/etc/localtime", "Europe/", "UTC ", "CEST", "\\x"]
MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "sunday monday tuesday wednesday thursday friday saturday".split()
FIELDS = {
    "second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day_of_month": (1, 31), "month": (1, 12),
    "year": (2000, 2100), "day_of_week": (0, 6),
}
BROKEN = [
    "x", "1,", ",", "1,,2", "1-2-3", "1/2/3", "5/", "/5", "*/0", "*/-2", "1-", "-1", "?", "L", "5#2", "15W", "*-5", "5-*",
    "1/x", "1/99999999999999999999", "99999999999999999999", "1 2", "1, 2", " 3", "+3", "0x3", "1_0", "5-1", "100", "**",
    "*/2/3", "mon-tue-wed", "1/ 2", "1/+2", "\u00b2", "1/4294967297", "1/4294967296", "1/2147483648", "fri-tue",
]
DURATIONS = [
    "1s", "90s", "1h30m", "1.5h", "2d", "1d12h", "0.5d", "250ms", "1500ms", "1h/15m", "1d/6h", "7d/1d", "1h/1h", "1h/2h",
    "1h/-1m", "-1h", "0", "0s", "1", "", "1x", "h", "1h30", " 1h", "1h ", "1h /1m", "1h/ 1m", "1h/", "/1h", "1e3s", "1.s",
    ".5h", ".s", "1h1h", "1us", "1\u00b5s", "100000000h", "2562047h47m16.854775807s", "2562048h", "106751d", "+5m", "--5m",
    "1h-5m", "1w", "1\u00e9", "3h/1.5h", "1.123456789s", "1.9999999999999s", "1h\u00a0", "0.0000000001d", "1D", "1H", "1d1d",
]


def capital(rng: random.Random, text: str) -> str:
    return rng.choice([text, text.upper(), text.capitalize()])


def value(rng: random.Random, field: str, least=None, strings=True) -> str:
    low, high = FIELDS[field]
    number = rng.randint(low if least is None else least, high)
    if strings and field == "month" and rng.random() < 0.3:
        name = MONTHS[number - 1]
        return capital(rng, name[: rng.randint(3, len(name))])
    if strings and field == "day_of_week" and rng.random() < 0.4:
        name = WEEKDAYS[number]
        return capital(rng, name[: rng.randint(2, len(name))])
    if strings and field == "day_of_week" and rng.random() < 0.1:
        return "7"
    return str(number)


def item(rng: random.Random, field: str) -> str:
    low, high = FIELDS[field]
    kind = rng.random()
    if kind < 0.45:
        return value(rng, field)
    if kind < 0.6:
        return "*" if rng.random() < 0.3 else f"*/{rng.randint(1, max(2, (high - low) // 3))}"
    if kind < 0.75:
        start = rng.randint(low, high)
        last = high + 1 if field == "day_of_week" and rng.random() < 0.3 else rng.randint(start, high)
        return f"{start}-{last}"
    if kind < 0.9:
        start = rng.randint(low, high)
        last = high + 1 if field == "day_of_week" and rng.random() < 0.3 else rng.randint(start, high)
        return f"{start}-{last}/{rng.randint(1, 9)}"
    if kind < 0.97:
        return f"{value(rng, field)}/{rng.randint(1, 20)}"
    return f"{value(rng, field)}-{value(rng, field)}"


def field_text(rng: random.Random, field: str, broken: float) -> str:
    if rng.random() < broken:
        return rng.choice(BROKEN)
    return ",".join(item(rng, field) for _ in range(rng.choice([1, 1, 1, 2, 3])))


def calendar_text(rng: random.Random, broken: float) -> dict:
    calendar = {}
    for field in FIELDS:
        # Days and years are seldom given, so that most calendars have times.
        chance = {"second": 0.4, "minute": 0.6, "hour": 0.6, "year": 0.08}.get(field, 0.25)
        if rng.random() < chance:
            calendar[field] = field_text(rng, field, broken)
    if rng.random() < 0.1:
        calendar["comment"] = rng.choice(["nightly", "caf\u00e9", "x" * 200, "x" * 201])
    return calendar


def ranges(rng: random.Random, field: str, broken: float) -> list:
    low, high = FIELDS[field]
    made = []
    for _ in range(rng.choice([1, 1, 2])):
        start = rng.randint(low, high)
        end = rng.choice([0, 0, start, rng.randint(start, high)])
        step = rng.choice([0, 0, 1, 2, 5])
        if rng.random() < broken:
            start, end, step = rng.choice(
                [(low - 1, end, step), (high + 1, end, step), (start, high + 1, step), (start, start - 1, step),
                 (start, end, -1), (start, -3, step), (-5, -7, -2), (2**31 - 1, 0, 0), (start, end, 2**31 - 1)]
            )
        made.append([start, end, step])
    return made


def calendar_ranges(rng: random.Random, broken: float) -> dict:
    calendar = {}
    for field, (low, high) in FIELDS.items():
        if field == "year":
            if rng.random() < 0.1:
                calendar[field] = ranges(rng, field, broken)
        elif rng.random() < 0.4:
            calendar[field] = ranges(rng, field, broken)
        elif rng.random() < 0.96:
            calendar[field] = [[0, 0, 0]] if field in ("second", "minute", "hour") else [[low, high, 0]]
    if rng.random() < 0.05:
        calendar["comment"] = rng.choice(["by hand", "y" * 201])
    return calendar


def cron(rng: random.Random, broken: float, zone) -> str:
    kind = rng.random()
    if kind < 0.1:
        text = rng.choice(["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot", "@Daily"])
    elif kind < 0.3:
        text = rng.choice(["@every ", "@every ", "@every ", "@every", "@every  ", "@everyday ", "@every\t"]) + rng.choice(DURATIONS)
    else:
        names = ["minute", "hour", "day_of_month", "month", "day_of_week"]
        size = rng.random()
        if size < 0.2:
            names = names + ["year"]
        elif size < 0.35:
            names = ["second"] + names + ["year"]
        fields = ["*" if rng.random() < 0.45 else field_text(rng, name, broken) for name in names]
        if rng.random() < broken:
            fields = fields[: rng.randint(0, 4)] if rng.random() < 0.5 else fields + ["*"] * 3
        text = rng.choice([" ", " ", " ", "  ", "\t"]).join(fields)
    if rng.random() < 0.12:
        text += rng.choice(["# nightly", " #", "#a # b", "   # caf\u00e9  ", "#" + "z" * 201])
    if zone:
        text = rng.choice(["TZ=", "CRON_TZ=", "CRON_TZ="]) + zone + rng.choice([" ", " ", "  ", "\t" if rng.random() < broken else " "]) + text
    return rng.choice(["", "", " "]) + text


@cache
def tzif(name: str) -> bytes:
    for folder in TZPATH:
        path = Path(folder) / name
        if path.is_file():
            return path.read_bytes()
    raise FileNotFoundError(name)


@cache
def changes(name: str) -> tuple:
    """Hours of the years 1999 to 2040 behind which the offset is another."""
    zone = ZoneInfo(name)
    offset = lambda hour: datetime.fromtimestamp(hour * 3600, timezone.utc).astimezone(zone).utcoffset()
    day, end, found = 254_184, 613_600, []
    while day < end:
        if offset(day) != offset(day + 24):
            found.append(next(hour for hour in range(day, day + 24) if offset(hour) != offset(hour + 1)))
        day += 24
    return tuple(found)


def window(rng: random.Random, zone: str) -> list:
    """Two moments, each in seconds and nanoseconds: the ends of what is listed."""
    known = changes(zone) if zone in ZONES else ()
    if known and rng.random() < 0.6:
        start = rng.choice(known) * 3600 - rng.randint(0, 2 * 86_400)
    elif rng.random() < 0.1:
        start = rng.choice([-86_400, 0, 1, 4_133_894_400 - rng.randint(0, 9 * 86_400), 4_102_444_800])
    else:
        start = rng.randint(946_000_000, 2_200_000_000)
    length = rng.choice([3_600, 86_400, 4 * 86_400, 40 * 86_400, 400 * 86_400, 4000 * 86_400])
    nanos = rng.choice([0, 0, 0, 1, 500_000_000, 999_999_999])
    return [[start, nanos], [start + length, rng.choice([0, 0, nanos])]]


def spec(rng: random.Random) -> dict:
    """One specification, and under "window" what is listed of it."""
    broken = rng.choice([0, 0, 0, 0, 0.15, 0.3])
    given = {}
    zone = rng.choice(ZONES) if rng.random() < 0.6 else ""
    cron_zone = ""
    kinds = rng.sample(["calendar", "cron", "structured", "interval"], rng.choice([1, 1, 1, 2, 3]))
    if "cron" in kinds and rng.random() < 0.5:
        zone, cron_zone = ("" if rng.random() < 0.8 else zone), zone
    if "calendar" in kinds:
        given["calendar"] = [calendar_text(rng, broken) for _ in range(rng.choice([1, 1, 2]))]
    if "cron" in kinds:
        agree = rng.random() < 0.9
        zones = [cron_zone if agree else rng.choice([cron_zone, "", "Asia/Tokyo"]) for _ in range(rng.choice([1, 1, 2]))]
        given["cron"] = [cron(rng, broken, one) for one in zones]
    if "structured" in kinds:
        given["structured"] = [calendar_ranges(rng, broken) for _ in range(rng.choice([1, 1, 2]))]
    if "interval" in kinds:
        second = 10**9
        lengths = [second, 7 * second, 60 * second, 3_600 * second, 86_400 * second, 1_500_000_000, 90 * 60 * second]
        intervals = []
        for _ in range(rng.choice([1, 1, 2])):
            length = rng.choice(lengths + ([0, -second, second - 1, 2**62] if broken else []))
            phase = rng.choice([0, 0, rng.randint(0, max(0, length - 1))] + ([-1, length, length + second] if broken else []))
            intervals.append([length, phase])
        given["interval"] = intervals
    if rng.random() < 0.15:
        given["exclude_calendar"] = [calendar_text(rng, broken / 3)]
    if rng.random() < 0.1:
        # Those out of range would end the server's worker.
        given["exclude_structured"] = [calendar_ranges(rng, 0)]
    if rng.random() < 0.3:
        given["jitter"] = rng.choice([1, 1_000_000, 500_000_000, 10**9, 3_600 * 10**9, 86_400 * 10**9, 10**16, -(10**9)])
    listed = window(rng, cron_zone or zone)
    start = listed[0][0]
    for name, chance in (("start", 0.15), ("end", 0.15)):
        if rng.random() < chance:
            given[name] = [start + rng.randint(-86_400, 40 * 86_400), rng.choice([0, 0, 0, 1, 500_000_000])]
    if zone and rng.random() < 0.12 and zone in ZONES:
        given["zone_data"] = [zone, rng.randint(1, 300) if rng.random() < 0.15 else len(tzif(zone))]
        zone = rng.choice(["", zone, "Asia/Tokyo"])
    if rng.random() < 0.03:
        zone = rng.choice(UNKNOWN_ZONES)
    if zone:
        given["zone"] = zone
    given["window"] = listed
    return given


def specs(count: int) -> list:
    """As many, always the same."""
    rng = random.Random(43)
    return [spec(rng) for _ in range(count)]
