"""Small edits of a pod spec that its owner is building: find a container, set a variable, mount a volume.

They change the dict they are given, so that a builder that made its own copy once can apply many of them.
"""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object

MODEL_SERVER: Final = "kserve-container"
TRANSFORMER: Final = "transformer-container"
WORKER: Final = "worker-container"
QUEUE_PROXY: Final = "queue-proxy"


def named(items: list[Object] | None, name: str) -> Object | None:
    """The first item of that name, of containers, variables, volumes or ports."""
    return next((item for item in items or () if item.get("name") == name), None)


def find_container(spec: Object, name: str) -> Object | None:
    return named(spec.get("containers"), name)


def find_init_container(spec: Object, name: str) -> Object | None:
    return named(spec.get("initContainers"), name)


def listed(holder: Object, field: str) -> list[Object]:
    """The list in that field, which is created when it is missing or null."""
    items: list[Object] | None = holder.get(field)
    if items is None:
        items = holder[field] = []
    return items


def variable(name: str, value: str) -> Object:
    return {"name": name, "value": value} if value else {"name": name}


def secret_variable(name: str, secret: str, key: str) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def set_env(container: Object, name: str, value: str) -> None:
    """Set a variable's value in place, or append it. A `valueFrom` that is there stays."""
    merge_env(container, [variable(name, value)])


def merge_env(container: Object, overrides: list[Object]) -> None:
    """Take over the values of variables that exist, in place, and append the others.

    Only the plain value is taken over: a variable that refers to a secret keeps its reference, and one that had a plain
    value where the override has a reference ends up empty.
    """
    env = listed(container, "env")
    known = {entry["name"]: entry for entry in reversed(env)}
    for override in overrides:
        entry = known.get(override["name"])
        if entry is None:
            env.append(override)
        elif override.get("value"):
            entry["value"] = override["value"]
        else:
            entry.pop("value", None)


def add_missing_env(container: Object, variables: list[Object]) -> None:
    env = listed(container, "env")
    env.extend(entry for entry in variables if named(env, entry["name"]) is None)


def add_volume(spec: Object, volume: Object) -> None:
    """Add a volume unless one of that name is there."""
    volumes = listed(spec, "volumes")
    if named(volumes, volume["name"]) is None:
        volumes.append(volume)


def add_mount(container: Object, volume: str, path: str, *, sub_path: str = "", read_only: bool = False) -> bool:
    """Mount a volume unless the container already mounts it; True when the mount is new."""
    mounts = listed(container, "volumeMounts")
    if named(mounts, volume) is not None:
        return False
    mounts.append(mount(volume, path, sub_path=sub_path, read_only=read_only))
    return True


def mount(volume: str, path: str, *, sub_path: str = "", read_only: bool = False) -> Object:
    entry: Object = {"name": volume, "mountPath": path}
    if sub_path:
        entry["subPath"] = sub_path
    if read_only:
        entry["readOnly"] = True
    return entry


def resources(cpu_request: str, memory_request: str, cpu_limit: str, memory_limit: str) -> Object:
    return {
        "limits": {"cpu": cpu_limit, "memory": memory_limit},
        "requests": {"cpu": cpu_request, "memory": memory_request},
    }
