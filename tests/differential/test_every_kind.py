"""Every built-in kind on the embedded API server and on a real one: the same requests get the same answers.

Runs with --cluster=kube-apiserver only, as it needs both. `known_differences.yaml` lists what differs.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.differential.normal import differences, normal
from tests.wire import Wire

FOLDER = Path(__file__).parent
SAMPLES: dict[str, Any] = yaml.safe_load((FOLDER / "samples.yaml").read_text())
KNOWN: dict[str, list[dict[str, str]]] = yaml.safe_load((FOLDER / "known_differences.yaml").read_text())
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def discovered(wire: Wire) -> dict[str, dict[str, Any]]:
    """Built-in resource, as kubectl names it, to what discovery says of it: the path, and its subresources."""
    definitions = wire.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")[1]["items"]
    custom = {each["metadata"]["name"] for each in definitions}
    groups = wire.ask("GET", "/apis")[1]["groups"]
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found: dict[str, dict[str, Any]] = {}
    for version in versions:
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        group = version.partition("/")[0] if "/" in version else ""
        for each in wire.ask("GET", base)[1]["resources"]:
            del each["verbs"][8:]
            each.pop("storageVersionHash", None)
            plural, _, subresource = each["name"].partition("/")
            entry = found.setdefault(f"{plural}.{group}" if group else plural, {"subresources": {}})
            if subresource:
                entry["subresources"][subresource] = each
            else:
                entry |= {**each, "base": base, "apiVersion": version}
    return {name: entry for name, entry in found.items() if name not in custom}


def check(about: str, found: list[str]) -> None:
    """Fails on differences that are not known, and on known ones that are no more."""
    known = [each["where"] for each in KNOWN.get(about, ())]
    left = [line for line in found if not any(re.search(where, line) for where in known)]
    gone = [where for where in known if not any(re.search(where, line) for line in found)]
    assert not left, "\n".join(left)
    assert not gone, f"known differences that are no more: {gone}"


def test_discovery_is_the_same(both: tuple[Wire, Wire]) -> None:
    real, ours = (discovered(wire) for wire in both)
    names = sorted(real | ours)
    check("discovery", [f"{name}: {line}" for name in names for line in differences(real.get(name), ours.get(name))])


def test_every_kind_has_a_sample(both: tuple[Wire, Wire]) -> None:
    made = {name for name, each in discovered(both[0]).items() if {"create", "list"} <= set(each["verbs"])}
    assert made - {"customresourcedefinitions.apiextensions.k8s.io"} == set(SAMPLES)


class Play:
    """The life of one object on one server."""

    def __init__(self, wire: Wire, resource: str, entry: dict[str, Any], namespace: str) -> None:
        self.wire = wire
        sample = json.loads(json.dumps(SAMPLES[resource]).replace("NAMESPACE", namespace))
        self.status = sample.pop("status", None) if resource != "nodes" else SAMPLES[resource]["status"]
        self.name = (sample.get("metadata") or {}).get("name") or "tested"
        scope = f"/namespaces/{namespace}" if entry["namespaced"] else ""
        self.collection = f"{entry['base']}{scope}/{entry['name']}"
        self.one = f"{self.collection}/{self.name}"
        metadata = {"name": self.name, **({"namespace": namespace} if entry["namespaced"] else {})}
        self.obj = {"apiVersion": entry["apiVersion"], "kind": entry["kind"], **sample, "metadata": metadata}
        self.subresources = entry["subresources"]

    def steps(self) -> Iterator[tuple[str, tuple[int, Any]]]:
        ask, one = self.wire.ask, self.one
        start = ask("GET", self.collection)[1]["metadata"]["resourceVersion"]
        yield "create dry-run", ask("POST", f"{self.collection}?dryRun=All", self.obj)
        yield "create", ask("POST", self.collection, self.obj)
        yield "create again", ask("POST", self.collection, self.obj)
        yield "get", ask("GET", one)
        yield "merge", ask("PATCH", one, {"metadata": {"labels": {"by": "merge"}}}, MERGE)
        operation = {"op": "add", "path": "/metadata/labels/json", "value": "patch"}
        yield "json patch", ask("PATCH", one, [operation], JSON_PATCH)
        yield "strategic", ask("PATCH", one, {"metadata": {"annotations": {"by": "strategic"}}}, STRATEGIC)
        applied = {**self.obj, "metadata": {**self.obj["metadata"], "labels": {"by": "apply"}}}
        yield "apply", ask("PATCH", f"{one}?fieldManager=tester&force=true", applied, APPLY)
        live = ask("GET", one)[1]
        yield "update", ask("PUT", one, {**live, "metadata": {**live["metadata"], "labels": {"by": "update"}}})
        yield "update without version", ask("PUT", one, self.obj)
        if "status" in self.subresources:
            yield "status", ask("PATCH", f"{one}/status", {"status": self.status}, MERGE)
            yield "get status", ask("GET", f"{one}/status")
        if "scale" in self.subresources:
            yield "scale", ask("PATCH", f"{one}/scale", {"spec": {"replicas": 2}}, MERGE)
            yield "get scale", ask("GET", f"{one}/scale")
        yield "unknown field", ask("POST", f"{self.collection}?fieldValidation=Strict&dryRun=All", {**self.obj, "x": 1})
        yield "table", self._table()
        yield "list", ask("GET", f"{self.collection}?fieldSelector=metadata.name={self.name}")
        yield "delete", ask("DELETE", one, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        gone = ask("GET", one)
        if gone[0] == 200:  # something protects it
            ask("PATCH", one, {"metadata": {"finalizers": None}}, MERGE)
            ask(
                "PUT", f"{one}/finalize", {**gone[1], "spec": {"finalizers": []}}
            ) if "finalize" in self.subresources else None
        yield "get deleted", ask("GET", one)
        last = {**self.obj, "metadata": {**self.obj["metadata"], "name": "zz-last"}}
        if self.name == "tested" and ask("POST", self.collection, last)[0] == 201:
            events = self.wire.watch(self.collection, start, "zz-last")
            ask("DELETE", f"{self.collection}/zz-last")  # a webhook of it would be in the way of other tests
            yield "watch", (200, [each for each in events if each["object"]["metadata"]["name"] == self.name])

    def _table(self) -> tuple[int, Any]:
        path = f"{self.collection}?fieldSelector=metadata.name={self.name}&includeObject=None"
        code, table = self.wire.ask("GET", path, accept=TABLE)
        columns = [(each["name"], each["type"], each["priority"]) for each in table["columnDefinitions"]]
        rows = [[re.sub(r"^\d+s$", "AGE", str(cell)) for cell in row["cells"]] for row in table["rows"]]
        return code, {"columns": columns, "rows": rows}


@pytest.mark.parametrize("resource", sorted(SAMPLES))
def test_a_kind_behaves_the_same(both: tuple[Wire, Wire], resource: str) -> None:
    namespace = f"kind-{uuid.uuid4().hex[:10]}"
    plays = []
    for wire in both:
        assert wire.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
        plays.append(Play(wire, resource, discovered(wire)[resource], namespace).steps())
    found: list[str] = []
    for (step, real), (_, ours) in zip(*plays, strict=True):
        if real[0] != ours[0]:
            found.append(f"{step}: {real[0]} {real[1]} != {ours[0]} {ours[1]}")
        else:
            found += [f"{step}: {line}" for line in differences(normal(real[1]), normal(ours[1]))]
    check(resource, found)
