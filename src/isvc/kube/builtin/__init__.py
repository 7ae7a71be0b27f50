"""Kubernetes' own kinds as its API server reads them: the Go struct that a manifest fills, and then defaults.

The embedded API server decodes with these parts; the engine completes a manifest with them, to compare it with a live
object.
"""

from __future__ import annotations

from isvc.kube.builtin.defaults import DEFAULTS
from isvc.kube.builtin.shape import shape
from isvc.kube.builtin.types import message_of
from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK, Object, deep_copy


def check_types(manifest: Object) -> None:
    """Raises BadRequest for a built-in kind with a field of the wrong type, as an API server answers."""
    if message := message_of(GVK.of(manifest)):
        shape(deep_copy(manifest), message, [])


def complete(manifest: Object) -> Object | None:
    """Returns the manifest as an API server would store it, but for what only that server knows: addresses, uid,
    status.

    None for a kind that is not built in, and for a manifest whose fields are not all known here or have wrong types.
    """
    gvk = GVK.of(manifest)
    message, unknown = message_of(gvk), list[str]()
    if message is None:
        return None
    try:
        shaped = shape(deep_copy(manifest), message, unknown)
    except BadRequest:
        return None
    if unknown:
        return None
    if default := DEFAULTS.get((gvk.group, gvk.kind)):
        default(shaped)
    return shaped
