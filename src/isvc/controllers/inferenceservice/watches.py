"""What triggers a reconcile of an InferenceService, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    SERVING_RUNTIMES,
    TRAINED_MODELS,
)
from isvc.controllers.inferenceservice.affected import Affected
from isvc.controllers.inferenceservice.builders import INGRESS_KINDS
from isvc.controllers.inferenceservice.kind import make_kind
from isvc.controllers.inferenceservice.observe import SERVICE_INDEX
from isvc.controllers.inferenceservice.status.model import NOT_CREATED
from isvc.engine.dependents import Dependents
from isvc.engine.reconciler import Reconciler
from isvc.kube.conditions import conditions_of, find
from isvc.kube.objects import Key, Object, dig, labels_of, namespace_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    Resource,
)
from isvc.serving import shared_host
from isvc.serving.annotations import SERVICE
from isvc.serving.config.current import Configuration
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import (
    INTERCEPTOR_ROUTES,
    KNATIVE_SERVICES,
    OPENTELEMETRY_COLLECTORS,
    OPTIONAL,
    REFERENCE_GRANTS,
    SCALED_OBJECTS,
)
from isvc.serving.workload import scalers
from isvc.serving.workload.http_metric import GRANTS
from isvc.toolkit.cache import Reader
from isvc.toolkit.context import Context
from isvc.toolkit.controller import ChangeMapper, Controller, OwnerOf, Watch, spec_changed
from isvc.toolkit.reads import Read

WORKERS: Final = 512  # most of them wait for the API server


def controller(context: Context, environment: Environment) -> Controller:
    reconciler = Reconciler(make_kind(context.cache, environment), context)
    affected = Affected(context.cache, Configuration(context.cache, environment.system_namespace).in_force)
    return Controller(
        "inferenceservice",
        reconciler.reconcile,
        _watches(context.cache, affected, reconciler.dependents),
        workers=WORKERS,
        reads=reads(environment),
        ignore_own_writes_for=INFERENCE_SERVICES,
        clock=context.clock,
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    """Returns what is read beyond what is watched, or not as it comes."""
    return (
        Read(PODS, labels=SERVICE, transform=_pod_status, indexers={SERVICE_INDEX: _service_of_pod}),
        Read(CONFIG_MAPS, namespace=environment.system_namespace),
        *shared_host.READS,
        Read(POD_DISRUPTION_BUDGETS, labels=SERVICE),
        Read(REFERENCE_GRANTS, labels=",".join(f"{key}={value}" for key, value in GRANTS.items()), optional=True),
        Read(HORIZONTAL_POD_AUTOSCALERS),  # repaired, but their changes trigger nothing
        Read(TRAINED_MODELS, optional=True),
        Read(ENDPOINT_SLICES, labels=scalers.SELECTOR, indexers={scalers.INDEX: scalers.scaler_of_slice}),
    )


def _watches(reader: Reader, affected: Affected, dependents: Dependents) -> Sequence[Watch]:
    owner = OwnerOf(INFERENCE_SERVICES)
    shared = (SERVING_RUNTIMES, CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS)

    def dependents_on(resource: Resource) -> ChangeMapper:
        """Returns what finds those that use an object or look for one; users of one that is gone run on."""

        def changed(before: Object | None, after: Object | None) -> Iterable[Key]:
            if after is None:
                return dependents.of_any(resource, namespace_of(before or {}))
            return dependents.of(resource, Key.of(after)) if spec_changed(before, after) else ()

        return changed

    return (
        Watch(INFERENCE_SERVICES),
        *shared_host.watch_places(INFERENCE_SERVICES, reader),
        Watch(DEPLOYMENTS, to=owner),
        Watch(SERVICES, to=owner),
        Watch(KNATIVE_SERVICES, to=owner, optional=True),
        *(Watch(kind, to=owner, optional=kind in OPTIONAL) for kind in INGRESS_KINDS),
        Watch(SCALED_OBJECTS, to=owner, when=_scaling_changed, optional=True),
        Watch(ENDPOINT_SLICES, on_change=affected.by_scalers),
        Watch(INTERCEPTOR_ROUTES, to=owner, when=spec_changed, optional=True),
        Watch(OPENTELEMETRY_COLLECTORS, to=owner, optional=True),
        Watch(POD_DISRUPTION_BUDGETS, to=owner, when=spec_changed),
        Watch(PODS, to=_service_keys_of_pod, when=_model_progressed),
        *(Watch(kind, on_change=dependents_on(kind), optional=not kind.namespaced) for kind in shared),
        Watch(CONFIG_MAPS, on_change=affected.by_settings),
    )


def _scaling_changed(before: Object | None, after: Object | None) -> bool:
    """Returns whether KEDA says something else of it; when it was last active is nothing to look at."""
    said = [find(conditions_of(each or {}), "Ready") for each in (before, after)]
    return spec_changed(before, after) or said[0] != said[1]


def _model_progressed(before: Object | None, after: Object | None) -> bool:
    """Returns whether an init container went on or a model server failed; anything else shows in the Deployment."""
    if before is None or after is None:
        return False
    downloaded = dig(before, "status", "initContainerStatuses") != dig(after, "status", "initContainerStatuses")
    return bool(downloaded) or (bool(crashes := _crashes(after)) and crashes != _crashes(before))


def _crashes(pod: Object) -> list[str]:
    """Returns what each container that waits to be started again said when it ended, or why it cannot be created."""
    statuses = dig(pod, "status", "containerStatuses") or ()
    said = {
        "CrashLoopBackOff": ("lastState", "terminated", "message"),
        **dict.fromkeys(NOT_CREATED, ("state", "waiting", "message")),
    }
    waiting = ((status, said.get(dig(status, "state", "waiting", "reason") or "")) for status in statuses)
    return [str(dig(status, *path)) for status, path in waiting if path]


def _service_of_pod(pod: Object) -> Iterable[str]:
    return (str(key) for key in _service_keys_of_pod(pod))


def _service_keys_of_pod(pod: Object) -> Iterable[Key]:
    if name := labels_of(pod).get(SERVICE):
        yield Key(namespace_of(pod), name)


def _pod_status(pod: Object) -> Object:
    """Returns the part of a pod that the model status is read from; the cache holds no more of it."""
    metadata = pod["metadata"]
    needed = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels", "ownerReferences")
    status = pod.get("status") or {}
    fields = ("phase", "conditions", "initContainerStatuses", "containerStatuses")
    return PODS.manifest(
        {key: metadata[key] for key in needed if key in metadata},
        status={key: status[key] for key in fields if key in status},
    )
