"""CustomResourceDefinitions of our kinds, made from their types."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.api.kinds import KINDS, KindRow
from isvc.api.meta import Kind
from isvc.api.schema import schema_for
from isvc.kube.objects import Object
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.kube.schemas import Schema, change_inner


def crds(*, described: bool) -> Iterator[Object]:
    """Yields all our CRDs, with or without what `kubectl explain` tells."""
    for row in KINDS:
        yield crd(row, described=described)


def crd(row: KindRow, *, described: bool) -> Object:
    stored = row.versions[-1][0]
    versions = [
        _version(row, version, kind, stored=version == stored, described=described) for version, kind in row.versions
    ]
    has_own_name = row.short_name and not row.is_short_name_ours
    return definition(row.resource, versions, {"shortNames": [row.short_name]} if has_own_name else {})


def definition(resource: Resource, versions: list[Object], names: Object) -> Object:
    """Returns the CustomResourceDefinition of a kind; `names` are those that it has beside its own."""
    own = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    scope = "Namespaced" if resource.namespaced else "Cluster"
    spec = {"group": resource.group, "names": own | names, "scope": scope, "versions": versions}
    return CUSTOM_RESOURCE_DEFINITIONS.manifest({"name": str(resource)}, spec=spec)


def _version(row: KindRow, name: str, kind: type[Kind], *, stored: bool, described: bool) -> Object:
    version: Object = {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": _copy_sorted(schema_for(kind, described))},
    }
    if row.columns:
        version["additionalPrinterColumns"] = [dict(column) for column in row.columns]
    if row.has_status:
        version["subresources"] = {"status": {}}
    return version


def _copy_sorted(schema: Schema) -> Schema:
    """Returns the schema with nothing shared, in order."""
    copy = dict(sorted((schema | change_inner(schema, _copy_sorted)).items()))
    return copy | {"properties": dict(sorted(copy["properties"].items()))} if "properties" in copy else copy
