"""Volumes for the tiers of the key-value cache that lie on disk. The server's own settings come from presets."""

from __future__ import annotations

from isvc.api.llm.workload import FileSystemTierSpec, WorkloadSpec
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity
from isvc.serving.containers import ensure_list, find_container, mount


def attach_tiers(workload: WorkloadSpec, pod: Object, container_name: str) -> None:
    """Mounts a volume for every tier of the workload's section of the spec."""
    container = find_container(pod, container_name)
    tiers = workload.kv_cache_offloading.secondary if workload.kv_cache_offloading else ()
    for index, tier in enumerate(tiers):
        disk = tier.file_system or FileSystemTierSpec()
        source = _source(disk)
        if source is None:
            continue
        name = f"kv-cache-secondary-{index}"
        ensure_list(pod, "volumes").append({"name": name, **source})
        if container is None:
            continue
        claimed = disk.pvc.ref if disk.pvc and "persistentVolumeClaim" in source else None
        folder = claimed.path if claimed else ""
        ensure_list(container, "volumeMounts").append(mount(name, f"/mnt/kv-cache-{index}", sub_path=folder))
        if disk.empty_dir and disk.empty_dir.size:
            _request_disk(container, str(disk.empty_dir.size))


def _source(disk: FileSystemTierSpec) -> Object | None:
    if disk.empty_dir is not None:
        return {"emptyDir": {"sizeLimit": disk.empty_dir.size}}
    if disk.pvc is not None and disk.pvc.spec is not None:
        return {"ephemeral": {"volumeClaimTemplate": {"spec": disk.pvc.spec}}}
    if disk.pvc is not None and disk.pvc.ref is not None:
        return {"persistentVolumeClaim": {"claimName": disk.pvc.ref.name}}
    return None


def _request_disk(container: Object, size: str) -> None:
    """Requests it so that the pod lands on a node that has the space."""
    resources = container["resources"] = dict(container.get("resources") or {})
    requests = resources["requests"] = dict(resources.get("requests") or {})
    requests["ephemeral-storage"] = str(Quantity.parse(requests.get("ephemeral-storage", "0")) + Quantity.parse(size))
