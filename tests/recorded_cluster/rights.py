"""What roles grant and what an account did, both as (group, resource, verb), so that they can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tests.recorded_cluster.servers import BIN, Servers

from isvc.cli import chart
from isvc.kube.objects import Object

ACCOUNTS = {"manager": "kserve-controller-manager", "llmisvc": "llmisvc-controller-manager"}
PROGRAMS = {"manager": "isvc-manager", "llmisvc": "llmisvc-manager"}
_KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_DECISION = "authorization.k8s.io/decision"


class Right(NamedTuple):
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


def role_objects(controller: str) -> list[Object]:
    """The account of a manager and its roles, as the chart has them."""
    other = {"manager": "llmisvc", "llmisvc": "manager"}[controller]
    return [obj for obj in chart.render("kserve", {other: {"enabled": False}}) if obj["kind"] in _KINDS]


def granted(controller: str) -> set[Right]:
    rules = (rule for obj in role_objects(controller) for rule in obj.get("rules") or ())
    return {Right(*each) for rule in rules for each in product(rule["apiGroups"], rule["resources"], rule["verbs"])}


def command(servers: Servers, controller: str, flags: str) -> str:
    """The manager as its pod runs it, with the token of its account."""
    for obj in role_objects(controller):
        servers.kube.apply(obj)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/kserve/serviceaccounts/{ACCOUNTS[controller]}/token"
    config = json.loads(Path(servers.cluster.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": servers.kube.request("POST", path, review)["status"]["token"]}
    kubeconfig = Path(servers.cluster.dir) / f"{controller}.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    return f"/usr/bin/env KUBECONFIG={kubeconfig} {BIN / PROGRAMS[controller]} {flags}"


def of_account(audit: Iterable[Object], controller: str) -> list[Object]:
    user = f"system:serviceaccount:kserve:{ACCOUNTS[controller]}"
    return [event for event in audit if event["user"].get("username") == user and event.get("objectRef")]


def used(events: Iterable[Object]) -> set[Right]:
    return {right(event) for event in events}


def refused(events: Iterable[Object]) -> set[str]:
    denied = (event for event in events if (event.get("annotations") or {}).get(_DECISION) == "forbid")
    return {f"{right(event)} {event['objectRef'].get('namespace', '')}" for event in denied}


def right(event: Any) -> Right:
    target = event["objectRef"]
    resource = target["resource"] + (f"/{target['subresource']}" if target.get("subresource") else "")
    return Right(target.get("apiGroup", ""), resource, event["verb"])
