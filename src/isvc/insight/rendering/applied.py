"""What `kubectl apply` makes of a live object and a document: changed fields change, fields taken out go."""

from __future__ import annotations

from isvc.kube.objects import Object, last_applied
from isvc.kube.patch import merge_patch


def apply_document(live: Object, document: Object) -> Object:
    """Applies as kubectl would; without a record of the last apply, all but labels and annotations is replaced."""
    before = last_applied(live)
    if before is not None:
        gone = merge_patch.diff({**before, "metadata": {}}, {**document, "metadata": {}})
        merged: Object = merge_patch.apply(merge_patch.apply(live, gone), _content(document))
    else:
        merged = {**live, **_content(document)}
    metadata = dict(live["metadata"])
    for name in ("labels", "annotations"):
        if given := document["metadata"].get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given}
    return {**merged, "metadata": metadata}


def _content(document: Object) -> Object:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}
