"""A runtime's containers and pod, with what the service says laid over them."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from isvc.kube.objects import (
    Object,
    annotations_of,
    dig,
    generation_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    without,
)
from isvc.kube.patch import strategic
from isvc.kube.schemas import definition
from isvc.serving.templates import Fields, TemplateError, render

_RUNTIME_POD: Final = ("nodeSelector", "affinity", "tolerations", "volumes", "imagePullSecrets", "schedulerName",
                       "resourceClaims")  # fmt: skip
# Numbers and switches of which Kubernetes cannot tell zero from absent: zero lays nothing over.
ZERO_IS_ABSENT: Final = frozenset({
    "failureThreshold", "hostIPC", "hostNetwork", "hostPID", "hostPort", "initialDelaySeconds", "periodSeconds",
    "readOnly", "stdin", "stdinOnce", "successThreshold", "timeoutSeconds", "tty",
})  # fmt: skip
_KEYS: Final = frozenset({"name", "mountPath", "devicePath"})
_TAG: Final = re.compile(r":[\w.\-]*$")


def merge_containers(runtime: Object, user: Object) -> Object:
    """Lays the user's fields over the runtime's container; the user's arguments follow the runtime's."""
    overlay = _drop_empty({key: value for key, value in user.items() if value != ""})
    merged = strategic.apply(runtime, overlay, pod_schema("Container"))
    if overlay.get("env"):
        merged = {**merged, "env": with_one_source(merged["env"], overlay["env"])}
    if args := [*(runtime.get("args") or ()), *(overlay.get("args") or ())]:
        merged = {**merged, "args": args}
    return merged


def merge_pods(runtime: Object, user: Object) -> Object:
    """Returns the runtime's pod with the user's laid over it. Containers are merged elsewhere and left out here."""
    base = {key: runtime[key] for key in _RUNTIME_POD if runtime.get(key)}
    overlay = {key: value for key, value in _drop_empty(user).items() if key != "containers"}
    merged: Object = strategic.apply(base, overlay, pod_schema("PodSpec"))
    return merged


def fill_placeholders(container: Object, service: Object) -> Object:
    """Returns the container with placeholders such as `{{.Name}}` filled in from the service's metadata.

    As in KServe, the template is the container's JSON and values are escaped as HTML, so no value can break it.
    """
    text = orjson.dumps(container).decode()
    if "{{" not in text:
        return container
    values = Fields(
        Name=name_of(service),
        GenerateName=dig(service, "metadata", "generateName") or "",
        Namespace=namespace_of(service),
        UID=uid_of(service),
        Generation=generation_of(service),
        Labels=labels_of(service),
        Annotations=annotations_of(service),
    )
    try:
        filled: Object = orjson.loads(render(text, values, missing="", escape=True))
    except orjson.JSONDecodeError as error:
        raise TemplateError(str(error)) from error
    return filled


def tagged_image(container: Object, version: str | None, server_type: str) -> Object:
    """Returns the container with the image of the wanted version, or of the hardware that it asks for."""
    image = str(container.get("image") or "")
    if "@sha256:" in image:
        return container
    if version is not None:
        return {**container, "image": _TAG.sub("", image) + f":{version}"}
    tag = _TAG.search(image)
    if not tag:
        return container
    repository = image[: tag.start()]
    if _uses_gpu(container):
        if server_type in ("tensorflow-serving", "torchserve", "huggingfaceserver") and not image.endswith("-gpu"):
            return {**container, "image": f"{image}-gpu"}
    elif server_type == "vllmserver" and not repository.endswith("-cpu"):
        # vLLM publishes its CPU build under another name, not under another tag.
        return {**container, "image": f"{repository}-cpu{tag[0]}"}
    return container


def _uses_gpu(container: Object) -> bool:
    limits = dig(container, "resources", "limits") or {}
    return any(name == "nvidia.com/gpu" or name.startswith("nvidia.com/mig") for name in limits)


def pod_schema(kind: str) -> dict[str, Any]:
    """Returns the schema of a part of pods."""
    found = definition(f"io.k8s.api.core.v1.{kind}")
    assert found is not None
    return found


def _drop_empty(value: Any) -> Any:
    """Returns what an overlay really says: an empty text or list, like an absent one, lays nothing over.

    What entries of lists are known by stays, as in Go's structs: of a mount without a path, the API server says so.
    """
    if isinstance(value, dict):
        return {
            key: _drop_empty(inner)
            for key, inner in value.items()
            if key in _KEYS or (inner not in (None, "", []) and (inner or key not in ZERO_IS_ABSENT))
        }
    return [_drop_empty(inner) for inner in value] if isinstance(value, list) else value


def with_one_source(env: list[Object], overlay: list[Object]) -> list[Object]:
    """Returns variables with the value or reference that the overlay gives them, where merging left both."""
    said = {entry.get("name"): entry for entry in reversed(overlay)}

    def one_source(entry: Object) -> Object:
        if (name := entry.get("name", "")) not in said or not (entry.get("value") and entry.get("valueFrom")):
            return entry
        return without(entry, ["value" if said[name].get("valueFrom") else "valueFrom"])

    return [*map(one_source, env)]
