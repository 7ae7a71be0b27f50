"""What roles grant and what an account did, both as (group, resource, verb), so that they can be compared."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.ports import free_port
from tests.recorded_cluster.servers import BIN, AuditedServer

from isvc.cli import chart
from isvc.kube.objects import Object

ACCOUNTS = {
    "manager": "kserve-controller-manager",
    "llmisvc": "llmisvc-controller-manager",
    "localmodel": "kserve-localmodel-controller-manager",
    "model node": "kserve-localmodelnode-agent",
}
PROGRAMS = {"manager": "isvc-manager", "llmisvc": "llmisvc-manager", "localmodel": "localmodel-manager"}
_POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_BINDINGS = ("ClusterRoleBinding", "RoleBinding")
_DECISION = "authorization.k8s.io/decision"


class Right(NamedTuple):
    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


def role_objects(program: str) -> list[Object]:
    """The account of a program, its roles and the policies that bound them, as the chart has them."""
    objects, account = chart.render("kserve", {"localmodel": {"enabled": True}}), ACCOUNTS[program]
    bindings = [
        obj for obj in objects if obj["kind"] in _BINDINGS and account in (each["name"] for each in obj["subjects"])
    ]
    names = {(obj["roleRef"]["kind"], obj["roleRef"]["name"]) for obj in bindings} | {("ServiceAccount", account)}
    named = [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) in names or obj["kind"] in _POLICIES]
    return named + bindings


def granted(program: str) -> set[Right]:
    rules = (rule for obj in role_objects(program) for rule in obj.get("rules") or ())
    return {Right(*each) for rule in rules for each in product(rule["apiGroups"], rule["resources"], rule["verbs"])}


def kubeconfig(server: AuditedServer, program: str) -> Path:
    """Grants the program what the chart does; returns a kubeconfig with the token of its account."""
    for obj in role_objects(program):
        server.kube.apply(obj)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/kserve/serviceaccounts/{ACCOUNTS[program]}/token"
    config = json.loads(Path(server.cluster.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": server.kube.request("POST", path, review)["status"]["token"]}
    written = Path(server.cluster.dir) / f"{program.replace(' ', '-')}.kubeconfig"
    written.write_text(json.dumps(config))
    return written


@contextlib.contextmanager
def running(server: AuditedServer, program: str, folder: Path) -> Iterator[None]:
    """Runs a manager as the chart does: as the account that it grants rights to, and no other."""
    flags = [f"--webhook-port={free_port()}", "--leader-elect", "--metrics-addr=0", "--health-probe-addr=0"]
    env = {**os.environ, "KUBECONFIG": str(kubeconfig(server, program)), "POD_NAMESPACE": "kserve"}
    with (folder / "manager.log").open("wb") as log:
        process = subprocess.Popen([BIN / PROGRAMS[program], *flags], env=env, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def command(server: AuditedServer, program: str, flags: str) -> str:
    """The manager as its pod runs it, with the token of its account."""
    return f"/usr/bin/env KUBECONFIG={kubeconfig(server, program)} {BIN / PROGRAMS[program]} {flags}"


def of_account(audit: Iterable[Object], program: str) -> list[Object]:
    user = f"system:serviceaccount:kserve:{ACCOUNTS[program]}"
    return [event for event in audit if event["user"].get("username") == user and event.get("objectRef")]


def used(events: Iterable[Object]) -> set[Right]:
    return {right(event) for event in events}


def refused(events: Iterable[Object]) -> set[str]:
    denied = (event for event in events if (event.get("annotations") or {}).get(_DECISION) == "forbid")
    return {f"{right(event)} {event['objectRef'].get('namespace', '')}" for event in denied}


def compare(audit: Iterable[Object], program: str) -> None:
    """Asserts that nothing was refused to a program, and that it used what is granted to it."""
    events = of_account(audit, program)
    assert refused(events) == set()
    unused = {str(right) for right in granted(program) - used(events)}
    allowed, sometimes = unused_on_purpose(program)
    idle, busy = sorted(unused - allowed), sorted(allowed - unused - sometimes)
    assert not idle, f"nothing needs these rights: {idle}"
    assert not busy, f"these rights are used: take them out of unused_rights.yaml: {busy}"


def unused_on_purpose(program: str) -> tuple[set[str], set[str]]:
    """The rights that no case uses, and those of them that one may use when it is overtaken by another writer."""
    entries = yaml.safe_load(Path(__file__).with_name("unused_rights.yaml").read_text())[program]
    assert all(entry["reason"] for entry in entries)
    allowed = {right for entry in entries for right in entry["rights"]}
    return allowed, {right for entry in entries if entry.get("sometimes") for right in entry["rights"]}


def right(event: Any) -> Right:
    target = event["objectRef"]
    resource = target["resource"] + (f"/{target['subresource']}" if target.get("subresource") else "")
    return Right(target.get("apiGroup", ""), resource, event["verb"])
