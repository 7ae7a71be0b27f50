"""Settings that a laptop starts with: the inferenceservice-config on this machine's domain and port, and Knative's."""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, Resource
from isvc.local.knative.settings import CONFIG_NAME, DEFAULTS
from isvc.serving.environment import KNATIVE_NAMESPACE
from isvc.serving.shipped import laptop_config


def config_map(namespace: str, gateway_port: int) -> Object:
    return laptop_config(namespace, domain(gateway_port))


def domain(gateway_port: int) -> str:
    """Returns the domain with its port, so that status.url works in curl and in a browser as it stands."""
    return f"localhost:{gateway_port}"


def with_port(ingress: str, gateway_port: int) -> str | None:
    """Returns the section with this start's port; None where that changes nothing, or the domain is the user's own."""
    try:
        section = orjson.loads(ingress)
    except orjson.JSONDecodeError:
        return None
    before = str(section.get("ingressDomain", ""))
    if not re.fullmatch(r"localhost(:\d+)?", before) or before == domain(gateway_port):
        return None
    return orjson.dumps({**section, "ingressDomain": domain(gateway_port)}).decode()


def knative_objects() -> Iterable[tuple[Resource, Object]]:
    """Yields objects that are created once; what a user changes in them stays."""
    yield NAMESPACES, {"metadata": {"name": KNATIVE_NAMESPACE}}
    metadata = {"name": CONFIG_NAME, "namespace": KNATIVE_NAMESPACE}
    yield CONFIG_MAPS, {"metadata": metadata, "data": dict(DEFAULTS)}
