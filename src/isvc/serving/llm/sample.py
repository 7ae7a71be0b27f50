"""The service that configurations are tried with before they are stored.

It has what a template may expect of a service that uses everything: several nodes, a prefill workload, a router with a
scheduler. What it lacks (a pipeline, scaling, tracing, cache offloading), a template has to ask for first, with
`{{ if }}`: there are services without it.
"""

from __future__ import annotations

from typing import Any

from isvc.kube.objects import Object


def sample_service() -> Object:
    return {
        "metadata": {
            "name": "sample",
            "namespace": "sample-namespace",
            "labels": {
                "app.kubernetes.io/component": "inference",
                "app.kubernetes.io/instance": "sample",
                "app.kubernetes.io/name": "llminferenceservice",
            },
            "annotations": {"serving.kserve.io/model-uri": "llama"},
        },
        "spec": {
            "model": {"uri": "llama", "name": "llama"},
            "replicas": 2,
            "parallelism": {"tensor": 1, "data": 4, "dataLocal": 2, "expert": True},
            "template": _pod(_server("2", "4Gi", env=[{"name": "MODEL_NAME", "value": "llama"}] * 2))
            | {
                "nodeSelector": {"node.kubernetes.io/instance-type": "gpu"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            },
            "worker": _pod(_server("1", "2Gi", gpus="1")),
            "prefill": {
                "replicas": 1,
                "parallelism": {"tensor": 1, "pipeline": 1},
                "template": _pod(_server("4", "8Gi", gpus="2")),
            },
            "router": {
                "route": {"http": {"refs": [{"name": "route"}]}},
                "gateway": {"refs": [{"name": "gateway", "namespace": "gateways"}]},
                "scheduler": {"pool": {"ref": {"name": "pool"}}, "template": _pod(_scheduler())},
            },
        },
    }


def _pod(container: Object) -> Object:
    return {"containers": [container]}


def _server(cpu: str, memory: str, *, gpus: str = "", env: list[Any] | None = None) -> Object:
    amounts = {"cpu": cpu, "memory": memory} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return {
        "name": "kserve-container",
        "image": "example.com/server:v1",
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "env": env or [],
        "resources": {"requests": amounts, "limits": amounts},
    }


def _scheduler() -> Object:
    ports = {"grpc": 9002, "grpc-health": 9003, "zmq": 5557}
    return {
        "name": "scheduler",
        "image": "example.com/scheduler:v1",
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "env": [{"name": "POOL_NAME", "value": "pool"}] * 3,
        "resources": {"requests": {"cpu": "256m", "memory": "500Mi"}},
    }
