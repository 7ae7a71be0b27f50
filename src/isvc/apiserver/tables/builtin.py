"""The columns that `kubectl get` is used to, for built-in kinds."""

from __future__ import annotations

from typing import Any

from isvc.apiserver.tables import pods
from isvc.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    age,
    at,
    duration,
    listed,
    selector,
    since,
    wide,
)
from isvc.kube.objects import Object, dig
from isvc.kube.resource import Resource
from isvc.kube.selectors import LabelSelector


def columns(resource: Resource) -> list[Column]:
    return _TABLES.get(str(resource), [NAME, AGE])


def _count(*path: str) -> Any:
    return lambda obj: len(dig(obj, *path) or ())


def _of(first: tuple[str, ...], second: tuple[str, ...]) -> Any:
    return lambda obj: f"{dig(obj, *first) or 0}/{dig(obj, *second) or 0}"


def _containers(obj: Object) -> list[Object]:
    return dig(obj, "spec", "template", "spec", "containers") or []


CONTAINERS = wide("Containers", lambda obj: ",".join(each["name"] for each in _containers(obj)))
IMAGES = wide("Images", lambda obj: ",".join(each.get("image", "") for each in _containers(obj)))
SELECTOR = wide("Selector", lambda obj: selector(dig(obj, "spec", "selector")))


