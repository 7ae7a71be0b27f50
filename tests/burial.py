"""Services end with their test: controllers of the next one see all namespaces, and would look after them too."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES, LLM_INFERENCE_SERVICES, TRAINED_MODELS
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import name_of
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client

KINDS = (INFERENCE_SERVICES, INFERENCE_GRAPHS, TRAINED_MODELS, LLM_INFERENCE_SERVICES)


async def bury(client: Client, *namespaces: str) -> None:
    """Delete what is left of our kinds, without waiting for a controller that would finish it."""
    for resource in KINDS:
        with suppress(NotFound):  # the kind is not served
            for namespace in namespaces:
                found = (await client.list(resource, namespace)).items
                await asyncio.gather(*(_end(client, resource, name_of(each), namespace) for each in found))


async def _end(client: Client, resource: Resource, name: str, namespace: str) -> None:
    with suppress(ApiError):
        await client.delete(resource, name, namespace)
        await client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)
