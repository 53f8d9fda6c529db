"""Cases by name, and one line for each claim that held or did not."""

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

CASES: dict[str, Callable[..., None]] = {}


def case(function: Callable[..., None]) -> Callable[..., None]:
    """A case is named after its module and itself."""
    CASES[f"{function.__module__}.{function.__name__}"] = function
    return function


class Skipped(Exception):
    """What a claim needs is not on this machine; says what."""


@dataclass
class Report:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @contextmanager
    def row(self, name: str) -> Iterator[None]:
        """A claim that fails is told, and the next one is looked at."""
        begun = time.monotonic()
        try:
            yield
        except Skipped as error:
            # What is left out where a developer works must not be left out where it is decided.
            must = os.environ.get("CI") == "true"
            self.failed += must
            self.skipped += not must
            print(f"{'FAIL' if must else 'skip'} {name}: {error}", flush=True)
        except Exception as error:
            self.failed += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL {name}: {error!r} at {where.filename.rsplit('/', 1)[-1]}:{where.lineno}", flush=True)
            if "--verbose" in sys.argv:
                traceback.print_exc()
        else:
            self.passed += 1
            print(f"ok   {name} ({time.monotonic() - begun:.1f} s)", flush=True)

    def run(self, suite: str, wanted: list[str], *given: Any) -> None:
        """The cases of a suite in the order in which they stand there."""
        for name, function in list(CASES.items()):
            if name.split(".")[0] == suite and (suite in wanted or name in wanted):
                row = self.row(name.split(".")[1].replace("_", " "))
                with row:
                    function(*given, self)

    def close(self) -> int:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}", flush=True)
        return 1 if self.failed or not self.passed else 0
