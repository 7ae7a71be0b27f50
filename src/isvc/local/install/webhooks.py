"""Webhook configurations by address: there is no Service to name without a cluster network."""

from __future__ import annotations

import base64

from isvc.kube.objects import Object
from isvc.programs.registration import configurations
from isvc.programs.webhooks import ISVC_WEBHOOKS


def webhook_configurations(url: str, authority: bytes) -> list[Object]:
    bundle = base64.b64encode(authority).decode()
    return configurations(ISVC_WEBHOOKS, lambda path: {"url": url + path, "caBundle": bundle})
