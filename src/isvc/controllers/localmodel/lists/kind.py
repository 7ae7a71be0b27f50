"""What a LocalModelNode is to the reconciler: a list that follows from all caches, and a status that is its node's."""

from __future__ import annotations

from isvc.api.localmodel import LocalModelNode
from isvc.api.resources import LOCAL_MODEL_NODES
from isvc.controllers.localmodel.lists.observe import Observed, Observer
from isvc.controllers.localmodel.lists.plan import plan
from isvc.engine.kind import Folded, Kind
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    return Kind(
        resource=LOCAL_MODEL_NODES,
        api_type=LocalModelNode,
        conditions=None,
        writes_status=False,
        observe=Observer(reader).observe,
        claim=lambda observed: None,
        plan=plan,
        fold=fold,
    )


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    return Folded(observed.status)
