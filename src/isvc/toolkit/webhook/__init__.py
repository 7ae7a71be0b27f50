"""Admission and conversion webhooks: what the API server asks before it stores or shows an object."""

from isvc.toolkit.webhook.admission import AdmissionRequest, AdmissionResponse, allow, deny, patched
from isvc.toolkit.webhook.server import ClientNames, Route, WebhookServer, conversion, mutating, validating

__all__ = [
    "AdmissionRequest",
    "AdmissionResponse",
    "ClientNames",
    "Route",
    "WebhookServer",
    "allow",
    "conversion",
    "deny",
    "mutating",
    "patched",
    "validating",
]
