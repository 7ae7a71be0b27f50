"""What a fresh cluster needs before the manager runs: kinds, configuration, runtimes and webhooks.

Kinds and runtimes are written once for each version of isvc, and what users change afterwards is left alone; only what
depends on this start's ports is written every time.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
from collections.abc import Iterable
from importlib.resources import files

from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS
from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.local.install.config import config_map, with_port
from isvc.local.install.webhooks import webhook_configurations
from isvc.toolkit.client import Client

SYSTEM_NAMESPACE = "kserve"
MODELS_CLAIM = "models"
_MARK = "isvc-installed"


async def install(client: Client, gateway_port: int) -> None:
    """Everything but the webhooks, which have to wait for the manager."""
    await _ensure(client, NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
    mark = await _get(client, CONFIG_MAPS, _MARK, SYSTEM_NAMESPACE)
    manifests = files("isvc.local.install").joinpath("runtimes.yaml").read_bytes()
    digest = hashlib.sha256(importlib.metadata.version("isvc").encode() + manifests).hexdigest()
    if mark is None or mark.get("data", {}).get("digest") != digest:
        await _remove_webhooks(client)  # those of an earlier start would be asked about the runtimes
        await asyncio.gather(*(_ensure(client, CUSTOM_RESOURCE_DEFINITIONS, crd, renew=True) for crd in _crds()))
        await asyncio.gather(*(_ensure(client, _resource(obj), obj, renew=True) for obj in _objects(manifests)))
        await _ensure(client, PERSISTENT_VOLUME_CLAIMS, _claim())
        await _ensure(client, CONFIG_MAPS, _mark(digest), renew=True)
    await _configure(client, gateway_port)


async def install_webhooks(client: Client, port: int, authority: bytes) -> None:
    for obj in webhook_configurations(f"https://127.0.0.1:{port}", authority):
        await _ensure(client, _resource(obj), obj, renew=True)


async def _configure(client: Client, gateway_port: int) -> None:
    wanted = config_map(SYSTEM_NAMESPACE, gateway_port)
    try:
        await client.create(CONFIG_MAPS, wanted)
    except AlreadyExists:
        live = await client.get(CONFIG_MAPS, name_of(wanted), SYSTEM_NAMESPACE)
        ingress = with_port(live.get("data", {}).get("ingress", ""), gateway_port)
        if ingress is not None:
            await client.patch(CONFIG_MAPS, name_of(wanted), {"data": {"ingress": ingress}}, SYSTEM_NAMESPACE)


async def _ensure(client: Client, resource: Resource, obj: Object, *, renew: bool = False) -> None:
    try:
        await client.create(resource, obj)
    except AlreadyExists:
        if renew:
            await client.patch(resource, name_of(obj), obj, namespace_of(obj))


async def _get(client: Client, resource: Resource, name: str, namespace: str) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None


async def _remove_webhooks(client: Client) -> None:
    for obj in webhook_configurations("https://127.0.0.1", b""):
        try:
            await client.delete(_resource(obj), name_of(obj))
        except NotFound:
            continue


def _crds() -> Iterable[Object]:
    """All kinds but those whose controllers `isvc up` does not run yet."""
    from isvc.api.crds import crds

    return (crd for crd in crds(described=False) if not crd["spec"]["names"]["plural"].startswith("llm"))


def _objects(manifests: bytes) -> Iterable[Object]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return (obj for obj in yaml.load_all(manifests, Loader=loader) if obj)


_RESOURCES = {
    resource.kind: resource
    for resource in (
        CLUSTER_SERVING_RUNTIMES,
        CLUSTER_STORAGE_CONTAINERS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
    )
}


def _resource(obj: Object) -> Resource:
    return _RESOURCES[obj["kind"]]


def _mark(digest: str) -> Object:
    metadata = {"name": _MARK, "namespace": SYSTEM_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"digest": digest}}


def _claim() -> Object:
    """The claim in which the example models lie: a folder under ~/.isvc/volumes."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": MODELS_CLAIM, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }


__all__ = ["MODELS_CLAIM", "SYSTEM_NAMESPACE", "install", "install_webhooks"]
