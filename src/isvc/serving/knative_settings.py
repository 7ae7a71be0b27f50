"""Knative's own configuration: whether services may start with no replicas, and in which domains they are."""

from __future__ import annotations

from isvc.engine.needs import Answers, Stored
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.knative import zero_initial_scale_allowed
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.polled_reads import PolledReads

NAMESPACE = "knative-serving"
AUTOSCALER_CONFIG = "config-autoscaler"
DOMAIN_CONFIG = "config-domain"
_MAX_AGE = 30.0


class KnativeSettings:
    def __init__(self, client: Client, clock: Clock, namespace: str = NAMESPACE) -> None:
        self._reads = PolledReads(client, clock)
        self._namespace = namespace

    async def zero_initial_scale(self) -> bool:
        return zero_initial_scale_allowed(await self._reads.get(CONFIG_MAPS, AUTOSCALER_CONFIG, self._namespace))

    async def domains(self) -> tuple[str, ...]:
        found = await self._reads.get(CONFIG_MAPS, DOMAIN_CONFIG, self._namespace)
        return tuple((found or {}).get("data") or ())


def allows_zero_initial_scale(answers: Answers, namespace: str) -> bool:
    return zero_initial_scale_allowed(answers[_setting(AUTOSCALER_CONFIG, namespace)])


def knative_domains(answers: Answers, namespace: str) -> tuple[str, ...]:
    return tuple((answers[_setting(DOMAIN_CONFIG, namespace)] or {}).get("data") or ())


def _setting(name: str, namespace: str) -> Stored:
    return Stored(CONFIG_MAPS, name, namespace, _MAX_AGE, _MAX_AGE)
