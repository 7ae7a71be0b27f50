"""Bodies that are almost right, with junk in random places: always a 2xx or a 4xx, never a crash."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fuzzing import seeds

from isvc.apiserver.refusals import Unspecific
from isvc.apiserver.request import Request
from isvc.kube.errors import ApiError

JUNK: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, 1.5, "", "x", "10", "a/b", "1Gi", [], {}, [None], [1], ["x"], {"a": None},
    {"a": 1}, {"": {}}, [[]], [{}], "2026-01-01T00:00:00Z", "é\u0000",
]  # fmt: skip
CONTAINER = {
    "name": "c",
    "image": "i",
    "env": [{"name": "A", "value": "1"}],
    "ports": [{"containerPort": 80}],
    "resources": {"limits": {"cpu": "1"}},
    "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {}}]},
}
SELECTOR = {"matchLabels": {"a": "b"}}
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
RULE = {"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
ITEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^[a-z]*$"}, "v": {"type": "integer"}},
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}
FOO_SPEC = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 1, "minimum": 0},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "number": {"x-kubernetes-int-or-string": True},
        "items": ITEMS,
    },
    "x-kubernetes-validations": [{"rule": "!has(self.replicas) || self.replicas < 100"}],
}


def definition(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": FOO_SPEC, "status": {"type": "object"}}}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    version["subresources"] = {"status": {}, "scale": scale}
    version["additionalPrinterColumns"] = [{"name": "R", "type": "integer", "jsonPath": ".spec.replicas"}]
    names = {"plural": "foos", "kind": "Foo"}
    return {"spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}}


#: collection -> (kind, what an object of it holds)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "/api/v1/namespaces/default/configmaps": ("ConfigMap", {"data": {"k": "v"}}),
    "/api/v1/namespaces/default/secrets": ("Secret", {"stringData": {"k": "v"}, "type": "Opaque"}),
    "/api/v1/namespaces/default/services": ("Service", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    "/api/v1/namespaces/default/pods": ("Pod", {"spec": TEMPLATE["spec"], "status": {"phase": "Running"}}),
    "/api/v1/namespaces/default/events": ("Event", {"involvedObject": {"kind": "Pod", "namespace": "default"}}),
    "/api/v1/namespaces": ("Namespace", {"spec": {}}),
    "/api/v1/nodes": ("Node", {"status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}}),
    "/apis/apps/v1/namespaces/default/deployments": (
        "Deployment",
        {"spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}},
    ),
    "/apis/apps/v1/namespaces/default/statefulsets": (
        "StatefulSet",
        {"spec": {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}},
    ),
    "/apis/batch/v1/namespaces/default/jobs": (
        "Job",
        {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}},
    ),
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers": (
        "HorizontalPodAutoscaler",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, "metrics": [CPU]}},
    ),
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses": ("Ingress", {"spec": {"rules": [RULE]}}),
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles": (
        "Role",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ),
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": ("Lease", {"spec": {"leaseDurationSeconds": 15}}),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ("CustomResourceDefinition", definition("other.io")),
    "/apis/f.io/v1/namespaces/default/foos": (
        "Foo",
        {"spec": {"items": [{"name": "x", "v": 1}], "mode": "a", "any": {"q": 1}, "number": "5"}},
    ),
}
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY, JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def spoil(value: Any, dice: random.Random) -> Any:
    """A copy with up to three values replaced, removed or repeated."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        found = list(places(value))
        if not found:
            break
        *path, last = dice.choice(found)
        parent = value
        for step in path:
            parent = parent[step]
        action = dice.random()
        if action < 0.75:
            parent[last] = copy.deepcopy(dice.choice(JUNK))
        elif action < 0.9:
            del parent[last]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[last]))
        else:
            parent[dice.choice(["x", "name", "$patch"])] = copy.deepcopy(dice.choice(JUNK))
    return value


def requests(dice: random.Random) -> Iterator[tuple[str, str, str, Any, str]]:
    """Method, path, query, body and content type, without end."""
    while True:
        collection = dice.choice(list(KINDS))
        kind, held = KINDS[collection]
        parts = collection.split("/")
        name = f"n{dice.randrange(4)}" if kind != "CustomResourceDefinition" else "foos.other.io"
        meta = {"name": name, "labels": {"a": "b"}, "finalizers": dice.choice([[], [], ["a.io/b"]])}
        owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}
        api_version = parts[2] if parts[1] == "api" else f"{parts[2]}/{parts[3]}"
        whole = {"apiVersion": api_version, "kind": kind, "metadata": {**meta, "ownerReferences": [owner]}, **held}
        path = f"{collection}/{name}" + dice.choice(["", "", "/status", "/scale"])
        part = {key: value for key, value in whole.items() if key not in ("apiVersion", "kind")}
        pointer = "/" + "/".join(map(str, dice.choice(list(places(whole)))))
        operation = {
            "op": dice.choice(["add", "remove", "replace", "test"]),
            "path": pointer,
            "value": dice.choice(JUNK),
        }
        options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0, "preconditions": {"uid": "x"}}
        applied = f"fieldManager=m{dice.randrange(2)}&force=true"
        yield dice.choice(
            [
                ("POST", collection, "", spoil(whole, dice), "application/json"),
                ("POST", collection, "fieldValidation=Strict", spoil(whole, dice), "application/json"),
                ("POST", collection, "", whole, "application/json"),
                ("PUT", path, "", spoil(whole, dice), "application/json"),
                ("PATCH", path, "", spoil(part, dice), MERGE),
                ("PATCH", path, "", spoil(part, dice), STRATEGIC),
                ("PATCH", path, applied, spoil(whole, dice), APPLY),
                ("PATCH", path, "", [operation], JSON_PATCH),
                ("DELETE", f"{collection}/{name}", "", spoil(options, dice), "application/json"),
                ("GET", collection, "", None, ""),
            ]
        )


@pytest.mark.parametrize("seed", seeds(3))
async def test_no_body_is_answered_with_500(http, seed):
    server = http.server
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await http.create(crds, metadata={"name": "foos.f.io"}, **definition("f.io"))
    done = 0
    stream = requests(random.Random(seed))
    for _ in range(700):
        method, path, query, body, kind = next(stream)
        headers = {"authorization": f"Bearer {server.identity.admin_token}", "content-type": kind, "accept": TABLE}
        data = b"" if body is None else json.dumps(body).encode()
        try:
            answer = server.handle(Request(method, path, query, headers, data), None)
            if not hasattr(answer, "status"):
                answer = await answer
        except (Unspecific, RecursionError):
            continue  # a 500 on purpose, as Kubernetes does, or as 400 by the connection
        except Exception as error:
            if not isinstance(error, ApiError) or error.status_code >= 500:
                pytest.fail(f"{method} {path} {query} {kind} {body}: {error!r}")
        else:
            done += answer.status < 300
    assert done > 100
    assert (await http.ask("GET", "/readyz")).text == "ok"
