"""How Everlog is started for tests, as a user starts it; see Server for what is filled in."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
EVERLOG = (
    f"'{REPOSITORY}/everlog' dev --address {{address}} --data-dir {{data}} --metrics-address {{metrics}}"
    " --http-address 127.0.0.1:0"
)
# On brokers that are there, under topic names of each server's own.
EVERLOG_ON_KAFKA = f"env EVERLOG_KAFKA__PREFIX=sdk-{{port}}. {EVERLOG} --kafka-bootstrap "
# Nodes of these names, on the topics of the first.
NODES = ["client-side", "worker-side"]
EVERLOG_NODE = "env EVERLOG_SERVER__NAME={name} EVERLOG_KAFKA__PREFIX=sdk-nodes. " + EVERLOG + " --kafka-bootstrap "
