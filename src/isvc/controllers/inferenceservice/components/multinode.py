"""A predictor over several nodes: a head that answers, and workers that it shares the model with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from isvc.api.annotations import GPU_RESOURCE_TYPES
from isvc.api.inferenceservice import PredictorSpec, WorkerSpec
from isvc.api.servingruntime import RuntimeWorkerSpec
from isvc.api.validation.containers import gpu_list
from isvc.controllers.inferenceservice.components import metadata
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.objects import Object, dig, labels_of
from isvc.kube.quantity import Quantity
from isvc.serving import annotations as annotation
from isvc.serving import names
from isvc.serving.containers import MODEL_SERVER, WORKER, find_by_name, find_container, set_env
from isvc.serving.podspec import merge_containers, merge_pods
from isvc.serving.refused import Refused
from isvc.serving.runtimes import Runtime
from isvc.serving.server_defaults import MODEL_DIR
from isvc.serving.workload.component import Component, Worker
from isvc.serving.workload.service import GENERATION

EXECUTOR: Final = "multinode/executor-backend"
NVIDIA: Final = "nvidia.com/gpu"


class WorkersRefused(Refused):
    """The group of nodes cannot be built. `reason` goes to the predictor's condition, `summary` to the model status."""

    def __init__(self, message: str, *, reason: str = "InvalidGPUAllocation", summary: str = "") -> None:
        super().__init__(message, reason=reason)
        self.summary = summary


class Allocation(NamedTuple):
    nodes: int
    worker_gpus: int
    head_gpus: int


def with_workers(
    observed: Observed, head: Component, spec: PredictorSpec, runtime: Runtime, annotations: Mapping[str, str]
) -> Component:
    """Returns the component as head of a group: sizes and names in its environment, and workers beside it."""
    theirs, mine = runtime.spec.worker_spec, spec.worker_spec
    assert mine is not None
    if theirs is None:
        raise WorkersRefused(
            "you cannot set WorkerSpec in the InferenceService if the ServingRuntime does not have a WorkerSpec",
            reason="InvalidWorkerSpecNotSet",
        )
    pod = _worker_pod(theirs, mine)
    pipeline = mine.pipeline_parallel_size or theirs.pipeline_parallel_size or 1
    tensor = mine.tensor_parallel_size or theirs.tensor_parallel_size or 1
    gpu_types = _gpu_types(observed, head.annotations)
    if runtime.spec.annotations.get(EXECUTOR) == "mp":
        allocation = Allocation(pipeline, tensor, tensor)
    else:
        workers = _gpus(pod["containers"][0], observed.config.multi_node.gpu_resource_types)
        heads = _gpus(head.pod["containers"][0], observed.config.multi_node.gpu_resource_types)
        allocation = allocate(pipeline * tensor, heads, workers)
    sizes = {
        "PIPELINE_PARALLEL_SIZE": str(pipeline),
        "TENSOR_PARALLEL_SIZE": str(tensor),
        "RAY_NODE_COUNT": str(allocation.nodes),
    }
    server = find_container(head.pod, MODEL_SERVER)
    assert server is not None  # a runtime without one was refused
    _equip(server, {**sizes, "REQUEST_GPU_COUNT": str(allocation.head_gpus), "MODEL_NAME": observed.name})
    if annotations.get(annotation.SOURCE_URI, "").partition("://")[0] in ("pvc", "oci"):
        set_env(server, "MODEL_DIR", MODEL_DIR)
    _request_gpus(server, allocation.head_gpus, gpu_types)
    own = {
        "REQUEST_GPU_COUNT": str(allocation.worker_gpus),
        "ISVC_NAME": observed.name,
        "HEAD_SVC": names.head_service(observed.name, observed.generation),
        "WORKER_SVC": names.worker_service(head.name, observed.generation),
    }
    _equip(pod["containers"][0], {**sizes, **own})
    _request_gpus(pod["containers"][0], allocation.worker_gpus, gpu_types)
    generation = {GENERATION: str(observed.generation)}
    worker = Worker(
        name=names.worker(observed.name),
        labels=metadata.component_labels(
            observed.name, names.PREDICTOR, theirs.labels, labels_of(observed.raw), spec.labels, generation
        ),
        annotations={**theirs.annotations, **annotations},
        pod=pod,
        replicas=allocation.nodes - 1,
        generation=observed.generation,
    )
    return replace(head, labels={**head.labels, **generation}, worker=worker)


def allocate(total: int, head: int, worker: int) -> Allocation:
    """Returns how a total of GPUs is spread over nodes, given what head and worker containers ask for (0: nothing)."""
    if worker > 0:
        nodes = math.ceil(total / worker)
        if head > 0 and math.ceil(total / head) == 1:
            nodes = 1
        head = head or total - worker * (nodes - 1)
        if nodes == 1:  # the head alone has enough
            return Allocation(1, 0, total)
    elif head > 0:
        worker = 1
        nodes = max(total - head, 0) + 1
    else:
        return Allocation(total, 1, 1)
    if total > head + worker * (nodes - 1):
        raise WorkersRefused(
            f"the total required number of GPUs({total}) is less than the number of GPUs assigned to the head "
            f"node({head}) + worker node({worker * (nodes - 1)})"
        )
    return Allocation(nodes, worker, head)


def _worker_pod(theirs: RuntimeWorkerSpec, mine: WorkerSpec) -> Object:
    containers = theirs.pod.get("containers") or []
    if not containers:
        message = "No workerSpec container configuration found in selected serving runtime"
        raise WorkersRefused(message, summary=message)
    base = find_by_name(containers, WORKER)
    if base is None:
        message = f"failed to find {WORKER} in ServingRuntime containers"
        raise WorkersRefused(message, summary=message)
    overlay = (mine.pod.get("containers") or [{}])[0]
    container = merge_containers(base, overlay)
    if container["name"] != WORKER:
        raise WorkersRefused(
            f"failed to add RAY_NODE_COUNT environment to the container({WORKER}): "
            f"target container({WORKER}) does not exist"
        )
    env = [dict(entry) for entry in container.get("env") or ()]
    return {**merge_pods(theirs.pod, mine.pod), "containers": [{**container, "env": env}]}


def _equip(container: Object, variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        set_env(container, name, value)


def _gpu_types(observed: Observed, annotations: Mapping[str, str]) -> Sequence[str]:
    """Names of resources that count as GPUs: the configured ones, and those that the service adds by annotation."""
    configured = observed.config.multi_node.gpu_resource_types
    text = annotations.get(GPU_RESOURCE_TYPES)
    if not text:
        return configured
    added = gpu_list(text)
    if added is None:
        raise Refused(f"invalid GPU format({text}) for {GPU_RESOURCE_TYPES} annotation: must be a valid JSON array")
    return (*configured, *added)


def _gpus(container: Object, types: Sequence[str]) -> int:
    requests = dig(container, "resources", "requests") or {}
    return next((Quantity.parse(requests[name]).value() for name in types if name in requests), 0)


def _request_gpus(container: Object, count: int, types: Sequence[str]) -> None:
    """Asks for that many GPUs, of the type that the container already asks for."""
    resources: Object = container.get("resources") or {}
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    asked = (name for name in types if _nonzero(limits.get(name)) or _nonzero(requests.get(name)))
    name = next(asked, NVIDIA)
    limits[name] = requests[name] = str(count)
    container["resources"] = {**resources, "limits": limits, "requests": requests}


def _nonzero(quantity: object) -> bool:
    return quantity is not None and Quantity.parse(str(quantity)).value() != 0
