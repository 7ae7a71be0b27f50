"""The predictor: a model in its runtime's containers, or containers of the user's own."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from isvc.api.annotations import HTTP_METRIC
from isvc.api.inferenceservice import PredictorSpec
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.api.inferenceservice.implementations import STORAGE_URI_ENV, env_value
from isvc.api.inferenceservice.models import ModelSpec
from isvc.controllers.inferenceservice.components import metadata, multinode
from isvc.controllers.inferenceservice.components.storage import with_models
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.objects import Object, labels_of, without
from isvc.serving import annotations as annotation
from isvc.serving import names
from isvc.serving.containers import MODEL_SERVER, TRANSFORMER, find_by_name, find_container, set_env
from isvc.serving.endpoints import is_multi_model
from isvc.serving.podspec import fill_placeholders, merge_containers, merge_pods, tagged_image
from isvc.serving.refused import Refused
from isvc.serving.runtimes import ModelRefused, Runtime
from isvc.serving.server_defaults import MODEL_DIR, complete
from isvc.serving.storage.schemes import check_storage_uri
from isvc.serving.templates import TemplateError
from isvc.serving.workload.component import Component

INFERENCE_SERVICE_NAME = "INFERENCE_SERVICE_NAME"


@dataclass(frozen=True, slots=True)
class Variant:
    """A predictor to build: the stable one, or a canary's, which has a `scaling` of its own.

    `service` carries the labels that its server reads.
    """

    spec: PredictorSpec
    scaling: ComponentExtensionSpec
    service: Object
    runtime: Runtime | None = None


def settle_runtime(
    observed: Observed, spec: PredictorSpec, service: Object, scaling: ComponentExtensionSpec | None = None
) -> Variant:
    """Returns the predictor with its runtime chosen, and with what the runtime's server needs filled in."""
    scaling = spec if scaling is None else scaling
    source = storage_uri(spec)
    if source is not None:
        if annotation.SOURCE_URI in metadata.storage_annotations(spec.model.storage if spec.model else None):
            raise Refused("must provide only one of storageUri and storage.path")
        check_storage_uri(source, observed.storage_containers)
    if spec.model is None:
        if not spec.pod.get("containers"):
            raise Refused("the predictor has neither a model nor containers: set spec.predictor.model")
        return Variant(spec, scaling, service)
    runtime = observed.runtimes.choose(spec.model, multi_node=spec.worker_spec is not None)
    model, labels = complete(spec.model, runtime, observed.name, labels_of(service))
    if labels != labels_of(service):
        service = {**service, "metadata": {**service["metadata"], "labels": labels}}
    return Variant(msgspec.structs.replace(spec, model=model), scaling, service, runtime)


def build(observed: Observed, variant: Variant) -> Component:
    spec, service, runtime = variant.spec, variant.service, variant.runtime
    annotations = _annotations(observed, spec)
    disallowed = observed.config.inference_service.service_annotation_disallowed_list
    own_annotations = without(spec.annotations, disallowed)
    pod = _model_pod(spec.model, spec, runtime, service) if spec.model and runtime else _own_pod(spec)
    for container in pod["containers"]:
        set_env(container, INFERENCE_SERVICE_NAME, observed.name)
    runtime_labels = runtime.spec.labels if runtime else {}
    runtime_annotations = without(runtime.spec.annotations, (*disallowed, HTTP_METRIC)) if runtime else {}
    component = Component(
        name=names.predictor(observed.name, spec.name),
        namespace=observed.namespace,
        labels=metadata.component_labels(
            observed.name, names.PREDICTOR, runtime_labels, labels_of(service), spec.labels
        ),
        annotations={**runtime_annotations, **annotations, **own_annotations},
        pod=pod,
        spec=variant.scaling,
    )
    if spec.worker_spec is not None and runtime is not None:
        component = multinode.with_workers(observed, component, spec, runtime, {**annotations, **own_annotations})
    storage = spec.model.storage if spec.model else None
    return with_models(observed, component, spec.storage_uris, storage, spec.storage_container_name)


def storage_uri(spec: PredictorSpec) -> str | None:
    if spec.model is not None:
        return spec.model.storage_uri
    return env_value(find_container(spec.pod, MODEL_SERVER) or {}, STORAGE_URI_ENV)


def _annotations(observed: Observed, spec: PredictorSpec) -> dict[str, str]:
    model = spec.model
    annotations = {**observed.annotations, **metadata.agent_annotations(spec)}
    annotations |= metadata.storage_annotations(model.storage if model else None)
    if is_multi_model(spec):
        annotations |= {
            annotation.PULLER: "true",
            annotation.PULLER_CONFIG_VOLUME: names.model_config(observed.name, 0),
            annotation.PULLER_CONFIG_PATH: "/mnt/configs",
            annotation.PULLER_MODEL_DIR: MODEL_DIR,
        }
    if (source := storage_uri(spec)) is not None:
        annotations[annotation.SOURCE_URI] = source
        if spec.storage_container_name:
            annotations[annotation.STORAGE_CONTAINER_NAME] = spec.storage_container_name
    confidential = model.confidential if model else None
    if confidential is not None and confidential.enabled:
        annotations[annotation.CONFIDENTIAL_ENABLED] = "true"
        if confidential.resource_id:
            annotations[annotation.CONFIDENTIAL_RESOURCE_ID] = confidential.resource_id
    return annotations


def _own_pod(spec: PredictorSpec) -> Object:
    return {**spec.pod, "containers": [_copy_with_env(container) for container in spec.pod["containers"]]}


def _model_pod(model: ModelSpec, spec: PredictorSpec, runtime: Runtime, service: Object) -> Object:
    """Returns the server first, then a transformer beside it, then whatever else runtime and service bring."""
    theirs: list[Object] = runtime.spec.pod.get("containers") or []
    mine: list[Object] = spec.pod.get("containers") or []
    if not theirs:
        raise invalid_spec("no container configuration found in selected serving runtime")
    base = find_by_name(theirs, MODEL_SERVER)
    if base is None:
        raise invalid_spec(f"failed to find {MODEL_SERVER} in ServingRuntime containers")
    server = _fill(merge_containers(base, model.container), runtime, service)
    containers = [tagged_image(server, model.runtime_version, runtime.server_type)]
    transformer, overlay = find_by_name(theirs, TRANSFORMER), find_by_name(mine, TRANSFORMER)
    if transformer is not None and overlay is not None:
        transformer = merge_containers(transformer, overlay)
    if beside := transformer or overlay:
        containers.append(_fill(beside, runtime, service))
    containers += [container for container in theirs if container.get("name") not in (MODEL_SERVER, TRANSFORMER)]
    containers += [container for container in mine if container.get("name") != TRANSFORMER]
    pod = merge_pods(runtime.spec.pod, spec.pod)
    return {**pod, "containers": [_copy_with_env(container) for container in containers]}


def _copy_with_env(container: Object) -> Object:
    """Returns a container whose environment can be added to."""
    return {**container, "env": [dict(entry) for entry in container.get("env") or ()]}


def _fill(container: Object, runtime: Runtime, service: Object) -> Object:
    try:
        return fill_placeholders(container, service)
    except TemplateError as error:
        what = f"failed to replace placeholders in serving runtime {runtime.name} Container {container.get('name')}"
        raise ModelRefused(f"{what}: {error}", reason="InvalidPredictorSpec", summary=what) from error


def invalid_spec(message: str) -> ModelRefused:
    return ModelRefused(message, reason="InvalidPredictorSpec", summary=message)
