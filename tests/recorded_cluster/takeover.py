"""A cluster as KServe left it: the last recorded state of every case of a profile, stored on a real kube-apiserver.

The recordings leave out what differs from run to run, so identities, times, addresses and certificates are made anew.
"""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from tests.recorded_cluster.servers import Servers

from isvc.kube.objects import Object
from isvc.kube.patch import merge_patch
from isvc.wire.x509.issue import AUTHORITY_LIFE, issue_authority, issue_serving

READS = {"get", "list", "watch"}
LONG_AGO = "2026-01-01T00:00:00Z"


class TakeOver:
    """KServe's end states of one profile, over which our managers are started; `changes` says what they did."""

    def __init__(self, servers: Servers, profile: str) -> None:
        self.servers, self.run = servers, servers.prepare(profile)
        self.namespaces = {case.namespace for case in self.run.cases}

    def changes(self) -> list[str]:
        """One line for each difference that the managers made, and for each object that they wrote in vain."""
        run, missing = self.run, self._remove_kinds()
        run._install_base()
        for case in run.cases:
            self._store(case)
        before = self._state()
        try:
            run._start_controllers()
            run._register_webhooks()
            run._settle(self.namespaces)
            after = self._state()
        finally:
            run._stop_controllers()
            self.servers.clear(run)
            self._restore_kinds(missing)
        return sorted(self._differences(before, after, set(self._writes(self.servers.audit()))))

    def _remove_kinds(self) -> list[Object]:
        """Delete the kinds that the profile is without; gives them back as they can be created again."""
        removed = []
        for name in self.run.profile.get("withoutCrds", []):
            crd = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name},
            }
            found = self.run.kube.get(crd)
            if found is not None:
                metadata = {key: found["metadata"].get(key) or {} for key in ("name", "annotations")}
                removed.append({**crd, "metadata": metadata, "spec": found["spec"]})
                self.run.kube.delete(crd)
                while self.run.kube.get(crd) is not None:
                    time.sleep(0.05)
        self.run.kube._resources.clear()
        return removed

    def _restore_kinds(self, removed: list[Object]) -> None:
        for crd in removed:
            self.run.kube.create(crd)
        for crd in removed:
            spec = crd["spec"]
            version = next(each["name"] for each in spec["versions"] if each["served"])
            while not self.run.kube.has(f"{spec['group']}/{version}", spec["names"]["kind"]):
                time.sleep(0.05)

    def _state(self) -> dict[str, Object]:
        """What is there, by namespace and name."""
        found = sys.modules["snapshot"].snapshot(self.run.kube, self.namespaces)
        return {f"{space}/{key}": obj for space, objects in found.items() for key, obj in objects.items()}

    def _differences(self, before: dict[str, Object], after: dict[str, Object], written: set[str]) -> Iterator[str]:
        differences = sys.modules["snapshot"].differences
        for key in sorted(before.keys() | after.keys()):
            if key not in after or key not in before:
                yield f"{'deleted' if key in before else 'created'} {key}"
                continue
            for line in differences(before[key], after[key]):
                yield f"changed {key} {line}"
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        for key in sorted(written - changed):
            yield f"rewrote {key}"

    def _writes(self, audit: Iterable[Object]) -> Iterator[str]:
        """What the managers wrote in the namespaces of the cases."""
        kinds = {
            (version.rpartition("/")[0], plural): kind
            for (version, kind), (plural, _) in self.run.kube._resources.items()
        }
        for event in audit:
            target = event.get("objectRef") or {}
            group, resource = target.get("apiGroup", ""), target.get("resource")
            done = (event.get("responseStatus") or {}).get("code", 500) < 300
            ours = event["userAgent"].startswith("isvc/") and event["verb"] not in READS
            ours = ours and "dryRun=" not in event["requestURI"]
            if ours and done and target.get("namespace") in self.namespaces and resource != "events":
                kind = kinds[group, resource]
                yield f"{target['namespace']}/{kind}{'.' + group if group else ''}/{target.get('name', '')}"

    # -- storing what was recorded ----------------------------------------------------------------------------------

    def _store(self, case: Any) -> None:
        kube = self.run.kube
        kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}})
        objects = yaml.load(case.golden.read_text(), yaml.CSafeLoader)[-1]["objects"]
        uids: dict[tuple[str, str], str] = {}
        waiting = [obj for key, obj in objects.items() if not key.startswith("Pod/")]
        for obj in waiting:
            add_empty_values(obj.get("spec"), as_written(case.steps, obj).get("spec"))
        waiting.sort(key=lambda obj: obj["kind"] == "Secret")  # certificates name the addresses of Services
        while waiting:
            later = []
            for obj in waiting:
                owners = obj["metadata"].get("ownerReferences") or []
                if any((owner["kind"], owner["name"]) not in uids for owner in owners):
                    later.append(obj)
                    continue
                for owner in owners:
                    owner["uid"] = uids[owner["kind"], owner["name"]]
                if obj["kind"] == "Secret":
                    self._certify(obj)
                uids[obj["kind"], obj["metadata"]["name"]] = self._create(obj)
            if len(later) == len(waiting):
                return  # their owners are gone, and so would they be
            waiting = later

    def _create(self, obj: Object) -> str:
        kube, status = self.run.kube, obj.pop("status", None)
        created = kube.create(obj)
        if status is not None:
            with_required(status)
            if obj["kind"] == "Deployment":
                status["observedGeneration"] = created["metadata"]["generation"]
            kube.patch(obj, {"status": status}, subresource="status")
        return str(created["metadata"]["uid"])

    def _certify(self, secret: Object) -> None:
        if "<pem>" not in (secret.get("data") or {}).values():
            return
        namespace = secret["metadata"]["namespace"]
        services = self.run.kube.list("v1", "Service", namespace)
        hosts = ["localhost", "127.0.0.1", *filter(is_address, (each["spec"].get("clusterIP") for each in services))]
        for service in services:
            host = f"{service['metadata']['name']}.{namespace}.svc"
            hosts += [host, f"{host}.cluster.local"]
        now = datetime.now(UTC)
        authority = issue_authority("KServe", now)
        pair = issue_serving(authority, tuple(hosts), now, life=AUTHORITY_LIFE)
        parts = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.certificate}
        secret["data"] = {name: base64.b64encode(parts[name]).decode() for name in secret["data"]}
        expiry = (now + timedelta(days=3000)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, value in secret["metadata"].get("annotations", {}).items():
            if value == "<time>":
                secret["metadata"]["annotations"][name] = expiry


def is_address(text: object) -> bool:
    return bool(text) and text != "None"


def as_written(steps: Iterable[Object], obj: Object) -> Object:
    """The object as the steps of its case leave it, by what they apply and update."""
    written: Object = {}
    for step in steps:
        for verb in ("apply", "update"):
            entries = step.get(verb) or []
            for entry in entries if isinstance(entries, list) else [entries]:
                if (entry["kind"], entry["metadata"]["name"]) == (obj["kind"], obj["metadata"]["name"]):
                    written = merge_patch.apply(written, entry)
    return written


def add_empty_values(recorded: Any, written: Any) -> None:
    """Put back the empty objects and texts that recordings leave out: `batcher: {}` means something."""
    if isinstance(recorded, dict) and isinstance(written, dict):
        for name, value in written.items():
            if name not in recorded and is_empty(value):
                recorded[name] = value
            add_empty_values(recorded.get(name), value)
    elif isinstance(recorded, list) and isinstance(written, list) and len(recorded) == len(written):
        for left, right in zip(recorded, written, strict=True):
            add_empty_values(left, right)


def is_empty(value: Any) -> bool:
    """Whether a recording leaves the value out: `route: {http: {}}`, too."""
    return value == "" or (isinstance(value, dict) and all(map(is_empty, value.values())))


def with_required(value: Any) -> None:
    """Put back what the schemas of statuses ask for: the times of conditions, and the group of core kinds."""
    if isinstance(value, dict):
        if {"type", "status"} <= value.keys():
            value.setdefault("lastTransitionTime", LONG_AGO)
        if value.get("kind") == "Service" and "group" not in value and "apiVersion" not in value:
            value["group"] = ""
        for item in value.values():
            with_required(item)
    elif isinstance(value, list):
        for item in value:
            with_required(item)
