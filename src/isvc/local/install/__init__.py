"""What a fresh cluster needs before the manager runs: kinds, configuration, runtimes and webhooks.

Kinds and runtimes are written once for each version of isvc, and what users change afterwards is left alone; only what
depends on this start's ports is written every time.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.resources import files

import orjson

from isvc.api.kinds import KINDS
from isvc.api.kinds.crds import crds
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS, LLM_INFERENCE_SERVICE_CONFIGS
from isvc.api.schema import forget_schemas
from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import (
    API_SERVICES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_METRICS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.local.gateway.routes.local_gateway import INTERCEPTOR
from isvc.local.install.config import config_map, knative_objects, with_port
from isvc.local.install.gateway import at_port, gateway, gateway_class
from isvc.local.install.shipped import local_presets, local_runtimes
from isvc.local.install.third_party import third_party_crds
from isvc.programs import registration
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.programs.program import Program
from isvc.programs.registration import ClientConfig, Webhook
from isvc.serving.environment import MODEL_JOBS, SYSTEM_NAMESPACE
from isvc.serving.shipped import shipped_files
from isvc.serving.thirdparty import GATEWAY_CLASSES, GATEWAYS
from isvc.toolkit.client import Client

MODELS_CLAIM = "models"
_MARK = "isvc-installed"


async def install(client: Client, port: int, conversions: Mapping[str, Object]) -> None:
    """Installs everything but the admission webhooks, which have to wait for the managers.

    `port` is the gateway's. `conversions` has the `spec.conversion` of CRDs by their names. Storing a large CRD takes
    the API server a while, so that is done once, and again only if it differs.
    """
    await _ensure(client, NAMESPACES, _namespace(SYSTEM_NAMESPACE))
    mark = await client.find(CONFIG_MAPS, _MARK, SYSTEM_NAMESPACE)
    installed = (mark or {}).get("data") or {}
    wanted = {"digest": _digest(), "conversions": _hash(orjson.dumps(conversions))}
    if installed.get("digest") != wanted["digest"]:
        await _remove_webhooks(client)  # those of an earlier start would be asked about the runtimes
        objects = [*local_runtimes(), *local_presets(SYSTEM_NAMESPACE)]
        kinds = [*(_with_conversion(crd, conversions) for crd in crds(described=True)), *third_party_crds()]
        forget_schemas()
        for crd in kinds:  # one by one: until it is stored, it takes the API server twenty times its size
            await _ensure(client, CUSTOM_RESOURCE_DEFINITIONS, crd, renew=True)
        await asyncio.gather(*(_ensure(client, _resource(obj), obj, renew=True) for obj in objects))
        await _ensure(client, PERSISTENT_VOLUME_CLAIMS, _claim())
    elif installed != wanted:
        for name, conversion in conversions.items():
            await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"spec": {"conversion": conversion}})
    if installed != wanted:
        await _ensure(client, CONFIG_MAPS, _mark(wanted), renew=True)
    await asyncio.gather(
        _ensure(client, API_SERVICES, _resource_metrics()),
        _ensure(client, NAMESPACES, _namespace(MODEL_JOBS)),
        _install_interceptor(client),
        _install_knative(client),
        _ensure(client, CONFIG_MAPS, config_map(SYSTEM_NAMESPACE, port), edit=lambda live: _ingress_at(live, port)),
        _ensure(client, GATEWAY_CLASSES, gateway_class()),
        _ensure(client, GATEWAYS, gateway(SYSTEM_NAMESPACE, port), edit=lambda live: _listeners_at(live, port)),
    )


async def install_webhooks(client: Client, ports: Mapping[Program, int], authority: bytes) -> None:
    """Has the API server ask each program's webhooks, on the port where it serves them."""
    found = (webhook_configurations(program.webhooks, _url(port), authority) for program, port in ports.items())
    wanted = (obj for configurations in found for obj in configurations)
    await asyncio.gather(*(_ensure(client, _resource(obj), obj, renew=True) for obj in wanted))


def conversions(ports: Mapping[Program, int], authority: bytes) -> dict[str, Object]:
    """Returns the `spec.conversion` of each CRD that has one, by the CRD's name."""
    return {
        name: conversion
        for program, port in ports.items()
        for name, conversion in registration.conversions(program.webhooks, _server(_url(port), authority)).items()
    }


