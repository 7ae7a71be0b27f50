"""Deployments: one per component, and a second one for the workers of a multi-node predictor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.api.modes import DeploymentMode
from isvc.engine.plan import Child
from isvc.engine.policies import SHARED_WITH_AUTOSCALER, WORKLOAD
from isvc.kube.objects import Object
from isvc.kube.quantity import is_whole_number
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving import names
from isvc.serving.config.sections import DeployConfig
from isvc.serving.containers import MODEL_SERVER, TRANSFORMER
from isvc.serving.workload.component import Component, Worker

DEFAULT_PORT: Final = 8080
POD_DEFAULTS: Final[Mapping[str, Any]] = {
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
CONTAINER_DEFAULTS: Final[Mapping[str, Any]] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
PROBE_DEFAULTS: Final[Mapping[str, Any]] = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}


def deployments(component: Component, deploy: DeployConfig, *, woken: bool = False) -> list[Child]:
    """Returns the Deployments of a component; one that is `woken` gets the replica that no autoscaler would start."""
    built = [_deployment(component, deploy, woken=woken)]
    if component.worker is not None:
        built.append(_workers(component, component.worker, deploy))
    return built


def _deployment(component: Component, deploy: DeployConfig, *, woken: bool) -> Child:
    manifest = _manifest(component.metadata(), names.app(component.name), component.pod, component.spec, deploy)
    fixed = component.autoscaler == "none"
    if fixed and component.spec.min_replicas is not None:
        manifest["spec"]["replicas"] = component.spec.min_replicas
    elif woken:
        manifest["spec"]["replicas"] = max(component.spec.min_replicas or 1, 1)
    return Child(DEPLOYMENTS, manifest, policy=WORKLOAD if fixed or woken else SHARED_WITH_AUTOSCALER)


def _workers(component: Component, worker: Worker, deploy: DeployConfig) -> Child:
    metadata: Object = {
        "name": worker.name,
        "namespace": component.namespace,
        "labels": dict(worker.labels),
        "annotations": dict(worker.annotations),
    }
    manifest = _manifest(metadata, names.worker_app(component.name), worker.pod, component.spec, deploy)
    manifest["spec"]["replicas"] = worker.replicas
    if manifest["spec"]["strategy"].get("type") == "RollingUpdate":
        # A group works only in full: the old one serves until the new one is complete.
        manifest["spec"]["strategy"]["rollingUpdate"] = {"maxUnavailable": "0%", "maxSurge": "100%"}
    return Child(DEPLOYMENTS, manifest, policy=WORKLOAD)


def _manifest(metadata: Object, app: str, pod: Object, own: ComponentExtensionSpec, deploy: DeployConfig) -> Object:
    metadata = {**metadata, "labels": {**metadata.get("labels", {}), "app": app}}
    spec: Object = {
        "selector": {"matchLabels": {"app": app}},
        "template": {"metadata": metadata, "spec": with_defaults(pod)},
    }
    if own.deployment_strategy:
        spec["strategy"] = own.deployment_strategy
    else:
        spec |= {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _rollout(deploy)},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        }
    return DEPLOYMENTS.manifest(metadata, spec=spec)


def _rollout(deploy: DeployConfig) -> Object:
    """Returns the configured rollout, which only counts where Standard is the default mode."""
    rollout: Object = {"maxUnavailable": "25%", "maxSurge": "25%"}
    strategy = deploy.deployment_rollout_strategy
    configured = strategy.default_rollout if strategy else None
    if configured is not None and deploy.default_deployment_mode == DeploymentMode.STANDARD:
        if configured.max_surge:
            rollout["maxSurge"] = _count_or_share(configured.max_surge)
        if configured.max_unavailable:
            rollout["maxUnavailable"] = _count_or_share(configured.max_unavailable)
    return rollout


def _count_or_share(text: str) -> int | str:
    """Turns the text of a setting into a number where it is one: Kubernetes wants a number of pods as such."""
    return int(text) if is_whole_number(text) else text


def with_defaults(pod: Object) -> Object:
    """Returns the pod spec with what the API server would fill in, and a readiness probe for containers that serve."""
    missing = {key: value for key, value in POD_DEFAULTS.items() if pod.get(key) in (None, "")}
    return {**pod, **missing, "containers": [_container(container) for container in pod.get("containers") or ()]}


def _container(container: Object) -> Object:
    missing: Object = {key: value for key, value in CONTAINER_DEFAULTS.items() if not container.get(key)}
    if container.get("name") in (MODEL_SERVER, TRANSFORMER) and container.get("readinessProbe") is None:
        ports = container.get("ports")
        missing["readinessProbe"] = {
            "tcpSocket": {"port": ports[0]["containerPort"] if ports else DEFAULT_PORT},
            **PROBE_DEFAULTS,
        }
    return {**container, **missing}
