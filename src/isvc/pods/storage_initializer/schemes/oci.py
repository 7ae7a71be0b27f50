"""Models in OCI images, straight from the registry: what the image holds under /models."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from isvc.pods.storage_initializer.layers import MODELS, apply_layer, check_links
from isvc.pods.storage_initializer.registry import Blob, Registry
from isvc.pods.storage_initializer.tarballs import zstd
from isvc.pods.storage_initializer.transfer import download
from isvc.pods.storage_initializer.unpacking import Budget
from isvc.pods.stores.errors import Damaged, NotFound, StorageError, Unsupported
from isvc.pods.stores.settings import Settings

LAYER: Final = re.compile(r"application/vnd\.(oci\.image\.layer\.v1\.tar|docker\.image\.rootfs\.diff\.tar)([.+]\w+)?")
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class Image(NamedTuple):
    registry: str
    repository: str
    reference: str


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    image = parse(uri)
    registry = Registry(image.registry, image.repository, settings)
    manifest = registry.manifest(image.reference)
    if "manifests" in manifest:
        manifest = registry.manifest(_for_this_machine(uri, manifest["manifests"]))
    layers = [layer for layer in _layers(manifest) if _is_readable(uri, layer)]
    downloads = folder.with_name(f"{folder.name}.layers")
    downloads.mkdir(exist_ok=True)
    budget = Budget(0)
    for layer in layers:
        download(f"{uri} layer {layer.digest[:19]}", [registry.file(layer)], downloads)
        apply_layer(downloads / "layer", folder, budget)
    (downloads / "layer").unlink(missing_ok=True)
    downloads.rmdir()
    check_links(folder)
    if not any(folder.iterdir()):
        raise NotFound(f"{uri}: the image has no files under /{MODELS}")


def parse(uri: str) -> Image:
    """`oci://registry/repository[:tag|@digest]`"""
    registry, _, path = uri.removeprefix("oci://").partition("/")
    repository, digest_mark, digest = path.partition("@")
    folder, _, last = repository.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{folder}/{last}".lstrip("/")
    if not registry or not repository:
        raise StorageError(f"{uri}: expected oci://registry/repository:tag")
    return Image(registry, repository, digest if digest_mark else tag or "latest")


def _for_this_machine(uri: str, manifests: Any) -> str:
    machine = platform.machine().lower()
    wanted = {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}
    for entry in manifests if isinstance(manifests, list) else ():
        match entry:
            case {"digest": str(digest), "platform": dict(made_for)} if wanted.items() <= made_for.items():
                return digest
    raise NotFound(f"{uri}: the image is not made for linux/{wanted['architecture']}")


def _layers(manifest: dict[str, Any]) -> list[Blob]:
    listed = manifest.get("layers", [])
    if not isinstance(listed, list):
        raise Damaged("the image's manifest has no list of layers")
    return [Blob.decode(layer) for layer in listed]


def _is_readable(uri: str, layer: Blob) -> bool:
    """Attestations and configurations are no layers."""
    kind = LAYER.fullmatch(layer.media_type)
    if kind and kind[2] and kind[2].endswith("zstd") and zstd() is None:
        raise Unsupported(f"{uri}: a layer is compressed with zstd; install isvc[oci], or build the image with gzip")
    return kind is not None
