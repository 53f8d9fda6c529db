"""Workers that show tokens of ServiceAccounts of a real Kubernetes API server: kubernetes_test.py SERVER-COMMAND PARTS [CASE...]

PARTS is the folder that tests/kubernetes/assemble prints. A line per case is printed, as tests/sdk/run counts them.
"""

import asyncio
import json
import os
import sys
import urllib.error
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / part) for part in ("sdk/python", "sdk/tls", "patience")]

import patience  # noqa: E402
from api_server import ISSUER, ApiServer, decoded  # noqa: E402
from authority import Authority  # noqa: E402
from cases import is_ready, passes, run_in_folder  # noqa: E402
from cleanup import LEFT  # noqa: E402
from greeting import Greeting, greet  # noqa: E402
from server import Server  # noqa: E402
from temporalio.client import Client  # noqa: E402
from temporalio.service import RPCError, RPCStatusCode, TLSConfig  # noqa: E402
from temporalio.worker import Worker  # noqa: E402

NAMES = "DNS:localhost,IP:127.0.0.1"
DENIED = "Request unauthorized."
# As docs/security.md has them: `orders` may do both, `worker` may only work.
RULES = f"""claim sub=system:serviceaccount:prod:orders iss={ISSUER} default:write
claim sub=system:serviceaccount:prod:worker iss={ISSUER} default:worker
"""
ACCOUNTS = [("prod", "orders"), ("prod", "worker"), ("prod", "other"), ("stage", "orders")]
# Of a token, as api_server.py asks for it.
LIFE_S = 600


class Cases:
    def __init__(self, server: Server, authority: Path, api: ApiServer) -> None:
        self.server, self.authority, self.api = server, authority, api

    async def keys_that_nobody_may_read_make_tokens_wait(self) -> None:
        """The API server shows its keys to those that a role permits it to: until then calls are to be tried again."""
        try:
            await asyncio.to_thread(self.api.ask, "GET", "/openid/v1/jwks", is_known=False)
        except urllib.error.HTTPError as error:
            assert error.code == 403, error
        else:
            raise AssertionError("anybody may read the keys")
        await self.answered(RPCStatusCode.UNAVAILABLE, await self.token("prod", "orders"))
        await asyncio.to_thread(self.api.let_everybody_read_the_keys)
        token = await self.token("prod", "orders")

        async def is_accepted() -> bool:
            return await self.code(token) is None

        await patience.until("the keys are there", is_accepted)

    async def the_issuer_is_as_the_server_says(self) -> None:
        told = await asyncio.to_thread(self.api.ask, "GET", "/.well-known/openid-configuration")
        assert told["issuer"] == ISSUER, told
        claims = json.loads(decoded((await self.token("prod", "orders")).split(".")[1]))
        assert (claims["iss"], claims["aud"]) == (ISSUER, ["everlog"]), claims
        assert claims["sub"] == "system:serviceaccount:prod:orders", claims

    async def an_account_with_a_role_starts_and_completes_a_workflow(self) -> None:
        await self.greets("greeting", await self.token("prod", "orders"), await self.token("prod", "orders"))

    async def an_account_that_may_work_works_and_starts_nothing(self) -> None:
        worker = await self.token("prod", "worker")
        await self.greets("works", worker, await self.token("prod", "orders"))
        await self.answered(RPCStatusCode.PERMISSION_DENIED, worker)

    async def an_account_without_a_rule_is_denied(self) -> None:
        for namespace, name in (("prod", "other"), ("stage", "orders")):
            await self.answered(RPCStatusCode.PERMISSION_DENIED, await self.token(namespace, name))

    async def a_token_for_another_audience_is_denied(self) -> None:
        # That of the API server itself is what each pod has.
        for audience in ("vault", ISSUER):
            token = await self.token("prod", "orders", audience)
            await self.answered(RPCStatusCode.PERMISSION_DENIED, token)

    async def a_token_that_has_expired_is_denied(self) -> None:
        token = await self.token("prod", "orders")
        # Signed anew, and otherwise the same: what is made here is what the server makes.
        assert await self.code(self.api.aged(token, 0)) is None
        await self.answered(RPCStatusCode.PERMISSION_DENIED, self.api.aged(token, 2 * LIFE_S))

    async def a_token_that_was_changed_is_denied(self) -> None:
        header, claims, signature = (await self.token("prod", "other")).split(".")
        _, wanted, _ = (await self.token("prod", "orders")).split(".")
        await self.answered(RPCStatusCode.PERMISSION_DENIED, f"{header}.{wanted}.{signature}")
        assert claims != wanted

    async def tokens_of_a_replaced_key_are_accepted_and_those_before_are_not(self) -> None:
        before = await self.token("prod", "orders")
        working = await self.client(await self.token("prod", "worker"))
        async with self.worker(working, "replaced"):
            self.api.use_a_new_key()
            await self.api.start_server()
            # The worker's token is replaced, as the kubelet replaces the file. Keys are fetched for it.
            after = await self.token("prod", "orders")

            async def is_accepted() -> bool:
                return await self.code(after) is None

            await patience.until("the new key is known", is_accepted)
            working.api_key = await self.token("prod", "worker")
            client = await self.client(after)
            result = await client.execute_workflow(Greeting.run, "world", id="replaced", task_queue="replaced")
            assert result == "Hello, world!", result
        await self.answered(RPCStatusCode.PERMISSION_DENIED, before)

    async def tokens_stand_in_no_log_line(self) -> None:
        token = await self.token("prod", "other")
        await self.answered(RPCStatusCode.PERMISSION_DENIED, token)

        async def is_logged() -> bool:
            return "system:serviceaccount:prod:other" in self.server.log.read_text()

        await patience.until("the denial is logged", is_logged)
        log = self.server.log.read_text()
        # The header is that of each token of a key; the rest is not.
        assert not any(part in log for part in token.split(".")[1:]), "a token is logged"

    async def token(self, namespace: str, name: str, audience: str = "everlog") -> str:
        return await asyncio.to_thread(self.api.token, namespace, name, audience)

    async def client(self, token: str) -> Client:
        tls = TLSConfig(server_root_ca_cert=self.authority.read_bytes())
        return await Client.connect(self.server.address, tls=tls, api_key=token)

    def worker(self, client: Client, queue: str) -> Worker:
        return Worker(client, task_queue=queue, workflows=[Greeting], activities=[greet])

    async def greets(self, name: str, worker: str, starter: str) -> None:
        async with self.worker(await self.client(worker), name):
            client = await self.client(starter)
            result = await client.execute_workflow(Greeting.run, "world", id=name, task_queue=name)
        assert result == "Hello, world!", result

    async def code(self, token: str) -> RPCStatusCode | None:
        """How a start is refused, or None."""
        client = await self.client(token)
        try:
            await client.start_workflow(Greeting.run, "world", id=os.urandom(4).hex(), task_queue="nobody")
        except RPCError as error:
            if error.status == RPCStatusCode.PERMISSION_DENIED:
                assert error.message == DENIED, error
            return error.status
        return None

    async def answered(self, wanted: RPCStatusCode, token: str) -> None:
        told = await self.code(token)
        assert told == wanted, told


