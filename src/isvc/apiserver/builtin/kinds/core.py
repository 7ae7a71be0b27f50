"""The core group."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin import conversion, prepare, strategies, warnings
from isvc.apiserver.builtin.kind import CREATE_ONLY, WORKLOAD_SCALE, Kind
from isvc.apiserver.builtin.validation import pods as pod_rules
from isvc.apiserver.builtin.validation import services as service_rules
from isvc.apiserver.builtin.validation import storage as storage_rules
from isvc.apiserver.resources.description import ALL_VERBS, READ_WRITE, Subresource
from isvc.apiserver.tables import cluster, network, pods, storage, workloads
from isvc.kube.resource import EVENTS, NAMESPACES, NODES, PODS, SERVICES, Resource

_SELECT_PODS: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_SELECT_EVENTS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_CONNECT: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")
_POD_SUBRESOURCES: Final = (
    Subresource("attach", "PodAttachOptions", _CONNECT),
    Subresource("binding", "Binding", CREATE_ONLY),
    Subresource("ephemeralcontainers", "Pod", READ_WRITE),
    Subresource("eviction", "Eviction", CREATE_ONLY, ("policy", "v1")),
    Subresource("exec", "PodExecOptions", _CONNECT),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", _CONNECT),
    Subresource("proxy", "PodProxyOptions", _PROXY),
    Subresource("resize", "Pod", READ_WRITE),
)


def _kind(plural: str, name: str, *, namespaced: bool = True, **record: Any) -> Kind:
    return Kind(resource=Resource("", "v1", plural, name, namespaced), **record)


KINDS: Final = (
    _kind("bindings", "Binding", verbs=CREATE_ONLY),
    _kind(
        "componentstatuses",
        "ComponentStatus",
        namespaced=False,
        short_names=("cs",),
        verbs=("get", "list"),
        columns=cluster.COMPONENT_STATUSES,
        deprecation="v1 ComponentStatus is deprecated in v1.19+",
    ),
    _kind(
        "configmaps",
        "ConfigMap",
        short_names=("cm",),
        columns=cluster.CONFIG_MAPS,
        check=storage_rules.config_map,
        check_update=storage_rules.immutable,
    ),
    _kind(
        "endpoints",
        "Endpoints",
        short_names=("ep",),
        columns=network.ENDPOINTS,
        created_by_update=True,
        check=service_rules.endpoints,
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    Kind(
        resource=EVENTS,
        short_names=("ev",),
        columns=cluster.EVENTS,
        selectable=_SELECT_EVENTS,
        created_by_update=True,
        check=storage_rules.event,
        convert=conversion.event,
        strategy_class=strategies.Events,
    ),
    _kind(
        "limitranges",
        "LimitRange",
        short_names=("limits",),
        columns=cluster.LIMIT_RANGES,
        created_by_update=True,
    ),
    Kind(
        resource=NAMESPACES,
        short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        columns=cluster.NAMESPACES,
        names="label",
        selectable=("status.phase",),
        status=True,
        subresources=(Subresource("finalize", "Namespace", ("update",)),),
        returns_deleted=True,
        on_create=prepare.namespace,
        strategy_class=strategies.Namespaces,
    ),
    Kind(
        resource=NODES,
        short_names=("no",),
        columns=cluster.NODES,
        subresources=(Subresource("proxy", "NodeProxyOptions", _PROXY),),
        selectable=("spec.unschedulable",),
        status=True,
        created_with_status=True,
        on_create=prepare.node,
        strategy_class=strategies.Nodes,
    ),
    _kind(
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        columns=storage.CLAIMS,
        status=True,
        returns_deleted=True,
        on_create=prepare.claim,
        check=storage_rules.claim,
        check_update=storage_rules.claim_update,
    ),
    _kind(
        "persistentvolumes",
        "PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        columns=storage.VOLUMES,
        status=True,
        returns_deleted=True,
        on_create=prepare.volume,
        check=storage_rules.volume,
    ),
    Kind(
        resource=PODS,
        short_names=("po",),
        categories=("all",),
        columns=pods.COLUMNS,
        selectable=_SELECT_PODS,
        status=True,
        subresources=_POD_SUBRESOURCES,
        generation=True,
        returns_deleted=True,
        on_create=prepare.pod,
        check=pod_rules.pod,
        warn=warnings.pod,
        check_update=pod_rules.pod_update,
        strategy_class=strategies.Pods,
    ),
    _kind("podtemplates", "PodTemplate", columns=workloads.POD_TEMPLATES, generation=True, returns_deleted=True),
    _kind(
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=("all",),
        columns=workloads.REPLICA_SETS,
        selectable=("status.replicas",),
        status=True,
        scale=WORKLOAD_SCALE,
        generation=True,
    ),
    _kind(
        "resourcequotas",
        "ResourceQuota",
        short_names=("quota",),
        columns=cluster.RESOURCE_QUOTAS,
        check=storage_rules.resource_quota,
        status=True,
        returns_deleted=True,
    ),
    _kind(
        "secrets",
        "Secret",
        columns=cluster.SECRETS,
        selectable=("type",),
        check=storage_rules.secret,
        check_update=storage_rules.immutable,
    ),
    _kind(
        "serviceaccounts",
        "ServiceAccount",
        short_names=("sa",),
        subresources=(Subresource("token", "TokenRequest", CREATE_ONLY, ("authentication.k8s.io", "v1")),),
        returns_deleted=True,
    ),
    Kind(
        resource=SERVICES,
        short_names=("svc",),
        categories=("all",),
        subresources=(Subresource("proxy", "ServiceProxyOptions", _PROXY),),
        columns=network.SERVICES,
        names="label1035",
        selectable=("spec.clusterIP", "spec.type"),
        status=True,
        created_by_update=True,
        returns_deleted=True,
        check=service_rules.service,
        warn=warnings.service,
        check_update=service_rules.service_update,
        strategy_class=strategies.Services,
    ),
)
