"""How the controller of LocalModelNamespaceCaches is built: what triggers it is what triggers that of the cluster's."""

from __future__ import annotations

from isvc.controllers.localmodel.namespace.kind import make_kind
from isvc.controllers.localmodel.watches import make_cache_controller, reads
from isvc.serving.environment import Environment
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

__all__ = ["controller", "reads"]


def controller(context: Context, environment: Environment) -> Controller:
    return make_cache_controller("localmodelnamespace", make_kind(context.cache, environment), context, environment)
