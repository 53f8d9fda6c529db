"""The subcommands that the program has, by its own help, and those that no case has run."""

import asyncio
from itertools import takewhile

import expect
from cli import Cli

Path = tuple[str, ...]
# What a case does not run, with the reason.
NOT_RUN: dict[Path, str] = {
    ("help",): "it prints what `--help` prints",
    ("server", "start-dev"): "it is a Temporal server itself: --reference runs it",
}


def block(text: str, heading: str) -> list[str]:
    """The lines below a heading, up to an empty one."""
    lines = text.splitlines()
    below = lines[lines.index(heading) + 1 :] if heading in lines else []
    return [line.strip() for line in takewhile(str.strip, below)]


async def there_are(cli: Cli, *path: str) -> list[Path]:
    """What can be run below a command, and the command itself if it does something."""
    text = (await cli.local(*path, "--help")).text
    names = [line.split()[0] for line in block(text, "Available Commands:")]
    found = await asyncio.gather(*(there_are(cli, *path, name) for name in names))
    is_run = any(not usage.endswith("[command]") for usage in block(text, "Usage:"))
    return [path] * is_run + [each for below in found for each in below]


async def all_are_run(cli: Cli) -> None:
    """Claims that each was run. It comes behind all cases."""
    # To ask for help is not to run it.
    tried = set(cli.tried)
    found = [path for path in await there_are(cli) if path not in NOT_RUN]
    expect.that(len(found) > len(NOT_RUN), "what there is", found)
    untried = [" ".join(path) for path in found if path not in tried]
    expect.equal(untried, [], f"what no case runs, of {len(found)} subcommands")
