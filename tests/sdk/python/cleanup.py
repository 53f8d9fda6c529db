"""What must be ended when this process is told to end in the midst of its work."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

LEFT: list[Callable[[], Any]] = []


def end_on_signals() -> None:
    """At SIGINT and SIGTERM, does what is left and is gone.

    Not by an exception: it would have to find its way out through workers whose server has gone.
    """

    def end(number: int, _: Any) -> None:
        for step in reversed(LEFT):
            try:
                step()
            except Exception as error:
                print(f"while ending: {error!r}", file=sys.stderr)
        os._exit(128 + number)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
