"""From the pod that a controller asked for to the pod that runs.

`mutate_pod` is pure: everything that it needs to know comes in as `PodFacts`. Mutating a pod again changes nothing, for
other webhooks may make the API server ask twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_PVC_NAME, LOCAL_MODEL_SOURCE_URI
from isvc.kube.objects import Object, annotations_of, deep_copy, labels_of
from isvc.serving import annotations as names
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.serving.pods.agent import add_agent
from isvc.serving.pods.istio import share_sidecar_user
from isvc.serving.pods.logger import LoggerSettings
from isvc.serving.pods.metrics import configure_metrics
from isvc.serving.refused import Refused
from isvc.serving.storage import Source, StorageRequest, choose_storage_container, initialize, oci
from isvc.serving.storage.initialize import StorageSpec, model_container
from isvc.serving.storage.uris import MODEL_PATH, cached_uri, parse_oci

NVIDIA_GPU: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What was looked up: the settings, the pod's service if it exists, storage containers, and credentials."""

    config: Config
    lookup: Lookup
    service: Object | None = None
    storage_containers: Sequence[Object] = ()
    system_namespace: str = SYSTEM_NAMESPACE


def is_ours(pod: Object) -> bool:
    return names.SERVICE in labels_of(pod)


def mutate_pod(pod: Object, facts: PodFacts) -> Object:
    """Returns the pod to run; raises `Refused` with what is wrong, or `Needs` with what else has to be known."""
    if not is_ours(pod):
        return pod
    pod = deep_copy(pod)
    pod["metadata"]["namespace"] = facts.lookup.namespace
    _select_accelerator(pod)
    _bring_model(pod, facts)
    share_sidecar_user(pod)
    add_agent(pod, LoggerSettings.of(facts.config.logger, facts.service), facts.config, facts.lookup)
    configure_metrics(pod, facts.config.metrics_aggregator)
    _provide_image(pod, facts)
    return pod


def _select_accelerator(pod: Object) -> None:
    accelerator = annotations_of(pod).get(names.GKE_ACCELERATOR)
    limits = [(container.get("resources") or {}).get("limits") or {} for container in pod["spec"]["containers"]]
    if accelerator is not None and any(NVIDIA_GPU in limit for limit in limits):
        selector = pod["spec"].get("nodeSelector") or {}
        pod["spec"]["nodeSelector"] = {**selector, "cloud.google.com/gke-accelerator": accelerator}


def _bring_model(pod: Object, facts: PodFacts) -> None:
    annotations = annotations_of(pod)
    uri = annotations.get(names.SOURCE_URI)
    if uri is None:
        return
    if LOCAL_MODEL in labels_of(pod):
        claim = annotations.get(LOCAL_MODEL_PVC_NAME)
        if claim is None:
            raise Refused(f"{uri} is cached, but annotation {LOCAL_MODEL_PVC_NAME} does not say in which claim")
        uri = cached_uri(uri, annotations.get(LOCAL_MODEL_SOURCE_URI, ""), claim)
    container_name = annotations.get(names.STORAGE_CONTAINER_NAME, "")
    request = StorageRequest(
        sources=(Source(uri),),
        config=facts.config.storage_initializer,
        credentials=facts.config.credentials,
        lookup=facts.lookup,
        annotations=annotations,
        storage_container=choose_storage_container(uri, facts.storage_containers, container_name),
        storage_spec=_storage_spec(annotations),
        several=False,
        system_namespace=facts.system_namespace,
    )
    pod["spec"] = initialize(pod["spec"], request)


def _storage_spec(annotations: dict[str, str]) -> StorageSpec | None:
    if annotations.get(names.STORAGE_SPEC) != "true":
        return None
    written = annotations.get(names.STORAGE_SPEC_PARAM, "null")
    try:
        parameters = orjson.loads(written)
    except orjson.JSONDecodeError:
        parameters = written
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, dict) or not all(isinstance(value, str) for value in parameters.values()):
        raise Refused(f"annotation {names.STORAGE_SPEC_PARAM} is not a JSON map of strings")
    return StorageSpec(annotations.get(names.STORAGE_SPEC_KEY, ""), parameters)


def _provide_image(pod: Object, facts: PodFacts) -> None:
    """Provides an OCI image last, so that the agent copies the model server as its author wrote it."""
    uri = annotations_of(pod).get(names.SOURCE_URI)
    image = parse_oci(uri) if uri is not None else None
    config = facts.config.storage_initializer
    if image is None or not config.oci_mode:
        return
    target = model_container(pod["spec"])["name"]
    in_system_namespace = facts.lookup.namespace == facts.system_namespace
    oci.provide(pod["spec"], oci.Image(image, MODEL_PATH), target, config, in_system_namespace)
