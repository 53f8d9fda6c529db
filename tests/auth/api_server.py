"""An API server of Kubernetes with its etcd, without nodes: it makes ServiceAccounts and their tokens, and publishes the keys."""

import asyncio
import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import patience
from authority import Authority, openssl
from cleanup import LEFT
from server import ServerFailed, free_port

ISSUER = "https://kubernetes.default.svc.cluster.local"
# Anybody may read the keys and the name of the issuer.
DISCOVERY_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "service-account-issuer-discovery-for-all"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:service-account-issuer-discovery",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"}],
}


class Process:
    """A program whose log is kept, and which ends with this one."""

    def __init__(self, log: Path, *command: str | Path) -> None:
        self.log = log
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
            )
        LEFT.append(self.end)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise ServerFailed(f"{self.log.stem} ended: {self.log.read_text(errors='replace')[-2000:]}")


class ApiServer:
    """Reached over TLS on a free port, which it keeps when it is started anew."""

    def __init__(self, folder: Path, parts: Path) -> None:
        self.folder, self.parts, self.port = folder, parts, free_port()
        self.authority = Authority.new(folder, "cluster")
        self.certified = self.authority.certify("kube-apiserver", "serverAuth", "DNS:localhost,IP:127.0.0.1")
        self.context = ssl.create_default_context(cafile=str(self.authority.certificate))
        self.admin = os.urandom(16).hex()
        tokens = folder / "tokens"
        tokens.touch(0o600)
        tokens.write_text(f"{self.admin},admin,1,system:masters\n")
        self.etcd_port, self.process = free_port(), None
        self.keys = 0
        self.use_a_new_key()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def use_a_new_key(self) -> None:
        """From its next start on it signs with this key, and knows no other."""
        self.keys += 1
        self.key, self.public = (self.folder / f"accounts-{self.keys}.{end}" for end in ("key", "pub"))
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key)
        openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)

    async def start(self) -> None:
        etcd = shutil.which("etcd")
        if not etcd:
            raise SystemExit("needs etcd (Debian: apt-get install etcd-server)")
        clients, peers = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, free_port()))
        words = ["--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers]
        words += ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
        Process(self.folder / "etcd.log", etcd, "--data-dir", self.folder / "etcd", *words)
        await self.start_server()

    async def start_server(self) -> None:
        """Returns once it is ready. One that runs already ends before."""
        if self.process:
            self.process.end()
        options = {
            "etcd-servers": f"http://127.0.0.1:{self.etcd_port}",
            "bind-address": "127.0.0.1",
            "secure-port": self.port,
            "endpoint-reconciler-type": "none",
            "tls-cert-file": self.certified.certificate,
            "tls-private-key-file": self.certified.key,
            "token-auth-file": self.folder / "tokens",
            "authorization-mode": "RBAC",
            "service-cluster-ip-range": "10.96.0.0/16",
            "service-account-issuer": ISSUER,
            "service-account-key-file": self.public,
            "service-account-signing-key-file": self.key,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        process = self.process = Process(self.folder / "kube-apiserver.log", self.parts / "kube-apiserver", *words)

        async def is_ready() -> bool:
            process.check()
            try:
                return await asyncio.to_thread(self.ask, "GET", "/readyz") == "ok"
            except OSError:
                return False

        await patience.until("the API server is ready", is_ready)

    def ask(self, method: str, path: str, body: Any = None, is_known: bool = True) -> Any:
        headers = {"Content-Type": "application/json"}
        if is_known:
            headers["Authorization"] = f"Bearer {self.admin}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=patience.most_s(), context=self.context) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith("{") else text

    def add_account(self, namespace: str, name: str) -> None:
        try:
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
        self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})

    def token(self, namespace: str, name: str, audience: str = "everlog") -> str:
        """As the kubelet asks for the one that it puts into a pod; ten minutes is the shortest life."""
        spec = {"audiences": [audience], "expirationSeconds": 600}
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        told = self.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", asked)
        return told["status"]["token"]

    def let_everybody_read_the_keys(self) -> None:
        self.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", DISCOVERY_BINDING)

    def aged(self, token: str, by_s: int) -> str:
        """The token as it would have been made so long ago: signed with the server's own key. Nobody has to wait ten minutes."""
        header, claims, _ = token.split(".")
        told = json.loads(decoded(claims))
        for name in ("iat", "nbf", "exp"):
            told[name] -= by_s
        message = f"{header}.{encoded(json.dumps(told).encode())}"
        command = ["openssl", "dgst", "-sha256", "-sign", self.key]
        signature = subprocess.run(command, input=message.encode(), capture_output=True, check=True).stdout
        return f"{message}.{encoded(signature)}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
