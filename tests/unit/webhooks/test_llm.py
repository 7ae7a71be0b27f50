"""Configurations for LLMs on their way in: templates are tried, presets stay, old faults block nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recordings import FOLDER, load
from tests.unit.api import conformance
from tests.unit.webhooks.memory import Memory, all_routes, answer_of

from isvc.api.annotations import LLM_FINALIZER
from isvc.kube.objects import GVK
from isvc.kube.patch import json_patch
from isvc.programs.options import LLMOptions, Options
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse

VERSIONS = ("v1alpha1", "v1alpha2")
BROKEN = ("{{ .Nope }}", "{{ .Spec.Model.Nme }}", "{{ upper .Name }}", "{{ .Name", "{{ end }}")
CASES = [path for path in conformance.cases() if "llm" in path.parent.name]
PRESET = "kserve-config-llm-template"


def config(version: str, argument: str, name: str = "mine", namespace: str = "team") -> dict[str, Any]:
    return {
        "apiVersion": f"serving.kserve.io/{version}",
        "kind": "LLMInferenceServiceConfig",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"containers": [{"name": "main", "args": [argument]}]}},
    }


def ask(
    new: dict[str, Any], old: dict[str, Any] | None = None, operation: str = "CREATE", **options: Any
) -> AdmissionResponse:
    obj = new or old or {}
    version, metadata = obj["apiVersion"].split("/")[1], obj["metadata"]
    routes = all_routes(Memory({}, {}), Options(llm=LLMOptions(**options)))
    route = routes[f"/validate-serving-kserve-io-{version}-llminferenceserviceconfig"]
    kind = GVK("serving.kserve.io", version, "LLMInferenceServiceConfig")
    request = AdmissionRequest("1", operation, metadata["namespace"], metadata["name"], kind, new, old or {}, False, {})
    return answer_of(route, request)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "argument", ["{{ .Nope }}", "{{ .Spec.Model.Nme }}", "{{ upper .Name }}", "{{ .Name", "{{ end }}"]
)
def test_templates_that_cannot_be_filled_in_are_refused(version: str, argument: str):
    new, good = config(version, argument), config(version, "{{ .Name }}")
    assert ask(good).allowed
    for answer in (ask(new), ask(new, good, "UPDATE")):
        assert answer.code == 403
        assert answer.message.startswith("spec.template.containers[0].args[0]: {{")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_stored_already_can_be_kept_up_and_go(version: str):
    broken = config(version, "{{ .Nope }}")
    labelled = {**broken, "metadata": {**broken["metadata"], "labels": {"a": "b"}}}
    leaving = {**config(version, "{{ .Nope }}!"), "metadata": {"name": "mine", "namespace": "team"}}
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(labelled, broken, "UPDATE").allowed
    assert ask(leaving, broken, "UPDATE").allowed
    assert ask({}, broken, "DELETE").allowed
    assert not ask(config(version, "{{ .Nope }}!"), broken, "UPDATE").allowed


@pytest.mark.parametrize("version", VERSIONS)
def test_presets_stay(version: str):
    preset = config(version, "x", PRESET, "kserve")
    assert ask({}, preset, "DELETE").code == 403
    assert ask({}, config(version, "x", PRESET, "team"), "DELETE").allowed
    assert ask({}, config(version, "x", "mine", "kserve"), "DELETE").allowed
    assert ask({}, preset, "DELETE", preset_prefix="v1-").allowed
    answer = ask({}, preset, "DELETE", keep_presets=False)
    assert answer.allowed
    assert answer.warnings


def test_changing_a_preset_is_advised_against():
    old, new = config("v1alpha2", "x", PRESET, "kserve"), config("v1alpha2", "y", PRESET, "kserve")
    assert ask(new, old, "UPDATE").warnings
    assert not ask(old, {**old, "metadata": {**old["metadata"], "labels": {}}}, "UPDATE").warnings


@pytest.mark.skipif(not conformance.cases(), reason="the conformance cases are not here")
@pytest.mark.parametrize(
    "path", [path for path in conformance.cases() if "llm" in path.parent.name], ids=lambda p: p.stem
)
def test_deletions_agree_with_the_reference(path: Path):
    golden = load(FOLDER / "golden" / path.parent.name / path.name)
    for step, after in zip(load(path)["steps"], golden, strict=True):
        refused = {each["target"] for each in after.get("results", ()) if each["verb"] == "delete"}
        for obj in step.get("delete") or ():
            if obj["kind"] != "LLMInferenceServiceConfig":
                continue
            gone = {**obj, "metadata": {"namespace": path.stem, **obj["metadata"]}, "spec": {}}
            assert ask({}, gone, "DELETE").allowed == (f"{obj['kind']}/{obj['metadata']['name']}" not in refused)


def defaulted(spec: dict[str, Any], operation: str = "CREATE", **metadata: Any) -> dict[str, Any]:
    """What the defaulter makes of a service."""
    kind = GVK("serving.kserve.io", "v1alpha2", "LLMInferenceService")
    metadata = {"name": "mine", "namespace": "team", **metadata}
    service = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": kind.kind, "metadata": metadata, "spec": spec}
    request = AdmissionRequest("1", operation, "team", "mine", kind, service, {}, False, {})
    changed = answer_of(all_routes(Memory({}, {}))["/mutate-serving-kserve-io-v1alpha2-llminferenceservice"], request)
    assert changed.allowed
    done: dict[str, Any] = json_patch.apply(service, list(changed.patch))
    return done


@pytest.mark.parametrize(("operation", "finalizers"), [("CREATE", ["own", LLM_FINALIZER]), ("UPDATE", ["own"])])
def test_a_new_service_gets_its_finalizer_with_admission(operation: str, finalizers: list[str]):
    done = defaulted({"model": {"uri": "hf://a/b"}}, operation, finalizers=["own"])
    assert done["metadata"]["finalizers"] == finalizers


def test_a_new_service_loses_the_zeros_that_say_nothing():
    main = {"name": "main", "args": [], "env": [{"name": "A", "value": ""}], "securityContext": {"privileged": False}}
    spec = {
        "model": {"uri": "hf://a/b", "name": "m"},
        "replicas": 0,
        "template": {"containers": [main], "hostNetwork": False, "volumes": [{"name": "tmp", "emptyDir": {}}]},
        "router": {"route": {}, "gateway": {"refs": []}, "scheduler": {"config": {"inline": {"plugins": []}}}},
        "baseRefs": [],
    }
    kept = {"name": "main", "env": [{"name": "A"}], "securityContext": {"privileged": False}}
    assert defaulted(spec)["spec"] == {
        "model": {"uri": "hf://a/b", "name": "m"},
        "replicas": 0,
        "template": {"containers": [kept], "volumes": [{"name": "tmp", "emptyDir": {}}]},
        "router": {"route": {}, "gateway": {}, "scheduler": {"config": {"inline": {"plugins": []}}}},
    }
    assert defaulted(spec, "UPDATE")["spec"] == spec


def test_zeros_that_the_api_server_refuses_reach_it():
    """Without them the service would be taken, and the user would not hear of the mistake."""
    spec = {
        "model": {"uri": "hf://a/b", "name": "m"},
        "kvCacheOffloading": {"cpu": "1Gi", "evictionPolicy": ""},
        "router": {"route": {"http": {"spec": {"rules": []}}}},
        "scaling": {"maxReplicas": 0, "wva": {"hpa": {}, "variantCost": ""}},
    }
    assert defaulted(spec)["spec"] == spec


def test_a_refused_service_is_told_every_field_that_is_wrong():
    """As `kubectl` prints it, and as a condition repeats it when what configurations are merged into is refused."""
    kind = GVK("serving.kserve.io", "v1alpha2", "LLMInferenceService")
    spec = {"model": {"uri": "hf://a/b"}, "worker": {"containers": []}, "router": {"scheduler": {"replicas": 0}}}
    service = {"apiVersion": "serving.kserve.io/v1alpha2", "kind": kind.kind, "metadata": {"name": "x"}, "spec": spec}
    request = AdmissionRequest("1", "CREATE", "team", "x", kind, service, {}, False, {})
    answer = answer_of(all_routes(Memory({}, {}))["/validate-serving-kserve-io-v1alpha2-llminferenceservice"], request)
    assert answer.code == 422
    assert answer.details is not None
    assert {key: answer.details[key] for key in ("group", "kind", "name")} == {
        "group": "serving.kserve.io",
        "kind": "LLMInferenceService",
        "name": "x",
    }
    assert [cause["field"] for cause in answer.details["causes"]] == ["spec.router.scheduler.replicas", "spec.worker"]
    assert answer.message == "; ".join(f"{cause['field']}: {cause['message']}" for cause in answer.details["causes"])
