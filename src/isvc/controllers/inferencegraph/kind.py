"""What an InferenceGraph is to the reconciler."""

from __future__ import annotations

from isvc.api.inferencegraph import InferenceGraph
from isvc.api.resources import INFERENCE_GRAPHS
from isvc.controllers.inferencegraph.observe import Observed, Observer
from isvc.controllers.inferencegraph.plan import CHILDREN, ROUTER, plan
from isvc.controllers.inferencegraph.status import CONDITIONS, fold, report_readiness
from isvc.engine.kind import Kind
from isvc.engine.plan import Plan
from isvc.serving.environment import Environment
from isvc.serving.shared_host import report_doubt
from isvc.toolkit.cache import Reader


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    return Kind(
        resource=INFERENCE_GRAPHS,
        api_type=InferenceGraph,
        conditions=CONDITIONS,
        children=CHILDREN,
        observe=Observer(reader, environment).observe,
        plan=plan,
        fold=fold,
        readiness_events=report_readiness,
        doubts=lambda observed, _: report_doubt(observed.raw, ROUTER),
    )
