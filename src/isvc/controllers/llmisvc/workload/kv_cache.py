"""Volumes for the tiers of the key-value cache that lie on disk. The server's own settings come from presets."""

from __future__ import annotations

from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity
from isvc.serving.containers import ensure_list, find_container, mount


def attach_tiers(workload: Object, pod: Object, container_name: str) -> None:
    """Mount a volume for every tier of the workload's section of the spec."""
    container = find_container(pod, container_name)
    for index, tier in enumerate(dig(workload, "kvCacheOffloading", "secondary") or ()):
        disk = tier.get("fileSystem") or {}
        source = _source(disk)
        if source is None:
            continue
        name = f"kv-cache-secondary-{index}"
        ensure_list(pod, "volumes").append({"name": name, **source})
        if container is None:
            continue
        folder = dig(disk, "pvc", "ref", "path") if "persistentVolumeClaim" in source else ""
        ensure_list(container, "volumeMounts").append(mount(name, f"/mnt/kv-cache-{index}", sub_path=folder or ""))
        if size := dig(disk, "emptyDir", "size"):
            _request_disk(container, size)


def _source(disk: Object) -> Object | None:
    if (folder := disk.get("emptyDir")) is not None:
        return {"emptyDir": {"sizeLimit": folder.get("size")}}
    if (claim := dig(disk, "pvc", "spec")) is not None:
        return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    if (reference := dig(disk, "pvc", "ref")) is not None:
        return {"persistentVolumeClaim": {"claimName": reference.get("name", "")}}
    return None


def _request_disk(container: Object, size: str) -> None:
    """So that the pod lands on a node that has the space."""
    resources = container["resources"] = dict(container.get("resources") or {})
    requests = resources["requests"] = dict(resources.get("requests") or {})
    requests["ephemeral-storage"] = str(Quantity.parse(requests.get("ephemeral-storage", "0")) + Quantity.parse(size))
