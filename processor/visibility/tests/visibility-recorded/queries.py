"""The queries that record.py asks: the tables lists.txt and counts.txt, every operator of every type, and combinations.
All of it follows from the runs alone, so that two recordings differ in ids, times and lengths only."""

import random
from pathlib import Path


def lines(name: str) -> list:
    """The lines of a table, without its headings. Blanks of a line are kept."""
    table = (Path(__file__).parent / name).read_text()
    return [line for line in table.split("\n") if line and not line.startswith("-- ")]


def of_types() -> list:
    """Every operator of every type, with values of every kind."""
    values = ["'red'", "'1'", "1", "-7", "1.5", "true", "'2026-01-02T03:04:05.1Z'", "NULL", "x"]
    operators = ["=", "!=", "<", "<=", ">", ">=", "STARTS_WITH", "NOT STARTS_WITH"]
    attributes = ["MyKeyword", "MyList", "MyText", "MyInt", "MyDouble", "MyBool", "MyTime", "ExecutionStatus"]
    tests = [f"{attribute} {operator} {value}" for attribute in attributes for operator in operators for value in values]
    tests += [f"{attribute} IN ({value}, {value})" for attribute in attributes for value in values]
    return tests + [f"{attribute} NOT BETWEEN {value} AND {value}" for attribute in attributes for value in values]


def of_moments(runs: list) -> list:
    """Bounds at the very moments of runs."""
    tests = []
    for name in ("StartTime", "ExecutionTime", "CloseTime"):
        moment = next(run[name] for run in runs if name in run and "MyInt" in run)
        # A real server compares CloseTime of open runs with the year 9999.
        operators = ["=", "<", "<="] + ([] if name == "CloseTime" else ["!=", ">", ">="])
        tests += [f"{name} {operator} '{moment}'" for operator in operators]
    closed = next(run for run in runs if "CloseTime" in run)
    tests += [f"{name} = {closed[name]}" for name in ("ExecutionDuration", "HistoryLength", "HistorySizeBytes")]
    tests += [f"RunId = '{closed['RunId']}'", f"RootRunId = '{closed['RunId']}'"]
    return tests


def combined() -> list:
    """Random trees over tests of which each is valid."""
    chance = random.Random(42)
    tests = ["MyInt = 1", "MyInt > 0", "MyInt != 5", "MyKeyword = 'red'", "MyKeyword STARTS_WITH 'g'", "MyKeyword IS NULL"]
    tests += ["MyList = 'red'", "MyList != 'red'", "MyText = 'fox'", "MyText != 'fox'", "MyBool = true", "MyDouble < 2"]
    tests += ["ExecutionStatus = 'Running'", "WorkflowType = 'Order'", "CloseTime IS NULL", "HistoryLength > 0"]
    tests += ["MyKeyword NOT IN ('red', '5')", "MyInt BETWEEN 0 AND 5", "MyInt NOT BETWEEN 0 AND 5", "BuildIds IS NOT NULL"]

    def tree(depth: int) -> str:
        kind = chance.randrange(5)
        if depth == 0 or kind == 0:
            return chance.choice(tests)
        if kind == 1:
            return f"NOT ({tree(depth - 1)})"
        one, other = tree(depth - 1), tree(depth - 1)
        joint = chance.choice(["AND", "OR"])
        return f"({one}) {joint} ({other})" if kind == 2 else f"{one} {joint} {other}"

    return [tree(chance.randrange(1, 5)) for _ in range(150)]


def deep() -> list:
    """Depths at the bound."""
    def brackets(depth: int) -> str:
        return "(" * depth + "MyInt = 1" + ")" * depth

    calls = "MyInt = " + "f(" * 201 + ")" * 201
    return [brackets(198), brackets(199), brackets(200), brackets(201), "NOT " * 300 + "MyInt = 1", calls]


def queries(runs: list) -> list:
    """Pairs of the call and its query."""
    lists = ["", " "] + lines("lists.txt") + of_types() + of_moments(runs) + combined() + deep()
    counts = lines("counts.txt")
    return [("list", query) for query in lists] + [("count", query) for query in counts]
