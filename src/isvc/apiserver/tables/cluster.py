"""Columns of what a cluster consists of beside workloads: nodes, events, configuration, access."""

from __future__ import annotations

from typing import Any

from isvc.apiserver.tables.columns import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    age,
    at,
    count,
    listed,
    since,
    wide,
)
from isvc.kube.objects import Object, dig


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


def _role(binding: Object) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind')}/{role.get('name')}"


def _claim_state(claim: Object) -> str:
    """How far a claim has come, as kubectl says it."""
    states = ["deleted"] if dig(claim, "metadata", "deletionTimestamp") else []
    states += ["allocated"] if dig(claim, "status", "allocation") else []
    states += ["reserved"] if dig(claim, "status", "reservedFor") else []
    return ",".join(states or ["pending"])


CONFIG_MAPS = (NAME, Column("Data", lambda o: len(o.get("data") or ()) + len(o.get("binaryData") or ())), AGE)
SECRETS = (NAME, at("Type", "type"), count("Data", "data"), AGE)
SERVICE_ACCOUNTS = (NAME, count("Secrets", "secrets"), AGE)
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
    wide("Source", lambda o: dig(o, "source", "component") or o.get("reportingComponent", "")),
    Column("Message", lambda o: (o.get("message") or o.get("note") or "").strip()),
    wide("First Seen", lambda o: since(o.get("firstTimestamp") or dig(o, "metadata", "creationTimestamp"))),
    wide("Count", lambda o: dig(o, "series", "count") or o.get("count") or 1),
    Column("Name", NAME.cell, priority=1, format="name"),
)
LEASES = (NAME, at("Holder", "spec", "holderIdentity"), AGE)
ROLES = (NAME, CREATED_AT)
ROLE_BINDINGS = (NAME, Column("Role", _role), AGE)
DEFINITIONS = (NAME, CREATED_AT)
WEBHOOKS = (NAME, count("Webhooks", "webhooks"), AGE)
PRIORITY_CLASSES = (
    NAME,
    at("Value", "value", default=0, kind="integer"),
    Column("Global-Default", lambda o: bool(o.get("globalDefault")), "boolean"),
    AGE,
)
RESOURCE_CLAIMS = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    at("Node", "spec", "nodeName"),
    at("Driver", "spec", "driver"),
    at("Pool", "spec", "pool", "name"),
    AGE,
)
