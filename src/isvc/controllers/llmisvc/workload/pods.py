"""The pods of a workload: a template of the merged spec, completed by what the service's shape asks for.

A Deployment or a LeaderWorkerSet holds them.
"""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.llm.scaling import ScalingSpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload import devices, lora
from isvc.controllers.llmisvc.workload.accounts import ROUTING_SIDECAR
from isvc.controllers.llmisvc.workload.kv_cache import attach_tiers
from isvc.controllers.llmisvc.workload.metadata import child_metadata, object_annotations
from isvc.controllers.llmisvc.workload.phases import CONTAINER, Phase
from isvc.controllers.llmisvc.workload.storage import Target, attach_model
from isvc.engine.plan import Child
from isvc.engine.policies import MARKED_SHARED, MARKED_WORKLOAD
from isvc.kube.objects import Object, deep_copy
from isvc.serving.containers import find_init_container, set_env
from isvc.serving.llm import names
from isvc.serving.llm.tracing import trace_server
from isvc.serving.thirdparty import SCALED_OBJECTS
from isvc.serving.workload.sleep import left_asleep


def build_workload(observed: Observed, phase: Phase, given: Mapping[str, str], spec: Object) -> Child:
    """Returns what holds the pods; without a number of replicas somebody else decides how many there are.

    One whom KEDA has left without any, and will not wake any more, gets one.
    """
    resource, name = phase.workload
    replicas = phase.spec.replicas
    if replicas is None and not _is_scaled_by_keda(phase):
        scaled = observed.live.get((SCALED_OBJECTS, phase.scaled_object))
        replicas = 1 if left_asleep(observed.live.get(phase.workload), scaled) else None
    if replicas is not None:
        spec = {**spec, "replicas": replicas}
    manifest = resource.manifest(child_metadata(observed, name, given, object_annotations(observed, phase)), spec=spec)
    return Child(resource, manifest, MARKED_WORKLOAD if "replicas" in spec else MARKED_SHARED)


def _is_scaled_by_keda(phase: Phase) -> bool:
    scaling = phase.spec.scaling or ScalingSpec()
    return scaling.keda is not None or (scaling.wva is not None and scaling.wva.keda is not None)


def build_pod(
    observed: Observed,
    phase: Phase,
    template: Object,
    *,
    account: Object | None = None,
    account_name: str = "",
    live: Object | None = None,
) -> Object:
    """Returns the pod spec of a template.

    `account` is the ServiceAccount whose credentials downloads use (None: the namespace's default), `account_name` the
    one to run as where that is not the template's own, `live` the pod as it is deployed.
    """
    pod = deep_copy(template)
    devices.claim(observed, pod)
    if account_name:
        pod["serviceAccountName"] = account_name
    if phase.name == "main":
        _name_pool(observed, pod)
    attach_model(observed, pod, Target(adapters=lora.resolve_adapters(observed.spec)), account, live)
    attach_tiers(phase.spec, pod, CONTAINER)
    return _with_tracing(observed, phase, pod)


def _name_pool(observed: Observed, pod: Object) -> None:
    """Tells the routing sidecar of which pool the pods are that it may forward to."""
    sidecar = find_init_container(pod, ROUTING_SIDECAR)
    if sidecar is not None and observed.spec.router is not None:
        set_env(sidecar, "INFERENCE_POOL_NAME", observed.users_pool or names.inference_pool(observed.name))


def _with_tracing(observed: Observed, phase: Phase, pod: Object) -> Object:
    tracing = observed.spec.tracing
    if tracing is None:
        return pod
    containers = [
        trace_server(container, tracing, observed.namespace, observed.name, phase.traced_as)
        if container.get("name") == CONTAINER
        else container
        for container in pod.get("containers") or ()
    ]
    return {**pod, "containers": containers}
