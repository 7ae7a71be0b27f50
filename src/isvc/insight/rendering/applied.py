"""What `kubectl apply` makes of a live object and a document: changed fields change, fields taken out go."""

from __future__ import annotations

from isvc.kube.objects import Object, content_of, last_applied
from isvc.kube.patch import merge_patch


def apply_document(live: Object, document: Object) -> Object:
    """Applies as kubectl would; without a record of the last apply, all but labels and annotations is replaced."""
    before = last_applied(live)
    if before is not None:
        gone = merge_patch.diff({**before, "metadata": {}}, {**document, "metadata": {}})
        merged: Object = merge_patch.apply(merge_patch.apply(live, gone), content_of(document))
    else:
        merged = {**live, **content_of(document)}
    metadata = dict(live["metadata"])
    for name in ("labels", "annotations"):
        if given := document["metadata"].get(name):
            metadata[name] = {**(metadata.get(name) or {}), **given}
    return {**merged, "metadata": metadata}
