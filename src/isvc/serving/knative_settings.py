"""Knative's own configuration: whether services may start with no replicas, and in which domains they are."""

from __future__ import annotations

from typing import Final

from isvc.engine.needs import Answers, Stored
from isvc.kube.objects import dig
from isvc.kube.resource import CONFIG_MAPS

AUTOSCALER_CONFIG: Final = "config-autoscaler"
DOMAIN_CONFIG: Final = "config-domain"
_MAX_AGE: Final = 2.0  # of domains, which all services ask for


def allows_zero_initial_scale(answers: Answers, namespace: str) -> bool:
    """Returns whether Knative's own configuration allows it now, which it does not by default."""
    stored = answers[Stored(CONFIG_MAPS, AUTOSCALER_CONFIG, namespace)]
    return str(dig(stored, "data", "allow-zero-initial-scale") or "").lower() in ("1", "t", "true")


def knative_domains(answers: Answers, namespace: str) -> tuple[str, ...]:
    stored = answers[Stored(CONFIG_MAPS, DOMAIN_CONFIG, namespace, _MAX_AGE, _MAX_AGE)]
    return tuple((stored or {}).get("data") or ())
