"""Validates InferenceGraphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isvc.api.completion import complete
from isvc.api.inferencegraph import (
    ROOT,
    STEP_POLICIES,
    InferenceGraph,
    InferenceRouter,
    InvalidPolicies,
    RouterType,
    read_policies,
)
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.kube.names import DNS_1035_LABEL
from isvc.kube.objects import Object, annotations_of


def validate_graph(new: Object, old: Object | None = None) -> Verdict:
    new = complete(new, InferenceGraph)
    graph = InferenceGraph.decode(new)
    if old is not None and is_exempt(old, new):
        return GOOD
    return Verdict.of([*_problems(graph), *_policies(annotations_of(new), graph)])


def _problems(graph: InferenceGraph) -> Iterator[Problem]:
    if not DNS_1035_LABEL.fullmatch(graph.metadata.name):
        yield Problem(
            "metadata.name",
            "must start with a letter and consist of lower case letters, digits and '-', such as my-graph;"
            f" got {graph.metadata.name!r}",
        )
    if ROOT not in graph.spec.nodes:
        yield Problem("spec.nodes", f"needs a node called {ROOT}: every request starts there")
    for name, node in graph.spec.nodes.items():
        path = f"spec.nodes.{name}"
        yield from _steps(node, path)
        if node.router_type == RouterType.SPLITTER:
            yield from _weights(node, path)


def _policies(annotations: Mapping[str, str], graph: InferenceGraph) -> Iterator[Problem]:
    try:
        read_policies(annotations, graph.spec)
    except InvalidPolicies as error:
        yield Problem(f"metadata.annotations[{STEP_POLICIES}]", str(error))


def _steps(node: InferenceRouter, path: str) -> Iterator[Problem]:
    names: set[str] = set()
    for index, step in enumerate(node.steps):
        if step.name and step.name in names:
            yield Problem(f"{path}.steps[{index}].name", f"{step.name!r} is already the name of another step")
        names.add(step.name)
        targets = [
            field
            for field, value in (
                ("nodeName", step.node_name),
                ("serviceName", step.service_name),
                ("serviceUrl", step.service_url),
            )
            if value
        ]
        if len(targets) != 1:
            yield Problem(
                f"{path}.steps[{index}]",
                f"needs exactly one of nodeName, serviceName, serviceUrl; got {' and '.join(targets) or 'none'}",
            )


def _weights(node: InferenceRouter, path: str) -> Iterator[Problem]:
    missing = [index for index, step in enumerate(node.steps) if step.weight is None]
    for index in missing:
        yield Problem(f"{path}.steps[{index}].weight", "is required in a Splitter")
    total = sum(step.weight or 0 for step in node.steps)
    if not missing and total != 100:
        yield Problem(f"{path}.steps", f"the weights of a Splitter must add up to 100, got {total}")
