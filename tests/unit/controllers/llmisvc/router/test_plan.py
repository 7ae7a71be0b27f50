"""The router as a whole: what is planned, and what the status says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controllers.llmisvc.services import GATEWAY, NAMESPACE, gateway, observe, path, route, service

from isvc.controllers.llmisvc import router, scheduler
from isvc.controllers.llmisvc.area import Applied, Area
from isvc.controllers.llmisvc.observed import Network, Observed
from isvc.controllers.llmisvc.router.backends import with_backends
from isvc.controllers.llmisvc.router.plan import Router
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.engine.comparison import Comparison
from isvc.engine.plan import Child, Hold, Stop, Want
from isvc.kube.objects import Object, deep_copy
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

POOL = {"kind": "InferencePool", "name": "llama-inference-pool", "group": INFERENCE_POOLS.group, "port": 8000}
HEADER = "X-Gateway-Model-Name"
BY_MODEL = path("/", POOL, {"name": HEADER, "value": "publishers/models/models/m"})
MARKED = {"serving.kserve.io/model-based-routing-enabled": "true"}


def routed(*rules: Object, **router_spec: Any) -> Object:
    http = {"spec": route(*rules)["spec"]}
    return {
        "model": {"name": "m"},
        "annotations": MARKED,
        "router": {"route": {"http": http}, "scheduler": {"template": {}}, **router_spec},
    }


def planned_route(observed: Observed) -> Object:
    (part,) = router.plan(observed).parts
    assert isinstance(part.answer, Want)
    return part.answer.children[0].manifest


def update_of(live: Object, observed: Observed) -> Object:
    """What is written over a live route, since it is not as the service wants it."""
    child = Child(HTTP_ROUTES, planned_route(observed))
    assert not Comparison(child, child.manifest, "isvc").drifted
    comparison = Comparison(child, live, "isvc")
    assert comparison.drifted
    return comparison.replacement(observed.raw)


def reported(observed: Observed, area: Router | None = None) -> Object:
    area = area or router.plan(observed)
    edit = StatusEdit(observed.status, observed.now)
    router.report(edit, area, Applied(observed))
    return edit.result()


# -- the route ------------------------------------------------------------------------------------------------------


def test_a_new_route_leads_to_pools_of_the_older_group_and_one_that_moved_to_the_newer() -> None:
    observed = observe(routed(path("/models/llama", POOL)))
    backends = planned_route(observed)["spec"]["rules"][0]["backendRefs"]
    assert backends == [{**POOL, "group": INFERENCE_POOLS_V1ALPHA2.group}]
    live = route()
    live["metadata"]["annotations"] = {"serving.kserve.io/inference-pool-migrated": "v1"}
    moved = planned_route(replace(observed, live={(HTTP_ROUTES, "llama-kserve-route"): live}))
    assert moved["spec"]["rules"][0]["backendRefs"] == [POOL]
    assert moved["metadata"]["annotations"] == live["metadata"]["annotations"]


def test_rules_for_adapters_come_and_go_with_the_adapters() -> None:
    spec = routed(BY_MODEL)
    with_adapters = {**spec, "model": {"name": "m", "lora": {"adapters": [{"name": "b"}, {"name": "a"}, {}]}}}
    values = [
        match["headers"][0]["value"] for match in planned_route(observe(with_adapters))["spec"]["rules"][0]["matches"]
    ]
    assert values == [f"publishers/models/models/{name}" for name in ("m", "a", "b")]
    assert planned_route(observe(spec))["spec"]["rules"][0]["matches"] == BY_MODEL["matches"]


def test_rules_of_removed_adapters_leave_the_route() -> None:
    spec = routed(BY_MODEL)
    with_adapter = {**spec, "model": {"name": "m", "lora": {"adapters": [{"name": "a"}]}}}
    updated = update_of(planned_route(observe(with_adapter)), observe(spec))
    assert updated["spec"]["rules"][0]["matches"] == BY_MODEL["matches"]


@pytest.mark.parametrize(
    "before",
    [
        {"parentRefs": [{"name": GATEWAY.name, "namespace": GATEWAY.namespace, "sectionName": "web"}]},
        {"hostnames": ["old.example.org"]},
    ],
)
def test_a_route_follows_its_spec_also_where_something_is_only_taken_away(before: Object) -> None:
    observed = observe(routed(path("/models/llama", POOL)))
    wanted = planned_route(observed)
    assert update_of({**wanted, "spec": {**wanted["spec"], **before}}, observed)["spec"] == wanted["spec"]


def test_an_annotation_that_a_route_no_longer_has_goes_and_one_of_somebody_else_stays() -> None:
    observed = observe(routed(path("/models/llama", POOL)))
    live = deep_copy(planned_route(observed))
    live["metadata"]["annotations"] = {"ours": "1", "theirs": "2"}
    fields: Object = {"f:metadata": {"f:annotations": {"f:ours": {}}}}
    live["metadata"]["managedFields"] = [{"manager": "isvc", "fieldsV1": fields}]
    assert update_of(live, observed)["metadata"]["annotations"] == {"theirs": "2"}


def test_a_rule_without_matches_stays_when_rules_by_header_are_removed() -> None:
    everything = {"backendRefs": [{"kind": "Service", "name": "s"}]}
    observed = observe({**routed(BY_MODEL, everything), "annotations": {}})
    assert planned_route(observed)["spec"]["rules"] == [everything]


@pytest.mark.parametrize("why", ["unmarked workload", "gateway opts out"])
def test_rules_by_header_go_where_they_would_not_work(why: str) -> None:
    spec = routed(BY_MODEL, path("/models/llama", POOL))
    if why == "unmarked workload":
        observed = observe({**spec, "annotations": {}})
    else:
        spec["router"]["gateway"] = {"refs": [{"name": GATEWAY.name, "namespace": GATEWAY.namespace}]}
        opted_out = gateway()
        opted_out["metadata"]["annotations"] = {"serving.kserve.io/model-based-routing-enabled": "false"}
        observed = observe(spec, network=Network(gateways={GATEWAY: opted_out}))
    rules = planned_route(observed)["spec"]["rules"]
    assert [rule["matches"][0]["path"]["value"] for rule in rules] == ["/models/llama"]


def test_a_route_leads_to_the_workload_without_a_scheduler_and_to_the_users_pool_with_one() -> None:
    spec = routed(path("/a", POOL), path("/b", {"name": "mine", "port": 1}))
    bare = with_backends({**spec, "router": {"route": spec["router"]["route"]}}, "llama")
    first, second = (rule["backendRefs"][0] for rule in bare["router"]["route"]["http"]["spec"]["rules"])
    assert (first["kind"], first["name"], first["group"]) == ("Service", "llama-kserve-workload-svc", "")
    assert second == {"name": "mine", "port": 1}
    theirs = with_backends(
        {**spec, "router": {**spec["router"], "scheduler": {"pool": {"ref": {"name": "p"}}}}}, "llama"
    )
    assert theirs["router"]["route"]["http"]["spec"]["rules"][0]["backendRefs"] == [{**POOL, "name": "p"}]


def test_gateways_that_a_service_names_become_the_parents_of_its_route() -> None:
    spec = routed(gateway={"refs": [{"name": "g", "sectionName": "s"}, {"name": "h", "namespace": "n"}]})
    parents = with_backends(spec, "llama")["router"]["route"]["http"]["spec"]["parentRefs"]
    common = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
    assert parents == [{**common, "name": "g", "sectionName": "s"}, {**common, "name": "h", "namespace": "n"}]


# -- references -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "condition", "message"),
    [
        (
            {"gateway": {"refs": [{"name": "g"}, {"name": "h", "namespace": "n"}]}},
            "GatewaysReady",
            "Gateway models/g does not exist; Gateway n/h does not exist",
        ),
        (
            {"route": {"http": {"refs": [{"name": "mine"}]}}},
            "HTTPRoutesReady",
            "HTTPRoute models/mine does not exist",
        ),
        (
            {"route": {"http": {"spec": {"parentRefs": [{"name": "g"}]}}}},
            "HTTPRoutesReady",
            "Managed HTTPRoute references non-existent Gateway models/g",
        ),
        (
            {"route": {"http": {"refs": [{"name": "orphan"}, {"name": "lost"}]}}},
            "HTTPRoutesReady",
            "HTTPRoute target validation failed: HTTPRoute models/orphan has no parent gateway references;"
            " HTTPRoute models/lost references non-existent Gateway models/g",
        ),
    ],
)
def test_what_a_service_refers_to_has_to_be_there(spec: Object, condition: str, message: str) -> None:
    routes = {"orphan": route(parentRefs=[]), "lost": route(parentRefs=[{"name": "g"}])}
    problem = reference_problem(observe({"router": spec}, network=Network(routes=routes)))
    assert problem == Stop("router", condition, "RefsInvalid", message)


# -- the status -----------------------------------------------------------------------------------------------------


def test_a_service_without_a_route_is_reached_at_its_workload_and_has_no_url() -> None:
    raw = service(status={"url": "http://old", "router": {"gateways": []}})
    status = reported(observe({}, raw=raw))
    assert [address["url"] for address in status["addresses"]] == [
        f"http://llama-kserve-workload-svc.{NAMESPACE}.svc.cluster.local"
    ]
    assert "url" not in status
    assert "router" not in status


def test_a_stopped_service_has_no_addresses_and_says_so_in_every_condition() -> None:
    raw = service(
        metadata={"annotations": {"serving.kserve.io/stop": "true"}},
        status={"url": "http://old", "addresses": [{"url": "http://old"}], "router": {"gateways": []}},
    )
    observed = observe(routed(path("/models/llama", POOL)), raw=raw)
    assert router.plan(observed).parts == ()
    status = reported(observed)
    assert {"url", "addresses", "router"} & status.keys() == set()
    assert {condition["reason"] for condition in status["conditions"]} == {"Stopped"}


def test_a_gateway_whose_class_does_not_exist_is_named() -> None:
    observed = observe(routed(path("/models/llama", POOL)), network=Network(gateways={GATEWAY: gateway()}))
    area = router.plan(observed)
    assert area.stop is not None
    assert (area.stop.condition, area.stop.reason) == ("HTTPRoutesReady", "HTTPRouteReconcileError")
    assert 'failed to get GatewayClass "example" for gateway kserve/gate' in area.stop.message
    assert reported(observed, area).get("addresses") is None
    assert router.plan(replace(observed, environment=Environment(cluster_wide=False))).stop is None, (
        "where classes cannot be read"
    )


def test_a_pool_of_the_users_that_does_not_exist_stops_the_report_there() -> None:
    spec = routed(path("/models/llama", POOL), scheduler={"pool": {"ref": {"name": "theirs"}}})
    area = router.plan(observe(spec))
    assert area.stop is not None
    assert area.stop.condition == "InferencePoolReady"
    assert not any(isinstance(part.answer, Hold) for part in area.parts), "all of it could be planned"
    assert reported(observe(spec), area).get("conditions") is None


def test_services_that_are_routed_for_the_same_model_are_warned_of_each_other_unless_they_share_it() -> None:
    spec = routed(path("/models/llama", POOL))
    network = Network(
        gateways={GATEWAY: gateway()},
        gateway_classes={"example": {}},
        namesakes=[service("other", {"router": {"route": {}}})],
    )
    (event,) = router.plan(observe(spec, network=network)).events
    assert event.reason == "ModelNameCollision"
    assert '"m" is also used by other' in event.message
    assert router.plan(observe(spec, network=replace(network, namesakes=[service("unrouted")]))).events == ()
    spec["router"]["route"]["group"] = "g"
    shared = service("other", {"router": {"route": {"group": "g"}}})
    assert router.plan(observe(spec, network=replace(network, namesakes=[shared]))).events == ()


def test_a_report_that_says_the_same_later_says_it_with_the_same_times() -> None:
    spec = routed(
        path("/models/llama", POOL), gateway={"refs": [{"name": GATEWAY.name, "namespace": GATEWAY.namespace}]}
    )
    spec["router"]["route"]["group"] = "g"
    stranger = service("stranger", {"model": {"name": "other"}}, status=ABLE)
    network = replace(observe(spec).network, members=[stranger])
    first = observe(spec, network=network)
    status = whole_report(first)
    conditions = {condition["type"] for condition in status["conditions"]}
    assert conditions >= {"GatewaysReady", "HTTPRoutesReady", "InferencePoolReady", "GroupReady", "GroupDegraded"}
    later = replace(first, raw=service(spec=spec, status=status), now="2027-01-01T00:00:00Z")
    assert whole_report(later) == status


ABLE = {"conditions": [{"type": "RouterReady", "status": "True"}], "workloads": {"primary": {"readyReplicas": 1}}}


def whole_report(observed: Observed) -> Object:
    """What scheduler and router say, one after the other."""
    edit = StatusEdit(observed.status, observed.now)
    scheduler.report(edit, Area(), Applied(observed))
    router.report(edit, router.plan(observed), Applied(observed))
    return edit.result()
