"""Every pod that the conformance recordings hold, worked out again without a cluster.

The recordings hold the templates that controllers wrote and the pods that an API server stored after mutation. What
the API server fills in by itself is filled in here on both sides.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.recordings import FOLDER, load, load_all
from tests.unit.api.conformance import configuration

from isvc.engine.needs import Answers, Need, Stored
from isvc.kube.objects import Object, deep_copy, name_of
from isvc.kube.patch import merge_patch
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.pods import PodFacts, mutate_pod
from isvc.serving.refused import Refused


def _cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("cases/*/*.yaml")):
        text = path.read_text()
        if "llmisvc" not in path.parent.name and ("pods:" in text or "kind: Pod\n" in text):
            yield pytest.param(path.parent.name, path.stem, id=path.stem)


pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance recordings are not here")


@pytest.mark.parametrize(("profile", "case"), list(_cases()))
def test_recorded_pod(profile: str, case: str) -> None:
    cluster = Cluster(profile, case)
    steps = load(FOLDER / "cases" / profile / f"{case}.yaml")["steps"]
    states = load(FOLDER / "golden" / profile / f"{case}.yaml")
    differences, compared = [], 0
    for step, state in zip(steps, states, strict=True):
        refused = {(entry["verb"], entry["target"]) for entry in state.get("results", ())}
        for verb, pod in cluster.play(step, state):
            golden = state["objects"].get(f"Pod/{name_of(pod)}")
            target = [entry for entry in refused if name_of(pod).removesuffix("-pod") in entry[1] and entry[0] == verb]
            if golden is None and not target:
                continue  # deleted again in the same step
            compared += 1
            try:
                found = mutate_pod(pod, cluster.facts(state, name_of(pod), pod))
            except Refused as error:
                if not target:
                    differences.append(f"{name_of(pod)}: refused: {error}")
                continue
            if target:
                continue  # whether the API server refuses what was made is not decided here
            assert mutate_pod(found, cluster.facts(state, name_of(pod), found)) == found, (
                "mutating again changed the pod"
            )
            differences += list(_differences(_filled(golden), _filled(found), f"{name_of(pod)}"))
    assert not differences, "\n".join(differences)
    expected = {key for state in states for key in state["objects"] if key.startswith("Pod/")}
    assert compared >= len(expected)
    assert compared, "the case makes no pod that could be compared"


class Cluster:
    """The objects of one case, step by step."""

    def __init__(self, profile: str, case: str) -> None:
        self.namespace = case
        self.config = Config.parse(configuration(profile))
        profiled = load(FOLDER / "profiles" / f"{profile}.yaml")
        self.objects: dict[tuple[str, str], Object] = {}
        for obj in [*load_all(FOLDER / "base/40-storage.yaml"), *(profiled.get("objects") or ())]:
            self.objects[obj["kind"], name_of(obj)] = obj

    def play(self, step: Object, state: Object) -> Iterator[tuple[str, Object]]:
        """Do what the step does, and yield each pod that it creates."""
        for verb in ("apply", "update", "delete"):
            for entry in _as_list(step.get(verb)):
                placed = json.loads(json.dumps(entry).replace("$NAMESPACE", self.namespace))
                key = placed["kind"], name_of(placed)
                if verb == "delete":
                    self.objects.pop(key, None)
                    continue
                if key[0] == "Pod" and verb == "apply" and key not in self.objects:
                    placed["metadata"].setdefault("namespace", self.namespace)
                    yield verb, _defaulted(placed)
                self.objects[key] = merge_patch.apply(self.objects.get(key, {}), placed)
        for entry in _as_list(step.get("pods")):
            yield "pods", _defaulted(self._pod_of(entry, state))

    def _pod_of(self, entry: Object, state: Object) -> Object:
        source = entry["from"]
        group = source["apiVersion"].rpartition("/")[0]
        key = f"{source['kind']}{'.' + group if group else ''}/{name_of(source)}"
        template = deep_copy(state["objects"][key]["spec"]["template"])
        spec = template["spec"]
        if "knative" in group:
            for extra in ("containerConcurrency", "timeoutSeconds"):
                spec.pop(extra, None)
            if entry.get("queueProxy", True):
                spec["containers"].append({"name": "queue-proxy", "image": "queue-proxy"})
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": entry.get("name", f"{name_of(source)}-pod"),
                "namespace": self.namespace,
                "labels": {**template["metadata"].get("labels", {}), **entry.get("labels", {})},
                "annotations": template["metadata"].get("annotations", {}),
            },
            "spec": spec,
        }

    def facts(self, state: Object, name: str, pod: Object) -> PodFacts:
        assert name == name_of(pod)
        service = (pod["metadata"].get("labels") or {}).get("serving.kserve.io/inferenceservice", "")
        return PodFacts(
            config=self.config,
            lookup=Lookup(self.namespace, Answers(recall=self._find)),
            service=state["objects"].get(f"InferenceService.serving.kserve.io/{service}"),
            storage_containers=list(self._of_kind("ClusterStorageContainer").values()),
        )

    def _find(self, need: Need[Any]) -> Object | None:
        """Everything is known here: what is missing does not exist."""
        assert isinstance(need, Stored)
        return self._of_kind(need.resource.kind).get(need.name)

    def _of_kind(self, kind: str) -> dict[str, Object]:
        return {name: _encoded(obj) for (other, name), obj in self.objects.items() if other == kind}


def _encoded(obj: Object) -> Object:
    written = {key: base64.b64encode(str(text).encode()).decode() for key, text in obj.get("stringData", {}).items()}
    return {**obj, "data": {**obj.get("data", {}), **written}} if written else obj


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _filled(pod: Object) -> Object:
    """A pod with what an API server would add, and without what is absent by another name."""
    return _strip(_defaulted(pod))


def _defaulted(pod: Object) -> Object:
    pod = deep_copy(pod)
    spec = pod["spec"]
    for key, value in POD_DEFAULTS.items():
        spec.setdefault(key, value)
    if "serviceAccountName" in spec:
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for container in [*spec.get("containers", ()), *spec.get("initContainers", ())]:
        image = container.get("image", "")
        latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
        for variable in container.get("env", ()):
            if "fieldRef" in variable.get("valueFrom", {}):
                variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            if probe in container:
                for key, value in PROBE_DEFAULTS.items():
                    container[probe].setdefault(key, value)
                if "httpGet" in container[probe]:
                    container[probe]["httpGet"].setdefault("scheme", "HTTP")
                    container[probe]["httpGet"].setdefault("path", "/")
        requests = container.get("resources", {})
        for key, value in requests.get("limits", {}).items():
            requests.setdefault("requests", {}).setdefault(key, value)
    for volume in spec.get("volumes", ()):
        for kind in ("secret", "configMap"):
            if kind in volume:
                volume[kind].setdefault("defaultMode", 0o644)
    return pod


POD_DEFAULTS: Object = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "enableServiceLinks": True,
    "tolerations": [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ],
}
PROBE_DEFAULTS: Object = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        stripped = {key: _strip(item) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item is not None and item not in ({}, "", [])}
    return [_strip(item) for item in value] if isinstance(value, list) else value


def _differences(expected: Any, found: Any, where: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from _differences(expected.get(key), found.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found, strict=True)):
            yield from _differences(*pair, f"{where}[{index}]")
    elif expected != found:
        yield f"{where}: expected {expected!r}, found {found!r}"
