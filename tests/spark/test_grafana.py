"""The dashboard for Grafana and the alert rules ask for metrics and labels that exist."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.spark.metrics import METRIC_SCHEMA, metric_schema
from shedjoin.spark.prometheus import QueryCollector

FOLDER = Path(__file__).parents[2] / "grafana"
METRIC = re.compile(r"\b(shedjoin_\w+)(?:\{([^}]*)\})?")
#: Labels that Prometheus itself adds.
ADDED = {"job", "instance"}


def exposed() -> dict[str, set[str]]:
    """The samples of a query that has everything, with their labels."""
    schema = metric_schema(("left", "right"), selective=True, front=True, unmatched=True)
    row: dict[str, Any] = dict.fromkeys(schema.names, 0) | dict.fromkeys(LIVE_COLUMNS, 0.0)
    row |= {"at": datetime.now(UTC), "ranking_left": [0], "ranking_right": [0], "fraction": 0.5}
    collector = QueryCollector(query="q", budget={"tuples": 1, "bytes": 1})
    collector.add([row])
    return {sample.name: set(sample.labels) for family in collector.collect() for sample in family.samples}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "shedjoin.json").read_text())["panels"]
    return found


def expressions() -> list[str]:
    asked = [target["expr"] for panel in panels() for target in panel["targets"]]
    rules = (FOLDER / "alerts.yml").read_text()
    alerts = re.findall(r"expr: (?:>-\n)?((?:.(?!\n {8}\w))+.)", rules, re.DOTALL)
    assert len(alerts) == rules.count("- alert: ") > 0
    return asked + alerts


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_asks_for_what_exists(expression: str) -> None:
    known, found = exposed(), METRIC.findall(expression)
    assert found
    for name, filters in found:
        assert name in known, name
        assert set(re.findall(r"(\w+)\s*(?:=~|!=|=)", filters)) <= known[name] | ADDED, name
    for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
        assert {label.strip() for label in group.split(",")} <= ADDED.union(*(known[name] for name, _ in found))
    assert expression.count("(") == expression.count(")")


def test_legends_and_messages_name_labels_that_exist() -> None:
    known = exposed()
    for panel in panels():
        for target in panel["targets"]:
            labels = set().union(*(known[name] for name, _ in METRIC.findall(target["expr"])))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels
    assert set(re.findall(r"\$labels\.(\w+)", (FOLDER / "alerts.yml").read_text())) == {"query"}


def test_panels_do_not_lie_on_each_other() -> None:
    places = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels()
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24


def test_rows_without_a_partner_are_counted() -> None:
    assert "certain" not in METRIC_SCHEMA.names
    assert exposed()["shedjoin_certain_total"] == {"query", "shard"}
    assert exposed()["shedjoin_sure_recall"] == {"query"}
