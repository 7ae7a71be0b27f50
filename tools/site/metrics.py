"""Reference of metrics and alerts: families asked from the programs' registries, alerts from the rendered chart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from tools.site.markdown import code, table

from isvc.cli import chart
from isvc.kube.objects import Object
from isvc.pods.llmserver.metrics import Metrics as LLMServerMetrics
from isvc.pods.modelserver.app import Server as ModelServer
from isvc.pods.router.metrics import Metrics as RouterMetrics
from isvc.toolkit.metrics import Metrics as ManagerMetrics

_HISTOGRAM: Final = ("_bucket", "_sum", "_count")


class Family(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]
    text: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its samples, as queries have them."""
        return tuple(self.name + end for end in _HISTOGRAM) if self.type == "histogram" else (self.name,)


def manager_families() -> list[Family]:
    return list(_families(ManagerMetrics().registry))


def manager_metrics() -> str:
    return _table(manager_families())


def modelserver_metrics() -> str:
    return _table(_families(ModelServer([]).registry))


def router_metrics() -> str:
    return _table(_families(RouterMetrics().registry))


def llmserver_metrics() -> str:
    return _table(_families(LLMServerMetrics("model", 4096).registry))


def alerts() -> str:
    rows = [
        (code(rule["alert"]), rule["labels"]["severity"], code(rule["expr"]), rule.get("for", "at once"))
        for rule in alert_rules()
    ]
    return table(("alert", "severity", "fires when", "for"), rows)


def alert_rules() -> list[Object]:
    [rule] = [each for each in monitoring() if each["kind"] == "PrometheusRule"]
    return [each for group in rule["spec"]["groups"] for each in group["rules"]]


@cache
def monitoring() -> list[Object]:
    """What the chart makes with all of `monitoring` switched on."""
    switches = dict.fromkeys(("serviceMonitor", "prometheusRule", "dashboard"), True)
    return chart.render("kserve", {"monitoring": switches})


def _families(registry: CollectorRegistry) -> Iterator[Family]:
    for collector in registry._collector_to_names:
        if isinstance(collector, MetricWrapperBase):
            yield _declared(collector)
        else:
            for metric in collector.collect():
                yield Family(_sampled(metric.name, metric.type), metric.type, (), metric.documentation)


def _declared(collector: Any) -> Family:
    """A family that has no samples yet still knows its labels."""
    name = _sampled(collector._name, collector._type)
    return Family(name, collector._type, collector._labelnames, collector._documentation)


def _sampled(name: str, kind: str) -> str:
    return f"{name}_total" if kind == "counter" else name


def _table(families: Iterable[Family]) -> str:
    rows = [(code(each.name), each.type, ", ".join(map(code, each.labels)), each.text) for each in families]
    return table(("metric", "type", "labels", "is"), rows)
