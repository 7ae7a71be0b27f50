"""Services that are scaled by requests: what they say of themselves, and what is missing where the add-on is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controllers.inferenceservice.healthy_children import with_healthy_children
from tests.unit.controllers.inferenceservice.test_ingress_of_ready_service import CONTAINER, fresh, named

from isvc.api import InferenceService
from isvc.cli.explain import headline
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.fold import fold_status
from isvc.controllers.inferenceservice.status.report import fold
from isvc.dashboard.views.rows import State, cause, state
from isvc.engine.outcome import Outcome
from isvc.kube.conditions import find
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS, SERVICES
from isvc.serving.thirdparty import HTTP_ROUTES, INTERCEPTOR_ROUTES, OPTIONAL, REFERENCE_GRANTS, SCALED_OBJECTS

ASKING = {"serving.kserve.io/autoscalerClass": "keda", "isvc.dev/http-metric": "concurrency=10"}
LOADED = {"transitionStatus": "UpToDate", "states": {"activeModelState": "Loaded", "targetModelState": "Loaded"}}


def service(annotations: dict[str, str] = ASKING, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "InferenceService",
        "metadata": {"name": "iris", "namespace": "ns", "annotations": annotations},
        "spec": {"predictor": {"minReplicas": 0, "containers": [CONTAINER]}, **spec},
        "status": {"modelStatus": LOADED},
    }


def healthy(observed: Observed, replicas: int) -> Observed:
    """The service as it is observed when its Deployments have that many replicas."""
    found = with_healthy_children(observed)
    live = {
        key: {**each, "spec": {**each["spec"], "replicas": replicas}} if key[0] == DEPLOYMENTS else each
        for key, each in found.live.items()
    }
    return replace(with_healthy_children(replace(found, live=live)), live={**found.live, **live})


def ready(status: Object) -> Object:
    return find(status["conditions"], "Ready") or {}


def folded(observed: Observed) -> Object:
    return fold_status(observed, plan(observed), Outcome())


def test_asleep_is_ready_and_says_so_wherever_people_look() -> None:
    status = folded(healthy(fresh("Standard", gateway=False, service=service()), replicas=0))
    said = "asleep, wakes on a request: predictor"
    assert (ready(status)["status"], ready(status)["reason"], ready(status)["message"]) == ("True", "Asleep", said)
    shown = {**service(), "status": status}
    assert headline(shown, []) == f"InferenceService ns/iris is ready: {said}"
    assert (state(shown, None), cause(shown, None)) == (State.READY, said)


def test_the_model_of_a_service_that_sleeps_is_what_it_was() -> None:
    status = folded(healthy(fresh("Standard", gateway=False, service=service()), replicas=0))
    assert status["modelStatus"] == LOADED


def test_awake_again_it_has_nothing_to_say() -> None:
    asleep = healthy(fresh("Standard", gateway=False, service=service()), replicas=0)
    raw = {**service(), "status": folded(asleep)}
    awake = healthy(replace(asleep, raw=raw), replicas=1)
    assert "reason" not in ready(folded(awake))


def test_who_sleeps_when_an_hpa_takes_over_is_woken() -> None:
    """An HPA does not start from zero, and KEDA's ScaledObject goes."""
    asleep = healthy(fresh("Standard", gateway=False, service=service()), replicas=0)

    def replicas(observed: Observed, annotations: dict[str, str]) -> int | None:
        raw = service(annotations, predictor={"minReplicas": 2, "containers": [CONTAINER]})
        changed = replace(observed, raw=raw, service=InferenceService.decode(raw))
        [deployment] = named(plan(changed), DEPLOYMENTS).values()
        found: int | None = deployment["spec"].get("replicas")
        return found

    assert replicas(asleep, {}) == 2
    assert replicas(asleep, {"serving.kserve.io/autoscalerClass": "external"}) is None
    assert replicas(asleep, {"serving.kserve.io/autoscalerClass": "keda"}) is None  # whose minimum KEDA sees to
    paused = {key: each for key, each in asleep.live.items() if key[0] != SCALED_OBJECTS}
    assert replicas(replace(asleep, live=paused), {}) is None  # people may scale a Deployment to nothing


def without_pods(observed: Observed, since: str) -> Observed:
    """The service as it is observed while it should have a pod and has none since then."""
    reason = "MinimumReplicasUnavailable"
    missing = {"type": "Available", "status": "False", "reason": reason, "lastTransitionTime": since}
    live = {
        key: {**each, "spec": {**each["spec"], "replicas": 1}, "status": {"conditions": [missing]}}
        if key[0] == DEPLOYMENTS
        else each
        for key, each in observed.live.items()
    }
    return replace(observed, live=live)


@pytest.mark.parametrize(("since", "state"), [(59, ("True", "Waking")), (0, ("False", "MinimumReplicasUnavailable"))])
def test_waking_is_ready_for_as_long_as_a_start_may_take(since: int, state: tuple[str, str]) -> None:
    asleep = healthy(fresh("Standard", gateway=False, service=service()), replicas=0)
    raw = {**service(), "status": folded(asleep)}
    now = "2026-01-01T00:10:30Z"
    waking = replace(without_pods(asleep, f"2026-01-01T00:00:{since:02}Z"), raw=raw, now=now)
    outcome = fold(waking, plan(waking), Outcome())
    found = find(outcome.status["conditions"], "PredictorReady") or {}
    assert (found["status"], found.get("reason")) == state
    assert ready(outcome.status)["status"] == state[0]
    assert outcome.again == (30.0 if state[0] == "True" else None)
    if state[0] == "True":
        assert headline({**raw, "status": outcome.status}, []).endswith(
            "is ready: waking up: requests wait for the first pod: predictor"
        )


