"""Paths of a resource: enough for clients to find its kind, its verbs and the parameters that matter to them."""

from __future__ import annotations

from isvc.apiserver.openapi.schemas import Dialect
from isvc.apiserver.resources.description import Description
from isvc.kube.objects import Object

_METHODS = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
_WRITES = ("create", "update", "patch")
_CONTENT = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)


def paths_of(description: Description, schema: str, dialect: Dialect) -> Object:
    resource = description.resource
    namespace = "{namespace}" if resource.namespaced else ""
    every = resource.path(namespace)
    paths: Object = {every: {}, f"{every}/{{name}}": {}}
    if "list" in description.verbs:
        paths[every]["get"] = _operation(description, "list", schema, dialect)
    if "create" in description.verbs:
        paths[every]["post"] = _operation(description, "create", schema, dialect)
    for verb, method in _METHODS.items():
        if verb in description.verbs:
            paths[f"{every}/{{name}}"][method] = _operation(description, verb, schema, dialect)
    if resource.namespaced and "list" in description.verbs:
        paths[resource.path()] = {"get": _operation(description, "list", schema, dialect)}
    if description.status:
        one = {m: _operation(description, v, schema, dialect) for v, m in _METHODS.items() if v != "delete"}
        paths[f"{every}/{{name}}/status"] = one
    return {path: methods for path, methods in paths.items() if methods}


def _operation(description: Description, verb: str, schema: str, dialect: Dialect) -> Object:
    resource = description.resource
    action = {"create": "post", "update": "put"}.get(verb, verb)
    operation: Object = {
        "operationId": f"{verb}{resource.version.capitalize()}{resource.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": description.gvk._asdict(),
        "responses": {"200": _response(schema, dialect)},
    }
    parameters = [_query("pretty", dialect)]
    if verb in _WRITES:
        parameters += [_query(name, dialect) for name in ("dryRun", "fieldManager", "fieldValidation")]
    if verb == "patch":
        parameters.append(_query("force", dialect, "boolean"))
    if verb == "list":
        texts = ("labelSelector", "fieldSelector", "continue", "resourceVersion", "resourceVersionMatch")
        parameters += [_query(name, dialect) for name in texts]
        parameters += [_query("limit", dialect, "integer"), _query("watch", dialect, "boolean")]
    operation["parameters"] = parameters
    if dialect.number == 2:
        operation |= {"produces": ["application/json"], "consumes": list(_CONTENT) if verb == "patch" else ["*/*"]}
    return operation


def _query(name: str, dialect: Dialect, kind: str = "string") -> Object:
    typed: Object = {"type": kind, "uniqueItems": True} if dialect.number == 2 else {"schema": {"type": kind}}
    return {"name": name, "in": "query", **typed}


def _response(schema: str, dialect: Dialect) -> Object:
    reference = dialect.reference(schema, {})
    if dialect.number == 2:
        return {"description": "OK", "schema": reference}
    return {"description": "OK", "content": {"application/json": {"schema": reference}}}
