"""What an admission plugin is: it may change an object on its way in, and refuse it once it is complete."""

from __future__ import annotations

from isvc.apiserver import refusals
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object


class Plugin:
    """Does nothing. A subclass bears the name under which Kubernetes knows the plugin."""

    #: The resources it is asked about: `pods`, `ingresses.networking.k8s.io`.
    resources: tuple[str, ...] = ()

    def __init__(self, reader: Reader, controllers: bool = False) -> None:
        """`controllers` says whether the server makes what every namespace has, a moment after the namespace."""
        self.reader = reader
        self.controllers = controllers

    def admit(self, request: AdmissionRequest, obj: Object, old: Object | None) -> None:
        """Fills in the object, in place; again after webhooks have changed it."""

    def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        """Raises an ApiError to refuse the write. Without an object it is a deletion."""


def forbidden(request: AdmissionRequest, obj: Object | None, why: str) -> Forbidden:
    meta = (obj or {}).get("metadata") or {}
    name = request.name or meta.get("name") or meta.get("generateName") or "Unknown"
    return refusals.forbidden(request.description.resource, name, why)
