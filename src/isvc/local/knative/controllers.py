"""All controllers of Knative's kinds."""

from __future__ import annotations

from isvc.local.knative import configurations, revisions, routes, scaling, services
from isvc.local.knative.activator import Activator
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller


def controllers(context: Context, activator: Activator, gateway: str, port: int) -> list[Controller]:
    return [
        services.controller(context),
        configurations.controller(context),
        revisions.controller(context),
        routes.controller(context, gateway, port),
        scaling.controller(context, activator),
    ]
