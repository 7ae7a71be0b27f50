"""Kinds and webhooks as a cluster gets them, and the rights that managers need because of them.

The API server reaches the managers through their Services.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from isvc.api.kinds import KINDS
from isvc.api.kinds.crds import crds
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    GROUP,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
)
from isvc.controllers.localmodelnode import kind as localmodelnode
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    JOBS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.programs import isvc_manager, llmisvc_manager, localmodel_manager
from isvc.programs.controllers import make_kind
from isvc.programs.program import Program
from isvc.programs.registration import ClientConfig, configurations, conversions, targets
from isvc.serving.config import CONFIG_MAP
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import REFERENCE_GRANTS
from isvc.toolkit.cache.memory import MemoryReader

KEPT: Final = {"helm.sh/resource-policy": "keep"}
"""The annotations of what services need after the managers are uninstalled: kinds, runtimes, presets."""
_SHIPPED: Final = (CLUSTER_SERVING_RUNTIMES.plural, LLM_INFERENCE_SERVICE_CONFIGS.plural)
_NOT_WHEN_INSTALLED: Final = (
    "request.operation == 'DELETE' || !has(object.metadata.labels) || "
    "!('app.kubernetes.io/part-of' in object.metadata.labels) || "
    "object.metadata.labels['app.kubernetes.io/part-of'] != 'isvc' || "
    "(request.operation == 'UPDATE' && object.spec != oldObject.spec)"
)
OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of what may be anything."""
ALL: Final = ("get", "list", "watch", "create", "update", "delete")
_NEVER_DONE: Final = {
    JOBS: "update",  # Kubernetes lets nothing change that we ask for
    PERSISTENT_VOLUME_CLAIMS: "update",
    REFERENCE_GRANTS: "delete",  # which all services of a namespace share
}
PROGRAMS: Final = (isvc_manager.PROGRAM, llmisvc_manager.PROGRAM, localmodel_manager.PROGRAM)


def kinds(
    namespace: str, *, certificate: str = "", authority: str = "", minimal: bool = False, others: Iterable[Object] = ()
) -> list[Object]:
    """Returns the CRDs, described, and other projects'; ours of several versions with the webhook that converts them.

    A minimal one takes any spec, which the webhook and the controller look at instead of the API server.

    The API server trusts the webhook by the authority of a Certificate of cert-manager's, by one that is given (PEM in
    base64), or by one that a manager writes later.
    """
    made = (*crds(described=True), *others)
    webhooks = {
        name: conversion
        for program in PROGRAMS
        for name, conversion in conversions(program.webhooks, _through_service(program, namespace, authority)).items()
    }
    injected = {"cert-manager.io/inject-ca-from": f"{namespace}/{certificate}"} if certificate else {}
    return [
        _annotate({**crd, "spec": {**crd["spec"], "conversion": webhooks[name_of(crd)]}}, KEPT | injected)
        if name_of(crd) in webhooks
        else _annotate(crd, KEPT)
        for crd in (map(_open, made) if minimal else made)
    ]


def _open(crd: Object) -> Object:
    """Returns the CRD without what it says about spec and status."""
    versions = []
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        left_open = {name: OPEN for name in ("spec", "status") if name in schema["properties"]}
        opened = {"openAPIV3Schema": {**schema, "properties": schema["properties"] | left_open}}
        versions.append({**version, "schema": opened})
    return {**crd, "spec": {**crd["spec"], "versions": versions}}


def webhooks(program: Program, namespace: str) -> list[Object]:
    """Returns the webhook configurations of a manager.

    Runtimes and presets that ship are created, and written again as they are, without asking it: they are installed
    together with it, before it runs, and rolled back when it does not. In other namespaces anybody can set their label.
    """
    made = configurations(program.webhooks, _through_service(program, namespace))
    for webhook in (webhook for configuration in made for webhook in configuration["webhooks"]):
        resource = webhook["rules"][0]["resources"][0]
        if resource in _SHIPPED:
            elsewhere = "" if resource == CLUSTER_SERVING_RUNTIMES.plural else f"request.namespace != '{namespace}' || "
            condition = {"name": "not-when-installed", "expression": elsewhere + _NOT_WHEN_INSTALLED}
            webhook["matchConditions"] = [condition]
    return made


def namespace_rules(program: Program) -> list[Object]:
    """What a manager does in namespaces with objects of its kinds, and with those that they own, in rules of a role."""
    return _kind_rules(program, namespaced=True)


