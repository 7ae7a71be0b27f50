"""The init container that downloads, and where its files appear in the pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from isvc.kube.objects import Object
from isvc.serving.config.sections import StorageInitializerConfig
from isvc.serving.containers import (
    add_missing,
    add_missing_env,
    ensure_list,
    find_by_name,
    find_container,
    find_init_container,
    mount,
    variable,
)
from isvc.serving.credentials.s3 import CA_BUNDLE, CA_BUNDLE_CONFIG_MAP
from isvc.serving.storage.uris import folder_of

NAME: Final = "storage-initializer"
DEFAULT_IMAGE: Final = "kserve/storage-initializer:latest"
CA_VOLUME: Final = "cabundle-cert"
CA_FOLDER: Final = "/etc/ssl/custom-certs"
GLOBAL_CA_BUNDLE: Final = "global-ca-bundle"
HUGGING_FACE: Final = {
    "HF_HUB_ENABLE_HF_TRANSFER": "1",
    "HF_XET_HIGH_PERFORMANCE": "1",
    "HF_XET_NUM_CONCURRENT_RANGE_GETS": "8",
}


def init_container(config: StorageInitializerConfig, arguments: list[str]) -> Object:
    """`arguments` are pairs of URI and path."""
    return {
        "name": NAME,
        **config.program,
        "image": config.image or DEFAULT_IMAGE,
        "args": arguments,
        "resources": config.requirements,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


class ModelVolume(NamedTuple):
    """A claim, or an empty folder, and where it is mounted."""

    path: str
    name: str
    claim: str = ""
    sub_path: str = ""


def mount_model(
    spec: Object, container_name: str, path: str, volume: str, *, claim: str = "", sub_path: str = "", read_only: bool
) -> None:
    """Mounts the model's volume, a claim or an empty folder, into a container; an init container may always write."""
    mount_models(spec, container_name, [ModelVolume(path, volume, claim, sub_path)], read_only=read_only)


def mount_models(spec: Object, container_name: str, volumes: Sequence[ModelVolume], *, read_only: bool) -> None:
    """Mounts volumes that the container does not mount yet."""
    container = find_container(spec, container_name)
    if container is None:
        container, read_only = find_init_container(spec, container_name), False
    if container is None or not volumes:
        return
    mounts = (mount(each.name, each.path, sub_path=each.sub_path, read_only=read_only) for each in volumes)
    mounted = {each["name"] for each in add_missing(ensure_list(container, "volumeMounts"), mounts)}
    add_missing(ensure_list(spec, "volumes"), (_volume(each) for each in volumes if each.name in mounted))


def _volume(volume: ModelVolume) -> Object:
    source: Object = {"persistentVolumeClaim": {"claimName": volume.claim}} if volume.claim else {"emptyDir": {}}
    return {"name": volume.name, **source}


def ca_bundle(container: Object, config: StorageInitializerConfig, in_system_namespace: bool) -> tuple[str, str] | None:
    """Returns the ConfigMap with extra CAs and where to mount it; the container's S3 variables decide first."""
    env = container.get("env") or []
    from_s3 = find_by_name(env, CA_BUNDLE_CONFIG_MAP)
    if not config.ca_bundle_config_map_name and from_s3 is None:
        return None
    # A controller copies the certificates under this name into every namespace but its own.
    config_map = config.ca_bundle_config_map_name if in_system_namespace else GLOBAL_CA_BUNDLE
    path = config.ca_bundle_volume_mount_path or CA_FOLDER
    for entry in env:
        if entry["name"] == CA_BUNDLE_CONFIG_MAP:
            config_map = entry.get("value", "")
        elif entry["name"] == CA_BUNDLE:
            path = folder_of(entry.get("value", ""))
    return config_map, path


def mount_ca_bundle(spec: Object, container: Object, config_map: str, path: str) -> None:
    add_missing_env(
        container,
        [variable("CA_BUNDLE_CONFIGMAP_NAME", config_map), variable("CA_BUNDLE_VOLUME_MOUNT_POINT", path)],
    )
    ensure_list(spec, "volumes").append({"name": CA_VOLUME, "configMap": {"name": config_map}})
    ensure_list(container, "volumeMounts").append(mount(CA_VOLUME, path, read_only=True))


def add_hugging_face_defaults(container: Object) -> None:
    add_missing_env(container, [variable(name, value) for name, value in HUGGING_FACE.items()])
