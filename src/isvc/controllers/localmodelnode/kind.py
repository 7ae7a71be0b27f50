"""What a LocalModelNode is to the reconciler."""

from __future__ import annotations

from collections.abc import Callable

from isvc.api.localmodel import LocalModelNode
from isvc.api.resources import LOCAL_MODEL_NODES
from isvc.controllers.localmodelnode.disk import Stock
from isvc.controllers.localmodelnode.observe import Observed, Observer
from isvc.controllers.localmodelnode.plan import CHILDREN, NodePlan, plan
from isvc.controllers.localmodelnode.status import fold
from isvc.engine.kind import Kind
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader


def make_kind(reader: Reader, environment: Environment, stock: Callable[[], Stock] = Stock) -> Kind[Observed, NodePlan]:
    """`stock` returns what is on the node's disk, as it was last looked at."""
    return Kind(
        resource=LOCAL_MODEL_NODES,
        api_type=LocalModelNode,
        conditions=None,
        children=CHILDREN,
        observe=Observer(reader, environment, stock).observe,
        plan=plan,
        fold=fold,
    )
