"""Knative Serving as far as KServe uses it: Services, Configurations, Revisions and Routes, scaled by their requests.

Service → Configuration → Revision → Deployment, and Service → Route → HTTPRoutes of the gateway, which does the work of
Knative's activator and queue-proxy: it counts requests, holds them while there is no pod, and sends a pod no more at a
time than it takes. Names, labels and conditions are those of Knative.
"""

from __future__ import annotations

from isvc.local.controllers.context import Context
from isvc.local.knative import configurations, revisions, routes, scaling, services
from isvc.local.knative.activator import Activator
from isvc.toolkit.controller import Controller


def controllers(context: Context, activator: Activator, gateway: str, port: int) -> list[Controller]:
    return [
        services.controller(context),
        configurations.controller(context),
        revisions.controller(context),
        routes.controller(context, gateway, port),
        scaling.controller(context, activator),
    ]
