"""Claims about values and errors: the first one that is not met ends its case with a reason."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio.service import RPCError, RPCStatusCode

import patience

Value = TypeVar("Value")
Error = TypeVar("Error", bound=BaseException)


class Unmet(AssertionError):
    """A claim that does not hold."""


def that(ok: Any, what: str, detail: Any = None) -> None:
    if not ok:
        raise Unmet(what if detail is None else f"{what}: {detail!r}")


def equal(actual: Any, expected: Any, what: str) -> None:
    if actual != expected:
        raise Unmet(f"{what}: expected {expected!r}, found {actual!r}")


def same_lines(actual: list[str], expected: list[str], what: str) -> None:
    """Two lists of names; the reason shows where they part."""
    if actual == expected:
        return
    at = next(
        (i for i, (a, e) in enumerate(zip(actual, expected)) if a != e), min(len(actual), len(expected))
    )
    raise Unmet(
        f"{what}: at {at + 1} expected {expected[at : at + 4]}, found {actual[at : at + 4]} in {actual}"
    )


async def fails(kind: type[Error], awaitable: Awaitable[Any]) -> Error:
    """The error of this kind that the awaitable ends with."""
    try:
        value = await awaitable
    except kind as error:
        return error
    raise Unmet(f"expected {kind.__name__}, found the answer {value!r}")


async def refused(status: RPCStatusCode, awaitable: Awaitable[Any]) -> RPCError:
    """The gRPC error with this status that the awaitable ends with."""
    error = await fails(RPCError, awaitable)
    equal(error.status.name, status.name, f"the status of the refusal ({error.message})")
    return error


async def eventually(probe: Callable[[], Awaitable[Value]], what: str) -> Value:
    """The first true answer of the probe."""
    last: Value | None = None

    async def look() -> Value:
        nonlocal last
        last = await probe()
        return last

    try:
        return await patience.until(what, look)
    except patience.Late as late:
        raise Unmet(f"{late}; last answer {last!r}") from late
