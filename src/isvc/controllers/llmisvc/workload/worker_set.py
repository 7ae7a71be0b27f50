"""LeaderWorkerSets: a workload each replica of which spans nodes, with a leader that answers and workers that help."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.llm.workload import ParallelismSpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import Account
from isvc.controllers.llmisvc.workload.metadata import (
    child_metadata,
    object_annotations,
    pod_annotations,
    pod_labels,
    selected_labels,
)
from isvc.controllers.llmisvc.workload.phases import Phase
from isvc.controllers.llmisvc.workload.pods import build_pod
from isvc.controllers.llmisvc.workload.steps import context
from isvc.engine.plan import Child
from isvc.engine.policies import MARKED_SHARED, MARKED_WORKLOAD
from isvc.kube.objects import Object, dig
from isvc.serving.llm import labels
from isvc.serving.thirdparty import LEADER_WORKER_SETS


def worker_set(observed: Observed, phase: Phase, account: Account) -> Child:
    given = pod_labels(observed, phase, _worker_labels(observed, phase))
    template: Object = {"restartPolicy": "RecreateGroupOnPodRestart"}
    if phase.template is not None:
        template["leaderTemplate"] = leader_template(observed, phase, phase.template, account)
    template["workerTemplate"] = _template(observed, phase, given, phase.worker or {}, account, "worker")
    template |= _group(phase)
    spec: Object = {
        "leaderWorkerTemplate": template,
        "rolloutStrategy": _rollout(phase),
        "startupPolicy": "LeaderCreated",
    }
    if phase.spec.replicas is not None:
        spec["replicas"] = phase.spec.replicas
    manifest: Object = {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": child_metadata(observed, phase.worker_set, given, object_annotations(observed, phase)),
        "spec": spec,
    }
    return Child(LEADER_WORKER_SETS, manifest, MARKED_WORKLOAD if "replicas" in spec else MARKED_SHARED)


def _worker_labels(observed: Observed, phase: Phase) -> dict[str, str]:
    if phase.template is not None:
        return labels.labels(observed.name, phase.worker_component)
    # Without a leader of their own kind, workers answer requests.
    role = "decode" if phase.name == "main" else phase.role
    return selected_labels(observed, phase, phase.worker_component, role)


def leader_template(observed: Observed, phase: Phase, template: Object, account: Account) -> Object:
    given = pod_labels(observed, phase, selected_labels(observed, phase, phase.leader_component))
    return _template(observed, phase, given, template, account, "leader")


def _template(
    observed: Observed, phase: Phase, given: Mapping[str, str], template: Object, account: Account, part: str
) -> Object:
    metadata: Object = {"labels": dict(given)}
    if annotations := pod_annotations(observed, phase):
        metadata["annotations"] = annotations
    deployed = observed.live.get((LEADER_WORKER_SETS, phase.worker_set))
    live = dig(deployed, "spec", "leaderWorkerTemplate", f"{part}Template", "spec")
    which = part if phase.name == "main" else f"{phase.name} {part}"
    with context(f"failed to attach model artifacts to {which} template"):
        pod = build_pod(observed, phase, template, account=account.manifest, account_name=account.name, live=live)
    return {"metadata": metadata, "spec": pod}


def _group(phase: Phase) -> Object:
    """Returns how many pods make up one replica."""
    parallelism = phase.spec.parallelism or ParallelismSpec()
    size = parallelism.size
    if size is None:
        return {}
    if phase.name == "prefill" and parallelism.is_data:
        return {"size": size, "subGroupPolicy": {"subGroupSize": size}}
    return {"size": size}


def _rollout(phase: Phase) -> Object:
    rollout: Object = {"type": "RollingUpdate"}
    if phase.rollout:
        rollout["rollingUpdateConfiguration"] = {"maxUnavailable": 1, "maxSurge": 0, **phase.rollout}
    return rollout
