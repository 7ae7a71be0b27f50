"""The transformer: the user's container, with arguments that say where the predictor is."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from isvc.api.inferenceservice import TransformerSpec
from isvc.api.inferenceservice.implementations import STORAGE_URI_ENV, env_value
from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.components import metadata
from isvc.controllers.inferenceservice.components.predictor import INFERENCE_SERVICE_NAME
from isvc.controllers.inferenceservice.components.storage import with_models
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.objects import Object, labels_of, without
from isvc.serving import annotations as annotation
from isvc.serving import names
from isvc.serving.containers import set_env
from isvc.serving.refused import Refused
from isvc.serving.storage.schemes import check_storage_uri
from isvc.serving.workload.component import Component
from isvc.serving.workload.http_metric import asks_for_http_metric

_MESH_PROTOCOLS: Final = {"grpc": "grpc-v2", "http": "v2", "https": "v2"}


def build(observed: Observed, spec: TransformerSpec, service: Object) -> Component:
    containers = [dict(container) for container in spec.pod.get("containers") or ()]
    if not containers:
        raise Refused("the transformer has no container: set spec.transformer.containers")
    annotations = {**observed.annotations}
    if (source := env_value(containers[0], STORAGE_URI_ENV)) is not None:
        annotations[annotation.SOURCE_URI] = source
        check_storage_uri(source, observed.storage_containers)
    annotations |= metadata.agent_annotations(spec)
    containers[0] = _with_arguments(containers[0], observed, spec)
    own = without(spec.annotations, observed.config.inference_service.service_annotation_disallowed_list)
    component = Component(
        name=names.transformer(observed.name),
        namespace=observed.namespace,
        labels=metadata.component_labels(observed.name, names.TRANSFORMER, labels_of(service), spec.labels),
        annotations={**annotations, **own},
        pod={**spec.pod, "containers": containers},
        spec=spec,
    )
    model = observed.service.spec.predictor.model
    return with_models(observed, component, spec.storage_uris, model.storage if model else None)


def _with_arguments(container: Object, observed: Observed, spec: TransformerSpec) -> Object:
    """Returns the container with the arguments that KServe's model server understands, where the user gives none."""
    host = predictor_host(observed)
    args = list(container.get("args") or ())
    if observed.mode is DeploymentMode.MODEL_MESH:
        host, protocol = predictor_in_mesh(observed)
        add_argument(args, "--protocol", protocol)
    add_argument(args, "--model_name", observed.name)
    add_argument(args, "--predictor_host", host)
    add_argument(args, "--http_port", "8080")
    if spec.container_concurrency is not None:
        add_argument(args, "--workers", str(spec.container_concurrency))
    container = {**container, "args": args, "env": [dict(entry) for entry in container.get("env") or ()]}
    set_env(container, INFERENCE_SERVICE_NAME, observed.name)
    return container


def predictor_host(observed: Observed) -> str:
    """Returns where the predictor answers, which may have to be woken first."""
    spec = observed.service.spec.predictor
    name = names.predictor(observed.name, spec.name)
    standard = observed.mode is DeploymentMode.STANDARD
    if standard and asks_for_http_metric(observed.annotations, spec.annotations):
        port = observed.config.autoscaler.interceptor.port
        return f"{names.interceptor_alias(name)}.{observed.namespace}:{port}"
    return f"{name}.{observed.namespace}"


def predictor_in_mesh(observed: Observed) -> tuple[str, str]:
    """Returns where ModelMesh's predictor answers, and the protocol that it speaks there."""
    address = urlsplit(observed.predictor_url)
    protocol = _MESH_PROTOCOLS.get(address.scheme)
    if protocol is None:
        raise Refused(f"Predictor URL Scheme not supported: {address.scheme}")
    return address.netloc, protocol


def add_argument(args: list[str], name: str, value: str) -> None:
    if not any(arg.startswith(name) for arg in args):
        args += [name, value]
