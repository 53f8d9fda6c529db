"""Services, certificates and network policies."""

from fnmatch import fnmatchcase
from typing import Any

from chart import case, render
from rendering import rendered
from shapes import EVERYTHING, KAFKA, SHAPES


@case
def services_lead_to_nodes_alone() -> None:
    for shape in SHAPES:
        objects = rendered(shape)
        ports = {each["name"]: each["containerPort"] for each in objects.node["ports"]}
        for service in objects.of("Service"):
            selector = service["spec"]["selector"].items()
            for owner, metadata, _ in objects.pods():
                assert (selector <= metadata["labels"].items()) == ("StatefulSet" in owner), (
                    shape,
                    service["metadata"]["name"],
                    owner,
                )
            for port in service["spec"]["ports"]:
                assert port["targetPort"] in {*ports, 7235}, (shape, port)


@case
def nodes_find_each_other_before_they_are_ready() -> None:
    objects = rendered("kafka")
    nodes = objects.one("Service", "prod-everlog-nodes")["spec"]
    assert nodes["clusterIP"] == "None" and nodes["publishNotReadyAddresses"] is True
    assert [each["port"] for each in nodes["ports"]] == [7235] and objects.nodes["spec"][
        "serviceName"
    ] == "prod-everlog-nodes"
    gateway = objects.one("Service", "prod-everlog")["spec"]
    assert "publishNotReadyAddresses" not in gateway, "calls go to nodes that are ready"
    assert [each["port"] for each in gateway["ports"]] == [7233]
    metrics = objects.one("Service", "prod-everlog-metrics")["spec"]
    assert metrics["publishNotReadyAddresses"] is True, "a node that is not ready is looked at too"


@case
def services_are_as_asked() -> None:
    gateway = rendered("everything").one("Service", "prod-everlog")
    assert gateway["spec"]["type"] == "LoadBalancer" and gateway["spec"]["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert gateway["spec"]["ports"][0]["nodePort"] == 30000
    assert (
        gateway["metadata"]["annotations"]["balancer"] == "yes" and gateway["metadata"]["labels"]["balancer"] == "yes"
    )
    assert rendered("kafka").one("Service", "prod-everlog")["spec"]["ports"][0]["appProtocol"] == "kubernetes.io/h2c"
    assert "appProtocol" not in gateway["spec"]["ports"][0], "with TLS it is not HTTP/2 in plain text"


@case
def the_http_server_is_reached_only_where_asked() -> None:
    for shape in SHAPES:
        objects = rendered(shape)
        asked = "prod-everlog-http" in objects.names("Service")
        assert (
            asked == ("http" in [each["name"] for each in objects.node["ports"]]) == ("7234" in objects.settings())
        ), shape
    assert "prod-everlog-http" not in rendered("kafka").names("Service")


@case
def certificates_have_the_names_that_are_called() -> None:
    objects = rendered("everything")
    gateway, nodes = (objects.one("Certificate", f"prod-everlog-{part}")["spec"] for part in ("gateway", "nodes"))
    for name in (
        "prod-everlog",
        "prod-everlog.flows",
        "prod-everlog.flows.svc",
        "prod-everlog.flows.svc.cluster.local",
    ):
        assert name in gateway["dnsNames"], name
    assert "prod-everlog-http.flows.svc" in gateway["dnsNames"]
    variables = {each["name"]: each.get("value", "") for each in objects.node["env"]}
    host = (
        variables["EVERLOG_CLUSTER__ADVERTISED"]
        .replace("$(EVERLOG_SERVER__NAME)", "prod-everlog-0")
        .removesuffix(":7235")
    )
    assert any(fnmatchcase(host, name) for name in nodes["dnsNames"]), (host, nodes["dnsNames"])
    assert gateway["usages"] == ["server auth"] and nodes["usages"] == ["server auth", "client auth"]
    for each in (gateway, nodes):
        assert each["privateKey"]["rotationPolicy"] == "Always" and "more.example.org" in each["dnsNames"]
    mounted = {each["secret"]["name"] for each in _sources(objects) if "secret" in each}
    assert {gateway["secretName"], nodes["secretName"]} <= mounted
    own = render(KAFKA, {"tls": {"gateway": {"enabled": True, "secretName": "mine"}}})
    assert not own.of("Certificate") and "mine" in {
        each["secret"]["name"] for each in _sources(own) if "secret" in each
    }


def _sources(objects: Any) -> list[dict[str, Any]]:
    (settings,) = [each for each in objects.nodes["spec"]["template"]["spec"]["volumes"] if each["name"] == "settings"]
    return settings["projected"]["sources"]


@case
def a_policy_opens_each_port_to_those_that_need_it() -> None:
    assert not rendered("kafka").of("NetworkPolicy"), "off by default"
    objects = rendered("everything")
    policy = objects.one("NetworkPolicy", "prod-everlog")["spec"]
    values = EVERYTHING["networkPolicy"]
    peers = {}
    for rule in policy["ingress"][:3]:
        for port in rule["ports"]:
            peers[port["port"]] = rule["from"]
    own = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "everlog", "app.kubernetes.io/instance": "prod"}}}
    assert peers == {7233: values["clients"], 7234: values["clients"], 7235: [own], 9233: values["monitoring"]}
    assert policy["ingress"][3:] == values["extraIngress"]
    egress = objects.one("NetworkPolicy", "prod-everlog-egress")["spec"]
    for owner, metadata, _ in objects.pods():
        assert egress["podSelector"]["matchLabels"].items() <= metadata["labels"].items(), owner
        is_node = policy["podSelector"]["matchLabels"].items() <= metadata["labels"].items()
        assert is_node == ("StatefulSet" in owner), owner
    dns, nodes, kafka, *more = egress["egress"]
    assert {each["port"] for each in dns["ports"]} == {53} and {each["protocol"] for each in dns["ports"]} == {
        "UDP",
        "TCP",
    }
    assert nodes == {"to": [own], "ports": [{"protocol": "TCP", "port": 7235}]}
    assert kafka["to"] == values["kafka"] and [each["port"] for each in kafka["ports"]] == [9093, 9094, 9095]
    assert more == values["extraEgress"]


@case
def a_policy_without_peers_lets_nobody_in() -> None:
    for policy in render(KAFKA, {"networkPolicy": {"enabled": True}}).of("NetworkPolicy"):
        for rule in policy["spec"].get("ingress", []):
            assert rule["from"], "a rule without peers is for all"
            assert [each["port"] for each in rule["ports"]] == [7235]
