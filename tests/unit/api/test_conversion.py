"""Conversion loses nothing: not of one version, nor of the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.api.llm.conversion import CRITICALITY, LORA_CRITICALITIES, NEW, NEWER, OLD, convert, to_v1alpha1, to_v1alpha2

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=8)
LEVELS = st.sampled_from(["Critical", "Standard", "Sheddable"])
PORTS = st.integers(1, 65535)
LABELS = st.dictionaries(NAMES, NAMES, min_size=1, max_size=3)
PODS = st.fixed_dictionaries({"containers": st.lists(st.fixed_dictionaries({"name": NAMES}), max_size=2)})


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def workload(**more: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        "replicas": st.integers(0, 9),
        "parallelism": some(tensor=st.integers(1, 8), expert=st.booleans()),
        "template": PODS,
        "worker": PODS,
        "rolloutStrategy": some(maxSurge=st.one_of(st.integers(0, 3), st.just("25%"))),
        **more,
    }


ADAPTERS = {"name": NAMES, "uri": NAMES}
OLD_POOLS = st.fixed_dictionaries(
    {
        "targetPortNumber": PORTS,
        "selector": LABELS,
        "extensionRef": st.fixed_dictionaries(
            {"name": NAMES, "kind": st.just("Service"), "portNumber": PORTS, "failureMode": st.just("FailOpen")},
            optional={"group": NAMES},
        ),
    }
)
NEW_POOLS = st.fixed_dictionaries(
    {
        "targetPorts": st.lists(st.fixed_dictionaries({"number": PORTS}), min_size=1, max_size=3),
        "selector": st.fixed_dictionaries({"matchLabels": LABELS}),
        "endpointPickerRef": st.fixed_dictionaries(
            {
                "name": NAMES,
                "kind": NAMES,
                "port": st.fixed_dictionaries({"number": PORTS}),
                "failureMode": st.just("FailClose"),
            },
            optional={"group": NAMES},
        ),
    },
    optional={"appProtocol": st.just("kubernetes.io/h2c")},
)


def router(pools: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    scheduler = some(pool=some(spec=pools, ref=some(name=NAMES)), replicas=st.integers(1, 3), template=PODS)
    return some(
        route=some(http=some(refs=st.lists(some(name=NAMES), max_size=2)), group=NAMES, weight=st.integers(0, 9)),
        gateway=some(refs=st.lists(some(name=NAMES, sectionName=NAMES), max_size=2)),
        scheduler=scheduler,
    )


KV: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"cpu": st.just("1Gi")}, optional={"secondary": st.just([{"fileSystem": {}}])}
)
CONDITIONS = st.lists(st.fixed_dictionaries({"type": NAMES, "status": st.just("True")}), max_size=2)
OLD_ADDRESSES = st.lists(some(name=NAMES, url=NAMES), max_size=3)
NEW_ADDRESSES = st.lists(
    some(name=NAMES, url=NAMES, models=st.just([{"name": "m"}]), origin=some(name=NAMES)), max_size=3
)


def services(
    version: str, model: Any, pools: Any, status: dict[str, Any], **more: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    spec = some(model=model, router=router(pools), prefill=some(**workload(**more)), tracing=some(), **workload(**more))
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(version),
            "kind": st.sampled_from(["LLMInferenceService", "LLMInferenceServiceConfig"]),
            "metadata": st.fixed_dictionaries({"name": NAMES}, optional={"annotations": LABELS, "labels": LABELS}),
            "spec": spec,
        },
        optional={"status": some(conditions=CONDITIONS, url=NAMES, **status)},
    )


OLD_MODELS = some(
    uri=NAMES, name=NAMES, criticality=LEVELS, lora=some(adapters=st.lists(some(**ADAPTERS, criticality=LEVELS)))
)
NEW_MODELS = some(
    uri=NAMES,
    name=NAMES,
    confidential=st.fixed_dictionaries({"enabled": st.booleans()}),
    lora=some(adapters=st.lists(some(**ADAPTERS, confidential=some(enabled=st.booleans()))), maxRank=st.integers(1, 9)),
)
OLD_SERVICES = services(OLD, OLD_MODELS, OLD_POOLS, {"addresses": OLD_ADDRESSES, "router": some(scheduler=some())})
NEW_SERVICES = services(
    NEW,
    NEW_MODELS,
    NEW_POOLS,
    {
        "addresses": NEW_ADDRESSES,
        "router": some(group=some(name=NAMES)),
        "workloads": some(primary=some(name=NAMES)),
        "appliedConfigs": st.just([{"name": "a", "namespace": "b", "source": "Preset"}]),
        "referencedBy": st.just([{"name": "a"}]),
    },
    kvCacheOffloading=KV,
)


@given(OLD_SERVICES)
def test_v1alpha1_survives_being_stored(old: dict[str, Any]):
    before = json.dumps(old)
    assert to_v1alpha1(to_v1alpha2(old)) == old
    assert json.dumps(old) == before


@given(NEW_SERVICES)
def test_v1alpha2_survives_being_read_and_written_in_v1alpha1(new: dict[str, Any]):
    before = json.dumps(new)
    assert to_v1alpha2(to_v1alpha1(new)) == new
    assert json.dumps(new) == before


@given(NEW_SERVICES)
def test_v1alpha1_shows_nothing_it_has_no_field_for(new: dict[str, Any]):
    old = to_v1alpha1(new)
    annotations = old["metadata"].pop("annotations", {})
    text = json.dumps(old)
    for word in ("kvCacheOffloading", "workloads", "appliedConfigs", "referencedBy", "targetPorts", "appProtocol"):
        assert word not in text
    assert "confidential" not in old["spec"].get("model", {})
    assert all(isinstance(value, str) for value in annotations.values())


def test_criticalities_wait_in_annotations():
    old = {
        "apiVersion": OLD,
        "kind": "LLMInferenceService",
        "metadata": {"name": "x"},
        "spec": {
            "model": {
                "uri": "hf://a",
                "criticality": "Critical",
                "lora": {"adapters": [{"name": "a"}, {"name": "b", "criticality": "Sheddable"}]},
            }
        },
    }
    new = to_v1alpha2(old)
    assert new["metadata"]["annotations"] == {CRITICALITY: "Critical", LORA_CRITICALITIES: '{"1":"Sheddable"}'}
    assert new["spec"]["model"] == {"uri": "hf://a", "lora": {"adapters": [{"name": "a"}, {"name": "b"}]}}


def test_pools_get_the_defaults_of_their_group():
    pool = {"targetPortNumber": 8000, "selector": {"app": "x"}, "extensionRef": {"name": "picker"}}
    old = {
        "apiVersion": OLD,
        "kind": "LLMInferenceService",
        "spec": {"router": {"scheduler": {"pool": {"spec": pool}}}},
    }
    assert to_v1alpha2(old)["spec"]["router"]["scheduler"]["pool"]["spec"] == {
        "targetPorts": [{"number": 8000}],
        "selector": {"matchLabels": {"app": "x"}},
        "endpointPickerRef": {
            "name": "picker",
            "kind": "Service",
            "failureMode": "FailClose",
            "port": {"number": 9002},
        },
    }


def test_what_lost_its_place_does_not_come_back():
    new = {
        "apiVersion": NEW,
        "kind": "LLMInferenceService",
        "metadata": {"name": "x"},
        "spec": {"prefill": {"kvCacheOffloading": {"cpu": "1Gi"}}, "kvCacheOffloading": {"cpu": "2Gi"}},
    }
    old = to_v1alpha1(new)
    del old["spec"]["prefill"]
    assert to_v1alpha2(old)["spec"] == {"kvCacheOffloading": {"cpu": "2Gi"}}


@pytest.mark.parametrize("annotation", ["{", "[]", "null", '{"pool": 3, "addresses": {}, "spec.kvCacheOffloading": 1}'])
def test_a_spoilt_annotation_does_no_harm(annotation: str):
    old = {
        "apiVersion": OLD,
        "kind": "LLMInferenceService",
        "metadata": {"annotations": {NEWER: annotation}},
        "spec": {},
    }
    assert NEWER not in to_v1alpha2(old)["metadata"].get("annotations", {})


def test_unknown_versions_and_kinds_are_refused():
    service = {"apiVersion": NEW, "kind": "LLMInferenceService"}
    assert convert([service], NEW) == [service]
    for objects, version in (([service], "serving.kserve.io/v9"), ([{"kind": "Pod"}], NEW), (["x"], NEW)):
        with pytest.raises(ValueError, match="convert"):
            convert(objects, version)  # type: ignore[arg-type]
