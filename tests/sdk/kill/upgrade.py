"""Which release the server is restarted with after each kill: the former one, the present one, back, and on again; then
the level of decisions is raised, and the former release must refuse."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "patience"))

import patience  # noqa: E402
from server import Server  # noqa: E402

# What a release says to a journal or a row of a later level.
REFUSAL = re.compile(r"has version \d+, this release reads up to \d+")


def serve(program: str) -> str:
    """The command of a server with an embedded log; that of `everlog dev` would raise the level by itself."""
    names = {"ADDRESS": "{address}", "DATA_DIR": "{data}", "METRICS_ADDRESS": "{metrics}"}
    variables = [f"EVERLOG_SERVER__{name}={value}" for name, value in names.items()]
    variables.append("EVERLOG_HTTP__ADDRESS=127.0.0.1:0")
    return " ".join(["env", *variables, shlex.quote(program), "serve"])


class Upgrade:
    """The releases of one server, each by its program."""

    def __init__(self, server: Server, former: str, present: str, kills: int) -> None:
        self.server = server
        self.program = present
        self.former, self.present = serve(former), serve(present)
        self.kills = kills
        self.is_raised = False
        self.releases: list[str] = []

    def begin(self) -> None:
        self.server.command = self.former

    def choose(self, kill: int) -> None:
        """Before the restart after a kill, counted from 0."""
        quarter = 4 * kill // self.kills
        self.server.command = self.former if quarter in (0, 2) else self.present
        if quarter == 3 and not self.is_raised:
            self.raise_level()
            self.is_raised = True
        self.releases.append("former" if self.server.command == self.former else "present")

    def raise_level(self) -> None:
        """To the latest level that the present release knows; the server does not run."""
        levels = self.cluster_upgrade("--to-level", "1000000")
        latest = re.search(r"knows levels up to (\d+)", levels.stderr)
        assert latest, levels
        raised = self.cluster_upgrade("--to-level", latest[1])
        assert raised.returncode == 0, raised
        print(f"# {raised.stdout.strip()}", flush=True)

    def cluster_upgrade(self, *words: str) -> subprocess.CompletedProcess:
        command = [self.program, "cluster", "upgrade", "--data-dir", str(self.server.data), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=patience.most_s())

    def wrong(self) -> list[str]:
        """What is wrong with how the former release takes what the present one has written; the server is stopped."""
        wrong = [] if {"former", "present"} <= set(self.releases) else [f"only {self.releases}"]
        self.server.command = self.former
        self.server.start()
        try:
            code = self.server.process.wait(patience.most_s())
        except subprocess.TimeoutExpired:
            self.server.kill()
            return [*wrong, "the former release goes on behind a level that it does not know"]
        said = self.server.tail()
        if code == 0 or not REFUSAL.search(said):
            wrong.append(f"the former release ended with {code} and said: {said}")
        return wrong
