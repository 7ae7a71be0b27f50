"""The leaders of a LeaderWorkerSet whose workers would have nothing to do: a Deployment."""

from __future__ import annotations

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.owners import controller_ref
from isvc.kube.resource import DEPLOYMENTS
from isvc.local.controllers.group_pods import LABEL, leader_template, with_group_env
from isvc.local.controllers.rollout import replicas_of
from isvc.serving.thirdparty import LEADER_WORKER_SETS


def deployment_of(group: Object) -> Object:
    template = leader_template(group)
    ours = {f"{LABEL}/name": name_of(group), f"{LABEL}/worker-index": "0"}
    metadata = template.get("metadata") or {}
    pod = with_group_env(template["spec"], size=1, index=0)
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {
            "name": name_of(group),
            "namespace": namespace_of(group),
            "labels": {f"{LABEL}/name": name_of(group)},
            "annotations": {f"{LABEL}/generation": _generation(group)},
            "ownerReferences": [controller_ref(LEADER_WORKER_SETS.typed(group))],
        },
        "spec": {
            "replicas": replicas_of(group),
            "selector": {"matchLabels": ours},
            "template": {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **ours}}, "spec": pod},
        },
    }


def is_outdated(deployment: Object, group: Object) -> bool:
    return bool(dig(deployment, "metadata", "annotations", f"{LABEL}/generation") != _generation(group))


def _generation(group: Object) -> str:
    return str(dig(group, "metadata", "generation") or 0)