def _external_ip(service: Object) -> str:
    spec = service.get("spec", {})
    extra = spec.get("externalIPs") or []
    match spec.get("type", "ClusterIP"):
        case "LoadBalancer":
            points = dig(service, "status", "loadBalancer", "ingress") or ()
            found = [point.get("ip") or point.get("hostname") or "" for point in points]
            return ",".join([*found, *extra]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return listed(extra)


def _service_ports(service: Object) -> str:
    def text(port: Object) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"

    return listed(text(port) for port in dig(service, "spec", "ports") or ())


def _endpoints(obj: Object) -> str:
    found = [
        f"{address['ip']}:{port['port']}" if "port" in port else address["ip"]
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or [{}]
        for address in subset.get("addresses") or ()
    ]
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") or NONE


def _node_status(node: Object) -> str:
    conditions = {each["type"]: each["status"] for each in dig(node, "status", "conditions") or ()}
    ready = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    return f"{ready},SchedulingDisabled" if dig(node, "spec", "unschedulable") else ready


def _node_roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = dig(node, "metadata", "labels") or {}
    return listed(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def _node_address(kind: str) -> Any:
    def cell(node: Object) -> str:
        return next((a["address"] for a in dig(node, "status", "addresses") or () if a["type"] == kind), NONE)

    return cell


def _event_object(event: Object) -> str:
    target = event.get("involvedObject") or event.get("regarding") or {}
    return f"{target.get('kind', '').lower()}/{target.get('name', '')}"


def _last_seen(event: Object) -> str:
    moment = dig(event, "series", "lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return since(moment) if moment else age(event)


def _job_status(job: Object) -> str:
    types = {each["type"]: each["status"] for each in dig(job, "status", "conditions") or ()}
    for kind in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if types.get(kind) == "True":
            return kind
    return "Terminating" if dig(job, "metadata", "deletionTimestamp") else "Running"


def _job_duration(job: Object) -> str:
    start, end = dig(job, "status", "startTime"), dig(job, "status", "completionTime")
    if not start:
        return ""
    if not end:
        return since(start)
    from datetime import datetime

    return duration((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _hpa_target(metric: Object, current: Object | None) -> str:
    source = metric.get(metric["type"][:1].lower() + metric["type"][1:]) or {}
    wanted = source.get("target") or {}
    now = (current or {}).get("current") or {}
    if wanted.get("averageUtilization") is not None:
        found = now.get("averageUtilization")
        have = UNKNOWN if found is None else f"{found}%"
        return f"{source.get('name', '')}: {have}/{wanted['averageUtilization']}%"
    if wanted.get("averageValue") is not None:
        prefix = f"{source['name']}: " if metric["type"] == "Resource" else ""
        suffix = " (avg)" if metric["type"] == "External" else ""
        return f"{prefix}{now.get('averageValue', UNKNOWN)}/{wanted['averageValue']}{suffix}"
    return f"{now.get('value', UNKNOWN)}/{wanted.get('value', '')}"


def _hpa_targets(hpa: Object) -> str:
    metrics = dig(hpa, "spec", "metrics") or []
    current = dig(hpa, "status", "currentMetrics") or []
    texts = []
    for index, metric in enumerate(metrics[:2]):
        kind = metric["type"][:1].lower() + metric["type"][1:]
        texts.append(_hpa_target(metric, current[index].get(kind) if index < len(current) else None))
    more = f" + {len(metrics) - 2} more..." if len(metrics) > 2 else ""
    return ", ".join(texts) + more or NONE


def _ingress_hosts(ingress: Object) -> str:
    hosts = [rule["host"] for rule in dig(ingress, "spec", "rules") or () if rule.get("host")]
    more = f" + {len(hosts) - 3} more..." if len(hosts) > 3 else ""
    return ",".join(hosts[:3]) + more or "*"


def _reference(obj: Object) -> str:
    target = dig(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _role(binding: Object) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind')}/{role.get('name')}"


def _slice_ports(obj: Object) -> str:
    return ",".join(str(each.get("port", "*")) for each in obj.get("ports") or ()) or "<unset>"


def _slice_endpoints(obj: Object) -> str:
    found = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return ",".join(found[:3]) + more or "<unset>"


def _matches_all(obj: Object) -> str:
    spec = dig(obj, "spec", "podSelector")
    return str(LabelSelector.from_spec(spec)) or NONE if isinstance(spec, dict) else NONE


_WORKLOAD = [AGE, CONTAINERS, IMAGES, SELECTOR]
_SPEC_REPLICAS, _READY = ("spec", "replicas"), ("status", "readyReplicas")
_TABLES: dict[str, list[Column]] = {
    "pods": pods.COLUMNS,
    "configmaps": [NAME, Column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())), AGE],
    "secrets": [NAME, at("Type", "type"), Column("Data", _count("data"), "integer"), AGE],
    "serviceaccounts": [NAME, Column("Secrets", _count("secrets"), "integer"), AGE],
    "namespaces": [NAME, at("Status", "status", "phase"), AGE],
    "nodes": [
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        at("Version", "status", "nodeInfo", "kubeletVersion"),
        wide("Internal-IP", _node_address("InternalIP")),
        wide("External-IP", _node_address("ExternalIP")),
        at("OS-Image", "status", "nodeInfo", "osImage", default=UNKNOWN, wide=True),
        at("Kernel-Version", "status", "nodeInfo", "kernelVersion", default=UNKNOWN, wide=True),
        at("Container-Runtime", "status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN, wide=True),
    ],
    "services": [
        NAME,
        at("Type", "spec", "type"),
        at("Cluster-IP", "spec", "clusterIP", default=NONE),
        Column("External-IP", _external_ip),
        Column("Port(s)", _service_ports),
        AGE,
        SELECTOR,
    ],
    "endpoints": [NAME, Column("Endpoints", _endpoints), AGE],
    "events": [
        Column("Last Seen", _last_seen),
        at("Type", "type"),
        at("Reason", "reason"),
        Column("Object", _event_object),
        wide("Subobject", lambda o: dig(o, "involvedObject", "fieldPath") or ""),
        wide("Source", lambda o: dig(o, "source", "component") or o.get("reportingComponent", "")),
        Column("Message", lambda o: (o.get("message") or o.get("note") or "").strip()),
        wide("First Seen", lambda o: since(o.get("firstTimestamp") or dig(o, "metadata", "creationTimestamp"))),
        wide("Count", lambda o: dig(o, "series", "count") or o.get("count") or 1),
        Column("Name", NAME.cell, priority=1, format="name"),
    ],
    "persistentvolumeclaims": [
        NAME,
        at("Status", "status", "phase"),
        at("Volume", "spec", "volumeName"),
        at("Capacity", "status", "capacity", "storage"),
        Column("Access Modes", lambda o: _modes(dig(o, "status", "accessModes"))),
        at("StorageClass", "spec", "storageClassName"),
        at("VolumeAttributesClass", "spec", "volumeAttributesClassName", default="<unset>"),
        AGE,
        at("VolumeMode", "spec", "volumeMode", default="<unset>", wide=True),
    ],
    "persistentvolumes": [
        NAME,
        at("Capacity", "spec", "capacity", "storage"),
        Column("Access Modes", lambda o: _modes(dig(o, "spec", "accessModes"))),
        at("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
        at("Status", "status", "phase"),
        Column(
            "Claim", lambda o: "/".join(filter(None, (dig(o, "spec", "claimRef", k) for k in ("namespace", "name"))))
        ),
        at("StorageClass", "spec", "storageClassName"),
        at("VolumeAttributesClass", "spec", "volumeAttributesClassName", default="<unset>"),
        at("Reason", "status", "reason"),
        AGE,
        at("VolumeMode", "spec", "volumeMode", default="<unset>", wide=True),
    ],
    "deployments.apps": [
        NAME,
        Column("Ready", _of(_READY, _SPEC_REPLICAS)),
        at("Up-to-date", "status", "updatedReplicas", default=0),
        at("Available", "status", "availableReplicas", default=0),
        *_WORKLOAD,
    ],
    "replicasets.apps": [
        NAME,
        at("Desired", *_SPEC_REPLICAS, default=0, kind="integer"),
        at("Current", "status", "replicas", default=0, kind="integer"),
        at("Ready", *_READY, default=0, kind="integer"),
        *_WORKLOAD,
    ],
    "statefulsets.apps": [NAME, Column("Ready", _of(_READY, _SPEC_REPLICAS)), AGE, CONTAINERS, IMAGES],
    "daemonsets.apps": [
        NAME,
        at("Desired", "status", "desiredNumberScheduled", default=0, kind="integer"),
        at("Current", "status", "currentNumberScheduled", default=0, kind="integer"),
        at("Ready", "status", "numberReady", default=0, kind="integer"),
        at("Up-to-date", "status", "updatedNumberScheduled", default=0, kind="integer"),
        at("Available", "status", "numberAvailable", default=0, kind="integer"),
        Column("Node Selector", lambda o: selector(dig(o, "spec", "template", "spec", "nodeSelector"))),
        *_WORKLOAD,
    ],
    "jobs.batch": [
        NAME,
        Column("Status", _job_status),
        Column("Completions", lambda o: f"{dig(o, 'status', 'succeeded') or 0}/{dig(o, 'spec', 'completions') or 1}"),
        Column("Duration", _job_duration),
        *_WORKLOAD,
    ],
    "horizontalpodautoscalers.autoscaling": [
        NAME,
        Column("Reference", _reference),
        Column("Targets", _hpa_targets),
        at("MinPods", "spec", "minReplicas", default="<unset>"),
        at("MaxPods", "spec", "maxReplicas", default=0, kind="integer"),
        at("Replicas", "status", "currentReplicas", default=0, kind="integer"),
        AGE,
    ],
    "ingresses.networking.k8s.io": [
        NAME,
        at("Class", "spec", "ingressClassName", default=NONE),
        Column("Hosts", _ingress_hosts),
        Column("Address", lambda o: _points(dig(o, "status", "loadBalancer", "ingress"))),
        Column("Ports", lambda o: "80, 443" if dig(o, "spec", "tls") else "80"),
        AGE,
    ],
    "endpointslices.discovery.k8s.io": [
        NAME,
        at("AddressType", "addressType"),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_endpoints),
        AGE,
    ],
    "networkpolicies.networking.k8s.io": [NAME, Column("Pod-Selector", _matches_all), AGE],
    "leases.coordination.k8s.io": [NAME, at("Holder", "spec", "holderIdentity"), AGE],
    "roles.rbac.authorization.k8s.io": [NAME, at("Created At", "metadata", "creationTimestamp")],
    "clusterroles.rbac.authorization.k8s.io": [NAME, at("Created At", "metadata", "creationTimestamp")],
    "rolebindings.rbac.authorization.k8s.io": [NAME, Column("Role", _role), AGE],
    "clusterrolebindings.rbac.authorization.k8s.io": [NAME, Column("Role", _role), AGE],
    "customresourcedefinitions.apiextensions.k8s.io": [NAME, at("Created At", "metadata", "creationTimestamp")],
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": [
        NAME,
        Column("Webhooks", _count("webhooks"), "integer"),
        AGE,
    ],
    "validatingwebhookconfigurations.admissionregistration.k8s.io": [
        NAME,
        Column("Webhooks", _count("webhooks"), "integer"),
        AGE,
    ],
    "storageclasses.storage.k8s.io": [
        NAME,
        at("Provisioner", "provisioner"),
        at("ReclaimPolicy", "reclaimPolicy"),
        at("VolumeBindingMode", "volumeBindingMode"),
        Column("AllowVolumeExpansion", lambda o: bool(o.get("allowVolumeExpansion")), "boolean"),
        AGE,
    ],
    "priorityclasses.scheduling.k8s.io": [
        NAME,
        at("Value", "value", default=0, kind="integer"),
        Column("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
        AGE,
    ],
}

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())


def _points(points: Any) -> str:
    return ",".join(point.get("ip") or point.get("hostname") or "" for point in points or ())
