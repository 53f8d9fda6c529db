"""Runs the named suites on a broker of their own and prints a line per claim; see `run`."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "patience"))

import client  # noqa: E402, F401
import effects  # noqa: E402, F401
import operators  # noqa: E402, F401
import page  # noqa: E402, F401
import records  # noqa: E402, F401
import registries  # noqa: E402
import starts  # noqa: E402, F401
from case import CASES, Report  # noqa: E402
from world import Node, Part, World, free_port, temporary_folder  # noqa: E402

SUITES = ["records", "effects", "operators", "client", "registries", "page", "starts"]


def open_world(stack: ExitStack, bootstrap: str, folder: Path, registry: str | None) -> World:
    """A node on the broker, with the built-in registry or another one."""
    http = f"127.0.0.1:{free_port()}"
    settings = {"EVERLOG_HTTP__ADDRESS": http, **registries.waits_for(registries.LONGEST_WAIT_S)}
    if registry:
        settings["EVERLOG_REGISTRY__URL"] = registry
    node = Node(folder / "node", bootstrap, **settings)
    node.launch()
    stack.callback(node.kill)
    world = World(bootstrap, registry or f"http://{http}", node, folder)
    stack.callback(world.close)
    return world


def main(arguments: list[str]) -> int:
    wanted = [argument for argument in arguments if not argument.startswith("--")] or SUITES
    for name in wanted:
        if name.split(".")[0] not in SUITES or ("." in name and name not in CASES):
            print(f"no suite or case {name!r}; there are: {' '.join([*SUITES, *CASES])}", file=sys.stderr)
            return 2
    suites = [suite for suite in SUITES if any(name.split(".")[0] == suite for name in wanted)]
    report = Report()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        broker = Part("broker")
        stack.callback(broker.close)
        bootstrap = broker.ready()
        # The second broker and Apicurio come up while the cases run on the first.
        others = set() if "--built-in" in arguments else {"registries", "page"} & set(suites)
        parts = [Part("broker"), Part("registry")] if others else []
        for part in parts:
            stack.callback(part.close)
        if "--apicurio" not in arguments:
            print("# with the built-in registry", flush=True)
            with ExitStack() as own:
                world = open_world(own, bootstrap, folder / "built-in", None)
                world.node.wait_ready()
                private_namespace(world)
                for suite in suites:
                    report.run(suite, wanted, world)
        if others:
            print("# with Apicurio Registry", flush=True)
            with ExitStack() as own:
                world = open_world(own, parts[0].ready(), folder / "apicurio", parts[1].ready())
                world.node.wait_ready()
                for suite in suites:
                    if suite in others:
                        report.run(suite, wanted, world)
                if "registries" in wanted:
                    registries.registry_is_away(world, parts[1], report)
    return report.close()


def private_namespace(world: World) -> None:
    """One that the configuration does not open to commands."""
    import asyncio

    from google.protobuf.duration_pb2 import Duration
    from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
    from temporalio.client import Client

    async def make() -> None:
        client = await Client.connect(world.node.address)
        retention = Duration(seconds=86_400)
        request = RegisterNamespaceRequest(namespace="private", workflow_execution_retention_period=retention)
        await client.workflow_service.register_namespace(request)

    asyncio.run(make())


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of clients may still wait for a broker that is gone; the verdict is printed.
    os._exit(code)
