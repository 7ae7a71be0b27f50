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
    if is_exempt(old, new):
        return GOOD
    return Verdict.of([*_problems(graph), *_policies(annotations_of(new), graph)])


def _problems(graph: InferenceGraph) -> Iterator[Problem]:
    if not DNS_1035_LABEL.fullmatch(graph.metadata.name):
        yield Problem(
            "metadata.name",
            "must consist of lower case alphanumeric characters or '-', and must start with alphabetical character,"
            f" such as my-graph; got {graph.metadata.name!r}",
        )
    if ROOT not in graph.spec.nodes:
        yield Problem("spec.nodes", f"root node not found: every request starts at a node with name {ROOT!r}")
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
            yield Problem(f"{path}.steps[{index}].name", f'there is more than one step with name "{step.name}"')
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
        where, known = f"{path}.steps[{index}]", "nodeName, serviceName, serviceUrl"
        if not targets:
            yield Problem(where, f"does not specify an inference target: it needs one of {known}")
        elif len(targets) > 1:
            yield Problem(where, f"specifies more than one of {known}: {' and '.join(targets)}")


def _weights(node: InferenceRouter, path: str) -> Iterator[Problem]:
    missing = [index for index, step in enumerate(node.steps) if step.weight is None]
    for index in missing:
        yield Problem(f"{path}.steps[{index}].weight", "is required in a Splitter")
    total = sum(step.weight or 0 for step in node.steps)
    if not missing and total != 100:
        yield Problem(f"{path}.steps", f"the sum of traffic weights for all routing targets should be 100, got {total}")
