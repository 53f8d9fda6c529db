"""The Web UI's released server, and a browser that does on its pages what the programs of this folder say."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import patience
import servers
from cleanup import LEFT
from server import ServerFailed, free_port

HERE = Path(__file__).resolve().parent
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


def chromium() -> str:
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not found:
        raise SystemExit("needs Chromium (Debian: apt-get install chromium)")
    return found


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


async def serves(name: str, process: subprocess.Popen[bytes], log: Path, page: str) -> None:
    """Returns once the process answers at its page; raises ServerFailed where it has ended."""

    def answers() -> bool:
        if process.poll() is not None:
            raise ServerFailed(f"{name} ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(page, timeout=patience.most_s()) as answer:
                return answer.status == 200
        except OSError:
            return False

    async def look() -> bool:
        return await asyncio.to_thread(answers)

    await patience.until(f"{name} serves", look)


async def web_ui(server: str, folder: Path, port: int | None = None, further: str = "") -> str:
    """The address of the Web UI, once it serves; with further lines of its settings."""
    port = port or free_port()
    (folder / "ui" / "config").mkdir(parents=True)
    (folder / "ui" / "config" / "everlog.yaml").write_text(CONFIG.format(server=server, port=port) + further)
    command = [servers.assemble("ui-server"), "--root", folder / "ui", "--config", "config", "--env", "everlog", "start"]
    log = folder / "ui.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    LEFT.append(process.kill)
    base = f"http://127.0.0.1:{port}"

    await serves("the Web UI", process, log, f"{base}/healthz")
    return base


async def drive(program: Path, settings: dict, cases: list[str]) -> int:
    """The cases in the browser; how they ended."""
    (program / "settings.json").write_text(json.dumps(settings))
    command = ["node", program / "main.mjs", program / "settings.json", *cases]
    process = await asyncio.create_subprocess_exec(*command)
    LEFT.append(lambda: process.returncode is None and process.terminate())
    return await process.wait()
