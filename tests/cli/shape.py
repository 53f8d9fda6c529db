"""Claims about the shape of JSON: a pattern beside a value, and where they part."""

import re
from typing import Any

from expect import Unmet


class Is:
    """Strings that a regular expression matches as a whole."""

    def __init__(self, name: str, expression: str) -> None:
        self.name, self.expression = name, re.compile(expression)

    def __repr__(self) -> str:
        return self.name


RUN = Is("a run id", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = Is("a time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NUMBER = Is("an int64", r"\d+")
SPAN = Is("a duration", r"\d+(\.\d+)?s")
TEXT = Is("a text", r"(?s).+")


def matches(value: Any, pattern: Any, at: str = "$") -> None:
    """Claims that a value has this shape: dicts have these keys and no others, `...` as a value is anything, and as a key
    of a dict or at the end of a list allows more."""
    if pattern is ...:
        return
    if isinstance(pattern, Is):
        if not isinstance(value, str) or not pattern.expression.fullmatch(value):
            raise Unmet(f"{at}: expected {pattern!r}, found {value!r}")
    elif isinstance(pattern, dict):
        if not isinstance(value, dict):
            raise Unmet(f"{at}: expected an object, found {value!r}")
        missing = [key for key in pattern if key is not ... and key not in value]
        further = [] if ... in pattern else [key for key in value if key not in pattern]
        if missing or further:
            raise Unmet(f"{at}: missing {missing}, not expected {further}, in {value!r}")
        for key, inner in pattern.items():
            if key is not ...:
                matches(value[key], inner, f"{at}.{key}")
    elif isinstance(pattern, list):
        is_open = bool(pattern) and pattern[-1] is ...
        wanted = pattern[:-1] if is_open else pattern
        if not isinstance(value, list) or len(value) < len(wanted) or (len(value) > len(wanted) and not is_open):
            raise Unmet(f"{at}: expected {len(wanted)} elements, found {value!r}")
        for number, inner in enumerate(wanted):
            matches(value[number], inner, f"{at}[{number}]")
    elif value != pattern:
        raise Unmet(f"{at}: expected {pattern!r}, found {value!r}")
