"""The kinds that sequences are about, and random pieces of their objects: few values, so that writes collide."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.kind import Json, Kind, listed, metadata, some
from tests.differential.more_kinds import MORE_EXAMPLES, MORE_KINDS

GROUP = "differential.isvc.dev"

WIDGET_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "x-kubernetes-validations": [
                {"rule": "self.size <= 4 || self.mode == 'B'", "message": "large widgets are B"},
                {"rule": "!has(oldSelf.fixed) || has(self.fixed)", "message": "fixed stays"},
            ],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                "amount": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "pattern": "^[0-9]+m?$",
                    "x-kubernetes-int-or-string": True,
                },
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "x-kubernetes-list-type": "set"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}},
                    },
                },
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "items": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "size": {"type": "integer"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}

WIDGETS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }
        ],
    },
}


_config_map = some({"metadata": metadata, "data": some({k: st.sampled_from(["1", "2", ""]) for k in "abc"})})

_container = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"]), "image": st.sampled_from(["one:1", "two"])},
    optional={
        "env": listed(
            [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B"}, {"name": "C", "value": ""}]
        ),
        "ports": listed(
            [{"containerPort": 80}, {"containerPort": 81, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}]
        ),
        "args": listed(["x", "y"]),
        "resources": some({"limits": st.sampled_from([{"cpu": "1"}, {"cpu": "1000m", "memory": "1Gi"}, {"cpu": 0.5}])}),
        "imagePullPolicy": st.sampled_from(["Always", "Sometimes"]),
    },
)
_deployment = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "selector": st.sampled_from([{"matchLabels": {"app": "a"}}] * 4 + [{"matchLabels": {"app": "b"}}]),
                "template": st.fixed_dictionaries(
                    {
                        "metadata": st.just({"labels": {"app": "a"}}),
                        "spec": st.fixed_dictionaries(
                            {"containers": st.lists(_container, min_size=1, max_size=2)},
                            optional={
                                "nodeSelector": some({"disk": st.sampled_from(["ssd", "hdd"])}),
                                "volumes": listed([{"name": "v"}, {"name": "w", "emptyDir": {"medium": "Memory"}}]),
                                "tolerations": listed([{"key": "k", "operator": "Exists"}]),
                            },
                        ),
                    }
                ),
            },
            optional={
                "replicas": st.sampled_from([0, 1, 2, -1]),
                "strategy": st.sampled_from([{}, {"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 1}}]),
                "paused": st.booleans(),
                "unknown": st.just(1),
            },
        )
    },
    optional={"metadata": metadata},
)
_deployment_status = some(
    {
        "replicas": st.integers(0, 2),
        "observedGeneration": st.integers(0, 3),
        "conditions": listed([{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "False"}]),
    }
)
_service = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"clusterIP": st.just("None"), "selector": st.sampled_from([{"app": "a"}, {"app": "b"}])},
            optional={
                "ports": st.lists(
                    st.sampled_from(
                        [
                            {"name": "a", "port": 80},
                            {"name": "b", "port": 81, "targetPort": "http"},
                            {"name": "b", "port": 82, "protocol": "UDP"},
                            {"name": "Bad", "port": 83},
                        ]
                    ),
                    max_size=2,
                ),
                "sessionAffinity": st.sampled_from(["None", "ClientIP"]),
            },
        )
    },
    optional={"metadata": metadata},
)
_widget_spec = st.fixed_dictionaries(
    {"size": st.sampled_from([1, 2, 5, 1, 2, 11, "x"])},
    optional={
        "mode": st.sampled_from(["A", "B", "C", None]),
        "fixed": st.sampled_from(["p", "q"]),
        "amount": st.sampled_from([5, "5m", "bad", 1.5]),
        "tags": listed(["r", "s", "toolong"]),
        "ports": listed([{"name": "a"}, {"name": "b", "port": 1}, {"name": "a", "port": 2}, {"port": 3}]),
        "note": st.sampled_from(["n", None]),
        "free": some({"x": st.sampled_from([1, [1, {"y": 2}], None])}),
        "items": listed(["i", "j"]),
        "labels": some({"k": st.sampled_from(["v", "w", None])}),
        "unknown": st.just({"deep": True}),
    },
)
_widget = some({"metadata": metadata, "spec": _widget_spec})
_widget_status = some(
    {
        "phase": st.sampled_from(["On", "Off"]),
        "size": st.integers(0, 2),
        "conditions": listed(
            [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}, {"type": "Z"}]
        ),
    }
)

_secret = some(
    {
        "metadata": metadata,
        "data": st.sampled_from([{"a": "eA=="}, {"a": "eQ=="}, {"a": "bad!"}]),
        "stringData": st.sampled_from([{"a": "z"}, {"b": ""}]),
        "type": st.sampled_from(["Opaque", "isvc.dev/x"]),
        "immutable": st.booleans(),
    }
)
_backend = {"service": {"name": "s", "port": {"number": 80}}}
_path = {"path": "/", "pathType": "Prefix", "backend": _backend}
_ingress = st.fixed_dictionaries(
    {
        "spec": some(
            {
                "rules": listed(
                    [
                        {"host": "a.dev", "http": {"paths": [_path]}},
                        {
                            "host": "a.dev",
                            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _backend}]},
                        },
                        {"host": "b.dev"},
                        {"host": "Bad"},
                        {"http": {"paths": [{"backend": _backend}]}},
                    ],
                    least=1,
                ),
                "defaultBackend": st.just(_backend),
                "ingressClassName": st.sampled_from(["x", "y"]),
                "tls": listed([{"hosts": ["a.dev"]}, {"secretName": "s"}]),
            }
        )
    },
    optional={"metadata": metadata},
)
_autoscaler = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {
                "scaleTargetRef": st.sampled_from(
                    [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}] * 3
                    + [{"kind": "Deployment", "name": ""}]
                ),
                "maxReplicas": st.sampled_from([1, 3, 0]),
            },
            optional={
                "minReplicas": st.sampled_from([1, 2]),
                "metrics": listed(
                    [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                        },
                        {
                            "type": "Resource",
                            "resource": {
                                "name": "memory",
                                "target": {"type": "AverageValue", "averageValue": "1024Mi"},
                            },
                        },
                    ]
                ),
                "behavior": st.sampled_from([{}, {"scaleDown": {"stabilizationWindowSeconds": 5}}]),
            },
        )
    },
    optional={"metadata": metadata},
)
_role = some(
    {
        "metadata": metadata,
        "rules": listed([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, {"verbs": ["get"]}], least=1),
    }
)
_pod = st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(_container, min_size=1, max_size=1)},
            optional={
                "activeDeadlineSeconds": st.sampled_from([5, 9]),
                "restartPolicy": st.sampled_from(["Never", "Always"]),
                "tolerations": listed([{"key": "k", "operator": "Exists"}]),
                "serviceAccountName": st.sampled_from(["sa", "sb"]),
            },
        )
    },
    optional={"metadata": metadata},
)
_pod_status = some(
    {
        "phase": st.sampled_from(["Running", "Failed"]),
        "podIP": st.just("1.2.3.4"),
        "conditions": listed([{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]),
    }
)

KINDS = [
    Kind("/api/v1", "configmaps", "ConfigMap", _config_map),
    Kind("/apis/apps/v1", "deployments", "Deployment", _deployment, _deployment_status),
    Kind("/api/v1", "services", "Service", _service),
    Kind("/api/v1", "secrets", "Secret", _secret),
    Kind("/api/v1", "pods", "Pod", _pod, _pod_status),
    Kind("/apis/networking.k8s.io/v1", "ingresses", "Ingress", _ingress),
    Kind("/apis/autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", _autoscaler),
    Kind("/apis/rbac.authorization.k8s.io/v1", "roles", "Role", _role),
    Kind(f"/apis/{GROUP}/v1", "widgets", "Widget", _widget, _widget_status),
    *MORE_KINDS,
]
LAST: dict[str, Json] = {
    "configmaps": {},
    "deployments": {
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        }
    },
    "services": {"spec": {"clusterIP": "None", "selector": {"app": "a"}}},
    "secrets": {},
    "pods": {"spec": {"containers": [{"name": "main", "image": "b"}]}},
    "ingresses": {"spec": {"defaultBackend": _backend}},
    "horizontalpodautoscalers": {
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    },
    "roles": {},
    "widgets": {"spec": {"size": 1}},
    **MORE_EXAMPLES,
}
