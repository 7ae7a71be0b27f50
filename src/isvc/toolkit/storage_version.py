"""Rewrites objects that are stored in an old version of their kind in the one that is stored today.

A version can only be dropped from a CRD once `status.storedVersions` no longer names it, and nobody else keeps track:
every object is written back unchanged, and then the CRD updated. A kind that is stored in one version costs one read.
"""

from __future__ import annotations

import logging
from contextlib import aclosing, suppress

from isvc.kube.errors import Conflict, NotFound
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.toolkit.client import Client

log = logging.getLogger(__name__)


async def migrate(client: Client, resource: Resource) -> int:
    """Rewrites every object of a kind if need be; returns how many. Raises `ApiError` or `ClusterError`."""
    crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, str(resource))
    today = _storage_version(crd)
    if (dig(crd, "status", "storedVersions") or []) == [today]:
        return 0
    rewritten = await _rewrite_all(client, resource._replace(version=today))
    status = {"status": {"storedVersions": [today]}}
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, str(resource), status, subresource="status")
    log.info("%d %s are now stored as %s", rewritten, resource, today)
    return rewritten


async def _rewrite_all(client: Client, resource: Resource) -> int:
    rewritten = 0
    async with aclosing(client.pages(resource, metadata_only=True)) as pages:
        async for page in pages:
            for obj in page.objects(resource):
                with suppress(NotFound, Conflict):  # whoever deleted or wrote it a moment ago did our work
                    await client.patch(resource, name_of(obj), {}, namespace_of(obj))
                rewritten += 1
    return rewritten


def _storage_version(crd: Object) -> str:
    return next(str(version["name"]) for version in crd["spec"]["versions"] if version.get("storage"))
