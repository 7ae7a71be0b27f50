"""Alerts and dashboard of the chart, read by a parser of PromQL: what they ask for exists."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from promql_parser import AggregateExpr, BinaryExpr, Call, Expr, NumberLiteral, VectorSelector
from tools.site import metrics

from isvc.toolkit.metrics import Metrics

INSTALL = Path(__file__).parents[3] / "docs" / "install.md"
OF_TARGETS = {"namespace", "pod"}  # labels that Prometheus adds
LABELS = {
    series: {*family.labels, "le"} | OF_TARGETS for family in metrics.manager_families() for series in family.series
}


def queries() -> Iterator[str]:
    yield from (rule["expr"] for rule in metrics.alert_rules())
    [config_map] = [each for each in metrics.monitoring() if each["metadata"]["name"].endswith("-dashboard")]
    for panel in json.loads(config_map["data"]["isvc.json"])["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def parts(query: str) -> list[Expr]:
    """The query and all expressions in it; raises ValueError for one that Prometheus would refuse."""
    found: list[Expr] = []
    promql_parser.walk(promql_parser.parse(query), found.append)
    return found


def selectors(query: str) -> list[VectorSelector]:
    return [part for part in parts(query) if isinstance(part, VectorSelector)]


def test_there_is_something_to_look_at() -> None:
    assert len(list(queries())) > 10
    with pytest.raises(ValueError, match="expected type matrix"):
        parts("rate(workqueue_depth)")


@pytest.mark.parametrize("query", list(queries()))
def test_queries_ask_for_metrics_and_labels_that_exist(query: str) -> None:
    asked = selectors(query)
    assert {each.name for each in asked} <= LABELS.keys()
    for selector in asked:
        assert {matcher.name for matcher in selector.matchers.matchers} <= LABELS[selector.name or ""]
    groups = [part.modifier.labels for part in parts(query) if isinstance(part, AggregateExpr) and part.modifier]
    assert all(set(labels) <= LABELS[asked[0].name or ""] for labels in groups)


@pytest.mark.parametrize("query", list(queries()))
def test_queries_look_at_one_installation(query: str) -> None:
    for selector in selectors(query):
        assert ("namespace", "kserve") in {(each.name, each.value) for each in selector.matchers.matchers}


@pytest.mark.parametrize("rule", metrics.alert_rules(), ids=lambda rule: rule["alert"])
def test_alerts_name_labels_that_they_have(rule: dict[str, Any]) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    assert named <= LABELS[selectors(rule["expr"])[0].name or ""]


def value(part: Expr, manager: Metrics, now: float) -> float:
    """What a query without ranges comes to when there is one manager."""
    match part:
        case NumberLiteral():
            return part.val
        case Call() if part.func.name == "time":
            return now
        case AggregateExpr():
            return value(part.expr, manager, now)
        case VectorSelector():
            sample = manager.registry.get_sample_value(part.name or "")
            assert sample is not None, part.name
            return sample
        case BinaryExpr():
            operators = {"-": operator.sub, "*": operator.mul, "<": operator.lt}
            return operators[str(part.op)](value(part.lhs, manager, now), value(part.rhs, manager, now))
    raise AssertionError(f"not evaluated here: {part}")


@pytest.mark.parametrize(("days", "fires"), [(8, False), (6, True), (-1, True)])
def test_the_alert_on_certificates_fires_in_their_last_week(days: int, fires: bool) -> None:
    [rule] = [rule for rule in metrics.alert_rules() if rule["alert"] == "IsvcCertificateExpires"]
    manager, now = Metrics(), 1_800_000_000.0
    manager.certificate_expires.set(now + days * 86_400)
    assert value(promql_parser.parse(rule["expr"]), manager, now) == fires


def test_every_alert_has_its_remedy() -> None:
    described = re.findall(r"^\| `(Isvc\w+)`", INSTALL.read_text(), re.MULTILINE)
    assert set(described) == {rule["alert"] for rule in metrics.alert_rules()}
