"""A reader whose memory is given."""

from __future__ import annotations

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs import registration
from isvc.programs.options import Options
from isvc.programs.registration import WebhookContext
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS
from isvc.toolkit.memory import MemoryReader
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


def all_routes(memory: Memory, options: Options | None = None) -> dict[str, Route]:
    """Every webhook of both managers."""
    context = WebhookContext.of(memory, NoServer(), options or Options())
    return registration.routes((*ISVC_WEBHOOKS, *LLM_WEBHOOKS), context)


def answer_of(route: Route, request: AdmissionRequest) -> AdmissionResponse:
    """The answer of a handler that decides at once."""
    assert isinstance(route, Admission)
    answer = route.handler(request)
    assert isinstance(answer, AdmissionResponse)
    return answer
