"""Let the storage initializer through Istio.

With Istio's CNI plugin, traffic is redirected to a side-car that does not run yet while init containers do. Only the
side-car's own user is exempt from the redirection, so the initializer runs as that user.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from isvc.kube.objects import Object, annotations_of, dig
from isvc.serving import annotations as names
from isvc.serving.containers import find_container, find_init_container
from isvc.serving.refused import Refused
from isvc.serving.storage.init_container import NAME as INITIALIZER

SIDECAR_USER: Final = 1337
INTERCEPTION: Final = "sidecar.istio.io/interceptionMode"
STATUS: Final = "sidecar.istio.io/status"


def share_sidecar_user(pod: Object) -> None:
    initializers = [entry for entry in pod["spec"].get("initContainers") or () if entry["name"] == INITIALIZER]
    if not initializers:
        return
    user = _user(pod)
    if user is not None:
        initializers[-1]["securityContext"] = {**(initializers[-1].get("securityContext") or {}), "runAsUser": user}


def _user(pod: Object) -> int | None:
    annotations = annotations_of(pod)
    if names.INITIALIZER_UID in annotations:
        chosen = annotations[names.INITIALIZER_UID]
        return int(chosen) if re.fullmatch(r"[+-]?[0-9]{1,18}", chosen) else None
    if find_init_container(pod["spec"], "istio-init") or annotations.get(INTERCEPTION) != "REDIRECT":
        return None
    sidecar = find_container(pod["spec"], _sidecar_name(annotations.get(STATUS)))
    if sidecar is None:
        return None
    user: int | None = dig(sidecar, "securityContext", "runAsUser")
    return SIDECAR_USER if user is None else user


def _sidecar_name(status: str | None) -> str:
    """Returns the first container that Istio says it injected; empty when it says none."""
    if status is None:
        return ""
    try:
        decoded: Any = orjson.loads(status)
    except orjson.JSONDecodeError:
        decoded = None
    if not isinstance(decoded, dict):
        raise Refused(f"annotation {STATUS} is not a JSON map")
    return str(dig(decoded, "containers", 0) or "")
