"""Devices (GPUs, TPUs, NICs) that a service claims by annotations: one ResourceClaimTemplate, and claims in its pods.

A claim template cannot be changed. When the annotations ask for something else, another one is made under a second name
and the pods move over to it; the first is pruned then, and its name is free for the next change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from isvc.api.annotations import DEVICE_CLASS, DEVICE_CONTAINER, DEVICE_COUNT, DEVICE_SELECTOR
from isvc.controllers.llmisvc.observed import Observed
from isvc.engine.plan import Child
from isvc.engine.policies import SPEC
from isvc.kube.objects import Object, annotations_of, dig
from isvc.kube.resource import RESOURCE_CLAIM_TEMPLATES
from isvc.serving.containers import ensure_list, find_by_name, find_container
from isvc.serving.names import child
from isvc.serving.refused import Refused

_CLAIM: Final = "managed-device"


def claim_template(observed: Observed) -> Child | None:
    """Returns the template that the service's pods claim from, if it asks for devices."""
    annotations = annotations_of(observed.raw)
    if DEVICE_CLASS not in annotations:
        return None
    spec = _spec(annotations)
    manifest = RESOURCE_CLAIM_TEMPLATES.manifest(
        {"name": _name(observed, spec), "namespace": observed.namespace}, spec=spec
    )
    return Child(RESOURCE_CLAIM_TEMPLATES, manifest, SPEC)


def claim(observed: Observed, pod: Object) -> None:
    """Claims the devices for the pod, and hands them to the container that the annotation names, or to the first."""
    annotations = annotations_of(observed.raw)
    if DEVICE_CLASS not in annotations:
        return
    claims = ensure_list(pod, "resourceClaims")
    if find_by_name(claims, _CLAIM) is None:
        claims.append({"name": _CLAIM, "resourceClaimTemplateName": _name(observed, _spec(annotations))})
    wanted = annotations.get(DEVICE_CONTAINER, "").strip()
    containers = pod.get("containers") or []
    target = find_container(pod, wanted) if wanted else next(iter(containers), None)
    if target is not None:
        target["resources"] = dict(target.get("resources") or {})
        given = target["resources"].get("claims") or []
        if find_by_name(given, _CLAIM) is None:
            target["resources"]["claims"] = [*given, {"name": _CLAIM}]


def _name(observed: Observed, spec: Object) -> str:
    """Returns the name of a live template like this one, or else one that no other template has."""
    usual = child(observed.name, "-managed-dra")
    digest = hashlib.sha256(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)).hexdigest()[:8]
    second = child(observed.name, f"-managed-dra-{digest}")
    if (RESOURCE_CLAIM_TEMPLATES, second) in observed.live:
        return second
    live = observed.live.get((RESOURCE_CLAIM_TEMPLATES, usual))
    return usual if live is None or _claimed_devices(live.get("spec") or {}) == _claimed_devices(spec) else second


def _claimed_devices(spec: Object) -> tuple[Any, ...]:
    """Returns what a template claims, whatever defaults the API server spelled out."""
    exactly = dig(spec, "spec", "devices", "requests", 0, "exactly") or {}
    return exactly.get("deviceClassName"), exactly.get("count", 1), exactly.get("selectors") or []


def _spec(annotations: Mapping[str, str]) -> Object:
    exactly: Object = {"deviceClassName": annotations[DEVICE_CLASS].strip()}
    if (count := _count(annotations)) > 1:
        exactly["count"] = count
    lines = (line.strip() for line in annotations.get(DEVICE_SELECTOR, "").split("\n"))
    if selectors := [{"cel": {"expression": line}} for line in lines if line]:
        exactly["selectors"] = selectors
    return {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}


def _count(annotations: Mapping[str, str]) -> int:
    written = annotations.get(DEVICE_COUNT, "").strip()
    try:
        count = int(written or "1")
    except ValueError:
        raise Refused(f'invalid {DEVICE_COUNT} value "{written}": must be a whole number') from None
    if count < 1:
        raise Refused(f'invalid {DEVICE_COUNT} value "{written}": must be >= 1')
    return count
