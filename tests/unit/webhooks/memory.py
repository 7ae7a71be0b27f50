"""A reader whose memory is given."""

from __future__ import annotations

from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs import registration
from isvc.programs.options import Options
from isvc.programs.registration import WebhookContext
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS
from isvc.toolkit.webhook import Route


class Memory:
    def __init__(
        self, objects: dict[Resource, list[Object]] | None = None, config: dict[str, str] | None = None
    ) -> None:
        self.objects = dict(objects or {})
        settings: Object = {
            "metadata": {"name": "inferenceservice-config", "namespace": "kserve"},
            "data": config or {},
        }
        self.objects.setdefault(CONFIG_MAPS, [settings | {"metadata": settings["metadata"] | {"resourceVersion": "1"}}])

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        found = (obj for obj in self.list(resource, namespace) if name_of(obj) == name)
        return next(found, None)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        return [obj for obj in self.objects.get(resource, []) if not namespace or namespace_of(obj) == namespace]

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        raise NotImplementedError

    def serves(self, resource: Resource) -> bool:
        return resource in self.objects


class NoServer:
    """An API server that is not to be asked."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        raise AssertionError(f"nobody should ask for {resource} {namespace}/{name}")


def all_routes(memory: Memory, options: Options | None = None) -> dict[str, Route]:
    """Every webhook of both managers."""
    context = WebhookContext.of(memory, NoServer(), options or Options())
    return registration.routes((*ISVC_WEBHOOKS, *LLM_WEBHOOKS), context)