def cluster_rules(program: Program) -> list[Object]:
    """What it does beyond namespaces: likewise, and it sets the caBundle of its own webhooks and migrates its kinds."""
    ours = targets(program.webhooks, program.webhook_service)
    patched = ((MUTATING_WEBHOOK_CONFIGURATIONS, ours.mutating), (VALIDATING_WEBHOOK_CONFIGURATIONS, ours.validating))
    group, plural = CUSTOM_RESOURCE_DEFINITIONS.group, CUSTOM_RESOURCE_DEFINITIONS.plural
    converted = [
        _rule(group, (plural,), ("get", "patch"), ours.crds),
        _rule(group, (f"{plural}/status",), ("patch",), ours.crds),
    ]
    return [
        *_kind_rules(program, namespaced=False),
        *(_rule(kind.group, (kind.plural,), ("get", "patch"), names) for kind, names in patched if names),
        *(converted if ours.crds else ()),
    ]


def model_node_rules() -> dict[str, list[Object]]:
    """What the program of a node does: in the whole cluster, in the namespace of downloads, and in its own.

    RBAC cannot say that a LocalModelNode is of the node that asks.
    """
    kind = localmodelnode.make_kind(MemoryReader(), Environment())
    name = kind.resource.plural
    return {
        "cluster": [
            _rule(GROUP, (name,), ("list", "watch", "patch")),
            _rule(GROUP, (f"{name}/status", f"{name}/finalizers"), ("update",)),
            _rule(GROUP, (LOCAL_MODEL_NODE_GROUPS.plural, CLUSTER_STORAGE_CONTAINERS.plural), ("list", "watch")),
            _rule(GROUP, (LOCAL_MODEL_CACHES.plural, LOCAL_MODEL_NAMESPACE_CACHES.plural), ("get",)),
            _rule("", (EVENTS.plural,), ("create", "patch")),
        ],
        "jobs": [
            *_child_rules(kind.children),
            _rule("", (PODS.plural,), ("list", "watch")),
            _rule("", (SECRETS.plural, SERVICE_ACCOUNTS.plural), ("get",)),
        ],
        "configuration": [_rule("", (CONFIG_MAPS.plural,), ("get", "list", "watch"), (CONFIG_MAP,))],
    }


def _kind_rules(program: Program, *, namespaced: bool) -> list[Object]:
    made = [make_kind(row, MemoryReader(), Environment()) for row in KINDS if row.manager == program.name]
    children = {child for kind in made for child in kind.children if child.namespaced is namespaced}
    own = [kind for kind in made if kind.resource.namespaced is namespaced]
    names = [kind.resource.plural for kind in own]
    reported = [kind.resource.plural for kind in own if kind.writes_status]
    rules = [
        *_child_rules(children),
        _rule(GROUP, names, ("list", "watch")),
        _rule(GROUP, [kind.resource.plural for kind in own if kind.finalizer], ("patch",)),
        _rule(GROUP, [f"{name}/status" for name in reported], ("update",)),
        _rule(GROUP, [f"{name}/finalizers" for name in reported], ("update",)),  # owner references that block deletion
    ]
    return [rule for rule in rules if rule["resources"]]


def _child_rules(children: Collection[Resource]) -> Iterator[Object]:
    """Yields what is done with objects that a kind owns, for each group."""
    for never in ("", *sorted({*_NEVER_DONE.values()}, reverse=True)):
        alike = sorted(child for child in children if _NEVER_DONE.get(child, "") == never)
        for group, each in groupby(alike, lambda child: child.group):
            yield _rule(group, [child.plural for child in each], [verb for verb in ALL if verb != never])


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Object:
    named = {"resourceNames": [*names]} if names else {}
    return {"apiGroups": [group], "resources": [*resources], **named, "verbs": [*verbs]}


def _through_service(program: Program, namespace: str, authority: str = "") -> ClientConfig:
    trusted = {"caBundle": authority} if authority else {}
    service = {"name": program.webhook_service, "namespace": namespace}
    return lambda path: {"service": {**service, "path": path}, **trusted}


def _annotate(crd: Object, annotations: Object) -> Object:
    metadata = {**crd["metadata"], "annotations": {**crd["metadata"].get("annotations", {}), **annotations}}
    return {**crd, "metadata": metadata}