def test_who_was_awake_and_lost_its_pod_is_not_ready() -> None:
    awake = healthy(fresh("Standard", gateway=False, service=service()), replicas=1)
    raw = {**service(), "status": folded(awake)}
    lost = without_pods(replace(awake, raw=raw), awake.now)
    assert ready(folded(lost))["status"] == "False"


@pytest.mark.parametrize(
    ("replicas", "away", "reason"),
    [
        (0, "keda-operator", "KEDAUnavailable"),
        (1, "keda-operator", None),
        (0, "keda-add-ons-http-interceptor-proxy", "HTTPAddOnUnavailable"),
        (1, "keda-add-ons-http-interceptor-proxy", "HTTPAddOnUnavailable"),
    ],
)
def test_whom_nobody_wakes_or_no_request_reaches_is_not_ready(replicas: int, away: str, reason: str | None) -> None:
    observed = healthy(fresh("Standard", gateway=False, service=service()), replicas=replicas)
    status = folded(replace(observed, away=frozenset({away})))
    scaling = find(status["conditions"], "ScalingReady") or {}
    predictor = find(status["conditions"], "PredictorReady") or {}
    assert scaling["status"] == "False"
    assert "; repair the Deployment" in scaling["message"]
    assert (predictor["status"], ready(status)["status"]) == (("False", "False") if reason else ("True", "True"))
    assert reason in (None, predictor["reason"])


@pytest.mark.parametrize("replicas", [0, 1])
def test_what_keda_cannot_ask_is_told_with_what_to_do(replicas: int) -> None:
    """The add-on's scaler does not answer, or Prometheus does not, where a service has metrics of its own as well."""
    observed = healthy(fresh("Standard", gateway=False, service=service()), replicas=replicas)
    fails = {"conditions": [{"type": "Ready", "status": "False", "message": "Triggers do not work: no answer"}]}
    scaled = {key: {**each, "status": fails} for key, each in observed.live.items() if key[0] == SCALED_OBJECTS}
    status = folded(replace(observed, live={**observed.live, **scaled}))
    scaling = find(status["conditions"], "ScalingReady") or {}
    assert (scaling["status"], scaling["reason"]) == ("False", "ScaledObjectNotReady")
    assert "no answer; its events say which trigger fails" in scaling["message"]
    assert ready(status)["status"] == ("False" if replicas == 0 else "True")  # whom nobody wakes


def test_those_that_nobody_scales_by_requests_say_nothing_of_it() -> None:
    status = folded(healthy(fresh("Standard", gateway=False, service=service({})), replicas=1))
    assert find(status["conditions"], "ScalingReady") is None


def test_no_replicas_are_no_sleep_where_nobody_wakes_them() -> None:
    kept = {"serving.kserve.io/autoscalerClass": "keda"}
    status = folded(healthy(fresh("Standard", gateway=False, service=service(kept)), replicas=0))
    assert "reason" not in ready(status)


def test_without_the_add_on_the_condition_says_what_to_do_and_the_pods_run() -> None:
    observed = replace(fresh("Standard", gateway=True, service=service()), served=OPTIONAL - {INTERCEPTOR_ROUTES})
    planned = plan(observed)
    assert named(planned, DEPLOYMENTS).keys() == {"iris-predictor"}
    assert named(planned, SCALED_OBJECTS) == {}
    found = ready(fold_status(observed, planned, Outcome()))
    assert (found["status"], found["reason"]) == ("False", "HTTPAddOnNotInstalled")
    assert found["message"].endswith("install the add-on in version 0.14 or later, or remove the annotation")


def test_one_component_may_sleep_while_others_do_not() -> None:
    own = {"serving.kserve.io/autoscalerClass": "keda"}
    predictor = {"minReplicas": 0, "containers": [CONTAINER], "annotations": {"isvc.dev/http-metric": "requestRate=2"}}
    both = service(own, predictor=predictor, transformer={"containers": [CONTAINER]})
    planned = plan(with_healthy_children(fresh("Standard", gateway=True, service=both)))
    assert named(planned, INTERCEPTOR_ROUTES).keys() == {"iris-predictor"}
    backends = {
        name: [rule["backendRefs"][0]["name"] for rule in route["spec"]["rules"]]
        for name, route in named(planned, HTTP_ROUTES).items()
    }
    interceptor = "keda-add-ons-http-interceptor-proxy"
    assert backends == {
        "iris": ["iris-transformer"],
        "iris-transformer": ["iris-transformer"],
        "iris-predictor": [interceptor],
    }
    container = named(planned, DEPLOYMENTS)["iris-transformer"]["spec"]["template"]["spec"]["containers"][0]
    assert "iris-predictor-interceptor.ns:8080" in container["args"]


@pytest.mark.parametrize(
    ("gateway", "hidden", "granted"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_routes_to_another_namespace_need_a_grant(gateway: bool, hidden: bool, granted: bool) -> None:
    raw = service()
    if hidden:
        raw["metadata"]["labels"] = {"networking.kserve.io/visibility": "cluster-local"}
    planned = plan(with_healthy_children(fresh("Standard", gateway=gateway, service=raw)))
    assert bool(named(planned, REFERENCE_GRANTS)) is granted
    assert "iris-predictor-interceptor" in named(planned, SERVICES)


def test_a_stopped_service_leaves_nothing_behind() -> None:
    raw = service({**ASKING, "serving.kserve.io/stop": "true"})
    assert plan(fresh("Standard", gateway=True, service=raw)).wanted() == ()
