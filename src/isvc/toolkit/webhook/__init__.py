"""Admission and conversion webhooks: what the API server asks before it stores or shows an object."""

from isvc.toolkit.webhook.admission import AdmissionRequest, AdmissionResponse, allow, allow_change, deny
from isvc.toolkit.webhook.server import Admission, ClientNames, Conversion, Route, WebhookServer

__all__ = [
    "Admission",
    "AdmissionRequest",
    "AdmissionResponse",
    "ClientNames",
    "Conversion",
    "Route",
    "WebhookServer",
    "allow",
    "allow_change",
    "deny",
]
