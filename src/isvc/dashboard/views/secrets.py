"""Objects as pages show them: without what nobody should read over a shoulder, and without what nobody wants to read.

Values of Secrets and of variables that are called like secrets are masked; managedFields and the copy of the manifest
that `kubectl apply` leaves behind are put aside.
"""

from __future__ import annotations

from isvc.kube.masking import MASK, mask
from isvc.kube.objects import LAST_APPLIED, Object, annotations_of, without


def presentable(obj: Object) -> Object:
    """Returns the object, fit for a page."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    if annotations := without(annotations_of(obj), (LAST_APPLIED,)):
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    rest = {name: mask(value) for name, value in obj.items() if name != "metadata"}
    if obj.get("kind") == "Secret":
        rest |= {field: dict.fromkeys(obj[field], MASK) for field in ("data", "stringData") if obj.get(field)}
    first: Object = {name: rest[name] for name in ("apiVersion", "kind") if name in rest}
    return {**first, "metadata": mask(metadata), **rest}
