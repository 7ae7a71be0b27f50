"""Bring models into a pod spec: one URI as the pod webhook does it, or several as controllers do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isvc.kube.objects import Object, deep_copy
from isvc.serving import annotations as annotation
from isvc.serving.config.sections import CredentialsConfig, StorageInitializerConfig
from isvc.serving.containers import (
    MODEL_SERVER,
    TRANSFORMER,
    WORKER,
    ensure_list,
    find_container,
    find_init_container,
    set_env,
)
from isvc.serving.credentials import Lookup, add_service_account_credentials, add_storage_spec_credentials
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.serving.refused import Refused
from isvc.serving.storage import init_container, oci
from isvc.serving.storage.containers import merge_container
from isvc.serving.storage.uris import MODEL_PATH, PVC, common_parent, parse_oci, parse_pvc, volume_name

PVC_VOLUME: Final = "kserve-pvc-source"


class Source(NamedTuple):
    uri: str
    path: str = MODEL_PATH


class StorageSpec(NamedTuple):
    """`storage:` of a model: an entry of the storage-config secret, and parameters that override it."""

    key: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StorageRequest:
    """What to bring, and everything that decides how.

    `several` tells `storageUris` from the older single URI, which has its own volume names and leaves OCI images to the
    last step of the pod webhook.
    """

    sources: tuple[Source, ...]
    config: StorageInitializerConfig
    credentials: CredentialsConfig
    lookup: Lookup
    annotations: Mapping[str, str] = field(default_factory=dict)
    storage_container: Object | None = None
    storage_spec: StorageSpec | None = None
    several: bool = True
    system_namespace: str = SYSTEM_NAMESPACE

    @property
    def in_system_namespace(self) -> bool:
        return self.lookup.namespace == self.system_namespace


def is_read_only(annotations: Mapping[str, str]) -> bool:
    return annotations.get(annotation.STORAGE_READONLY) != "false"


def initialize(pod_spec: Object, request: StorageRequest) -> Object:
    """Returns the pod spec with its models; the given one is not changed. Doing it twice changes nothing more."""
    if annotation.PULLER in request.annotations or not request.sources:
        return pod_spec
    spec = deep_copy(pod_spec)
    if any(_oci_mode(source.uri, request) for source in request.sources):
        if not request.several:
            return pod_spec
        _provide_images(spec, request)
    if _has_downloader(spec, request):
        return spec
    target = model_container(spec)
    downloader = _bring_several(spec, target, request) if request.several else _bring_one(spec, target, request)
    if downloader:
        _complete(spec, downloader, request)
    return spec


def _has_downloader(spec: Object, request: StorageRequest) -> bool:
    """Returns whether the pod has one; a storage container may give the init container its own name."""
    container = (request.storage_container or {}).get("container") or {}
    given_names = {init_container.NAME, container.get("name") or init_container.NAME}
    return any(find_init_container(spec, name) for name in given_names)


def model_container(spec: Object) -> Object:
    """Returns who needs the model: the model server, or in the pods of other nodes the worker."""
    container = find_container(spec, MODEL_SERVER) or find_container(spec, WORKER)
    if container is None:
        raise Refused(f'cannot find container "{MODEL_SERVER}" or "{WORKER}" for the model in the pod')
    return container


def _oci_mode(uri: str, request: StorageRequest) -> str:
    image = parse_oci(uri)
    return (image.mode or request.config.oci_mode) if image else ""


def _provide_images(spec: Object, request: StorageRequest) -> None:
    target = model_container(spec)["name"]
    images = [(image, source.path) for source in request.sources if (image := parse_oci(source.uri))]
    oci.check_paths([path for _, path in images], request.config.oci_mode)
    active = [(image, path) for image, path in images if image.mode or request.config.oci_mode]
    for index, (image, path) in enumerate(active):
        oci.provide(spec, oci.Image(image, path, index), target, request.config, request.in_system_namespace)


def _readers(spec: Object, target: Object) -> list[str]:
    return [target["name"], *([TRANSFORMER] if find_container(spec, TRANSFORMER) else [])]


def _bring_one(spec: Object, target: Object, request: StorageRequest) -> Object | None:
    """Mounts a claim where the model is expected; downloads everything else there."""
    source = request.sources[0]
    readers, read_only = _readers(spec, target), is_read_only(request.annotations)
    downloader = None
    if source.uri.startswith(PVC):
        claim, sub_path = parse_pvc(source.uri)
        for name in readers:
            init_container.mount_model(
                spec, name, MODEL_PATH, PVC_VOLUME, claim=claim, sub_path=sub_path, read_only=read_only
            )
    else:
        downloader = _add_downloader(spec, [source], request)
        for name in [*readers, init_container.NAME]:
            init_container.mount_model(spec, name, MODEL_PATH, oci.PROVISION_VOLUME, read_only=read_only)
    for entry in target.get("env") or ():
        if entry["name"] == "STORAGE_URI" and entry.get("value"):
            entry["value"] = MODEL_PATH
    return downloader


def _bring_several(spec: Object, target: Object, request: StorageRequest) -> Object | None:
    """Mounts each claim at its own path, and one shared folder above the paths of all downloads."""
    container = request.storage_container
    if container is not None and not container.get("supportsMultiModelDownload"):
        name = (container.get("container") or {}).get("name", "")
        raise Refused(f'storage container "{name}" does not support multi-model download')
    readers, read_only = _readers(spec, target), is_read_only(request.annotations)
    sources = [source for source in request.sources if parse_oci(source.uri) is None]
    for source in sources:
        if source.uri.startswith(PVC):
            claim, _ = parse_pvc(source.uri)
            for name in readers:
                init_container.mount_model(
                    spec, name, source.path, volume_name(source.path), claim=claim, read_only=read_only
                )
    downloads = [source for source in sources if not source.uri.startswith(PVC)]
    if not downloads:
        return None
    downloader = _add_downloader(spec, downloads, request)
    folder = common_parent([source.path for source in downloads])
    for name in [*readers, init_container.NAME]:
        init_container.mount_model(spec, name, folder, volume_name(folder), read_only=read_only)
    return downloader


def _add_downloader(spec: Object, sources: list[Source], request: StorageRequest) -> Object:
    arguments = [argument for source in sources for argument in source]
    downloader = init_container.init_container(request.config, arguments)
    ensure_list(spec, "initContainers").append(downloader)
    return downloader


def _complete(spec: Object, downloader: Object, request: StorageRequest) -> None:
    """Adds credentials, then the storage container's own wishes, then what must not override them."""
    _add_credentials(spec, downloader, request)
    bundle = init_container.ca_bundle(downloader, request.config, request.in_system_namespace)
    if request.storage_container:
        merged = merge_container(downloader, request.storage_container.get("container") or {})
        downloader.clear()
        downloader.update(merged)
    if bundle:
        init_container.mount_ca_bundle(spec, downloader, *bundle)
    init_container.add_hugging_face_defaults(downloader)
    if request.annotations.get(annotation.CONFIDENTIAL_ENABLED) == "true":
        set_env(downloader, "CONFIDENTIAL_ENABLED", "true")
        if resource := request.annotations.get(annotation.CONFIDENTIAL_RESOURCE_ID):
            set_env(downloader, "CONFIDENTIAL_RESOURCE_ID", resource)


def _add_credentials(spec: Object, downloader: Object, request: StorageRequest) -> None:
    annotations, credentials, lookup = request.annotations, request.credentials, request.lookup
    if request.storage_spec:
        key, parameters = request.storage_spec
        add_storage_spec_credentials(downloader, key, parameters, annotations, credentials, lookup)
    else:
        account = spec.get("serviceAccountName", "")
        add_service_account_credentials(downloader, spec, account, annotations, credentials, lookup)
