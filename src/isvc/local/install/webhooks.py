"""Webhooks by address: there is no Service to name without a cluster network."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from isvc.kube.objects import Object
from isvc.programs.registration import ClientConfig, Webhook, configurations, conversions


def webhook_configurations(webhooks: Iterable[Webhook], url: str, authority: bytes) -> list[Object]:
    return configurations(webhooks, _at(url, authority))


def crd_conversions(webhooks: Iterable[Webhook], url: str, authority: bytes) -> dict[str, Object]:
    """The `spec.conversion` of each CRD that has one, by the CRD's name."""
    return conversions(webhooks, _at(url, authority))


def _at(url: str, authority: bytes) -> ClientConfig:
    bundle = base64.b64encode(authority).decode()
    return lambda path: {"url": url + path, "caBundle": bundle}
