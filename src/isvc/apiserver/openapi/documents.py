"""The documents: which schemas and which paths belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import orjson

from isvc.apiserver.openapi import gnostic
from isvc.apiserver.openapi.paths import paths_of
from isvc.apiserver.openapi.schemas import (
    V2,
    V3,
    Dialect,
    custom_schemas,
    describe,
    name_of_kind,
    publish,
    reachable_definitions,
)
from isvc.apiserver.openapi.sharing import share
from isvc.apiserver.resources.description import Description
from isvc.kube.objects import GVK, Object
from isvc.kube.schemas import RELEASE, definition_name, raw_definitions

_INFO = {"title": "Kubernetes", "version": RELEASE}


def v3_index(descriptions: Sequence[Description]) -> Object:
    """Returns where each group and version has its document. The hash changes when the document does."""
    groups: dict[str, list[Description]] = {}
    for each in descriptions:
        groups.setdefault(_path(each), []).append(each)
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_fingerprint(members)}"}
            for path, members in groups.items()
        }
    }


def v3(descriptions: Sequence[Description], path: str) -> bytes | None:
    """Returns the document of one group and version, such as `apis/apps/v1`."""
    members = [each for each in descriptions if _path(each) == path]
    if not members:
        return None
    schemas = _schemas(members, V3)
    if any(each.custom for each in members):
        schemas = share(schemas)
    document = {"openapi": "3.0.0", "info": _INFO, "paths": _paths(members, V3), "components": {"schemas": schemas}}
    return orjson.dumps(document)


def v2(descriptions: Sequence[Description]) -> bytes:
    return orjson.dumps(_v2(descriptions))


def v2_protobuf(descriptions: Sequence[Description]) -> bytes:
    return gnostic.encode(_v2(descriptions))


def _v2(descriptions: Sequence[Description]) -> Object:
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": _paths(descriptions, V2),
        "definitions": _schemas(descriptions, V2),
    }


def _path(description: Description) -> str:
    api_version = description.resource.api_version
    return f"apis/{api_version}" if description.resource.group else f"api/{api_version}"


def _fingerprint(members: Iterable[Description]) -> str:
    digest = hashlib.sha256()
    for each in members:
        fingerprint = getattr(each.strategy, "fingerprint", "")
        digest.update(f"{each.resource} {each.verbs} {each.status} {each.scale} {fingerprint}".encode())
    return digest.hexdigest()[:32].upper()


def _schemas(members: Sequence[Description], dialect: Dialect) -> dict[str, Object]:
    schemas: dict[str, Object] = {}
    roots = set()
    for each in members:
        gvk = each.gvk
        if each.custom:
            schemas |= custom_schemas(each, dialect)
            roots.add("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
            roots.add("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")
        else:
            names = (definition_name(kind) for kind in (gvk, GVK(gvk.group, gvk.version, each.list_kind_name)))
            roots.update(name for name in names if name)
        if each.scale:
            roots.add("io.k8s.api.autoscaling.v1.Scale")
    definitions = raw_definitions()
    for name in reachable_definitions(roots, definitions):
        schema = describe(name, definitions[name]) if dialect is V3 else definitions[name]
        schemas[name] = publish(name, schema, dialect)
    return dict(sorted(schemas.items()))


def _paths(members: Iterable[Description], dialect: Dialect) -> Object:
    paths: Object = {}
    for each in members:
        paths |= paths_of(each, name_of_kind(each), dialect)
    return paths