CASES = [name for name, value in vars(Cases).items() if name.count("_") > 2 and asyncio.iscoroutinefunction(value)]


def serve(command: str, folder: Path, api: ApiServer) -> tuple[Server, Path]:
    authority = Authority.new(folder, "everlog")
    shown = authority.certify("server", "serverAuth", NAMES)
    rules = folder / "rules"
    rules.write_text(RULES)
    settings = {
        "TLS__CERTIFICATE_FILE": shown.certificate,
        "TLS__KEY_FILE": shown.key,
        "AUTH__ENABLED": "true",
        "AUTH__JWKS": f"{api.url}/openid/v1/jwks",
        "AUTH__JWKS_CA_FILE": api.authority.certificate,
        "AUTH__ISSUERS": ISSUER,
        "AUTH__AUDIENCE": "everlog",
        "AUTH__RULES_FILE": rules,
    }
    variables = [f"EVERLOG_{name}={value}" for name, value in settings.items()]
    server = Server.new(" ".join(["env", *variables, command]), folder / "server")
    LEFT.append(server.kill)
    server.start()
    return server, authority.certificate


async def run(command: str, parts: Path, wanted: list[str], folder: Path) -> bool:
    api = ApiServer(folder, parts)
    await api.start()
    for account in ACCOUNTS:
        api.add_account(*account)
    server, authority = serve(command, folder, api)
    await patience.until("the server is ready", lambda: is_ready(server))
    cases, passed = Cases(server, authority, api), []
    for case in wanted or CASES:
        passed.append(await passes(f"kubernetes.{case}", getattr(cases, case)()))
    if not all(passed):
        print(server.tail(), file=sys.stderr)
    return all(passed)


if __name__ == "__main__":
    command, parts, *wanted = sys.argv[1:]
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(run_in_folder(lambda folder: run(command, Path(parts), wanted, folder)))
