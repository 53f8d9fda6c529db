"""Values by name, and the rows of tables that are made of them."""

import math


class Figures:
    def __init__(self):
        self.found = {}

    def note(self, name, value):
        self.found.setdefault(name, []).append(value)

    def row(self, title, name, digits=1):
        """Lowest, median and highest."""
        values = sorted(self.found.get(name, []))
        if values:
            spread = ", ".join(f"{value:,.{digits}f}" for value in (values[0], values[len(values) // 2], values[-1]))
            print(f"| {title} | {spread} |", flush=True)

    def quantiles(self, title, name):
        """Of so many values the one that so large a share of them does not exceed."""
        values = sorted(self.found.get(name, []))
        if values:
            told = ", ".join(f"{values[math.ceil(share * len(values)) - 1]:,.0f}" for share in (0.5, 0.99, 1))
            print(f"| {title} ({len(values)} times) | {told} |", flush=True)


def head(title, columns):
    print(f"\n| {title} | {columns} |\n|---|---|", flush=True)
