"""People log in to the Web UI at an identity provider, and see and do what their roles permit."""

import argparse
import hashlib
from pathlib import Path

import patience
import servers
from cases import is_ready, passes
from cleanup import LEFT
from google.protobuf.duration_pb2 import Duration
from greeting import Greeting, greet
from providers import CLIENT, PEOPLE, SECRET, Provider, keycloak, mock_server
from server import Server, free_port
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker
from web_ui import chromium, drive, packages, web_ui

NAMESPACES = ["shop", "stock"]
QUEUE = "registers"
# As docs/ui.md has it.
LOGIN = """auth:
  enabled: true
  providers:
    - label: sso
      type: oidc
      providerUrl: {issuer}
      clientId: {client}
      clientSecret: {secret}
      scopes: [openid, profile, email]
      callbackUrl: http://127.0.0.1:{port}/auth/sso/callback
"""


def root_key() -> str:
    return "elk_" + hashlib.sha256(b"root").hexdigest()[:43]


def serve(provider: Provider, folder: Path) -> Server:
    keys = folder / "keys"
    keys.write_text(f"root temporal-system:admin {hashlib.sha256(root_key().encode()).hexdigest()}\n")
    settings = {
        "ENABLED": "true",
        "API_KEYS_FILE": keys,
        "JWKS": provider.jwks,
        "JWKS_ALLOW_HTTP": "true",
        "ISSUERS": provider.issuer,
    }
    if provider.audience:
        settings["AUDIENCE"] = provider.audience
    variables = [f"EVERLOG_AUTH__{name}={value}" for name, value in settings.items()]
    server = Server.new(" ".join(["env", *variables, servers.command(False)]), folder / "server")
    LEFT.append(server.kill)
    server.start()
    return server


async def begin(address: str) -> dict[str, str]:
    """A run in each namespace that waits for a worker, by namespace."""
    runs = {}
    for namespace in NAMESPACES:
        client = await Client.connect(address, namespace=namespace, api_key=root_key(), tls=False)
        about = RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=Duration(seconds=86_400))
        await client.workflow_service.register_namespace(about)
        started = await client.start_workflow("Register", id=f"{namespace}-1", task_queue=QUEUE)
        runs[namespace] = started.first_execution_run_id
    return runs


async def a_worker_works(server: str, provider: Provider) -> None:
    """A program that logs in by itself, with a role of its own."""
    options = {"namespace": "shop", "tls": False}
    working = await Client.connect(server, api_key=provider.token("worker", "secret-of-worker"), **options)
    root = await Client.connect(server, api_key=root_key(), **options)
    async with Worker(working, task_queue="greetings", workflows=[Greeting], activities=[greet]):
        result = await root.execute_workflow(Greeting.run, "world", id="greeting", task_queue="greetings")
    assert result == "Hello, world!", result
    try:
        await working.start_workflow(Greeting.run, "world", id="other", task_queue="greetings")
    except RPCError as error:
        assert error.status == RPCStatusCode.PERMISSION_DENIED, error
    else:
        raise AssertionError("a worker starts a workflow")


async def run(chosen: argparse.Namespace, folder: Path) -> int:
    browser, program = chromium(), packages(folder)
    provider = await keycloak(folder) if chosen.keycloak else mock_server()
    server = serve(provider, folder)
    await patience.until("the server is ready", lambda: is_ready(server))
    port = free_port()
    further = LOGIN.format(issuer=provider.issuer, client=CLIENT, secret=SECRET, port=port)
    base = await web_ui(server.address, folder, port, further)
    settings = {
        "base": base,
        "chromium": browser,
        "screenshots": chosen.screenshots and str(chosen.screenshots.resolve()),
        "namespace": "shop",
        "runs": {f"{namespace}-1": run_id for namespace, run_id in (await begin(server.address)).items()},
        "listed": ["shop-1"] if provider.kind != "keycloak" else ["shop-1", "greeting"],
        "login": {"kind": provider.kind, "issuer": provider.issuer, "people": PEOPLE},
    }
    has_worked = provider.kind != "keycloak" or await passes(
        "login.a_worker_works_with_a_token_of_its_own", a_worker_works(server.address, provider)
    )
    return await drive(program, settings, chosen.cases) or int(not has_worked)
