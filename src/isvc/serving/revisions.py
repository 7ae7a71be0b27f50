"""An earlier spec of a service, as a ControllerRevision."""

from __future__ import annotations

import hashlib
from typing import Final

import orjson

from isvc.api.resources import GROUP
from isvc.kube.objects import Object, generation_of, labels_of, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_ref, is_controlled_by
from isvc.kube.resource import CONTROLLER_REVISIONS
from isvc.serving import names

HISTORY_LABEL: Final = f"{GROUP}/history"


def revision_of(service: Object) -> Object:
    """Returns the service's spec as a revision, numbered by its generation. The same spec has the same name."""
    kind = str(service["kind"])
    digest = hashlib.sha256(orjson.dumps([kind, service.get("spec")], option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
    return CONTROLLER_REVISIONS.manifest(
        {
            "name": names.child(name_of(service), f"-{digest}"),
            "namespace": namespace_of(service),
            "labels": {HISTORY_LABEL: kind.lower()},
            "ownerReferences": [controller_ref(service)],
        },
        data={"spec": service.get("spec") or {}},
        revision=generation_of(service),
    )


def revisions_of(service: Object, found: list[Object]) -> list[Object]:
    """Returns those of the service, oldest first."""
    mine = [each for each in found if HISTORY_LABEL in labels_of(each) and is_controlled_by(each, uid_of(service))]
    return sorted(mine, key=lambda each: int(each.get("revision") or 0))
