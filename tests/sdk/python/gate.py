"""A gate inside a workflow task: a test sees the task arrive, does something, and lets it go on.

It is a local activity, during which the workflow task stays started, for nearly as long as its timeout (see TASK_TIMEOUT).
Workflow and test live in one process.
"""

import asyncio
from collections import defaultdict
from datetime import timedelta

from temporalio import activity, workflow


class Gate:
    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.opened = asyncio.Event()


GATES: defaultdict[str, Gate] = defaultdict(Gate)


@activity.defn
async def stand_at_gate() -> None:
    gate = GATES[activity.info().workflow_id]
    gate.arrived.set()
    await gate.opened.wait()


async def wait_at_gate() -> None:
    """Called by a workflow. Its worker needs the activity stand_at_gate."""
    await workflow.execute_local_activity(stand_at_gate, start_to_close_timeout=timedelta(hours=1))


async def arrived(workflow_id: str) -> None:
    """Returns when the workflow's task stands at its gate."""
    await GATES[workflow_id].arrived.wait()


def open_gate(workflow_id: str) -> None:
    GATES[workflow_id].opened.set()
