"""The webhook at `/mutate-pods`: gathers the facts that a pod's mutation depends on, and mutates the pod.

Settings, services and storage containers come from memory. Service accounts and secrets are read from the API server
when a pod needs them, so that the process never holds a cluster's secrets, nor may list them.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES
from isvc.engine.needs import Answers, gather
from isvc.kube.builtin import check_types
from isvc.kube.objects import Object, labels_of
from isvc.kube.resource import PODS
from isvc.serving import annotations as annotation
from isvc.serving.config.current import Configuration
from isvc.serving.credentials import Lookup
from isvc.serving.pods import PodFacts, is_ours, mutate_pod
from isvc.serving.refused import Refused
from isvc.toolkit.cache import Reader
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, allow, allow_change, deny
from isvc.webhooks.live_reads import Getter, LiveReads, ReadSequence

PATH: Final = "/mutate-pods"
READS: Final = (Read(INFERENCE_SERVICES), Read(CLUSTER_STORAGE_CONTAINERS, optional=True))


class PodMutator:
    """Handles admission requests for pods. The reader holds the configuration and what `READS` lists."""

    def __init__(self, reader: Reader, client: Getter, system_namespace: str) -> None:
        self._reader, self._system_namespace = reader, system_namespace
        self._configuration = Configuration(reader, system_namespace)
        self._reads = LiveReads(client)

    async def __call__(self, request: AdmissionRequest) -> AdmissionResponse:
        pod = request.object
        check_types(PODS.typed(pod))
        if not is_ours(pod) or not (pod.get("spec") or {}).get("containers"):
            return allow()  # the API server says itself, afterwards, that a pod without containers is none
        try:
            return allow_change(pod, await self._mutate(pod, request.namespace))
        except Refused as error:
            return deny(error.message, 500)

    async def _mutate(self, pod: Object, namespace: str) -> Object:
        answers, reads = Answers(), ReadSequence(self._reads)
        mutated = await gather(partial(mutate_pod, pod, self._facts(pod, namespace, answers)), answers, reads.ask)
        reads.end()
        return mutated

    def _facts(self, pod: Object, namespace: str, answers: Answers) -> PodFacts:
        reader = self._reader
        return PodFacts(
            config=self._configuration(),
            lookup=Lookup(namespace, answers),
            service=reader.get(INFERENCE_SERVICES, labels_of(pod)[annotation.SERVICE], namespace),
            storage_containers=reader.list(CLUSTER_STORAGE_CONTAINERS),
            system_namespace=self._system_namespace,
        )
