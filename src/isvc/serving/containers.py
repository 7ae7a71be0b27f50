"""Small edits of a pod spec that its owner is building: find a container, set a variable, mount a volume.

They change the dict they are given, so that a builder that made its own copy once can apply many of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Object

MODEL_SERVER: Final = "kserve-container"
TRANSFORMER: Final = "transformer-container"
WORKER: Final = "worker-container"
QUEUE_PROXY: Final = "queue-proxy"


def find_by_name(items: list[Object] | None, name: str) -> Object | None:
    """Returns the first item of that name, of containers, variables, volumes or ports."""
    return next((item for item in items or () if item.get("name") == name), None)


def find_container(spec: Object, name: str) -> Object | None:
    return find_by_name(spec.get("containers"), name)


def find_init_container(spec: Object, name: str) -> Object | None:
    return find_by_name(spec.get("initContainers"), name)


def ensure_list(holder: Object, field: str) -> list[Object]:
    """Returns the list in that field, which is created when it is missing or null."""
    items: list[Object] | None = holder.get(field)
    if items is None:
        items = holder[field] = []
    return items


def variable(name: str, value: str) -> Object:
    return {"name": name, "value": value} if value else {"name": name}


def secret_variable(name: str, secret: str, key: str) -> Object:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def set_env(container: Object, name: str, value: str) -> None:
    """Sets a variable's value in place, or appends it. A `valueFrom` that is there stays."""
    merge_env(container, [variable(name, value)])


def merge_env(container: Object, overrides: list[Object]) -> None:
    """Takes over the values of variables that exist, in place, and appends the others.

    Only the plain value is taken over: a variable that refers to a secret keeps its reference, and one that had a plain
    value where the override has a reference ends up empty.
    """
    env = ensure_list(container, "env")
    known = {entry["name"]: entry for entry in reversed(env)}
    for override in overrides:
        entry = known.get(override["name"])
        if entry is None:
            env.append(override)
        elif override.get("value"):
            entry["value"] = override["value"]
        else:
            entry.pop("value", None)


def add_missing(entries: list[Object], others: Iterable[Object]) -> list[Object]:
    """Appends the others whose name no entry has yet; returns those."""
    known, added = {entry.get("name") for entry in entries}, list[Object]()
    for other in others:
        if other["name"] not in known:
            known.add(other["name"])
            added.append(other)
    entries += added
    return added


def add_missing_env(container: Object, variables: Iterable[Object]) -> None:
    add_missing(ensure_list(container, "env"), variables)


def add_volume(spec: Object, volume: Object) -> None:
    """Adds a volume unless one of that name is there."""
    add_missing(ensure_list(spec, "volumes"), [volume])


def add_mount(container: Object, volume: str, path: str, *, sub_path: str = "", read_only: bool = False) -> None:
    """Mounts a volume unless the container already mounts it."""
    entry = mount(volume, path, sub_path=sub_path, read_only=read_only)
    add_missing(ensure_list(container, "volumeMounts"), [entry])


def mount(volume: str, path: str, *, sub_path: str = "", read_only: bool = False) -> Object:
    entry: Object = {"name": volume, "mountPath": path}
    if sub_path:
        entry["subPath"] = sub_path
    if read_only:
        entry["readOnly"] = True
    return entry
