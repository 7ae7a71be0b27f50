"""Objects as pages show them: without what nobody should read over a shoulder, and without what nobody wants to read.

Values of Secrets and of variables that are called like secrets are masked; managedFields and the copy of the manifest
that `kubectl apply` leaves behind are put aside.
"""

from __future__ import annotations

from isvc.kube.masking import MASK, mask
from isvc.kube.objects import LAST_APPLIED, Object, annotations_of


def presentable(obj: Object) -> Object:
    """Returns the object, fit for a page."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    if annotations := {name: text for name, text in annotations_of(obj).items() if name != LAST_APPLIED}:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    rest = {name: mask(value) for name, value in obj.items() if name != "metadata"}
    if obj.get("kind") == "Secret":
        rest |= {field: dict.fromkeys(obj[field], MASK) for field in ("data", "stringData") if obj.get(field)}
    order = ("apiVersion", "kind", "metadata")
    both = {**rest, "metadata": mask(metadata)}
    return {name: both[name] for name in (*order, *(name for name in rest if name not in order)) if name in both}
