"""Starts a workflow each half second through a service: writer.py ADDRESS NAME [CA KEY]

It runs in the cluster's network, as a client there would. It writes `ack ID SECONDS TOOK` for each start that was
acknowledged, or `fail SECONDS REASON`, with the time since the epoch and how long the call took. It stops when its
input ends. With `read` instead of a name it reads ids from its input, and tells of each that is not there:
`missing ID`, and at the end `found COUNT`.
"""

import asyncio
import sys
import time
from datetime import timedelta

import patience
from temporalio.client import Client, TLSConfig
from temporalio.service import RPCError

EVERY_S = 0.5
# A client's own; SDKs repeat a call within it.
CALL_S = 10


async def connect(address: str, rest: list[str]) -> Client:
    tls: TLSConfig | bool = False
    key = None
    if rest:
        authority, key = rest
        tls = TLSConfig(server_root_ca_cert=open(authority, "rb").read(), domain="everlog.flows.svc")
    return await Client.connect(address, tls=tls, api_key=key, lazy=True)


async def write(client: Client, name: str) -> None:
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    number = 0
    while not ended.done():
        number += 1
        # One start may wait for another node; the next one begins in its turn all the same.
        asyncio.create_task(one(client, f"{name}-{number}"))
        await patience.pass_s(EVERY_S)
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


async def one(client: Client, workflow_id: str) -> None:
    began = time.time()
    try:
        await client.start_workflow(
            "Nobody", id=workflow_id, task_queue="nobody", rpc_timeout=timedelta(seconds=CALL_S)
        )
        print(f"ack {workflow_id} {time.time():.3f} {time.time() - began:.3f}", flush=True)
    except (RPCError, RuntimeError) as error:
        # The second kind is of the first call, which connects.
        status = error.status.name if isinstance(error, RPCError) else "-"
        print(f"fail {time.time():.3f} {status} {' '.join(str(error).split())}", flush=True)


async def read(client: Client) -> None:
    found = 0
    for workflow_id in sys.stdin.read().split():
        try:
            await client.get_workflow_handle(workflow_id).describe(rpc_timeout=timedelta(seconds=CALL_S))
            found += 1
        except RPCError as error:
            print(f"missing {workflow_id} {error.status.name}", flush=True)
    print(f"found {found}", flush=True)


async def main() -> None:
    address, name, *rest = sys.argv[1:]
    client = await connect(address, rest)
    await (read(client) if name == "read" else write(client, name))


asyncio.run(main())
