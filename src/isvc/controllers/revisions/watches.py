"""Which changes of a service are kept as revisions, and how the controller is built."""

from __future__ import annotations

from isvc.controllers.revisions.reconcile import Reconciler
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client
from isvc.toolkit.controller import Controller, Watch

WORKERS = 4


def controller(client: Client, resource: Resource, limit: int) -> Controller:
    """Keeps at most `limit` earlier specs of each object of this kind; with 0 it watches nothing."""
    reconciler = Reconciler(client, limit)
    watches = [Watch(resource, on_change=reconciler.changed)] if limit else []
    return Controller(f"{resource.kind.lower()}-revisions", reconciler.reconcile, watches, workers=WORKERS)
