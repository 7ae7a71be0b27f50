"""What a Revision runs as: a Deployment, and the Service by which the gateway finds its pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.kube.objects import Object, annotations_of, dig, labels_of, name_of, namespace_of, uid_of
from isvc.local.knative.kinds import CONFIGURATION, REVISION, REVISION_UID, SERVICE, deployment_name
from isvc.serving import annotations as names
from isvc.serving.pods import agent

DEFAULT_PORT: Final = 8080
PORT: Final = 80
PROGRESS_DEADLINE_SECONDS: Final = 600
_OF_REVISION: Final = ("containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds", "idleTimeoutSeconds")
_NOT_COPIED: Final = ("autoscaling.knative.dev/", "serving.knative.dev/creator", "serving.knative.dev/lastModifier")


def deployment_of(revision: Object, replicas: int) -> Object:
    labels = _labels(revision)
    annotations = {key: value for key, value in annotations_of(revision).items() if not key.startswith(_NOT_COPIED)}
    spec = {key: value for key, value in revision["spec"].items() if key not in _OF_REVISION}
    containers = [_container(each, revision) for each in spec["containers"]]
    metadata = {"labels": labels, "annotations": annotations}
    return {
        "metadata": {"name": deployment_name(name_of(revision)), "namespace": namespace_of(revision), **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {REVISION_UID: uid_of(revision)}},
            "progressDeadlineSeconds": PROGRESS_DEADLINE_SECONDS,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            "template": {"metadata": metadata, "spec": {**spec, "containers": containers}},
        },
    }


def service_of(revision: Object) -> Object:
    """Returns the Service; its port is the agent's where one stands before the model server, as a queue-proxy would."""
    port = agent.PORT if asks_for_agent(revision) else user_port(revision)
    protocol = {"appProtocol": "kubernetes.io/h2c"} if _is_h2c(revision) else {}
    return {
        "metadata": {"name": name_of(revision), "namespace": namespace_of(revision), "labels": _labels(revision)},
        "spec": {
            "selector": {REVISION_UID: uid_of(revision)},
            "ports": [{"name": "http", "port": PORT, "targetPort": port, "protocol": "TCP", **protocol}],
        },
    }


def asks_for_agent(revision: Object) -> bool:
    return bool(annotations_of(revision).keys() & {names.LOGGER, names.PULLER, names.BATCHER})


def user_port(revision: Object) -> int:
    """Returns the port on which the first container with one takes requests."""
    return int(next((port["containerPort"] for port in _ports(revision)), DEFAULT_PORT))


def _is_h2c(revision: Object) -> bool:
    return any(port.get("name") == "h2c" for port in _ports(revision))


def _ports(revision: Object) -> Iterator[Object]:
    return (port for each in revision["spec"]["containers"] for port in each.get("ports") or ())


def _labels(revision: Object) -> dict[str, str]:
    name = name_of(revision)
    return {"app": name, **labels_of(revision), REVISION: name, REVISION_UID: uid_of(revision)}


def _container(container: Object, revision: Object) -> Object:
    """Returns a container with Knative's variables; that which takes requests is ready when it accepts connections."""
    serves = bool(container.get("ports")) or len(revision["spec"]["containers"]) == 1
    if not serves:
        return container
    port = user_port(revision)
    values = {
        "PORT": str(port),
        "K_REVISION": name_of(revision),
        "K_CONFIGURATION": labels_of(revision).get(CONFIGURATION, ""),
        "K_SERVICE": labels_of(revision).get(SERVICE, ""),
    }
    env = [{"name": name, "value": value} for name, value in values.items()]
    ports = container.get("ports") or [{"containerPort": port, "name": "user-port", "protocol": "TCP"}]
    return {
        **container,
        "name": container.get("name") or "user-container",
        "ports": ports,
        "env": [*(container.get("env") or ()), *env],
        "readinessProbe": _readiness_probe(container.get("readinessProbe"), port),
    }


def _readiness_probe(given: Object | None, port: int) -> Object:
    """Makes the probe ask often where nobody says how often, and the port that takes requests where none is named."""
    probe = {"periodSeconds": 1, "successThreshold": 1, **(given or {"tcpSocket": {}})}
    for action in ("httpGet", "tcpSocket", "grpc"):
        if action in probe and not dig(probe, action, "port"):
            probe[action] = {**probe[action], "port": port}
    if not probe["periodSeconds"]:
        probe["periodSeconds"] = 1
    return probe
