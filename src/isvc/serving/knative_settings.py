"""Knative's own configuration: whether services may start with no replicas, and in which domains they are."""

from __future__ import annotations

from typing import Final

from isvc.engine.needs import Answers, Stored
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.knative import zero_initial_scale_allowed

AUTOSCALER_CONFIG: Final = "config-autoscaler"
DOMAIN_CONFIG: Final = "config-domain"
_MAX_AGE: Final = 2.0


def allows_zero_initial_scale(answers: Answers, namespace: str) -> bool:
    return zero_initial_scale_allowed(answers[_setting_need(AUTOSCALER_CONFIG, namespace)])


def knative_domains(answers: Answers, namespace: str) -> tuple[str, ...]:
    return tuple((answers[_setting_need(DOMAIN_CONFIG, namespace)] or {}).get("data") or ())


def _setting_need(name: str, namespace: str) -> Stored:
    return Stored(CONFIG_MAPS, name, namespace, _MAX_AGE, _MAX_AGE)
