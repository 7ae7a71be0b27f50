"""Columns of nodes, events, ConfigMaps and Secrets, leases, devices, quotas and priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isvc.apiserver.tables.columns import AGE, CREATED_AT, NAME, NONE, UNKNOWN, Column, at, join_values, since, wide
from isvc.kube.conditions import condition_of
from isvc.kube.objects import Object, dig, is_being_deleted, labels_of


def _node_status(node: Object) -> str:
    ready = {"True": "Ready", "False": "NotReady"}.get(condition_of(node, "Ready").get("status", ""), "Unknown")
    return f"{ready},SchedulingDisabled" if dig(node, "spec", "unschedulable") else ready


def _node_roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = labels_of(node)
    return join_values(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def _node_address(kind: str) -> Any:
    def cell(node: Object) -> str:
        return next((a["address"] for a in dig(node, "status", "addresses") or () if a["type"] == kind), NONE)

    return cell


def _event_object(event: Object) -> str:
    target = event.get("involvedObject") or event.get("regarding") or {}
    return f"{target.get('kind', '').lower()}/{target.get('name', '')}"


def _first_seen(event: Object) -> str:
    return since(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime"))


def _last_seen(event: Object) -> str:
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    moment = dig(event, "series", "lastObservedTime") or last
    return since(moment) if moment else _first_seen(event)


def _source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    controller = event.get("reportingComponent") or event.get("reportingController")
    found = (source.get("component") or controller, source.get("host") or event.get("reportingInstance"))
    return ", ".join(filter(None, found))


def _claim_state(claim: Object) -> str:
    """Returns how far a claim has come, as kubectl says it."""
    states = ["deleted"] if is_being_deleted(claim) else []
    states += ["allocated"] if dig(claim, "status", "allocation") else []
    states += ["reserved"] if dig(claim, "status", "reservedFor") else []
    return ",".join(states or ["pending"])


def _quota(limits: bool) -> Callable[[Object], str]:
    """Returns how much of a quota is used: `pods: 1/10, requests.cpu: 1/4`."""

    def cell(obj: Object) -> str:
        hard, used = dig(obj, "status", "hard") or {}, dig(obj, "status", "used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _missing_level(obj: Object) -> str:
    return str(condition_of(obj, "Dangling").get("status", "?"))


CONFIG_MAPS = (NAME, Column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())), AGE)
SECRETS = (NAME, at("Type", "type"), Column("Data", lambda o: len(o.get("data") or ())), AGE)
LIMIT_RANGES = (NAME, CREATED_AT)
NAMESPACES = (NAME, at("Status", "status", "phase"), AGE)
NODES = (
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
)
EVENTS = (
    Column("Last Seen", _last_seen),
    at("Type", "type"),
    at("Reason", "reason"),
    Column("Object", _event_object),
    wide("Subobject", lambda o: dig(o, "involvedObject", "fieldPath") or ""),
    wide("Source", _source),
    Column("Message", lambda o: (o.get("message") or o.get("note") or "").strip()),
    wide("First Seen", _first_seen),
    wide("Count", lambda o: dig(o, "series", "count") or o.get("count") or 1),
    Column("Name", NAME.cell, priority=1, format="name"),
)
LEASES = (NAME, at("Holder", "spec", "holderIdentity"), AGE)
PRIORITY_CLASSES = (
    NAME,
    at("Value", "value", default=0, kind="integer"),
    Column("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
    AGE,
    at("PreemptionPolicy", "preemptionPolicy"),
)
RESOURCE_CLAIMS = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    at("Node", "spec", "nodeName"),
    at("Driver", "spec", "driver"),
    at("Pool", "spec", "pool", "name"),
    AGE,
)
RESOURCE_QUOTAS = (NAME, Column("Request", _quota(False)), Column("Limit", _quota(True)), AGE)
COMPONENT_STATUSES = (NAME, at("Status", "status"), at("Message", "message"), at("Error", "error"))
RUNTIME_CLASSES = (NAME, at("Handler", "handler"), AGE)
FLOW_SCHEMAS = (
    NAME,
    at("PriorityLevel", "spec", "priorityLevelConfiguration", "name"),
    at("MatchingPrecedence", "spec", "matchingPrecedence", default=0),
    at("DistinguisherMethod", "spec", "distinguisherMethod", "type", default=NONE),
    AGE,
    Column("MissingPL", _missing_level),
)
PRIORITY_LEVELS = (
    NAME,
    at("Type", "spec", "type"),
    at("NominalConcurrencyShares", "spec", "limited", "nominalConcurrencyShares", default=NONE),
    at("Queues", "spec", "limited", "limitResponse", "queuing", "queues", default=NONE),
    at("HandSize", "spec", "limited", "limitResponse", "queuing", "handSize", default=NONE),
    at("QueueLengthLimit", "spec", "limited", "limitResponse", "queuing", "queueLengthLimit", default=NONE),
    AGE,
)
