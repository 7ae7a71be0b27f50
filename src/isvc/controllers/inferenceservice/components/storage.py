"""Several models in one pod: `storageUris` are brought in by the controller, a single URI by the pod webhook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isvc.api.inferenceservice.models import ModelStorageSpec, StorageUri
from isvc.controllers.inferenceservice.observed import Observed
from isvc.serving.refused import MissingSecret, Refused
from isvc.serving.server_defaults import MODEL_DIR
from isvc.serving.storage import Source, StorageRequest, choose_storage_container, initialize
from isvc.serving.storage.initialize import StorageSpec
from isvc.serving.workload.component import Component


class ModelsRefused(Refused):
    """What is to be downloaded cannot be brought into one pod."""


def with_models(
    observed: Observed,
    component: Component,
    uris: Sequence[StorageUri] | None,
    storage: ModelStorageSpec | None,
    container_name: str | None = None,
) -> Component:
    """Returns the component with an init container that downloads all of them, or mounts of the claims they are on."""
    if not uris:
        return component
    try:
        return _with_initializer(observed, component, uris, storage, container_name or "")
    except MissingSecret as error:
        raise ModelsRefused(f'secrets "{error.name}" not found') from error
    except Refused as error:
        raise ModelsRefused(error.message) from error


def _with_initializer(
    observed: Observed,
    component: Component,
    uris: Sequence[StorageUri],
    storage: ModelStorageSpec | None,
    container_name: str,
) -> Component:
    request = StorageRequest(
        sources=tuple(Source(uri.uri, uri.mount_path or MODEL_DIR) for uri in uris),
        config=observed.config.storage_initializer,
        credentials=observed.config.credentials,
        lookup=observed.lookup,
        annotations=component.annotations,
        storage_container=choose_storage_container(uris[0].uri, observed.storage_containers, container_name),
        storage_spec=_credential(storage),
        system_namespace=observed.system_namespace,
    )
    worker = component.worker
    if worker is not None:
        worker = replace(worker, pod=initialize(worker.pod, replace(request, annotations=worker.annotations)))
    return replace(component, pod=initialize(component.pod, request), worker=worker)


def _credential(storage: ModelStorageSpec | None) -> StorageSpec | None:
    """Returns the entry of the storage secret that the model names together with parameters.

    A key alone names nothing.
    """
    if storage is None or storage.key is None or storage.parameters is None:
        return None
    return StorageSpec(storage.key, storage.parameters)
