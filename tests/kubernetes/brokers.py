"""A Kafka broker at the cluster's machine: SASL over TLS with ACLs for nodes, plain for the operator."""

import os
import re
import subprocess

from cluster import HERE, Certificates, Cluster, run

KAFKA = HERE.parent / "kafka/run"
PAGE = HERE.parents[1] / "docs/operating-kafka.md"
PREFIX = "everlog."
OPEN, SECURE = 19092, 19094


class Broker:
    def __init__(self, cluster: Cluster, authority: Certificates) -> None:
        self.cluster, self.address = cluster, cluster.address
        self.secure, self.open = f"{self.address}:{SECURE}", f"{self.address}:{OPEN}"
        pem, key = authority.sign("broker", [self.address])
        keys = authority.folder / "broker-keys.pem"
        keys.write_text(key.read_text() + pem.read_text())
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        properties = [
            f"listeners=PLAINTEXT://{self.open},CONTROLLER://{self.address}:{OPEN + 1},SECURE://{self.secure}",
            f"advertised.listeners=PLAINTEXT://{self.open},SECURE://{self.secure}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL",
            "sasl.enabled.mechanisms=SCRAM-SHA-512",
            f"listener.name.secure.scram-sha-512.sasl.jaas.config={login}",
            f"ssl.keystore.location={keys}",
            "ssl.keystore.type=PEM",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS",
        ]
        # Nobody answers DNS there, and the JVM looks for the name of the address at each login.
        hosts = authority.folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{self.address} broker\n")
        options = [word for each in properties for word in ("--property", each)]
        self.process = subprocess.Popen(
            [
                KAFKA,
                "broker",
                "--dir",
                authority.folder / "kafka",
                "--hosts",
                self.address,
                "--spaces",
                cluster.network,
                "--port",
                str(OPEN),
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={hosts}"},
        )

    def await_ready(self) -> None:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.startswith("ready "), f"the broker said {line!r}"

    def operate(self, tool: str, *words: str) -> str:
        return run(KAFKA, "tool", tool, "--bootstrap-server", self.open, *words)

    def user(self, name: str, password: str) -> None:
        self.operate(
            "kafka.admin.ConfigCommand",
            "--alter",
            "--add-config",
            f"SCRAM-SHA-512=[password={password}]",
            "--entity-type",
            "users",
            "--entity-name",
            name,
        )

    def forget(self, name: str) -> None:
        self.operate(
            "kafka.admin.ConfigCommand",
            "--alter",
            "--delete-config",
            "SCRAM-SHA-512",
            "--entity-type",
            "users",
            "--entity-name",
            name,
        )

    def grant(self, nodes: list[str], job: str) -> None:
        """The ACLs of the page, in as few runs of the tool as there are patterns."""
        principals = [word for name in nodes for word in ("--allow-principal", f"User:{name}")]
        for words in re.findall(
            r"(?m)^kafka-acls\.sh --bootstrap-server \S+ --add --allow-principal User:everlog (.*)$", PAGE.read_text()
        ):
            self.operate("kafka.admin.AclCommand", "--add", *principals, *words.split())
        rights = ("--operation", "Create", "--operation", "Describe", "--operation", "DescribeConfigs")
        self.operate(
            "kafka.admin.AclCommand",
            "--add",
            "--allow-principal",
            f"User:{job}",
            "--resource-pattern-type",
            "prefixed",
            "--topic",
            PREFIX,
            *rights,
        )
        self.operate(
            "kafka.admin.AclCommand",
            "--add",
            "--allow-principal",
            f"User:{job}",
            "--topic",
            f"{PREFIX}control",
            "--operation",
            "Read",
            "--operation",
            "Write",
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
