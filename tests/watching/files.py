"""What the files say by themselves: alerts, dashboards, the runbook, and the page of metrics."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
ALERTS = REPOSITORY / "helm/everlog/files/alerts.yaml"
DASHBOARDS = sorted((REPOSITORY / "helm/everlog/files/dashboards").glob("*.json"))
ALERT_TESTS = sorted(HERE.glob("*.test.yaml"))
RUNBOOK = "docs/runbook.md"
METRICS = REPOSITORY / "docs/metrics.md"

# What follows a name in a query where that is a function or an operator with labels behind it.
LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
SUFFIXES = ("_bucket", "_sum", "_count")
# What Grafana fills in.
VARIABLE = re.compile(r"\$\{?\w+\}?")


def metrics_named(query: str) -> set[str]:
    """The metrics of a query of Prometheus."""
    query = VARIABLE.sub("1m", query)
    query = re.sub(r'"(?:[^"\\]|\\.)*"', "", query)
    query = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", LABELS.sub("", query))
    # A name before a parenthesis is a function or an aggregation; `by (...)` may have stood between.
    query = re.sub(r"[a-zA-Z_]\w*\s*(?=\()", "", query)
    return {word for word in re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*", query) if word.lower() not in WORDS}


def metrics_documented() -> dict[str, str]:
    """Each metric of docs/metrics.md, and its kind where the page says it."""
    rows = re.findall(r"^\| `(\w+)` \|(?: (counter|gauge|histogram) \|)?", METRICS.read_text(), re.MULTILINE)
    return dict(rows)


def unknown(names: set[str]) -> set[str]:
    """Those that are in no row of docs/metrics.md."""
    documented = metrics_documented()
    bases = {name + suffix for name, kind in documented.items() if kind == "histogram" for suffix in SUFFIXES}
    return names - documented.keys() - bases


def panels(board: dict) -> Iterator[dict]:
    """The panels with queries."""
    for panel in board["panels"]:
        yield from panels(panel) if panel["type"] == "row" else [panel]


def queries(board: dict) -> Iterator[tuple[str, str]]:
    """Each query of a dashboard, with the title of its panel."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def anchors() -> set[str]:
    """The headings of the runbook, as links name them."""
    headings = re.findall(r"^## (.+)$", (REPOSITORY / RUNBOOK).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def named(part: object, key: str) -> Iterator[object]:
    """Every value under this key, however deep."""
    if isinstance(part, dict):
        yield from (value for name, value in part.items() if name == key)
        for value in part.values():
            yield from named(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from named(value, key)


def boards() -> list[tuple[str, dict]]:
    return [(path.name, json.loads(path.read_text())) for path in DASHBOARDS]


def of_dashboards() -> Iterator[str]:
    """What is wrong with them."""
    for name, board in boards():
        if any(isinstance(value, int) for value in named(board["panels"], "id")) or "id" in board or "uid" in board:
            yield f"{name} has ids, which belong to one Grafana"
        sources = [source for source in named(board, "datasource") if source != {"type": "prometheus", "uid": "${datasource}"}]
        if sources:
            yield f"{name} names a data source: {sources[0]}"
        if not any(variable["type"] == "datasource" for variable in board["templating"]["list"]):
            yield f"{name} has no variable for its data source"
        for title, query in queries(board):
            if missing := unknown(metrics_named(query)):
                yield f"{name}, {title}: {missing} is not in docs/metrics.md"


def of_alerts(rules: list[dict]) -> Iterator[str]:
    """What is wrong with the rules, as Prometheus has read them."""
    headings = anchors()
    cases = {case for tests in ALERT_TESTS for case in re.findall(r"^  - name: (\w+)", tests.read_text(), re.MULTILINE)}
    for rule in rules:
        name = rule["name"]
        if rule["type"] != "alerting" or not rule["duration"] or not rule["annotations"].get("summary"):
            yield f"{name} is no alert with `for` and a summary"
        if rule["labels"].get("severity") not in ("critical", "warning", "info"):
            yield f"{name} has no severity"
        if rule["annotations"].get("runbook_url") != f"{RUNBOOK}#{name.lower()}":
            yield f"{name} does not name its entry of the runbook"
        if name.lower() not in headings:
            yield f"{name} has no entry in {RUNBOOK}"
        if name not in cases:
            yield f"{name} has no case in {ALERT_TESTS[0].name}"
        if missing := unknown(metrics_named(rule["query"])):
            yield f"{name}: {missing} is not in docs/metrics.md"
    alerts = {rule["name"] for rule in rules}
    yield from (f"{case} is the case of no alert" for case in sorted(cases - alerts))
    yield from (f"{RUNBOOK}#{heading} is the entry of no alert" for heading in sorted(headings - {name.lower() for name in alerts}))
