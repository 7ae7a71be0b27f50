"""Which configurations go into a service, in which order, and what is said when they do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.api.codec import decode
from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec
from isvc.controllers.llmisvc.presets import NotCombined, Sources, combine, pins, shape, storable
from isvc.controllers.llmisvc.scheduler.features import has_tokenizer
from isvc.kube.objects import Key, Object
from isvc.serving.llm.presets import Settings

SETTINGS = Settings("kserve", "gateway", "kserve", False, "X-Model")
POD: Object = {"containers": [{"name": "main", "image": "server"}]}


def config(name: str, spec: Object, namespace: str = "kserve") -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def service(spec: Object | None = None, **status: Any) -> Object:
    own = {"model": {"uri": "hf://lab/model", "name": "model"}} | (spec or {})
    return {"metadata": {"name": "mine", "namespace": "team"}, "spec": own, "status": status}


def sources(*configs: Object, config_maps: dict[Key, Object] | None = None) -> Sources:
    known = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in configs}
    maps = config_maps or {}
    return Sources(lambda ns, name: known.get((ns, name)), lambda ns, name: maps.get(Key(ns, name)), "kserve")


TEMPLATE = config("kserve-config-llm-template", {"template": POD})


@pytest.mark.parametrize(
    ("spec", "presets"),
    [
        ({}, ["template"]),
        ({"worker": POD, "parallelism": {"data": 4}}, ["worker-data-parallel"]),
        ({"worker": POD, "parallelism": {"pipeline": 2}}, ["worker-pipeline-parallel"]),
        ({"worker": POD}, []),
        ({"prefill": {}}, ["prefill-template", "decode-template"]),
        (
            {"prefill": {"worker": POD, "parallelism": {"data": 2}}, "worker": POD, "parallelism": {"dataLocal": 1}},
            ["prefill-worker-data-parallel", "decode-worker-data-parallel"],
        ),
        ({"router": {"route": {}, "scheduler": {}}}, ["scheduler", "router-route", "template"]),
        ({"router": {"route": {"http": {"refs": [{"name": "r"}]}}}}, ["template"]),
        ({"router": {"scheduler": {"pool": {"ref": {"name": "p"}}}}}, ["template"]),
        ({"router": {"scheduler": {"tokenizer": {}}}}, ["scheduler", "tokenizer", "template"]),
        ({"tracing": {}}, ["tracing", "template"]),
    ],
)
def test_the_shape_of_a_service_chooses_its_presets(spec: Object, presets: list[str]) -> None:
    assert list(shape(decode(LLMInferenceServiceSpec, spec))) == presets


def test_references_win_over_presets_and_the_service_over_both() -> None:
    first = config("first", {"replicas": 2, "labels": {"who": "first", "one": "1"}}, "team")
    second = config("second", {"replicas": 3, "labels": {"who": "second"}})
    raw = service({"baseRefs": [{"name": "first"}, {"name": "second"}], "labels": {"own": "yes"}})
    merged = combine(raw, SETTINGS, sources(TEMPLATE, first, second))
    assert merged.raw["replicas"] == 3
    assert merged.raw["labels"] == {"who": "second", "one": "1", "own": "yes"}
    assert [(each.source, each.namespace, each.name) for each in merged.applied] == [
        ("Preset", "kserve", "kserve-config-llm-template"),
        ("UserRef", "team", "first"),
        ("UserRef", "kserve", "second"),
    ]


def test_a_configuration_of_the_own_namespace_hides_the_systems() -> None:
    own = config(
        "kserve-config-llm-template", {"template": {"containers": [{"name": "main", "image": "ours"}]}}, "team"
    )
    merged = combine(service(), SETTINGS, sources(TEMPLATE, own))
    assert merged.raw["template"]["containers"][0]["image"] == "ours"
    assert merged.applied[0].namespace == "team"


def test_a_reference_may_bring_the_part_that_needs_a_preset() -> None:
    routed = config("routed", {"router": {"route": {}}}, "team")
    route = config("kserve-config-llm-router-route", {"router": {"route": {"http": {"spec": {"rules": []}}}}})
    merged = combine(service({"baseRefs": [{"name": "routed"}]}), SETTINGS, sources(TEMPLATE, routed, route))
    assert "kserve-config-llm-router-route" in [each.name for each in merged.applied]


def test_a_missing_configuration_is_named_with_the_places_where_it_was_looked_for() -> None:
    with pytest.raises(NotCombined, match=r'"none" not found in namespaces \[team kserve\]') as caught:
        combine(service({"baseRefs": [{"name": "none"}]}), SETTINGS, sources(TEMPLATE))
    assert caught.value.reason == "ConfigNotFound"


def with_precise_prefixes(tokenizer: Object | None = None) -> Object:
    inline = {"plugins": [{"type": "precise-prefix-cache-scorer"}]}
    return service({"router": {"scheduler": {"config": {"inline": inline}, "tokenizer": tokenizer}}})


def test_a_scheduler_of_kserve_0_20_has_its_tokenizer_beside_it_and_no_preset_for_one() -> None:
    pod = {"containers": [*POD["containers"], {"name": "tokenizer", "image": "tokens"}]}
    scheduler = config("kserve-config-llm-scheduler", {"router": {"scheduler": {"template": pod}}})
    merged = combine(with_precise_prefixes(), SETTINGS, sources(TEMPLATE, scheduler))
    assert merged.spec.router is not None
    assert not has_tokenizer(merged.spec.router.scheduler)
    assert merged.lacking == {"kserve-config-llm-tokenizer"}
    with pytest.raises(NotCombined, match="kserve-config-llm-tokenizer"):
        combine(with_precise_prefixes({}), SETTINGS, sources(TEMPLATE, scheduler))
    preset = config("kserve-config-llm-tokenizer", {"router": {"scheduler": {"tokenizer": {"template": POD}}}})
    merged = combine(with_precise_prefixes(), SETTINGS, sources(TEMPLATE, scheduler, preset))
    assert merged.spec.router is not None
    assert has_tokenizer(merged.spec.router.scheduler)
    assert not merged.lacking


def test_a_template_that_cannot_be_filled_in_is_an_error_of_combining() -> None:
    broken = config("kserve-config-llm-template", {"labels": {"a": "{{ .Nothing }}"}})
    with pytest.raises(NotCombined) as caught:
        combine(service(), SETTINGS, sources(broken))
    assert caught.value.reason == "CombineBaseError"


def test_annotations_of_the_service_are_no_templates() -> None:
    raw = service()
    raw["metadata"]["annotations"] = {"note": "{{ whatever"}
    assert combine(raw, SETTINGS, sources(TEMPLATE)).raw["template"] == {
        "containers": [{**POD["containers"][0], "resources": {}}]
    }


def test_a_schedulers_configuration_is_read_from_its_config_map() -> None:
    preset = config("kserve-config-llm-scheduler", {"router": {"scheduler": {"template": POD}}})
    raw = service({"router": {"scheduler": {"config": {"ref": {"name": "picker"}}}}})
    found = {
        Key("team", "picker"): {"metadata": {"name": "picker", "namespace": "team"}, "data": {"epp": "plugins: []"}}
    }
    merged = combine(raw, SETTINGS, sources(TEMPLATE, preset, config_maps=found))
    assert merged.scheduler_config_map == Key("team", "picker")
    assert merged.raw["router"]["scheduler"]["config"] == {"inline": "plugins: []"}
    assert storable(merged.raw)["router"]["scheduler"]["config"] == {"inline": {"plugins": []}}


def test_a_config_map_without_the_key_is_named() -> None:
    preset = config("kserve-config-llm-scheduler", {"router": {"scheduler": {"template": POD}}})
    raw = service({"router": {"scheduler": {"config": {"ref": {"name": "picker", "key": "other"}}}}})
    found = {Key("team", "picker"): {"metadata": {"name": "picker", "namespace": "team"}, "data": {}}}
    with pytest.raises(NotCombined, match=r'ConfigMap team/picker .* key "other"'):
        combine(raw, SETTINGS, sources(TEMPLATE, preset, config_maps=found))


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ({"name": "picker", "key": "broken"}, 'key "broken" of ConfigMap team/picker holds no YAML'),
        ({"name": "picker", "key": "empty"}, 'key "empty" of ConfigMap team/picker holds no YAML'),
        ({"name": "nowhere", "key": "epp"}, "there is no ConfigMap nowhere in namespace team"),
    ],
)
def test_a_schedulers_configuration_that_cannot_be_read_is_named(reference: Object, problem: str) -> None:
    preset = config("kserve-config-llm-scheduler", {"router": {"scheduler": {"template": POD}}})
    raw = service({"router": {"scheduler": {"config": {"ref": reference}}}})
    data = {"broken": "a: [b", "empty": ""}
    found = {Key("team", "picker"): {"metadata": {"name": "picker", "namespace": "team"}, "data": data}}
    with pytest.raises(NotCombined) as refused:
        combine(raw, SETTINGS, sources(TEMPLATE, preset, config_maps=found))
    assert (refused.value.reason, refused.value.message) == ("CombineBaseError", problem)


def test_names_of_presets_stay_as_they_were_first() -> None:
    key = "serving.kserve.io/config-llm-template"
    pinned = pins({"annotations": {key: "old-config-llm-template"}}, sources())
    assert pinned[key] == "old-config-llm-template"
    assert len(pinned) == 11
    old = config("old-config-llm-template", {"replicas": 7})
    merged = combine(service(annotations=pinned), SETTINGS, sources(TEMPLATE, old))
    assert merged.raw["replicas"] == 7
