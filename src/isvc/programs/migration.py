"""What the leader of llmisvc-manager does once, after its start: bring what older versions left behind up to date."""

from __future__ import annotations

import logging
from contextlib import aclosing, suppress
from typing import Final

from isvc.api.kinds import KINDS
from isvc.kube.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.programs.options import Options
from isvc.serving.llm.labels import LLM, PART_OF
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

VARIANT_AUTOSCALINGS: Final = Resource("llmd.ai", "v1alpha1", "variantautoscalings", "VariantAutoscaling")
FIRST_PAUSE: Final = 2.0
FASTER: Final = 1.5


async def migrate_stored_versions(context: Context, options: Options) -> None:
    """Rewrites kinds of several versions in the one that is stored today.

    Raises when it does not succeed in time, or cannot: a CRD that names an old version for good blocks upgrades.
    It is left to somebody else by a manager of some namespaces, which may not write CRDs.
    """
    if options.namespaces:
        return
    deadline = context.clock.monotonic() + options.llm.migration_timeout
    for row in (each for each in KINDS if each.older):
        await _migrate(context, row.resource, deadline, options.llm.migration_poll_interval)


async def _migrate(context: Context, resource: Resource, deadline: float, longest_pause: float) -> None:
    pause = FIRST_PAUSE
    while True:
        try:
            await migrate(context.client, resource)
            return
        except (Forbidden, Unauthorized, NotFound) as error:
            raise ClusterError(f"stored versions of {resource} cannot be migrated: {error}") from error
        except (ApiError, ClusterError) as error:
            if context.clock.monotonic() + pause > deadline:
                raise ClusterError(f"stored versions of {resource} were not migrated in time: {error}") from error
            log.warning("stored versions of %s: %s; again in %.3g s", resource, error, pause)
        await context.clock.sleep(pause)
        pause = min(pause * FASTER, longest_pause)


async def migrate(client: Client, resource: Resource) -> int:
    """Rewrites every object of a kind if need be; returns how many. Raises `ApiError` or `ClusterError`.

    A version can only be dropped from a CRD once `status.storedVersions` no longer names it, and nobody else keeps
    track. A kind that is stored in one version costs one read.
    """
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


async def remove_variant_autoscalings(context: Context, options: Options) -> None:
    """Deletes VariantAutoscalings that earlier versions made: scaling is described on the autoscaler itself now."""
    try:
        for namespace in options.namespaces or ("",):
            found = await context.client.list(VARIANT_AUTOSCALINGS, namespace, labels=f"{PART_OF}={LLM}")
            for item in found.items:
                await context.client.delete(VARIANT_AUTOSCALINGS, name_of(item), namespace_of(item))
    except NotFound:
        return  # the cluster does not have the kind, or somebody else was faster
    except (ApiError, ClusterError) as error:
        log.warning("VariantAutoscalings of earlier versions may be left: %s", error)
