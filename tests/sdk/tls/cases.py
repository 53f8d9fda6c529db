"""How the programs of this folder run their cases: a line each, as tests/sdk/run counts them."""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from cleanup import LEFT, end_on_signals
from server import Server, ServerFailed


async def passes(name: str, case: Awaitable[None]) -> bool:
    """Prints how a case ends."""
    try:
        await case
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"FAIL {name}: {why[:600]}", flush=True)
        return False
    print(f"ok {name}", flush=True)
    return True


async def is_ready(server: Server) -> bool:
    if server.process.poll() is not None:
        raise ServerFailed(server.tail())
    page = await asyncio.to_thread(server.metrics)
    return "everlog_ready 1" in page.splitlines()


def run_in_folder(run: Callable[[Path], Awaitable[bool]]) -> int:
    """Runs the cases in a temporary folder, ends what they have started, and gives the code of the program."""
    end_on_signals()
    with tempfile.TemporaryDirectory(prefix="everlog-sdk-tls-") as folder:
        try:
            has_passed = asyncio.run(run(Path(folder)))
        finally:
            for leave in reversed(LEFT):
                leave()
    sys.stdout.flush()
    return 0 if has_passed else 1
