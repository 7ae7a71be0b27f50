"""Which ClusterStorageContainer downloads a URI, and how its container shapes the init container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isvc.kube.objects import Object, deep_copy, name_of
from isvc.kube.patch import strategic
from isvc.serving.podspec import pod_schema, with_one_source
from isvc.serving.refused import Refused

INIT_CONTAINER: Final = "initContainer"
DOWNLOAD_JOB: Final = "localModelDownloadJob"


def choose_storage_container(
    uri: str, containers: Sequence[Object], name: str = "", workload: str = INIT_CONTAINER
) -> Object | None:
    """Returns the spec of the storage container of that name, or of the first for the workload and the URI, if any."""
    if name:
        return _require(uri, containers, name)
    for container in sorted(containers, key=name_of):
        if not container.get("disabled") and _workload(container) == workload and supports(container, uri):
            return _spec(container)
    return None


def supports(container: Object, uri: str) -> bool:
    for form in _spec(container).get("supportedUriFormats") or ():
        prefix, regex = form.get("prefix"), form.get("regex")
        if prefix:
            if uri.startswith(prefix):
                return True
        elif regex and _matches(regex, uri, container):
            return True
    return False


def merge_container(base: Object, overlay: Object) -> Object:
    """Returns the overlay laid over the base as `kubectl patch` would; a variable keeps only one kind of value."""
    merged = deep_copy(strategic.apply(base, overlay, pod_schema("Container")))
    merged["name"] = merged.get("name") or base["name"]
    if merged.get("env"):
        merged["env"] = with_one_source(merged["env"], overlay.get("env") or [])
    return merged


def _require(uri: str, containers: Sequence[Object], name: str) -> Object:
    container = next((candidate for candidate in containers if name_of(candidate) == name), None)
    if container is None:
        raise Refused(f'ClusterStorageContainer "{name}" not found')
    if container.get("disabled"):
        raise Refused(f'ClusterStorageContainer "{name}" is disabled')
    if _workload(container) != INIT_CONTAINER:
        raise Refused(
            f'ClusterStorageContainer "{name}" has workloadType "{_workload(container)}";'
            f' explicit selection requires "{INIT_CONTAINER}"'
        )
    if not supports(container, uri):
        raise Refused(f'ClusterStorageContainer "{name}" does not support storageUri "{uri}"')
    return _spec(container)


def _spec(container: Object) -> Object:
    spec: Object = container.get("spec") or {}
    return spec


def _workload(container: Object) -> str:
    return str(_spec(container).get("workloadType", INIT_CONTAINER))


def _matches(regex: str, uri: str, container: Object) -> bool:
    from isvc.kube.patterns import matches, problem_with

    if problem := problem_with(regex):
        raise Refused(f'ClusterStorageContainer "{name_of(container)}": bad expression "{regex}": {problem}')
    return matches(regex, uri)
