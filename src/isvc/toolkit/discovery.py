"""Which kinds a server has, for commands that are handed arbitrary manifests. Controllers name their resources."""

from __future__ import annotations

from isvc.kube.errors import NotFound
from isvc.kube.objects import GVK, Object
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client


class Discovery:
    """Asks once per group and version, and remembers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, list[Resource]] = {}

    async def resource_of(self, obj: Object) -> Resource | None:
        """The resource of a manifest; None when the server does not have that kind."""
        return await self.find(GVK.of(obj))

    async def find(self, gvk: GVK) -> Resource | None:
        return next((resource for resource in await self.resources(gvk.api_version) if resource.kind == gvk.kind), None)

    async def resources(self, api_version: str) -> list[Resource]:
        """The kinds of one group and version, such as `apps/v1`; none when the server does not have it."""
        if api_version not in self._known:
            try:
                answer = await self._client.request("GET", f"/{'apis' if '/' in api_version else 'api'}/{api_version}")
            except NotFound:
                return []
            group, _, version = api_version.rpartition("/")
            self._known[api_version] = [
                Resource(group, version, entry["name"], entry["kind"], bool(entry.get("namespaced")))
                for entry in answer.get("resources") or ()
                if "/" not in entry["name"]
            ]
        return self._known[api_version]

    def forget(self) -> None:
        """Ask again: a CustomResourceDefinition may have come."""
        self._known.clear()
