"""The images of the tests: no registry is asked."""

import os
import shutil
from pathlib import Path

from cluster import run

HOME = Path(__file__).resolve().parents[2]
# What the program is linked with, and what an image must have.
PACKAGES = "libc6,libgcc-s1,libstdc++6,libssl3,ca-certificates,base-files,netbase"


class Images:
    def __init__(self, work: Path, cache: Path) -> None:
        self.work, self.cache = work, cache
        self.buildah = [
            "buildah",
            "--root",
            work / "storage",
            "--runroot",
            work / "storage-run",
            "--storage-driver",
            "vfs",
        ]

    def _build(self, name: str, context: Path, recipe: Path, *arguments: str) -> None:
        run(
            *self.buildah,
            "bud",
            "--quiet",
            "--isolation",
            "chroot",
            *arguments,
            "--file",
            recipe,
            "--tag",
            name,
            context,
        )

    def archive(self, name: str) -> Path:
        path = self.work / f"{name.replace('/', '-').replace(':', '-')}.tar"
        path.unlink(missing_ok=True)
        run(*self.buildah, "push", "--quiet", name, f"docker-archive:{path}:{name}")
        return path

    def pause(self, program: Path) -> str:
        """What holds the namespaces of a pod."""
        context = self._context("pause")
        shutil.copy(program, context / "pause")
        (context / "Containerfile").write_text('FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n')
        self._build("localhost/pause:1", context, context / "Containerfile")
        return "localhost/pause:1"

    def base(self) -> str:
        """Debian's libraries, without a shell."""
        archive = self.cache / f"image-base-bookworm-{PACKAGES.count(',')}.tar"
        if not archive.exists():
            new = self.work / "base.tar"
            run("mmdebstrap", "--quiet", "--variant=extract", f"--include={PACKAGES}", "bookworm", new)
            shutil.copy(new, archive.with_suffix(".new"))
            os.replace(archive.with_suffix(".new"), archive)
        context = self._context("base")
        shutil.copy(archive, context / "base.tar")
        (context / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
        self._build("localhost/base:1", context, context / "Containerfile")
        return "localhost/base:1"

    def everlog(self, program: Path, tags: list[str]) -> list[str]:
        """The image of the clone around a program that is there, once for each version; they differ in a label."""
        base, context = self.base(), self._context("everlog")
        run("objcopy", "--strip-all", program, context / "everlog")
        for folder in ("data/everlog", "doc"):
            (context / folder).mkdir(parents=True)
        names = [f"localhost/everlog:{tag}" for tag in tags]
        for tag, name in zip(tags, names, strict=True):
            arguments = (
                "--build-arg",
                "PROGRAM=prebuilt",
                "--build-arg",
                f"BASE={base}",
                "--build-arg",
                f"VERSION={tag}",
            )
            self._build(name, context, HOME / "Containerfile", *arguments)
        return names

    def _context(self, name: str) -> Path:
        context = self.work / f"context-{name}"
        context.mkdir()
        return context
