"""Drives Temporal's Web UI, the released server of it, in Chromium, and prints a line per case; see README.md."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path += [str(TESTS / part) for part in ("temporal", "sdk/python", "sdk/kill", "sdk/tls", "patience")]

import login  # noqa: E402
import servers  # noqa: E402
import workflows  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from fixtures import Fixtures  # noqa: E402
from web_ui import chromium, drive, packages, web_ui  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/ui/run", description=__doc__)
    servers.options(parser)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the pages")
    parser.add_argument("--keycloak", action="store_true", help="people of `login` log in at Keycloak, which Maven fetches")
    parser.add_argument("cases", nargs="*", help="lists, runs, cluster, actions, activities, schedules, login, or SUITE.CASE")
    return parser.parse_args()


async def run(chosen: argparse.Namespace, folder: Path) -> int:
    browser, program = chromium(), packages(folder)
    async with servers.serving(chosen, folder) as addresses:
        base = await web_ui(addresses[0], folder)
        fixtures = await Fixtures.register(addresses[-1], runtime=servers.runtime())
        async with workflows.worker(fixtures.client, fixtures.queue):
            await fixtures.make()
            settings = {
                "base": base,
                "chromium": browser,
                "reference": chosen.reference,
                "screenshots": chosen.screenshots and str(chosen.screenshots.resolve()),
                "namespace": fixtures.namespace,
                "queue": fixtures.queue,
                "runs": fixtures.runs,
                "crowd": fixtures.crowd,
                "counts": {"total": sum(fixtures.statuses.values()), "statuses": fixtures.statuses},
            }
            return await drive(program, settings, chosen.cases)


def main() -> int:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="everlog-ui-") as folder:
        LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        end_on_signals()
        try:
            of_login = [case.split(".")[0] == "login" for case in chosen.cases]
            if any(of_login) and not all(of_login):
                raise SystemExit("login has a server of its own: run it alone")
            program = login.run if any(of_login) else run
            return asyncio.run(program(chosen, Path(folder)))
        finally:
            for step in reversed(LEFT[1:]):
                step()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(code)
