"""managedFields: which manager set which field, kept on every write, and the types of what is applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from isvc.apiserver import refusals
from isvc.apiserver.objects import metadata
from isvc.apiserver.request import Call
from isvc.kube import fields
from isvc.kube.errors import Conflict
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema

_ROOT = ("apiVersion", "kind", "metadata")


def track(call: Call, new: Object, live: Object | None) -> None:
    """Records that this request's manager wrote what differs between `live` and `new`."""
    description = call.description
    try:
        new["metadata"]["managedFields"] = fields.track(
            new,
            live,
            description.strategy.schema,
            manager=call.manager,
            api_version=description.gvk.api_version,
            subresource=call.subresource,
            now="" if call.subresource == "scale" else metadata.now(),
        )
    except fields.ShapeError:
        # The object does not fit its schema; validation says so better than this could.
        new["metadata"]["managedFields"] = live["metadata"].get("managedFields", []) if live else []


def _beyond_reach(call: Call, intent: Object) -> tuple[str, ...]:
    """Returns what a request to this path cannot set, and so nobody comes to own by it."""
    if call.subresource == "status":
        return tuple(field for field in intent if field not in ("metadata", "status"))
    return ("status",) if call.description.status else ()


def apply_fields(call: Call, intent: Object, live: Object | None) -> Object:
    """Returns the live object with a manager's intent applied, or Conflict when others own what it would change."""
    description = call.description
    problem = type_errors(intent, description.strategy.schema)
    if problem:
        raise refusals.untypeable(description.gvk, intent, problem)
    try:
        return fields.apply(
            live,
            intent,
            description.strategy.schema,
            manager=call.field_manager,
            api_version=description.gvk.api_version,
            force=call.request.flag("force"),
            subresource=call.subresource,
            now=metadata.now(),
            unset=description.strategy.blank,
            ignore=_beyond_reach(call, intent),
        )
    except fields.ShapeError as error:
        raise refusals.untypeable(call.description.gvk, intent, str(error)) from None
    except fields.ApplyConflict as conflict:
        raise Conflict(str(conflict), details={"causes": conflict.causes}) from None


def type_errors(obj: Object, schema: Schema | None) -> str:
    """Says what is wrong with the types of an applied object, in structured-merge-diff's words, or nothing.

    It looks at the configuration as it was sent, before anything is defaulted or pruned: an undeclared field cannot
    have a manager, and two list items with one key cannot be distinguished.
    """
    if schema is None or not schema.get("properties"):
        return ""
    rest = {key: value for key, value in obj.items() if key not in _ROOT}
    found = list(_check(rest, schema, ""))
    if len(found) < 2:
        return found[0] if found else ""
    return "\n".join(["errors:", *(f"  {each}" for each in found)])


def _check(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return
    match schema.get("type"):
        case "object":
            if isinstance(value, dict):
                yield from _check_map(value, schema, path)
            else:
                yield f"{path}: expected map, got &{{{_go(value)}}}"
        case "array":
            if isinstance(value, list):
                yield from _check_list(value, schema, path)
            else:
                yield f"{path}: expected list, got &{{{_go(value)}}}"
        case "string":
            if not isinstance(value, str):
                yield f"{path}: expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"
        case "integer" | "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"{path}: expected numeric (int or float), got {_go_type(value)}"
        case "boolean":
            if not isinstance(value, bool):
                yield f"{path}: expected boolean, got &{{{_go(value)}}}"


def _check_map(value: Object, schema: Schema, path: str) -> Iterator[str]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    is_open = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or (not properties and not others)
    for key, item in value.items():
        if key in properties:
            yield from _check(item, properties[key], f"{path}.{key}")
        elif isinstance(others, dict):
            yield from _check(item, others, f"{path}.{key}")
        elif not is_open and others is not True:
            yield f"{path}.{key}: field not declared in schema"


def _check_list(value: list[Any], schema: Schema, path: str) -> Iterator[str]:
    items = schema.get("items") or {}
    kind = schema.get("x-kubernetes-list-type")
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"[{index}]"
        if kind in ("map", "set"):
            try:
                element = _key(item, schema, items) if kind == "map" else _member(item)
            except ValueError as error:
                yield f"{path}: element {index}: {error}"
                return
            if element in seen:
                yield f"{path}: duplicate entries for key {element}"
            seen.add(element)
        yield from _check(item, items, path + element)


def _key(item: Any, schema: Schema, items: Schema) -> str:
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    found = []
    for key in sorted(keys):
        default = ((items.get("properties") or {}).get(key) or {}).get("default")
        if key in item or default is not None:
            found.append(f"{key}={_json(item.get(key, default))}")
    if not found:
        shown = "[" + " ".join(_json(key) for key in keys) + "]"
        raise ValueError(
            f"associative list with keys has an element that omits all key fields {shown}"
            " (and doesn't have default values for any key fields)"
        )
    return "[" + ",".join(found) + "]"


def _member(item: Any) -> str:
    if item is None:
        raise ValueError("associative list without keys has an element that's an explicit null")
    if isinstance(item, dict):
        raise ValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ValueError("not supported: associative list with lists as elements")
    return f"[={_json(item)}]"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _go(value: Any) -> str:
    """Returns a value as Go prints it in passing."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{_go(item)}" for key, item in sorted(value.items())) + "]"
        case list():
            return "[" + " ".join(_go(item) for item in value) + "]"
        case _:
            return str(value)


def _go_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"
