"""A reader whose memory is given."""

from __future__ import annotations

from isvc.kube.objects import Object, namespace_of
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs import registration
from isvc.programs.options import Options
from isvc.programs.registration import WebhookContext
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS, LOCALMODEL_WEBHOOKS
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client.answers import ObjectList
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, Route
from isvc.toolkit.webhook.server import Admission


class Memory(MemoryReader):
    """These objects, and a configuration unless ConfigMaps are among them."""

    def __init__(
        self, objects: dict[Resource, list[Object]] | None = None, config: dict[str, str] | None = None
    ) -> None:
        metadata = {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"}
        known = {CONFIG_MAPS: [{"metadata": metadata, "data": config or {}}], **(objects or {})}
        super().__init__((resource, obj) for resource, each in known.items() for obj in each)


class NoServer:
    """An API server that is not to be asked."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        raise AssertionError(f"nobody should ask for {resource} {namespace}/{name}")

    async def list(self, resource: Resource, namespace: str = "") -> ObjectList:
        raise AssertionError(f"nobody should ask for every {resource} {namespace}")


class NewerServer(NoServer):
    """An API server that has what memory does not have yet."""

    def __init__(self, objects: dict[Resource, list[Object]] | None = None) -> None:
        self._objects = objects or {}

    async def list(self, resource: Resource, namespace: str = "") -> ObjectList:
        found = self._objects.get(resource, [])
        return ObjectList([each for each in found if namespace in ("", namespace_of(each))], "1")


def all_routes(memory: Memory, options: Options | None = None, server: NoServer | None = None) -> dict[str, Route]:
    """Every webhook of both managers."""
    context = WebhookContext.of(memory, server or NoServer(), options or Options())
    return registration.routes((*ISVC_WEBHOOKS, *LLM_WEBHOOKS, *LOCALMODEL_WEBHOOKS), context)


def answer_of(route: Route, request: AdmissionRequest) -> AdmissionResponse:
    """The answer of a handler that decides at once."""
    assert isinstance(route, Admission)
    answer = route.handler(request)
    assert isinstance(answer, AdmissionResponse)
    return answer
