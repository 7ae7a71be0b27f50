"""Which changes of a service are kept as revisions, and how the controller is built."""

from __future__ import annotations

from isvc.controllers.revisions.reconcile import Reconciler
from isvc.kube.resource import Resource
from isvc.serving.environment import Environment
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch

WORKERS = 4


def controller(resource: Resource, context: Context, environment: Environment) -> Controller:
    """Keeps some earlier specs of each object of this kind; with a limit of 0 it watches nothing."""
    limit = environment.revision_limit
    reconciler = Reconciler(context.client, limit)
    watches = [Watch(resource, on_change=reconciler.changed)] if limit else []
    return Controller(f"{resource.kind.lower()}-revisions", reconciler.reconcile, watches, workers=WORKERS)
