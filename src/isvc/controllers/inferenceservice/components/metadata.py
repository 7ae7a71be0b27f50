"""What a component's children carry in labels and annotations, and what they tell the pod webhook."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from isvc.api.components import ComponentExtensionSpec, StorageSpec
from isvc.kube import gojson
from isvc.kube.objects import Object
from isvc.serving import annotations as told
from isvc.serving.refused import Refused
from isvc.serving.storage import choose_storage_container

STORAGE_PLACEHOLDER: Final = "<scheme-placeholder>"
_SCHEMES: Final = (
    "gs://",
    "s3://",
    "pvc://",
    "file://",
    "https://",
    "http://",
    "hdfs://",
    "webhdfs://",
    "oci://",
    "oci+native://",
    "oci+fetch://",
    "hf://",
)
_AZURE_HOST: Final = "blob.core.windows.net"
_AZURE: Final = re.compile(r"https://(.+?).blob.core.windows.net/(.+)")


def component_labels(service: str, kind: str, *layers: Mapping[str, str]) -> dict[str, str]:
    """Later layers win; what tells whose component this is wins over all."""
    labels: dict[str, str] = {}
    for layer in layers:
        labels |= layer
    return labels | {told.SERVICE: service, told.COMPONENT: kind}


def agent_annotations(extension: ComponentExtensionSpec, *, batches: bool = True) -> dict[str, str]:
    """What the agent beside the server does: log payloads, join requests into batches."""
    annotations: dict[str, str] = {}
    if (logger := extension.logger) is not None:
        annotations |= {told.LOGGER: "true", told.LOGGER_MODE: logger.mode}
        if logger.url is not None:
            annotations[told.LOGGER_SINK_URL] = logger.url
        if logger.metadata_headers:
            annotations[told.LOGGER_METADATA_HEADERS] = ",".join(logger.metadata_headers)
        if logger.metadata_annotations:
            annotations[told.LOGGER_METADATA_ANNOTATIONS] = ",".join(logger.metadata_annotations)
    if batches and (batcher := extension.batcher) is not None:
        annotations[told.BATCHER] = "true"
        if batcher.max_batch_size is not None:
            annotations[told.BATCHER_MAX_BATCH_SIZE] = str(batcher.max_batch_size)
        if batcher.max_latency is not None:
            annotations[told.BATCHER_MAX_LATENCY] = str(batcher.max_latency)
    return annotations


def storage_annotations(storage: StorageSpec | None) -> dict[str, str]:
    """Where a model is that is found through a storage credential."""
    if storage is None:
        return {}
    annotations = {told.STORAGE_SPEC: "true"}
    if storage.parameters is not None:
        annotations[told.STORAGE_SPEC_PARAM] = gojson.dumps(gojson.sorted_map(storage.parameters))
    if storage.key is not None:
        annotations[told.STORAGE_SPEC_KEY] = storage.key
    if storage.path is not None:
        annotations[told.SOURCE_URI] = f"{STORAGE_PLACEHOLDER}://{storage.path.removeprefix('/')}"
    return annotations


def check_storage_uri(uri: str, storage_containers: Sequence[Object]) -> None:
    """Refuse a URI that no storage container and no built-in downloader understands."""
    if choose_storage_container(uri, storage_containers) is not None or not re.search(r"\w+?://", uri):
        return
    if _AZURE.search(uri) if _AZURE_HOST in uri else uri.startswith(_SCHEMES):
        return
    raise Refused(
        f"StorageURI not supported: storageUri, must be one of: [{', '.join(_SCHEMES)}] or match "
        "https://{}.blob.core.windows.net/{}/{} or be an absolute or relative local path. "
        f"StorageUri [{uri}] is not supported"
    )
