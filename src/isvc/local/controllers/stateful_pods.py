"""The pods of a StatefulSet: their names, labels and claims, which stay the same when a pod is replaced."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object, deep_copy, dig, labels_of, name_of, namespace_of
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from isvc.local.controllers.pod_writes import pod_of
from isvc.local.controllers.revisions import HASH, template_of

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def ordinal_of(stateful_set: Object, pod: Object) -> int | None:
    prefix, _, number = name_of(pod).rpartition("-")
    return int(number) if prefix == name_of(stateful_set) and number.isdigit() else None


def stateful_pod(stateful_set: Object, ordinal: int, revision: Object) -> Object:
    pod = pod_of(stateful_set, STATEFUL_SETS, template_of(revision))
    name = f"{name_of(stateful_set)}-{ordinal}"
    metadata, spec = pod["metadata"], pod["spec"]
    del metadata["generateName"]
    metadata["name"] = name
    metadata["labels"] |= {POD_NAME: name, POD_INDEX: str(ordinal), HASH: name_of(revision)}
    spec["hostname"] = name
    if service := dig(stateful_set, "spec", "serviceName"):
        spec["subdomain"] = service
    claimed = {claim["metadata"]["name"]: name_of(claim) for claim in _templates(stateful_set)}
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": _claim_name(stateful_set, volume, ordinal)}}
        for volume in claimed
    ]
    spec["volumes"] = [*others, *own]
    return pod


def claims_of(stateful_set: Object, ordinal: int) -> list[Object]:
    """Returns the claims of one pod, which outlive it."""
    labels = dig(stateful_set, "spec", "selector", "matchLabels") or {}
    claims = []
    for template in _templates(stateful_set):
        claim = deep_copy(template)
        metadata = claim["metadata"]
        metadata["name"] = _claim_name(stateful_set, metadata["name"], ordinal)
        metadata["namespace"] = namespace_of(stateful_set)
        metadata["labels"] = {**labels_of(claim), **labels}
        kind = {"apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version, "kind": PERSISTENT_VOLUME_CLAIMS.kind}
        claims.append({**kind, "metadata": metadata, "spec": claim["spec"]})
    return claims


def _templates(stateful_set: Object) -> list[Object]:
    return dig(stateful_set, "spec", "volumeClaimTemplates") or []


def _claim_name(stateful_set: Object, volume: str, ordinal: int) -> str:
    return f"{volume}-{name_of(stateful_set)}-{ordinal}"
