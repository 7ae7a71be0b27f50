"""What controllers would write if documents were applied to a cluster.

The cluster is read into a simulation and the controllers settle there: what they write then, they would write anyway.
After that the documents are applied, and the controllers' own watches decide which services are reconciled. What they
write is the difference. `pending` alone, with no documents, says what a manager that takes a cluster over would change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, GROUP
from isvc.insight.rendering.documents import Document
from isvc.insight.rendering.live import LiveCluster, load_cluster
from isvc.insight.rendering.placing import is_configuration
from isvc.insight.rendering.pods import pod_templates, pods_of_services, service_of_pod
from isvc.insight.rendering.problems import Problem, unserved_version
from isvc.insight.simulation.kinds import resource_of
from isvc.insight.simulation.server import Place
from isvc.insight.simulation.simulation import Change
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, content_of, deep_copy, dig, last_applied, name_of, namespace_of
from isvc.kube.patch import merge_patch
from isvc.kube.pods import replicas_of
from isvc.kube.resource import PODS, Resource
from isvc.programs.options import Options
from isvc.toolkit.client import Client

SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


@dataclass(frozen=True, slots=True)
class Difference:
    """One child that would be written. `before` or `after` is None where it does not exist.

    A pod that our webhook would make differently is one `later`: nothing replaces those that run.
    """

    owner: Place = field(repr=False)
    resource: Resource
    before: Object | None = field(repr=False)
    after: Object | None = field(repr=False)
    later: bool = False

    @property
    def name(self) -> str:
        return name_of(self.after or self.before or {})

    @property
    def verb(self) -> str:
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    @property
    def restarts(self) -> int:
        """How many pods that run now would be replaced, or stopped."""
        if self.before is None or self.later:
            return 0
        after = dict(pod_templates(self.after or {}))
        if all(after.get(suffix) == template for suffix, template in pod_templates(self.before)):
            return 0
        return _replicas(self.before)


@dataclass(frozen=True, slots=True)
class Differences:
    """`pending` is what would be written without the documents, too."""

    found: tuple[Difference, ...] = ()
    pending: tuple[Difference, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    def by_owner(self) -> dict[Place, list[Difference]]:
        grouped: dict[Place, list[Difference]] = {}
        for each in self.found:
            grouped.setdefault(each.owner, []).append(each)
        return grouped

    @property
    def restarts(self) -> int:
        return sum(each.restarts for each in self.found)


async def compare(client: Client, documents: Iterable[Document], options: Options) -> Differences:
    """Reads the cluster with GET and LIST alone, and writes nothing."""
    given, warnings, problems = list(documents), list[str](), list[Problem]()
    cluster = await load_cluster(client, options, namespaces=_namespaces(given), warn=warnings.append)
    simulation = cluster.simulation
    simulation.enqueue_all()
    await simulation.settle()
    pending = _collapse(simulation.changes, cluster)
    pods = await pods_of_services(simulation) if any(_reaches_pods(each) for each in given) else {}
    simulation.changes.clear()
    simulation.crashes.clear()
    for document in given:
        resource = resource_of(document.obj)
        if wrong := unserved_version(document.obj):
            problems.append(Problem(document, wrong))
            continue
        if resource is None:
            warnings.append(f"{document} is passed over: no controller looks at a {document.obj['kind']}")
            continue
        try:
            live = simulation.objects.get(resource, name_of(document.obj), namespace_of(document.obj))
            await simulation.apply(resource, deep_copy(_apply_document(live, document.obj) if live else document.obj))
        except ApiError as error:
            problems.append(Problem(document, error.message))
    await simulation.settle_ready(lambda resource, obj: _is_new(obj))
    found = _collapse(simulation.changes, cluster)
    found += _made_differently(pods, await pods_of_services(simulation) if pods else {}, found)
    return Differences(found, pending, tuple(problems), tuple(dict.fromkeys(warnings)))


def _reaches_pods(document: Document) -> bool:
    """Returns whether our webhook reads it when it makes pods of InferenceServices."""
    return document.obj["kind"] == CLUSTER_STORAGE_CONTAINERS.kind or is_configuration(document.obj)


def _made_differently(
    before: dict[Place, Object], after: dict[Place, Object], found: tuple[Difference, ...]
) -> tuple[Difference, ...]:
    """Returns the pods of workloads that stay as they are, and whose pods would not."""
    changed = {(each.resource, each.name) for each in found}
    return tuple(
        Difference(service_of_pod(pod), PODS, pod, after[place], later=True)
        for place, pod in before.items()
        if place in after and content(after[place]) != content(pod) and (place[0], place[2]) not in changed
    )


def _namespaces(documents: list[Document]) -> frozenset[str] | None:
    """Returns the namespaces that the documents concern; None for all, where one is shared by them."""
    concerned: set[str] = set()
    for document in documents:
        resource = resource_of(document.obj)
        if resource is None:
            continue
        shared = not resource.namespaced or resource.group != GROUP or resource.kind.endswith(("Config", "Cache"))
        if shared:
            return None
        concerned.add(document.obj["metadata"]["namespace"])
    return frozenset(concerned) if concerned else None


def _is_new(obj: Object) -> bool:
    """Returns whether the object exists in the simulation alone."""
    return str(dig(obj, "metadata", "resourceVersion") or "").startswith("simulated-") and not obj.get("status")


def _collapse(changes: Iterable[Change], cluster: LiveCluster) -> tuple[Difference, ...]:
    """Returns the first state and the last of each child, in the order in which they are written."""
    first: dict[Place, Difference] = {}
    for change in changes:
        if change.resource in cluster.unseen:
            continue
        known = first.get(change.place)
        before = known.before if known else change.before
        first[change.place] = Difference(change.owner, change.resource, before, change.after)
    return tuple(each for each in first.values() if content(each.before) != content(each.after))


def content(obj: Object | None) -> Object | None:
    """Returns what people compare: no status, and nothing that the API server alone writes."""
    if obj is None:
        return None
    metadata = {key: value for key, value in obj["metadata"].items() if key not in SERVER_FIELDS}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def _apply_document(live: Object, document: Object) -> Object:
    """Returns what `kubectl apply` makes of a live object; without a record of the last one, its spec is replaced."""
    before = last_applied(live)
    if before is not None:
        gone = merge_patch.diff({**before, "metadata": {}}, {**document, "metadata": {}})
        merged: Object = merge_patch.apply(merge_patch.apply(live, gone), content_of(document))
    else:
        merged = {**live, **content_of(document)}
    metadata = dict(live["metadata"])
    for name in ("labels", "annotations"):
        if given := document["metadata"].get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given}
    return {**merged, "metadata": metadata}


def _replicas(workload: Object) -> int:
    running = dig(workload, "status", "replicas")
    return int(running) if running is not None else replicas_of(workload)
