"""ServiceMonitor, alerts and dashboards, each behind a switch."""

import json

import yaml
from chart import CHART, case, render
from rendering import rendered
from shapes import KAFKA

ALERTS = CHART / "files/alerts.yaml"
DASHBOARDS = sorted((CHART / "files/dashboards").glob("*.json"))
FOREIGN = {"ServiceMonitor", "PrometheusRule", "Certificate"}


@case
def no_foreign_kind_is_rendered_unasked() -> None:
    for shape in ("kafka", "embedded", "example embedded", "example kafka-sasl-tls", "example strimzi"):
        assert not FOREIGN & {each["kind"] for each in rendered(shape).all}, shape


@case
def prometheus_finds_the_metrics_of_all_nodes() -> None:
    objects = rendered("everything")
    monitor = objects.one("ServiceMonitor")
    found = [
        each
        for each in objects.of("Service")
        if monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
    ]
    assert [each["metadata"]["name"] for each in found] == ["prod-everlog-metrics"], "and each node once"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == found[0]["spec"]["ports"][0]["name"] and endpoint["path"] == "/metrics"
    assert (
        monitor["spec"]["namespaceSelector"] == {"matchNames": ["flows"]}
        and monitor["metadata"]["labels"]["release"] == "prometheus"
    )


@case
def rules_are_those_of_the_file() -> None:
    on = {"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}}
    rule = render(KAFKA, on).one("PrometheusRule")
    assert rule["spec"] == yaml.safe_load(ALERTS.read_text()) and rule["spec"]["groups"]
    assert rule["metadata"]["labels"]["release"] == "prometheus"


@case
def dashboards_are_those_of_the_files() -> None:
    objects = rendered("everything")
    found = {
        key: text
        for each in objects.of("ConfigMap")
        for key, text in (each.get("data") or {}).items()
        if key.endswith(".json")
    }
    assert DASHBOARDS and found.keys() == {path.name for path in DASHBOARDS}
    for path in DASHBOARDS:
        assert json.loads(found[path.name]) == json.loads(path.read_text()), path
    for each in objects.of("ConfigMap"):
        if any(key.endswith(".json") for key in each.get("data") or {}):
            assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
