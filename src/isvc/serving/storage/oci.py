"""Models in OCI images, in three ways.

modelcar  the image runs beside the server, which reaches its files through the shared process namespace
native    Kubernetes mounts the image as a volume
fetch     the storage initializer pulls the image's layers, like any other download
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from isvc.kube.objects import Object
from isvc.serving.config.sections import StorageInitializerConfig
from isvc.serving.containers import (
    TRANSFORMER,
    add_mount,
    add_volume,
    ensure_list,
    find_by_name,
    find_container,
    find_init_container,
    mount,
    set_env,
    variable,
)
from isvc.serving.refused import Refused
from isvc.serving.storage import init_container
from isvc.serving.storage.uris import MODEL_PATH, OciUri, parent, volume_name

MODELCAR: Final = "modelcar"
NATIVE: Final = "native"
MOST_IMAGES: Final = 10
PROVISION_VOLUME: Final = "kserve-provision-location"
DOCKER_CONFIG_VOLUME: Final = "kserve-oci-fetch-docker-config"
DOCKER_CONFIG_FOLDER: Final = "/mnt/oci-fetch-auth"
SHELL_SAFE: Final = frozenset(string.ascii_letters + string.digits + "/._-")


@dataclass(frozen=True, slots=True)
class Image:
    """An image to provide at a path; `index` keeps the names of several modelcars apart."""

    source: OciUri
    path: str
    index: int = 0


def provide(
    spec: Object, image: Image, target: str, config: StorageInitializerConfig, in_system_namespace: bool
) -> None:
    """Makes the image's models readable at its path, in the target container and in a transformer beside it."""
    for name in (target, TRANSFORMER) if find_container(spec, TRANSFORMER) else (target,):
        container = find_container(spec, name)
        if container is None:
            raise Refused(f'no container "{name}" for the model in {image.source.uri}')
        match image.source.mode or config.oci_mode:
            case "native":
                _mount_image(spec, container, image)
            case "fetch":
                _fetch(spec, container, image, config, in_system_namespace)
            case _:
                _modelcar(spec, container, image, config)


def check_paths(paths: Sequence[str], mode: str) -> None:
    """Refuses images that would hide each other: a modelcar takes the whole folder around its path."""
    if len(paths) > MOST_IMAGES:
        raise Refused(f"too many OCI sources ({len(paths)}); maximum is {MOST_IMAGES} per pod")
    taken: dict[str, str] = {}
    for path in paths:
        place = path if mode == NATIVE else parent(path)
        if place in taken:
            raise Refused(f'OCI mount paths "{taken[place]}" and "{path}" would both be mounted at {place}')
        taken[place] = path


def _mount_image(spec: Object, container: Object, image: Image) -> None:
    volume = volume_name(image.path) or "oci-model"
    for other in container.get("volumeMounts") or ():
        if other["mountPath"] == image.path and other["name"] != volume:
            raise Refused(f'mountPath "{image.path}" is already used by volume "{other["name"]}"')
    reference = {"reference": image.source.image, "pullPolicy": "IfNotPresent"}
    add_volume(spec, {"name": volume, "image": reference})
    # Images made to run as modelcars keep their files under /models.
    add_mount(container, volume, image.path, sub_path="models", read_only=True)


def _fetch(
    spec: Object, container: Object, image: Image, config: StorageInitializerConfig, in_system_namespace: bool
) -> None:
    arguments = [image.source.uri, image.path]
    downloader = find_init_container(spec, init_container.NAME)
    if downloader is None:
        downloader = init_container.init_container(config, arguments)
        ensure_list(spec, "initContainers").append(downloader)
        _mount_docker_config(spec, downloader)
        bundle = init_container.ca_bundle(downloader, config, in_system_namespace)
        if bundle and find_by_name(spec.get("volumes"), init_container.CA_VOLUME) is None:
            init_container.mount_ca_bundle(spec, downloader, *bundle)
        if config.oci_insecure_registry:
            ensure_list(downloader, "env").append(variable("KSERVE_OCI_INSECURE_REGISTRY", "true"))
    else:
        given: list[str] = downloader.setdefault("args", [])
        if not any(given[start : start + 2] == arguments for start in range(0, len(given), 2)):
            given.extend(arguments)
    volume = volume_name(image.path) or "oci-fetch-model"
    for name in (init_container.NAME, container["name"]):
        init_container.mount_model(spec, name, image.path, volume, read_only=False)


def _mount_docker_config(spec: Object, downloader: Object) -> None:
    """Mounts the first image pull secret, by which registries know us; others would have to be merged into one file."""
    secrets = spec.get("imagePullSecrets") or []
    if not secrets or find_by_name(spec.get("volumes"), DOCKER_CONFIG_VOLUME):
        return
    file: Object = {"key": ".dockerconfigjson", "path": "config.json"}
    source: Object = {"secretName": secrets[0]["name"], "defaultMode": 0o400, "items": [file]}
    ensure_list(spec, "volumes").append({"name": DOCKER_CONFIG_VOLUME, "secret": source})
    ensure_list(downloader, "volumeMounts").append(mount(DOCKER_CONFIG_VOLUME, DOCKER_CONFIG_FOLDER, read_only=True))
    ensure_list(downloader, "env").append(variable("KSERVE_OCI_DOCKER_CONFIG", f"{DOCKER_CONFIG_FOLDER}/config.json"))


def _modelcar(spec: Object, container: Object, image: Image, config: StorageInitializerConfig) -> None:
    suffix = f"-{image.index}" if image.index else ""
    volume = PROVISION_VOLUME + suffix
    # The server must wait for the link that the modelcar makes once it runs.
    set_env(container, "MODEL_INIT_MODE", "async")
    add_volume(spec, {"name": volume, "emptyDir": {}})
    add_mount(container, volume, parent(image.path))
    user = {} if config.uid_modelcar is None else {"runAsUser": config.uid_modelcar}
    if user:
        container["securityContext"] = (container.get("securityContext") or {}) | user
    if find_container(spec, f"modelcar{suffix}") is None:
        car = _car(f"modelcar{suffix}", image, _link_command(image.path), config)
        car["volumeMounts"] = [mount(volume, parent(image.path))]
        if user:
            car["securityContext"] = user
        ensure_list(spec, "containers").append(car)
        prefetch = _car(f"modelcar-init{suffix}", image, _check_command(image.source.image), config)
        ensure_list(spec, "initContainers").append(prefetch)
    spec["shareProcessNamespace"] = True


def _car(name: str, image: Image, command: str, config: StorageInitializerConfig) -> Object:
    amounts = {"cpu": config.cpu_modelcar or "10m", "memory": config.memory_modelcar or "15Mi"}
    return {
        "name": name,
        "image": image.source.image,
        "args": ["sh", "-c", command],
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _link_command(path: str) -> str:
    # The kubelet turns $$ into $, so the shell sees $$, its own process.
    link = f"ln -sf /proc/$$$$/root/models {_quote(path)} && sleep infinity"
    return link if path == MODEL_PATH else f"mkdir -p {_quote(parent(path))} && {link}"


def _check_command(image: str) -> str:
    return (
        f"echo 'Pre-fetching modelcar {image}: ' && [ -d /models ] && [ \"$$(ls -A /models)\" ] && "
        "echo 'OK ... Prefetched and valid (/models exists)' || "
        "(echo 'NOK ... Prefetched but modelcar is invalid (/models does not exist or is empty)' && exit 1)"
    )


def _quote(path: str) -> str:
    if path and SHELL_SAFE.issuperset(path):
        return path
    return "'" + path.replace("'", "'\\''") + "'"
