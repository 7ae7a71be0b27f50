"""OpenTelemetry settings for containers. What a container says itself stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isvc.api.llm.workload import TracingSpec
from isvc.kube.objects import Object

_SCHEDULER, _SERVER = "inference-scheduler", "inference-server"


def trace_scheduler(container: Object, tracing: TracingSpec, namespace: str, service: str) -> Object:
    """Returns the endpoint picker's container, tracing."""
    arguments = list(container.get("args") or [])
    if not has_flag(arguments, "--tracing") and not has_flag(arguments, "-tracing"):
        arguments.append("--tracing=true")
    return {**container, "args": arguments, "env": _environment(container, _SCHEDULER, tracing, namespace, service)}


def trace_server(container: Object, tracing: TracingSpec, namespace: str, service: str, role: str) -> Object:
    """Makes a model server's container trace; `role` is decode or prefill. Without an endpoint it stays as it is."""
    endpoint = tracing.exporter_endpoint
    if not endpoint:
        return container
    arguments = list(container.get("args") or [])
    for flag, value in (("--otlp-traces-endpoint", endpoint), ("--collect-detailed-traces", "all")):
        if not has_flag(arguments, flag):
            arguments += [flag, value]
    name = f"{_SERVER}-{role}"
    return {**container, "args": arguments, "env": _environment(container, name, tracing, namespace, service)}


def has_flag(arguments: Sequence[str], flag: str) -> bool:
    """Returns whether a flag is given, as `--flag value` or `--flag=value`."""
    return any(each == flag or each.startswith(f"{flag}=") for each in arguments)


def _environment(container: Object, name: str, tracing: TracingSpec, namespace: str, service: str) -> list[Object]:
    given = list(container.get("env") or [])
    known = {variable.get("name") for variable in given}
    settings: list[Object] = [
        {"name": "OTEL_SERVICE_NAME", "value": name},
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": tracing.exporter_endpoint or ""},
        {"name": "OTEL_TRACES_EXPORTER", "value": tracing.exporter or ""},
        {"name": "OTEL_TRACES_SAMPLER", "value": tracing.sampler or ""},
        {"name": "OTEL_TRACES_SAMPLER_ARG", "value": tracing.sampler_arg or ""},
        *_whereabouts(namespace, service),
    ]
    return [*given, *(variable for variable in settings if variable["name"] not in known)]


def _whereabouts(namespace: str, service: str) -> list[Object]:
    node, pod = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME", "OTEL_RESOURCE_ATTRIBUTES_POD_NAME"
    attributes = {
        "k8s.namespace.name": namespace,
        "k8s.node.name": f"$({node})",
        "k8s.pod.name": f"$({pod})",
        "llmisvc.name": service,
    }
    return [
        {"name": node, "valueFrom": _field("spec.nodeName")},
        {"name": pod, "valueFrom": _field("metadata.name")},
        {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": ",".join(f"{key}={each}" for key, each in attributes.items())},
    ]


def _field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
