"""A Kubernetes cluster of one machine, in namespaces of its own: nothing of it is left when it has ended."""

import base64
import json
import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import patience

HERE = Path(__file__).resolve().parent
# The kubelet sets them, and they are the host's.
KERNEL = [
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
]


def run(
    *command: str | Path, text: str | None = None, fails: bool = False, environment: dict[str, str] | None = None
) -> str:
    """Its output. With `fails` it may end with another status than 0, and the errors are in what it says."""
    done = subprocess.run(
        [str(word) for word in command],
        input=text,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode and not fails:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return done.stdout + (done.stderr if fails else "")


def control_groups() -> set[Path]:
    """Those of pods, in each hierarchy; there is one where control groups have version 2."""
    top = Path("/sys/fs/cgroup")
    return {path for path in [top / "kubepods", *top.glob("*/kubepods")] if path.exists()}


class Certificates:
    """An authority, and what it has signed."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.pem, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        run(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-keyout",
            self.key,
            "-out",
            self.pem,
        )

    def sign(self, name: str, names: list[str]) -> tuple[Path, Path]:
        """A certificate for both sides, with these alternative names, and its key."""
        pem, key, request = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.folder / f"{name}.ext"
        alternative = ",".join(f"IP:{each}" if each[0].isdigit() else f"DNS:{each}" for each in names)
        extensions.write_text(f"subjectAltName={alternative}\nextendedKeyUsage=serverAuth,clientAuth\n")
        run(
            "openssl",
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            key,
            "-out",
            request,
        )
        run(
            "openssl",
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.pem,
            "-CAkey",
            self.key,
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            extensions,
            "-out",
            pem,
        )
        return pem, key


class Cluster:
    def __init__(self, work: Path, parts: Path, kubectl: Path, helms: dict[str, Path]) -> None:
        self.work, self.parts, self.programs, self.helms = work, parts, {"kubectl": kubectl}, helms
        self.name = f"everlog-{os.getpid()}"
        self.network = Path("/run/netns") / self.name
        # Of the networks that are private, one that nobody else is likely to have.
        third = os.getpid() % 250
        self.outside, self.address, self.pods = f"10.213.{third}.1", f"10.213.{third}.2", f"10.214.{third}.0/24"
        self.process: subprocess.Popen[bytes] | None = None
        self.kernel: dict[str, str] = {}
        self.had_groups = control_groups()

    def start(self) -> None:
        self._certify()
        self.kernel = {
            key: run("sysctl", "-n", key).strip() for key in KERNEL if Path("/proc/sys", *key.split(".")).exists()
        }
        run("ip", "netns", "add", self.name)
        outside = f"ev{os.getpid()}"
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("ip", "address", "add", f"{self.outside}/30", "dev", outside)
        run("ip", "link", "set", outside, "up")
        self.inside("ip", "address", "add", f"{self.address}/30", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")
        # The kubelet wants a default route.
        self.inside("ip", "route", "add", "default", "via", self.outside)
        # Not `ip netns exec`, which would hide the control groups.
        self.process = subprocess.Popen(
            [
                "nsenter",
                f"--net={self.network}",
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--mount-proc",
                "--kill-child=SIGKILL",
                "--propagation",
                "private",
                HERE / "machine",
                self.work,
                self.parts,
                self.address,
                self.pods,
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        patience.until_blocking("the API server answers", lambda: "ok" in self._asked("get", "--raw", "/readyz"))

    def await_machine(self) -> None:
        patience.until_blocking(
            "the machine is ready",
            lambda: (
                "True"
                in self._asked(
                    "get", "node", "machine", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
                )
            ),
        )

    def _asked(self, *words: str) -> str:
        if self.process and self.process.poll() is not None:
            ends = {path.name: path.read_text()[-300:] for path in (self.work / "logs").iterdir()}
            raise RuntimeError(f"a part of the cluster has ended: {json.dumps(ends, indent=2)}")
        return self.try_kubectl(*words)

    def stop(self) -> None:
        if self.process:
            # Whoever is first in a namespace of processes takes all others along.
            subprocess.run(["pkill", "-KILL", "-P", str(self.process.pid)], check=False)
            self.process.kill()
            self.process.wait()
        if self.network.exists():
            # Clients, and what has not ended yet.
            patience.until_blocking("processes of the network end", self._has_nobody)
            run("ip", "netns", "delete", self.name)
        for key, value in self.kernel.items():
            run("sysctl", "-q", "-w", f"{key}={value}")
        for top in control_groups() - self.had_groups:
            for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
                patience.until_blocking(f"{folder} is empty", lambda folder=folder: _removed(folder))
            patience.until_blocking(f"{top} is empty", lambda top=top: _removed(top))

    def _has_nobody(self) -> bool:
        left = run("ip", "netns", "pids", self.name).split()
        for pid in left:
            run("kill", "-KILL", pid, fails=True)
        return not left

    def inside(self, *command: str | Path, fails: bool = False) -> str:
        """Runs something in the cluster's network."""
        return run("nsenter", f"--net={self.network}", *command, fails=fails)

    def load(self, archive: Path) -> None:
        """An image, by the name that it has in the archive."""
        self.inside("ctr", "--address", self.work / "containerd.sock", "-n", "k8s.io", "images", "import", archive)

    # ------------------------------------------------------------------------------------------- what is in it

    def kubectl(self, *words: str | Path, text: str | None = None) -> str:
        return run(self.programs["kubectl"], "--kubeconfig", self.work / "kubeconfig", *words, text=text)

    def try_kubectl(self, *words: str | Path) -> str:
        """What it says, if it works or not."""
        return run(self.programs["kubectl"], "--kubeconfig", self.work / "kubeconfig", *words, fails=True)

    def get(self, *words: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", text="\n---\n".join(json.dumps(each) for each in objects))

    def secret(self, namespace: str, name: str, data: dict[str, str | Path], kind: str = "Opaque") -> None:
        """Makes it, or changes it."""
        content = {
            key: (value.read_bytes() if isinstance(value, Path) else value.encode()) for key, value in data.items()
        }
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": kind,
                "metadata": {"name": name, "namespace": namespace},
                "data": {key: base64.b64encode(value).decode() for key, value in content.items()},
            }
        )

    def helm(self, *words: str | Path, version: str = "4") -> str:
        home = {f"HELM_{kind}_HOME": str(self.work / f"helm-{version}" / kind) for kind in ("CACHE", "CONFIG", "DATA")}
        return run(self.helms[version], "--kubeconfig", self.work / "kubeconfig", *words, environment=home)

    def _certify(self) -> None:
        authority = Certificates(self.work, "ca")
        authority.sign(
            "api",
            [self.address, "127.0.0.1", "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
        )
        run("openssl", "genrsa", "-out", self.work / "accounts.key", "2048")
        run("openssl", "rsa", "-in", self.work / "accounts.key", "-pubout", "-out", self.work / "accounts.pub")
        (self.work / "tokens").write_text(f'{secrets.token_hex(16)},tests,tests,"system:masters"\n')


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
