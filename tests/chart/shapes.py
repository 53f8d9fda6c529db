"""Values under which the chart is looked at: the examples, and shapes that no example has."""

from pathlib import Path
from typing import Any

from chart import EXAMPLES

# The least that each of the two modes takes.
KAFKA: dict[str, Any] = {"config": {"kafka": {"bootstrap_servers": "broker:9092"}}}
EMBEDDED: dict[str, Any] = {"mode": "embedded", "replicas": 1}


def secret(name: str) -> dict[str, Any]:
    return {"name": name}


def manager(issuer: str) -> dict[str, Any]:
    return {"enabled": True, "issuerRef": {"name": issuer, "kind": "Issuer"}, "extraDnsNames": ["more.example.org"]}


# Each value that renders something is set.
EVERYTHING: dict[str, Any] = {
    "replicas": 16,
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "listenAddress": "[::]",
    "config": {
        "kafka": {"bootstrap_servers": "a:9093, b:9094,c:9093", "properties": ["security.protocol=SASL_SSL"]},
        "memory": {"database_bytes": 536870912},
        "cluster": {"replicas": 1},
        "tls": {"client_certificates": "required"},
        "auth": {
            "enabled": True,
            "issuers": ["https://id.example.org/?a&b<c>"],
            "jwks": ["https://id.example.org/keys"],
        },
    },
    "kafka": {
        "propertiesSecret": secret("nodes-properties"),
        "caSecret": secret("brokers-ca"),
        "certificateSecret": secret("nodes-certificate"),
    },
    "nodeSecret": secret("nodes"),
    "tokens": {"secret": secret("tokens")},
    "auth": {
        "apiKeysSecret": secret("api-keys"),
        "rulesSecret": secret("rules"),
        "jwksCa": {"configMapName": "kube-root-ca.crt"},
    },
    "tls": {
        "gateway": {"enabled": True, "clientCaSecret": secret("clients-ca"), "certManager": manager("public")},
        "nodes": {"enabled": True, "certManager": manager("nodes")},
    },
    "topics": {
        "sasl": {"username": "admin", "passwordSecret": secret("admin")},
        "annotations": {"topics": "job"},
        "podAnnotations": {"topics": "pod"},
    },
    "exports": {
        "enabled": True,
        "claimName": "backup",
        "timeZone": "Europe/Zurich",
        "annotations": {"exports": "job"},
        "podAnnotations": {"exports": "pod"},
    },
    "persistence": {"storageClass": "fast", "annotations": {"claim": "yes"}},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": "rack",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ],
    "priorityClassName": "high",
    "runtimeClassName": "gvisor",
    "schedulerName": "other",
    "serviceAccount": {"annotations": {"account": "yes"}},
    "service": {
        "type": "LoadBalancer",
        "nodePort": 30000,
        "spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
        "annotations": {"balancer": "yes"},
        "labels": {"balancer": "yes"},
    },
    "http": {"enabled": True, "annotations": {"http": "yes"}, "labels": {"http": "yes"}},
    "networkPolicy": {
        "enabled": True,
        "clients": [{"podSelector": {"matchLabels": {"client": "yes"}}}],
        "monitoring": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        "kafka": [{"ipBlock": {"cidr": "10.1.0.0/16"}}],
        "kafkaPorts": [9095],
        "extraEgress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
        "extraIngress": [{"ports": [{"protocol": "TCP", "port": 7233}]}],
    },
    "metrics": {"annotations": {"metrics": "yes"}, "labels": {"metrics": "yes"}},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "relabelings": [{"sourceLabels": ["a"], "targetLabel": "b"}],
        "metricRelabelings": [{"sourceLabels": ["a"], "action": "drop", "regex": "c"}],
    },
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True, "annotations": {"folder": "Everlog"}},
    "commonLabels": {"team": "flows"},
    "commonAnnotations": {"owner": "flows"},
    "annotations": {"set": "yes"},
    "podLabels": {"mesh": "yes"},
    "podAnnotations": {"mesh": "yes"},
    "extraEnv": [{"name": "EVERLOG_LOG", "value": "debug"}],
    "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
    "extraInitContainers": [{"name": "before", "image": "busybox:1"}],
    "extraContainers": [{"name": "beside", "image": "busybox:1"}],
    "extraObjects": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "{{ .Release.Name }}-more", "namespace": "{{ .Release.Namespace }}"},
        },
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text, namespace: "{{ .Release.Namespace }}"}',
    ],
}

SHAPES: dict[str, list[dict[str, Any] | Path]] = {
    "kafka": [KAFKA],
    "embedded": [EMBEDDED],
    "example embedded": [EXAMPLES / "embedded.yaml"],
    "example kafka-sasl-tls": [EXAMPLES / "kafka-sasl-tls.yaml"],
    "example production": [EXAMPLES / "production.yaml"],
    "example strimzi": [EXAMPLES / "strimzi/values.yaml"],
    "everything": [EVERYTHING],
    "ordinary Job": [KAFKA, {"topics": {"hook": False}}],
    "topics are there": [KAFKA, {"topics": {"create": False}}],
    "stopped": [KAFKA, {"replicas": 0}],
    "no claims": [
        KAFKA,
        {"persistence": {"enabled": False, "emptyDirSizeLimit": "1Gi"}, "config": {"cluster": {"replicas": 1}}},
    ],
    "exports": [KAFKA, {"exports": {"enabled": True, "claimName": "backup"}}],
    "embedded with exports": [EMBEDDED, {"exports": {"enabled": True, "claimName": "backup"}}],
    "embedded with TLS and HTTP": [
        EMBEDDED,
        {"http": {"enabled": True}, "tls": {"gateway": {"enabled": True, "secretName": "of-the-gateway"}}},
    ],
}
