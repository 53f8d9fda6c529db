"""A client of the sample Entity Workflow, whose worker is that of helm/examples/worker. It needs TEMPORAL_ADDRESS."""

import asyncio

from temporalio.client import Client
from temporalio.envconfig import ClientConfig


async def main() -> None:
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    account = await client.start_workflow("UserAccountWorkflow", "ann", id="ann", task_queue="accounts")
    await account.execute_update("update_profile", {"name": "Ann", "email": "ann@example.org"})
    state = await account.query("get_state")
    assert state["operation_count"] == 1 and state["profile"]["name"] == "Ann", state
    await account.signal("delete")
    await account.result()


asyncio.run(main())
