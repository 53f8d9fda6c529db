"""Commands for what Everlog does not have: each is refused clearly. A Temporal server has the feature."""

from collections.abc import Iterable

import expect
from setting import Setting, case

ABSENT = "is not served by Everlog, see docs/api.md"
# Words of a command, and what a Temporal server complains of; nothing if it does not.
Row = tuple[list[str], str]


async def refuses(at: Setting, rows: Iterable[Row]) -> None:
    for words, there in rows:
        complaint = there if at.shared.reference else ABSENT
        if complaint:
            refusal = await at.cli.refused(*words)
            expect.that(complaint in refusal, " ".join(words), refusal)
        else:
            await at.cli(*words)


@case
async def worker_deployments(at: Setting) -> None:
    name = at.id("deployment")
    named = ["--deployment-name", name]
    build = [*named, "--build-id", "one"]
    unknown = "Worker Deployment not found"
    deployment = ["worker", "deployment"]
    await refuses(
        at,
        [
            ([*deployment, "list"], ""),
            ([*deployment, "describe", "--name", name], unknown),
            ([*deployment, "describe-version", *build], "Worker Deployment Version not found"),
            ([*deployment, "delete", "--name", name], ""),
            ([*deployment, "delete-version", *build], "workflow not found"),
            ([*deployment, "set-current-version", *build, "--yes"], unknown),
            ([*deployment, "set-ramping-version", *build, "--percentage", "5", "--yes"], unknown),
            ([*deployment, "update-metadata-version", *build, "--metadata", 'a="b"'], "workflow not found"),
            ([*deployment, "manager-identity", "set", *named, "--manager-identity", "me", "--yes"], unknown),
            ([*deployment, "manager-identity", "unset", *named, "--yes"], unknown),
        ],
    )


@case
async def nexus_endpoints(at: Setting) -> None:
    endpoint = ["operator", "nexus", "endpoint"]
    # Its name has no underscores.
    name = ["--name", at.id("endpoint").replace("_", "-")]
    unknown = "endpoint not found"
    await refuses(
        at,
        [
            ([*endpoint, "list"], ""),
            ([*endpoint, "get", *name], unknown),
            ([*endpoint, "create", *name, "--target-namespace", "default", "--target-task-queue", at.idle], ""),
            ([*endpoint, "update", *name, "--target-task-queue", at.queue], ""),
            ([*endpoint, "delete", *name], ""),
            ([*endpoint, "delete", *name], unknown),
        ],
    )


@case
async def remote_clusters(at: Setting) -> None:
    cluster = ["operator", "cluster"]
    # Nothing listens at the first port.
    upsert = [*cluster, "upsert", "--frontend-address", "127.0.0.1:1"]
    rows = [(upsert, "Unable connect to remote cluster"), ([*cluster, "remove", "--name", at.id()], "cannot be found")]
    await refuses(at, rows)


@case
async def rules_of_build_ids(at: Setting) -> None:
    versioning, queue = ["task-queue", "versioning"], ["-t", at.id("queue")]
    one, other = ["--build-id", "1.0", "--yes"], ["--build-id", "1.1", "--yes"]
    first, moved = ["--rule-index", "0"], ["--source-build-id", "1.0", "--target-build-id", "2.0", "--yes"]
    await refuses(
        at,
        [
            ([*versioning, "get-rules", *queue], ""),
            ([*versioning, "insert-assignment-rule", *queue, *one], ""),
            ([*versioning, "replace-assignment-rule", *queue, *first, *other], ""),
            ([*versioning, "add-redirect-rule", *queue, *moved], ""),
            ([*versioning, "replace-redirect-rule", *queue, *moved], ""),
            ([*versioning, "delete-redirect-rule", *queue, *moved[:2], "--yes"], ""),
            ([*versioning, "delete-assignment-rule", *queue, *first, "--force", "--yes"], ""),
            ([*versioning, "commit-build-id", *queue, *one, "--force"], ""),
        ],
    )
