"""Drives Temporal's Web UI, the released server of it, in Chromium, and prints a line per case; see README.md."""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path += [str(TESTS / part) for part in ("temporal", "sdk/python", "sdk/kill", "patience")]

import patience  # noqa: E402
import servers  # noqa: E402
import workflows  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from fixtures import Fixtures  # noqa: E402
from server import ServerFailed, free_port  # noqa: E402

# As docs/ui.md has it, with an address of its own.
CONFIG = """temporalGrpcAddress: {server}
host: 127.0.0.1
port: {port}
enableUi: true
disableNewsFetch: true
defaultNamespace: default
cors: {{cookieInsecure: true, allowOrigins: ["http://127.0.0.1:{port}"]}}
"""
CHROMIUM = ["chromium", "chromium-browser", "google-chrome"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/ui/run", description=__doc__)
    servers.options(parser)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the pages")
    parser.add_argument("cases", nargs="*", help="lists, runs, cluster, actions, activities, schedules, or SUITE.CASE")
    return parser.parse_args()


def packages(folder: Path) -> Path:
    """The browser's programs, with what npm installs for them; it keeps packages in the cache."""
    program = folder / "browser"
    program.mkdir()
    for file in [*HERE.glob("*.mjs"), *HERE.glob("package*.json")]:
        shutil.copy(file, program)
    environment = os.environ | {"npm_config_cache": str(servers.cache() / "ui-npm")}
    command = ["npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=program, env=environment, stdout=sys.stderr, check=True)
    return program


async def web_ui(server: str, folder: Path) -> str:
    """The address of the Web UI, once it serves."""
    port = free_port()
    (folder / "ui" / "config").mkdir(parents=True)
    (folder / "ui" / "config" / "everlog.yaml").write_text(CONFIG.format(server=server, port=port))
    command = [servers.assemble("ui-server"), "--root", folder / "ui", "--config", "config", "--env", "everlog", "start"]
    log = folder / "ui.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    LEFT.append(process.kill)
    base = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        if process.poll() is not None:
            raise ServerFailed(f"the Web UI ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"{base}/healthz", timeout=patience.most_s()) as answer:
                return answer.status == 200
        except OSError:
            return False

    async def look() -> bool:
        return await asyncio.to_thread(answers)

    await patience.until("the Web UI serves", look)
    return base


async def drive(program: Path, settings: dict, cases: list[str]) -> int:
    """The cases in the browser; how they ended."""
    (program / "settings.json").write_text(json.dumps(settings))
    command = ["node", program / "main.mjs", program / "settings.json", *cases]
    process = await asyncio.create_subprocess_exec(*command)
    LEFT.append(lambda: process.returncode is None and process.terminate())
    return await process.wait()


async def run(chosen: argparse.Namespace, folder: Path) -> int:
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not chromium:
        raise SystemExit("needs Chromium (Debian: apt-get install chromium)")
    program = packages(folder)
    async with servers.serving(chosen, folder) as addresses:
        base = await web_ui(addresses[0], folder)
        fixtures = await Fixtures.register(addresses[-1], runtime=servers.runtime())
        async with workflows.worker(fixtures.client, fixtures.queue):
            await fixtures.make()
            settings = {
                "base": base,
                "chromium": chromium,
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
            return asyncio.run(run(chosen, Path(folder)))
        finally:
            for step in reversed(LEFT[1:]):
                step()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(code)
