"""Keeps earlier specs of services in ControllerRevisions, so that `isvc undo` can bring one back.

The spec that a service had before it was changed is written, and the oldest ones beyond the limit are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Key, Object, generation_of, name_of, namespace_of, uid_of
from isvc.kube.resource import CONTROLLER_REVISIONS, Resource
from isvc.serving.environment import Environment
from isvc.serving.revisions import HISTORY_LABEL, revision_of, revisions_of
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch

_WORKERS = 4
_PATIENCE = 3.5  # children of services and their statuses go first


def controller(resource: Resource, context: Context, environment: Environment) -> Controller:
    """Keeps some earlier specs of each object of this kind; with a limit of 0 it watches nothing."""
    limit = environment.revision_limit
    reconciler = Reconciler(context.client, limit)
    watches = [Watch(resource, on_change=reconciler.changed)] if limit else []
    return Controller(f"{resource.kind.lower()}-revisions", reconciler.reconcile, watches, workers=_WORKERS)


class Reconciler:
    """A new service costs no request, a change of its spec one; when there may be too many, they are listed as well.

    The earlier spec is known from the watch alone: of changes while no manager runs, nothing is kept.
    """

    def __init__(self, client: Client, limit: int) -> None:
        self._client = client
        self._limit = limit
        self._replaced: dict[Key, list[Object]] = {}

    def changed(self, before: Object | None, after: Object | None) -> Iterable[Key]:
        """Keeps the service as it was, if its spec is another now."""
        if before is None or after is None or uid_of(before) != uid_of(after):
            return ()
        if before.get("spec") == after.get("spec"):
            return ()
        earlier = self._replaced.setdefault(Key.of(after), [])
        earlier.append(before)
        del earlier[: -self._limit]
        return (Key.of(after),)

    async def reconcile(self, key: Key) -> None:
        """What cannot be written stays, and is tried again."""
        earlier = self._replaced.get(key, [])
        while earlier:
            await self._write(earlier[0])
            del earlier[0]
        self._replaced.pop(key, None)

    async def _write(self, service: Object) -> None:
        revision = revision_of(service)
        name, namespace = name_of(revision), namespace_of(revision)
        try:
            await self._client.create(CONTROLLER_REVISIONS, revision, patience=_PATIENCE)
        except AlreadyExists:  # of an even earlier time, by a faster replica, or left by a service of the name
            owner = {"ownerReferences": revision["metadata"]["ownerReferences"]}
            patch = {"metadata": owner, "revision": revision["revision"]}
            await self._client.patch(CONTROLLER_REVISIONS, name, patch, namespace)
        except NotFound:  # its namespace is gone
            return
        if generation_of(service) > self._limit:  # before, there cannot be more than that
            await self._prune(service)

    async def _prune(self, service: Object) -> None:
        kind = str(service["kind"]).lower()
        listed = await self._client.list(CONTROLLER_REVISIONS, namespace_of(service), labels=f"{HISTORY_LABEL}={kind}")
        for surplus in revisions_of(service, listed.items)[: -self._limit]:
            with suppress(NotFound):
                await self._client.delete(CONTROLLER_REVISIONS, name_of(surplus), namespace_of(surplus))
