"""Which labels and annotations reach the workload's objects and pods.

Of the service's own metadata only what other controllers read on workloads is passed on. Labels and annotations of a
workload's section of the spec are meant for its pods, and all of them are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isvc.api.annotations import LOCAL_MODEL
from isvc.api.llm.workload import WorkloadSpec
from isvc.api.resources import GROUP
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.phases import Phase
from isvc.kube.objects import Object, annotations_of, dig, labels_of, without
from isvc.serving.llm import labels
from isvc.serving.refused import Refused

MODEL_BASED_ROUTING: Final = f"{GROUP}/model-based-routing-enabled"
"""Presets set it in a workload's annotations; it speaks to the router, not to pods."""
_OURS: Final = {labels.PART_OF: labels.LLM}
"""Children are watched by it, so that the user's value is for pods alone."""
_KUEUE: Final = "kueue.x-k8s.io"
_LABELS: Final = (_KUEUE, LOCAL_MODEL)
_ANNOTATIONS: Final = ("k8s.v1.cni.cncf.io", _KUEUE, "prometheus.io", LOCAL_MODEL)
_WORKER_SET_ANNOTATIONS: Final = ("leaderworkerset.sigs.k8s.io", *_ANNOTATIONS)


def child_metadata(
    observed: Observed, name: str, of_child: Mapping[str, str], annotations: Mapping[str, str] | None = None
) -> Object:
    """Returns the metadata of a child in the service's namespace; empty maps are left out."""
    metadata: Object = {"name": name, "namespace": observed.namespace, "labels": {**of_child, **_OURS}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def selected_labels(observed: Observed, phase: Phase, component: str, role: str = "") -> dict[str, str]:
    """Returns the fixed labels of pods that answer requests."""
    found = labels.labels(observed.name, component)
    return {**found, labels.KSERVE_COMPONENT: "workload", labels.ROLE: role or phase.role}


def selector_of(observed: Observed, phase: Phase, fixed: Mapping[str, str], live: Object) -> dict[str, str]:
    """Returns the selector of a Deployment, which never changes: the live one, or the fixed labels.

    Where the user gives pods another value of those, to have them join another service's pool, the service's own label
    takes their place. Raises `Refused` for another value of what a live selector asks for.
    """
    selector: dict[str, str] | None = dig(live, "spec", "selector", "matchLabels")
    if selector is None:
        kept = {key: value for key, value in fixed.items() if phase.labels.get(key, value) == value}
        return kept if kept == fixed else {**kept, labels.SERVICE: observed.name}
    for key, value in phase.labels.items():
        if key in fixed and selector.get(key, value) != value:
            reason = f"the selector of Deployment {phase.deployment} asks for {selector[key]!r} and is immutable"
            raise Refused(f"cannot change label {key} of pods to {value!r}: {reason}; delete it to have it made anew")
    return selector


def pod_labels(observed: Observed, phase: Phase, fixed: Mapping[str, str]) -> dict[str, str]:
    return {**fixed, **_with_prefixes(labels_of(observed.raw), _LABELS), **phase.labels}


def pod_annotations(observed: Observed, phase: Phase) -> dict[str, str]:
    return {**object_annotations(observed, phase), **workload_annotations(phase.spec)}


def object_annotations(observed: Observed, phase: Phase) -> dict[str, str]:
    """Returns the annotations of the Deployment or LeaderWorkerSet itself."""
    prefixes = _WORKER_SET_ANNOTATIONS if phase.spans_nodes else _ANNOTATIONS
    return _with_prefixes(annotations_of(observed.raw), prefixes)


def workload_annotations(spec: WorkloadSpec) -> dict[str, str]:
    return without(spec.annotations, (MODEL_BASED_ROUTING,))


def _with_prefixes(entries: Mapping[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if key.startswith(prefixes)}
