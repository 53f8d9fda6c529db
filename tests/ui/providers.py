"""Identity providers that the Web UI logs people in at: oauth2-mock-server, and Keycloak."""

import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

import patience
from cleanup import LEFT
from server import free_port
from web_ui import serves

AUTH = Path(__file__).resolve().parents[1] / "auth"
CLIENT = "web-ui"
SECRET = "secret-of-web-ui"
# As keycloak-realm.json has them.
PEOPLE = {"ann": ["shop:read"], "bob": ["shop:write"]}


@dataclass
class Provider:
    kind: str
    issuer: str
    jwks: str
    # What the other one does not put into its tokens.
    audience: str | None

    def token(self, client: str, secret: str) -> str:
        """Of a program that logs in by itself; a Keycloak has such."""
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
        endpoint = f"{self.issuer}/protocol/openid-connect/token"
        with urllib.request.urlopen(endpoint, urllib.parse.urlencode(form).encode(), patience.most_s()) as answer:
            return json.load(answer)["access_token"]


def mock_server() -> Provider:
    """It logs in whoever comes; the browser's cookie says who that is."""
    # The Web UI takes no other algorithm.
    process = subprocess.Popen([AUTH / "run", "RS256"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    LEFT.append(process.kill)
    LEFT.append(process.stdin.close)
    told = json.loads(process.stdout.readline())
    base = told["issuer"]
    return Provider("mock", base, f"{base}/jwks", None)


async def keycloak(folder: Path) -> Provider:
    answer = subprocess.run([AUTH / "keycloak"], stdout=subprocess.PIPE, text=True, check=True)
    with zipfile.ZipFile(answer.stdout.strip()) as archive:
        archive.extractall(folder / "keycloak")
    home = next((folder / "keycloak").iterdir())
    (home / "data" / "import").mkdir(parents=True)
    shutil.copy(AUTH / "keycloak-realm.json", home / "data" / "import" / "shop.json")
    port, log = free_port(), folder / "keycloak.log"
    options = ["--db=dev-mem", "--http-host=127.0.0.1", f"--http-port={port}", "--http-management-port=0", "--import-realm"]
    command = ["bash", home / "bin" / "kc.sh", "start-dev", *options]
    with open(log, "wb") as output:
        # The script may keep its Java process as a child: both are of one group, which is ended.
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"JAVA_OPTS_KC_HEAP": "-Xms128m -Xmx512m"},
        )
    LEFT.append(lambda: process.poll() is None and os.killpg(process.pid, 9))
    issuer = f"http://127.0.0.1:{port}/realms/shop"

    await serves("Keycloak", process, log, f"{issuer}/.well-known/openid-configuration")
    return Provider("keycloak", issuer, f"{issuer}/protocol/openid-connect/certs", "everlog")
