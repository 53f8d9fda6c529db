"""Clients over TLS against servers with certificates of private authorities: tls_test.py SERVER-COMMAND CLIENT...

Prints a line per case, as tests/sdk/run counts them. Clients: python, go, cli.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / part) for part in ("temporal", "sdk/python", "sdk/kill", "patience")]

import patience  # noqa: E402
from authority import Authority, Certified  # noqa: E402
from cases import is_ready, passes, run_in_folder  # noqa: E402
from cleanup import LEFT  # noqa: E402
from clients import Cli, Go, Python, Refused, Trust  # noqa: E402
from server import Server  # noqa: E402
from servers import assemble  # noqa: E402

NAMES = "DNS:localhost,IP:127.0.0.1"
GREETING = "Hello, world!"
# Of what each client says, a part that names the cause.
WRONG_AUTHORITY = {
    "python": ["UnknownIssuer"],
    "go": ["certificate signed by unknown authority"],
    "cli": ["certificate signed by unknown authority"],
}
WRONG_NAME = {"python": ["NotValidForName"], "go": ["not elsewhere"], "cli": ["not elsewhere"]}
# With TLS 1.3 a client learns after its handshake that it is refused; the SDK may notice the end of the connection alone.
ENDED = ["connection closed", "broken pipe", "connection reset"]
NO_CERTIFICATE = {
    "python": ["CertificateRequired", *ENDED],
    "go": ["certificate required"],
    "cli": ["certificate required"],
}
STRANGER = {"python": ["UnknownCA", *ENDED], "go": ["certificate required"], "cli": ["certificate required"]}
# They show no certificate that is of no authority that the server names.
SHOWS_WHAT_IS_ASKED_FOR = ["go", "cli"]
TO_TLS_PORT = dict.fromkeys(("python", "go", "cli"), ["this port speaks TLS"])
TO_PLAIN_PORT = {
    "python": ["InvalidContentType"],
    "go": ["first record does not look like a TLS handshake"],
    "cli": ["first record does not look like a TLS handshake"],
}


class Servers:
    """Servers of three kinds, and who certifies whom."""

    def __init__(self, command: str, folder: Path) -> None:
        self.command, self.folder = command, folder
        self.authority, self.other = (Authority.new(folder, name) for name in ("authority", "other"))
        self.client = self.authority.certify("worker", "clientAuth")
        self.stranger = self.other.certify("stranger", "clientAuth")
        shown = self.authority.certify("server", "serverAuth", NAMES)
        self.open = self.start("open", shown, "asked")
        self.closed = self.start("closed", shown, "required")
        self.plain = self.start("plain", None, "")

    def start(self, name: str, shown: Certified | None, client_certificates: str) -> Server:
        settings = {}
        if shown:
            settings = {
                "CERTIFICATE_FILE": shown.certificate,
                "KEY_FILE": shown.key,
                "CLIENT_CA_FILE": self.authority.certificate,
                "CLIENT_CERTIFICATES": client_certificates,
            }
        variables = [f"EVERLOG_TLS__{key}={value}" for key, value in settings.items()]
        server = Server.new(" ".join(["env", *variables, self.command]), self.folder / name)
        LEFT.append(server.kill)
        server.start()
        return server

    async def ready(self) -> None:
        for server in (self.open, self.closed, self.plain):
            await patience.until("the server is ready", lambda: is_ready(server))


class Cases:
    """The cases of one client."""

    def __init__(self, name: str, client: Python | Go | Cli, servers: Servers) -> None:
        self.name, self.client, self.servers = name, client, servers
        self.trust = Trust(servers.authority.certificate)

    async def a_private_authority(self) -> None:
        await self.greets(self.servers.open, self.trust)

    async def a_certificate_of_the_client(self) -> None:
        shows = Trust(self.trust.authority, shows=self.servers.client)
        await self.greets(self.servers.open, shows)
        await self.greets(self.servers.closed, shows)

    async def no_certificate_where_one_is_required(self) -> None:
        await self.refused(self.servers.closed, self.trust, NO_CERTIFICATE)

    async def a_certificate_of_a_stranger(self) -> None:
        shows = Trust(self.trust.authority, shows=self.servers.stranger)
        await self.refused(self.servers.closed, shows, STRANGER)
        if self.name in SHOWS_WHAT_IS_ASKED_FOR:
            await self.greets(self.servers.open, shows)
        else:
            await self.refused(self.servers.open, shows, STRANGER)

    async def a_server_of_another_authority(self) -> None:
        await self.refused(self.servers.open, Trust(self.servers.other.certificate), WRONG_AUTHORITY)

    async def a_server_of_another_name(self) -> None:
        await self.refused(self.servers.open, Trust(self.trust.authority, "elsewhere"), WRONG_NAME)

    async def plain_text_at_a_port_with_tls(self) -> None:
        await self.refused(self.servers.open, Trust(None), TO_TLS_PORT)

    async def tls_at_a_port_in_plain_text(self) -> None:
        await self.refused(self.servers.plain, self.trust, TO_PLAIN_PORT)

    async def greets(self, server: Server, trust: Trust) -> None:
        told = await asyncio.wait_for(self.client.greets(server.address, trust), patience.most_s())
        assert told == GREETING, told

    async def refused(self, server: Server, trust: Trust, words: dict[str, list[str]]) -> None:
        try:
            told = await asyncio.wait_for(self.client.greets(server.address, trust), patience.most_s())
        except Refused as refused:
            said = str(refused)
            assert any(part.lower() in said.lower() for part in words[self.name]), f"it does not say why: {said}"
        else:
            raise AssertionError(f"it is not refused: {told}")


CASES = [name for name in vars(Cases) if "_" in name and not name.startswith("_")]


async def run(command: str, names: list[str], folder: Path) -> bool:
    servers = Servers(command, folder)
    await servers.ready()
    passed = []
    async with AsyncExitStack() as stack:
        clients = {"python": lambda: Python(), "cli": lambda: Cli(assemble("temporal"))}
        for name in dict.fromkeys(names):
            client = await stack.enter_async_context(Go.built()) if name == "go" else clients[name]()
            for case in CASES:
                passed.append(await passes(f"tls.{name}.{case}", getattr(Cases(name, client, servers), case)()))
    return all(passed)


if __name__ == "__main__":
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(run_in_folder(lambda folder: run(sys.argv[1], sys.argv[2:], folder)))
