"""What a CustomResourceDefinition adds to the server: one description per served version."""

from __future__ import annotations

from isvc.apiserver.admission.caller import Caller
from isvc.apiserver.crd.custom import Custom
from isvc.apiserver.resources.description import Description, Scale
from isvc.apiserver.tables.custom import columns
from isvc.kube.objects import Object, generation_of
from isvc.kube.resource import Resource


def descriptions(crd: Object, caller: Caller | None = None) -> list[Description]:
    """Returns the served versions of the definition; `caller` reaches its conversion webhook, if it has one."""
    versions = crd["spec"]["versions"]
    stored = next(each for each in versions if each.get("storage"))
    storage = _resource(crd, stored)
    return [_description(crd, each, storage, caller) for each in versions if each.get("served")]


def _resource(crd: Object, version: Object) -> Resource:
    spec = crd["spec"]
    names = spec["names"]
    return Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced")


def _description(crd: Object, version: Object, storage: Resource, caller: Caller | None) -> Description:
    names = crd["status"]["acceptedNames"]
    subresources = version.get("subresources") or {}
    return Description(
        resource=_resource(crd, version),
        strategy=Custom(crd, version, caller),
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        status="status" in subresources,
        scale=_scale(subresources.get("scale")),
        storage=storage,
        columns=columns(version.get("additionalPrinterColumns") or ()),
        selectable=tuple(each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()),
        custom=True,
        deprecation=_deprecation(crd, version),
        epoch=generation_of(crd),
    )


def _scale(scale: Object | None) -> Scale | None:
    if scale is None:
        return None
    return Scale(
        scale["specReplicasPath"].lstrip("."),
        scale["statusReplicasPath"].lstrip("."),
        str(scale.get("labelSelectorPath") or "").lstrip("."),
    )


def _deprecation(crd: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    spec = crd["spec"]
    words = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return str(version.get("deprecationWarning") or words)
