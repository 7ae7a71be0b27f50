"""Labels and annotations of a component's children, among them those by which the pod webhook knows what to add."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.inferenceservice.components import ComponentExtensionSpec, StorageSpec
from isvc.kube import gojson
from isvc.serving import annotations as annotation
from isvc.serving.credentials.storage_spec import SCHEME_PLACEHOLDER


def component_labels(service: str, kind: str, *layers: Mapping[str, str]) -> dict[str, str]:
    """Returns labels in layers, of which later ones win.

    The labels that name the service and the component win over all.
    """
    labels: dict[str, str] = {}
    for layer in layers:
        labels |= layer
    return labels | {annotation.SERVICE: service, annotation.COMPONENT: kind}


def agent_annotations(extension: ComponentExtensionSpec, *, batches: bool = True) -> dict[str, str]:
    """Returns what the agent beside the server does: log payloads, join requests into batches."""
    annotations: dict[str, str] = {}
    if (logger := extension.logger) is not None:
        annotations |= {annotation.LOGGER: "true", annotation.LOGGER_MODE: logger.mode}
        if logger.url is not None:
            annotations[annotation.LOGGER_SINK_URL] = logger.url
        if logger.metadata_headers:
            annotations[annotation.LOGGER_METADATA_HEADERS] = ",".join(logger.metadata_headers)
        if logger.metadata_annotations:
            annotations[annotation.LOGGER_METADATA_ANNOTATIONS] = ",".join(logger.metadata_annotations)
    if batches and (batcher := extension.batcher) is not None:
        annotations[annotation.BATCHER] = "true"
        if batcher.max_batch_size is not None:
            annotations[annotation.BATCHER_MAX_BATCH_SIZE] = str(batcher.max_batch_size)
        if batcher.max_latency is not None:
            annotations[annotation.BATCHER_MAX_LATENCY] = str(batcher.max_latency)
    return annotations


def storage_annotations(storage: StorageSpec | None) -> dict[str, str]:
    """Returns where a model is that is found through a storage credential."""
    if storage is None:
        return {}
    annotations = {annotation.STORAGE_SPEC: "true"}
    if storage.parameters is not None:
        annotations[annotation.STORAGE_SPEC_PARAM] = gojson.dumps(gojson.sorted_map(storage.parameters))
    if storage.key is not None:
        annotations[annotation.STORAGE_SPEC_KEY] = storage.key
    if storage.path is not None:
        annotations[annotation.SOURCE_URI] = SCHEME_PLACEHOLDER + storage.path.removeprefix("/")
    return annotations
