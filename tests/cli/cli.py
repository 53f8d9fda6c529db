"""Temporal's command-line interface as a person or a script runs it, and what it prints, taken apart."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from expect import Unmet

# Columns stand two blanks apart at least.
GAP = re.compile(r" {2,}")


@dataclass
class Answer:
    """What a command has printed, and how it ended."""

    command: str
    code: int
    text: str
    errors: str

    def json(self) -> Any:
        """What `-o json` prints: one value."""
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            raise Unmet(f"{self.command}: no JSON ({error}): {self.text!r}") from error

    def lines(self) -> list[dict[str, Any]]:
        """What `-o jsonl` prints: a value in each line."""
        return [json.loads(line) for line in self.text.splitlines()]

    def table(self, below: str = "") -> list[dict[str, str]]:
        """The rows of a table, or of the one below this heading; an empty cell at the end of a row is left out."""
        rows = [GAP.split(line.strip()) for line in self.block(below)]
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def properties(self, below: str = "") -> dict[str, str]:
        """A value by each name, of all such lines or of those below this heading."""
        lines = self.block(below) if below else self.text.splitlines()
        pairs = (GAP.split(line.strip(), maxsplit=1) for line in lines if line.startswith("  "))
        return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}

    def block(self, below: str) -> list[str]:
        """The first lines, or those below this heading, as far as they are indented."""
        lines = self.text.splitlines()
        if below:
            self.has(below)
            lines = lines[lines.index(below) + 1 :]
        return list(takewhile(lambda line: line.startswith(" ") and line.strip(), lines))

    def has(self, line: str) -> None:
        """Claims that this line was printed."""
        if line not in self.text.splitlines():
            raise Unmet(f"{self.command}: no line {line!r} in {self.text!r}")

    def says(self, text: str) -> None:
        """Claims that just this was printed."""
        if self.text.strip() != text:
            raise Unmet(f"{self.command}: expected {text!r}, found {self.text!r}")

    def message(self) -> str:
        """What the command complained of."""
        for line in self.errors.splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry.get("level") == "ERROR":
                return entry["msg"]
        raise Unmet(f"{self.command}: no complaint in {self.errors!r}")


class Cli:
    """The program, for one namespace, a command at each address in turn; it reads nothing of the user's own."""

    def __init__(self, program: Path, addresses: Iterator[str], home: Path, namespace: str = "default") -> None:
        self.program, self.addresses, self.home, self.namespace = program, addresses, home, namespace
        # The subcommands that were run.
        self.tried: set[tuple[str, ...]] = set()

    def in_namespace(self, namespace: str) -> "Cli":
        return self.like(self.home, namespace)

    def at_home(self, name: str) -> "Cli":
        """With a folder of its own for what the program keeps."""
        home = self.home / name
        home.mkdir()
        return self.like(home, self.namespace)

    def like(self, home: Path, namespace: str) -> "Cli":
        other = Cli(self.program, self.addresses, home, namespace)
        other.tried = self.tried
        return other

    async def runs(self, *words: str, stdin: str = "") -> Answer:
        """A command to its end, however that is."""
        return await self.local(*words, "--address", next(self.addresses), "--namespace", self.namespace, stdin=stdin)

    async def local(self, *words: str, stdin: str = "") -> Answer:
        """The same, without the address of a server."""
        self.tried.add(tuple(takewhile(lambda word: not word.startswith("-"), words)))
        known = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
        process = await asyncio.create_subprocess_exec(
            self.program,
            *words,
            "--log-format",
            "json",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=known | {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home)},
        )
        try:
            text, errors = await process.communicate(stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        command = "temporal " + " ".join(words)
        return Answer(command, process.returncode, text.decode(), errors.decode())

    async def __call__(self, *words: str, stdin: str = "") -> Answer:
        """A command that must succeed."""
        answer = await self.runs(*words, stdin=stdin)
        if answer.code:
            raise Unmet(f"{answer.command}: ended with {answer.code}: {answer.text}{answer.errors}")
        return answer

    async def json(self, *words: str) -> Any:
        """What a command that must succeed prints in JSON."""
        return (await self(*words, "-o", "json")).json()

    async def refused(self, *words: str, stdin: str = "") -> str:
        """What a command complains of that must fail, with exit code 1."""
        answer = await self.runs(*words, stdin=stdin)
        if answer.code != 1:
            raise Unmet(f"{answer.command}: ended with {answer.code}: {answer.text}{answer.errors}")
        return answer.message()
