"""Every kind that controllers and webhooks work with, by what a manifest or a URL says of it."""

from __future__ import annotations

from typing import Final

import isvc.api.resources
import isvc.kube.resource
import isvc.serving.thirdparty
from isvc.kube.objects import GVK, Object
from isvc.kube.resource import Resource

KINDS: Final = tuple(
    dict.fromkeys(
        each
        for module in (isvc.kube.resource, isvc.serving.thirdparty, isvc.api.resources)
        for each in vars(module).values()
        if isinstance(each, Resource)
    )
)
BY_PATH: Final = {(each.group, each.version, each.plural): each for each in KINDS}
_BY_GVK: Final = {each.gvk: each for each in KINDS}


def resource_of(obj: Object) -> Resource | None:
    """Returns None for a kind that nothing here reads or writes."""
    return _BY_GVK.get(GVK.of(obj))
