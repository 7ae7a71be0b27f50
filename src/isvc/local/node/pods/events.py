"""Events of a pod; what the owner of its service has to know is recorded for the service, too."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, labels_of, name_of, namespace_of
from isvc.serving.annotations import SERVICE
from isvc.toolkit.client import Client
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.recorder import Recorder

LACKING: Final = "NotOnThisMachine"
_CONCERN_SERVICE: Final = ("ErrImageNeverPull", "FailedMount", LACKING)


class PodEvents:
    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._client, self._recorder = client, recorder
        self.telling: asyncio.Task[None] | None = None

    def record(self, pod: Object, kind: str, reason: str, message: str) -> None:
        self._recorder.event(pod, kind, reason, message)
        if reason in _CONCERN_SERVICE and (service := labels_of(pod).get(SERVICE)):
            self.telling = asyncio.create_task(self._tell_service(service, pod, kind, reason, message))

    async def _tell_service(self, name: str, pod: Object, kind: str, reason: str, message: str) -> None:
        with contextlib.suppress(ApiError, ClusterError):
            service = await self._client.get(INFERENCE_SERVICES, name, namespace_of(pod))
            self._recorder.event(service, kind, reason, f"pod {name_of(pod)}: {message}")
