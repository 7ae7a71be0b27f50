"""Routers of graphs that KServe made go on running when they are taken over."""

from __future__ import annotations

import pytest

from isvc.api.annotations import AUTOSCALER_CLASS
from isvc.api.codec import decode
from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.controllers.inferencegraph.observe import Observed
from isvc.controllers.inferencegraph.plan import plan
from isvc.engine.comparison import Comparison
from isvc.kube.builtin import complete
from isvc.kube.objects import LAST_APPLIED, Object, deep_copy
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.config import Config
from isvc.serving.thirdparty import KNATIVE_SERVICES

NODES = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://a.test"}]}}


@pytest.mark.parametrize("annotations", [{}, {"team": "a"}, {AUTOSCALER_CLASS: "none"}])
@pytest.mark.parametrize(("mode", "resource"), [("Standard", DEPLOYMENTS), ("Knative", KNATIVE_SERVICES)])
def test_what_kserve_copied_into_pods_is_no_reason_to_restart_them(
    annotations: Object, mode: str, resource: Resource
) -> None:
    raw = {"metadata": {"name": "g", "namespace": "ns", "annotations": {**annotations, LAST_APPLIED: "{}"}}}
    observed = Observed(
        raw,
        spec=decode(InferenceGraphSpec, {"nodes": NODES}),
        config=Config.parse({"deploy": f'{{"defaultDeploymentMode": "{mode}"}}'}),
        services={},
        runtimes={},
        has_knative=True,
        knative_namespace="",
    )
    (child,) = [child for child in plan(observed).wanted() if child.resource == resource]
    assert LAST_APPLIED not in str(child.manifest)
    live = deep_copy(complete(child.manifest) or child.manifest)
    live["spec"]["template"]["metadata"].setdefault("annotations", {})[LAST_APPLIED] = "{}"
    assert not Comparison(child, live, "isvc").drifted
    live["spec"]["template"]["metadata"]["annotations"]["other"] = "x"
    assert Comparison(child, live, "isvc").drifted
    kept = Comparison(child, live, "isvc").replacement({**raw, "apiVersion": "v1", "kind": "Graph"})
    own = child.manifest["spec"]["template"]["metadata"].get("annotations") or {}
    assert kept["spec"]["template"]["metadata"]["annotations"] == {**own, LAST_APPLIED: "{}"}
