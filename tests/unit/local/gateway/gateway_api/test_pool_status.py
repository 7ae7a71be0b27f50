"""What the gateway says about InferencePools of both groups."""

from __future__ import annotations

import pytest

from isvc.local.gateway.endpoints.pools import PickerRef
from isvc.local.gateway.gateway_api.attachment import CONTROLLER, Gateways
from isvc.local.gateway.gateway_api.pool_status import pool_status
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

NOW = "2026-11-16T12:00:00Z"
GATEWAYS = Gateways.of(
    8080,
    [{"metadata": {"name": "isvc"}, "spec": {"controllerName": CONTROLLER}}],
    [
        {
            "metadata": {"name": "gateway", "namespace": "default"},
            "spec": {"gatewayClassName": "isvc", "listeners": [{"name": "http", "protocol": "HTTP", "port": 8080}]},
        }
    ],
    [],
)
POOL = {"metadata": {"name": "pool", "namespace": "default", "generation": 3}}


def route(group: str, parent: str = "gateway") -> dict:
    backend = {"group": group, "kind": "InferencePool", "name": "pool"}
    spec = {"parentRefs": [{"name": parent}], "rules": [{"backendRefs": [backend]}]}
    return {"metadata": {"name": "route", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("resource", "field"), [(INFERENCE_POOLS, "parents"), (INFERENCE_POOLS_V1ALPHA2, "parent")], ids=["v1", "v1alpha2"]
)
def test_a_pool_is_accepted_by_the_gateways_that_lead_to_it(resource, field):
    status = pool_status(resource, POOL, [route(resource.group)], GATEWAYS, picker=None, has_prefill=False, now=NOW)
    (parent,) = status[field]
    assert (parent["parentRef"]["namespace"], parent["parentRef"]["name"]) == ("default", "gateway")
    assert {each["type"]: each["status"] for each in parent["conditions"]} == {
        "Accepted": "True",
        "ResolvedRefs": "True",
    }
    assert parent["conditions"][0]["observedGeneration"] == 3
    again = pool_status(
        resource,
        {**POOL, "status": status},
        [route(resource.group)],
        GATEWAYS,
        picker=None,
        has_prefill=False,
        now="later",
    )
    assert again == status


def test_routes_to_the_other_group_or_to_others_gateways_do_not_count():
    routes = [route(INFERENCE_POOLS_V1ALPHA2.group), route(INFERENCE_POOLS.group, parent="theirs")]
    assert pool_status(INFERENCE_POOLS, POOL, routes, GATEWAYS, picker=None, has_prefill=False, now=NOW) == {
        "parents": []
    }


def test_what_other_gateways_said_stays():
    theirs = {"parentRef": {"name": "theirs", "namespace": "default"}, "conditions": []}
    pool = {**POOL, "status": {"parents": [theirs]}}
    assert pool_status(INFERENCE_POOLS, pool, [], GATEWAYS, picker=None, has_prefill=False, now=NOW) == {
        "parents": [theirs]
    }


def test_prefill_that_runs_as_one_is_reported():
    status = pool_status(
        INFERENCE_POOLS, POOL, [route(INFERENCE_POOLS.group)], GATEWAYS, picker=None, has_prefill=True, now=NOW
    )
    assert status["parents"][0]["conditions"][0]["message"].startswith("prefill and decode run as one")


def test_a_picker_that_is_asked_is_named():
    picker = PickerRef("picker", 9002, fails_open=False)
    routes = [route(INFERENCE_POOLS.group)]
    status = pool_status(INFERENCE_POOLS, POOL, routes, GATEWAYS, picker=picker, has_prefill=False, now=NOW)
    assert status["parents"][0]["conditions"][0]["message"] == "Service picker picks endpoints"
