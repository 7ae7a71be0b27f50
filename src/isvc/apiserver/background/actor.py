"""Writes that the server makes itself go the same way as those of its clients: admission, validation, conflicts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from isvc.apiserver.request import Call, Request, User
from isvc.apiserver.resources.description import Description
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.verbs import body, delete, update
from isvc.apiserver.verbs.create import create_object
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import AlreadyExists, ApiError, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


class Actor:
    """Someone in the server, by name: a service account, unless it is another user."""

    def __init__(self, api: Api, name: str, user: User | None = None) -> None:
        self.api = api
        groups = ("system:serviceaccounts", "system:masters")
        self._user = user or User(f"system:serviceaccount:kube-system:{name}", groups)
        self._agent = name

    def _call(self, entry: Entry, method: str, subresource: str = "") -> Call | None:
        description = self.api.registry.of_collection(entry.collection)
        if description is None:
            return None
        return self._call_on(description, entry.namespace, entry.name, method, subresource)

    def _call_on(self, description: Description, namespace: str, name: str, method: str, subresource: str = "") -> Call:
        request = Request(method, "", "", {"user-agent": self._agent}, b"")
        request.user = self._user
        return Call(request, description, namespace, name, subresource, field_validation="Ignore")

    async def create(self, resource: Resource, namespace: str, obj: Object) -> None:
        """Creates the object unless it is there."""
        description = self.api.registry.find(resource.group, resource.version, resource.plural)
        assert description is not None
        call = self._call_on(description, namespace, "", "POST")
        with contextlib.suppress(AlreadyExists):
            await create_object(self.api, call, body.decode(obj, call))

    async def delete(self, entry: Entry, uid: str, policy: str = "Background") -> None:
        """Deletes the object if it is still that one."""
        call = self._call(entry, "DELETE")
        if call is None:
            return
        options: Object = {"preconditions": {"uid": uid}, "propagationPolicy": policy}
        try:
            await delete.delete_object(self.api, call, options)
        except NotFound:
            pass
        except ApiError as error:
            if error.code != 409:
                raise

    async def remove_finalizer(self, entry: Entry, finalizer: str) -> None:
        """Takes a finalizer from the object, if it is still there."""

        def remove(live: Object) -> None:
            meta = live["metadata"]
            meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != finalizer]

        await self.change(entry, remove)

    async def change(self, entry: Entry, edit: Callable[[Object], None], subresource: str = "") -> None:
        """Edits the live object in place, if it is still there."""
        call = self._call(entry, "PATCH", subresource)
        if call is None:
            return

        async def edit_copy(live: Object) -> Object:
            edit(live)
            return live

        with contextlib.suppress(NotFound):
            await update.change(self.api, call, edit_copy)
