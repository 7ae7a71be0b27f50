"""The explainer: the Adversarial Robustness Toolbox, or the user's container."""

from __future__ import annotations

from isvc.api.inferenceservice import ExplainerSpec
from isvc.api.inferenceservice.implementations import STORAGE_URI_ENV, env_value
from isvc.api.inferenceservice.models import ARTExplainerSpec
from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.components import metadata
from isvc.controllers.inferenceservice.components.storage import with_models
from isvc.controllers.inferenceservice.components.transformer import add_argument, predictor_host, predictor_in_mesh
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.objects import Object, labels_of, without
from isvc.serving import annotations as annotation
from isvc.serving import names
from isvc.serving.containers import MODEL_SERVER
from isvc.serving.refused import Refused
from isvc.serving.server_defaults import MODEL_DIR
from isvc.serving.storage.schemes import check_storage_uri
from isvc.serving.workload.component import Component


def build(observed: Observed, spec: ExplainerSpec, service: Object) -> Component:
    containers: list[Object] = list(spec.pod.get("containers") or ())
    if spec.art is None and not containers:
        raise Refused("the explainer has no container: set spec.explainer.art or spec.explainer.containers")
    annotations = {**observed.annotations}
    if observed.mode is DeploymentMode.MODEL_MESH:
        annotations[annotation.PREDICTOR_HOST], annotations[annotation.PREDICTOR_PROTOCOL] = predictor_in_mesh(observed)
    if (source := _storage_uri(spec)) is not None:
        annotations[annotation.SOURCE_URI] = source
        check_storage_uri(source, observed.storage_containers)
    annotations |= metadata.agent_annotations(spec, batches=False)
    first = _art(spec.art, observed, spec) if spec.art else _own(containers[0], observed, spec)
    own = without(spec.annotations, observed.config.inference_service.service_annotation_disallowed_list)
    component = Component(
        name=names.explainer(observed.name),
        namespace=observed.namespace,
        labels=metadata.component_labels(observed.name, names.EXPLAINER, labels_of(service), spec.labels),
        annotations={**annotations, **own},
        pod={**spec.pod, "containers": [first, *containers[1:]]},
        spec=spec,
    )
    model = observed.service.spec.predictor.model
    return with_models(observed, component, spec.storage_uris, model.storage if model else None)


def _storage_uri(spec: ExplainerSpec) -> str | None:
    if spec.art is not None:
        return spec.art.storage_uri or None
    return env_value(spec.pod["containers"][0], STORAGE_URI_ENV)


def _own(container: Object, observed: Observed, spec: ExplainerSpec) -> Object:
    args = list(container.get("args") or ())
    add_argument(args, "--model_name", observed.name)
    add_argument(args, "--predictor_host", predictor_host(observed))
    args += ["--http_port", "8080"]
    if spec.container_concurrency is not None:
        add_argument(args, "--workers", str(spec.container_concurrency))
    return {**container, "args": args}


def _art(art: ARTExplainerSpec, observed: Observed, spec: ExplainerSpec) -> Object:
    given = list(art.container.get("args") or ())
    args = ["--model_name", observed.name, "--http_port", "8080"]
    if not any(arg.startswith("--predictor_host") for arg in given):
        args += ["--predictor_host", predictor_host(observed)]
    if spec.container_concurrency is not None and not any(arg.startswith("--workers") for arg in given):
        args += ["--workers", str(spec.container_concurrency)]
    if art.storage_uri:
        args += ["--storage_uri", MODEL_DIR]
    args += ["--adversary_type", art.type]
    for key in sorted(art.config):
        args += [f"--{key}", art.config[key]]
    settings = observed.config.explainers.art
    image = art.container.get("image") or f"{settings.image}:{art.runtime_version or settings.default_image_version}"
    # The user's arguments come twice, as KServe has it; the last one of a name counts.
    return {**art.container, "name": MODEL_SERVER, "image": image, "args": [*args, *given, *given]}