def webhook_configurations(webhooks: Iterable[Webhook], url: str, authority: bytes) -> list[Object]:
    return registration.configurations(webhooks, _server(url, authority))


def _server(url: str, authority: bytes) -> ClientConfig:
    """Names webhooks by address: there is no Service to name without a cluster network."""
    bundle = base64.b64encode(authority).decode()
    return lambda path: {"url": url + path, "caBundle": bundle}


def _url(port: int) -> str:
    return f"https://127.0.0.1:{port}"


async def _install_knative(client: Client) -> None:
    for resource, obj in knative_objects():
        await _ensure(client, resource, obj)


async def _install_interceptor(client: Client) -> None:
    """Makes the Service by which KEDA's HTTP add-on is known; the gateway takes the requests of its interceptor."""
    await _ensure(client, NAMESPACES, _namespace(INTERCEPTOR.namespace))
    metadata = {"name": INTERCEPTOR.name, "namespace": INTERCEPTOR.namespace}
    spec = {"ports": [{"name": "proxy", "port": INTERCEPTOR.port}]}
    await _ensure(client, SERVICES, {"metadata": metadata, "spec": spec})


def _ingress_at(config: Object, port: int) -> Object | None:
    ingress = with_port(config.get("data", {}).get("ingress", ""), port)
    return None if ingress is None else {"data": {"ingress": ingress}}


def _listeners_at(live: Object, port: int) -> Object | None:
    listeners = at_port(live, port)
    return None if listeners is None else {"spec": {"listeners": listeners}}


async def _ensure(
    client: Client,
    resource: Resource,
    obj: Object,
    *,
    renew: bool = False,
    edit: Callable[[Object], Object | None] | None = None,
) -> None:
    """Creates an object. One that is there already stays as it is, unless it is renewed, or `edit` has a patch."""
    obj, name, namespace = resource.typed(obj), name_of(obj), namespace_of(obj)
    try:
        await client.create(resource, obj)
    except AlreadyExists:
        patch = edit(await client.get(resource, name, namespace)) if edit else obj if renew else None
        if patch:
            await client.patch(resource, name, patch, namespace)


async def _remove_webhooks(client: Client) -> None:
    webhooks = [webhook for program in PROGRAMS for webhook in program.webhooks]
    for obj in webhook_configurations(webhooks, "https://127.0.0.1", b""):
        with suppress(NotFound):
            await client.delete(_resource(obj), name_of(obj))


def _digest() -> str:
    """Returns a text that changes with what is to be installed. Files are not parsed for it: that takes a while."""
    kinds = " ".join(str(row.resource) for row in KINDS)
    own = (path for path in files(__name__).iterdir() if path.name.endswith((".py", ".yaml")))
    sources = [*sorted(own, key=lambda path: path.name), *shipped_files("runtimes", "presets")]
    version = f"{importlib.metadata.version('isvc')} {kinds} "
    return _hash(b"".join([version.encode(), *(path.read_bytes() for path in sources)]))


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _with_conversion(crd: Object, conversions: Mapping[str, Object]) -> Object:
    conversion = conversions.get(name_of(crd))
    return {**crd, "spec": {**crd["spec"], "conversion": conversion}} if conversion else crd


_RESOURCES = {
    resource.kind: resource
    for resource in (
        CLUSTER_SERVING_RUNTIMES,
        CLUSTER_STORAGE_CONTAINERS,
        LLM_INFERENCE_SERVICE_CONFIGS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
    )
}


def _resource(obj: Object) -> Resource:
    return _RESOURCES[obj["kind"]]


def _mark(data: dict[str, str]) -> Object:
    metadata = {"name": _MARK, "namespace": SYSTEM_NAMESPACE}
    return {"metadata": metadata, "data": data}


def _resource_metrics() -> Object:
    """Has the API server serve metrics.k8s.io itself: the node measures what its pods use."""
    group, version = POD_METRICS.group, POD_METRICS.version
    spec = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100}
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


def _namespace(name: str) -> Object:
    return {"metadata": {"name": name}}


def _claim() -> Object:
    """Returns the claim in which the example models lie: a folder under ~/.isvc/volumes."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": MODELS_CLAIM, "namespace": "default"}, "spec": spec}
