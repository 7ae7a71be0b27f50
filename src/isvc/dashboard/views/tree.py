"""What belongs to a service, as a tree: component → workload → pods; route → gateway and backends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.controllers.inferenceservice.builders import INGRESS_KINDS
from isvc.dashboard.views.health import Health, health, worst
from isvc.insight.diagnosis.evidence import Evidence, state_of
from isvc.kube.objects import GVK, Object, dig, labels_of, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of
from isvc.serving.http_routes import gateways_of
from isvc.serving.llm.labels import COMPONENT, LLM

MOST_PODS: Final = 12  # of one workload; more are counted, the worst shown
TRAFFIC: Final = "traffic"
_ROUTES: Final = frozenset(resource.kind for resource in INGRESS_KINDS)
_IDLE: Final = "ReplicaSet"
ROUTER: Final = "router"
_WORKLOAD, _PREFILL = "workload", "workload-prefill"
#: What components are called where their label says it in another way.
_SAID: Final = {"router-scheduler": "scheduler", _PREFILL: "prefill"}


@dataclass(frozen=True, slots=True)
class Node:
    """One object, or a group of them. `path` leads to the object's YAML; a group has none."""

    kind: str
    name: str
    health: Health
    says: str = ""
    path: str = ""
    children: tuple[Node, ...] = ()


def tree(evidence: Evidence) -> tuple[Node, ...]:
    """Returns the groups below a service, each with what belongs to it."""
    known = {uid_of(each): each for each in (*evidence.owned, *evidence.pods)}
    below: dict[str, list[Object]] = {}
    for each in known.values():
        below.setdefault(str((controller_of(each) or {}).get("uid")), []).append(each)
    owned = below.get(uid_of(evidence.service), [])
    strays = [pod for pod in evidence.pods if (controller_of(pod) or {}).get("uid") not in known]
    groups: dict[str, list[Node]] = {}
    for each in (*owned, *strays):
        node = _route(evidence, each) if each["kind"] in _ROUTES else _node(each, below)
        groups.setdefault(_group(each, evidence.service), []).append(node)
    if _PREFILL in groups and _WORKLOAD in groups:
        groups["decode"] = groups.pop(_WORKLOAD)
    return tuple(
        Node(
            "group",
            _SAID.get(name, name),
            worst(node.health for node in nodes),
            children=_distinguish(_worst_first(nodes)),
        )
        for name, nodes in sorted(groups.items(), key=lambda group: (group[0] == TRAFFIC, group[0]))
    )


def _distinguish(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Adds the API group to objects of one kind and name: InferencePools, while theirs is being renamed."""
    alike = Counter((node.kind, node.name) for node in nodes)
    return tuple(
        replace(node, says=node.path.split("/")[2].partition(".")[2]) if alike[node.kind, node.name] > 1 else node
        for node in nodes
    )


def _group(obj: Object, service: Object) -> str:
    """Returns the component that an object is of; routes and what has no component are for the traffic to all."""
    if obj["kind"] in _ROUTES:
        return TRAFFIC
    if service.get("kind") == INFERENCE_GRAPHS.kind:
        return ROUTER
    labels = labels_of(obj)
    selector = dig(obj, "spec", "selector") or {}
    component = labels.get("component") or labels.get(COMPONENT) or selector.get("component") or ""
    return str(component).removeprefix(f"{LLM}-") or TRAFFIC


def _node(obj: Object, below: dict[str, list[Object]]) -> Node:
    found = [_node(each, below) for each in below.get(uid_of(obj), ()) if not _is_idle(each, below)]
    own = health(obj)
    if own is not Health.READY and found:
        own = worst((own, *(node.health for node in found)))
    return Node(
        str(obj["kind"]), name_of(obj), own, state_of(obj), object_path(obj), tuple(_limit(_worst_first(found)))
    )


def _is_idle(obj: Object, below: dict[str, list[Object]]) -> bool:
    """Returns whether it is a ReplicaSet of an earlier revision, which has nothing to do any more."""
    return obj["kind"] == _IDLE and not dig(obj, "spec", "replicas") and not below.get(uid_of(obj))


def _route(evidence: Evidence, route: Object) -> Node:
    node = _node(route, {})
    return replace(node, children=(*_gateways(evidence, route), *_backends(evidence, route)))


def _gateways(evidence: Evidence, route: Object) -> Iterator[Node]:
    for key in gateways_of(route):
        found = evidence.gateways.get(key)
        if found is not None:
            yield replace(_node(found, {}), name=str(key))
        elif key in evidence.gateways:
            yield Node("Gateway", str(key), Health.BROKEN, "does not exist")
        else:
            yield Node("Gateway", str(key), Health.PRESENT)


def _backends(evidence: Evidence, route: Object) -> Iterator[Node]:
    """Yields where a route leads, with the share of each where a rule has several."""
    shares: dict[tuple[str, str], str] = {}
    for rule in dig(route, "spec", "rules") or ():
        references = rule.get("backendRefs") or ()
        total = sum(each.get("weight", 1) for each in references) or 1
        for each in references:
            share = f"{100 * each.get('weight', 1) // total} % of requests" if len(references) > 1 else ""
            shares.setdefault((each.get("kind", "Service"), each["name"]), share)
    for (kind, name), share in shares.items():
        found = next((each for each in evidence.of_kind(kind) if name_of(each) == name), None)
        path = object_path(found) if found else ""
        yield Node(kind, name, health(found) if found else Health.PRESENT, share, path)


def object_path(obj: Object) -> str:
    """Returns the address of the page with the object's YAML."""
    group, version, kind = GVK.of(obj)
    named = ".".join(part for part in (kind, version, group) if part)
    return f"/objects/{named}/{namespace_of(obj) or '-'}/{name_of(obj)}"


def _worst_first(nodes: Iterable[Node]) -> tuple[Node, ...]:
    order = list(Health)
    return tuple(sorted(nodes, key=lambda node: (order.index(node.health), node.kind, node.name)))


def _limit(nodes: Sequence[Node]) -> Iterator[Node]:
    yield from nodes[:MOST_PODS]
    if len(nodes) > MOST_PODS:
        rest = nodes[MOST_PODS:]
        yield Node("group", f"and {len(rest)} more", worst(node.health for node in rest))
