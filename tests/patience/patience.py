"""How long tests wait, so that none judges the machine's speed: the twin of src/lib.rs for what is written in Python.

What must come is waited for with until or a Deadline, for most_s, which no machine needs that is merely slow. What must not
come has a sentinel: something that is sent after it, and comes. What needs time lets it pass.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

Value = TypeVar("Value")

# By what most_s is multiplied, a whole number.
FACTOR = "EVERLOG_PATIENCE"
MOST_S = 120.0
# A look of Python's costs more than one of Rust's.
LOOK_EVERY_S = 0.05


def most_s() -> float:
    """How long a test waits for what must come."""
    return MOST_S * int(os.environ.get(FACTOR, "1"))


class Late(Exception):
    """What did not come."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: it did not come to pass within {most_s():.0f} s")


class Deadline:
    """When a test gives up that begins to wait now."""

    def __init__(self) -> None:
        self._end_s = time.monotonic() + most_s()

    def is_over(self) -> bool:
        return self.left_s() == 0

    def left_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())


async def until(what: str, look: Callable[[], Awaitable[Value]]) -> Value:
    """The first true answer of many looks."""
    deadline = Deadline()
    while not (answer := await look()):
        if deadline.is_over():
            raise Late(what)
        await asyncio.sleep(LOOK_EVERY_S)
    return answer


def until_blocking(what: str, look: Callable[[], Value]) -> Value:
    """The same where nothing is async."""
    deadline = Deadline()
    while not (answer := look()):
        if deadline.is_over():
            raise Late(what)
        time.sleep(LOOK_EVERY_S)
    return answer


def spans_s(what: str, first_s: float) -> Iterator[float]:
    """Spans of time, each twice as long as the one before, for what a machine has to do within one. The test takes the next one
    where it sees that the machine was too slow, however slow that is."""
    deadline = Deadline()
    span_s = first_s
    while not deadline.is_over():
        yield span_s
        span_s *= 2
    raise Late(what)


async def pass_s(span_s: float) -> None:
    """Lets time pass by which somebody else goes, or in which something else has to happen. Nothing may be concluded from what
    has not happened meanwhile."""
    await asyncio.sleep(span_s)
