"""Request bodies: bytes in one of the formats that Kubernetes accepts, to a dict whose outline can be relied on."""

from __future__ import annotations

import json
from typing import Any

import orjson

from isvc.apiserver import refusals
from isvc.apiserver.http.media import PROTOBUF, YAML
from isvc.apiserver.objects import metadata
from isvc.apiserver.request import Call, Request
from isvc.apiserver.resources.description import Description
from isvc.kube.builtin.shape import Undecodable
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object
from isvc.wire.http1.message import JSON

MAX_VALUES = 1_000_000  # in a YAML body, where a few lines can say any number


def parse(request: Request, kind: str, custom: bool = False) -> Any:
    """Returns the value that a body says, whatever it means; `kind` is what it should be."""
    media = request.media_type or JSON
    if media == JSON:
        return parse_json(request.body, kind)
    if media == YAML:
        return parse_yaml(request.body, kind)
    if media == PROTOBUF and not custom:
        from isvc.apiserver import protobuf

        return protobuf.decode(request.body)
    raise refusals.unsupported((JSON, YAML) if custom else (JSON, YAML, PROTOBUF))


def parse_json(body: bytes, kind: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        why = f"couldn't get version/kind; json parse error: {complaint(error)}"
        raise refusals.unrecognized(kind, body, why) from None


def complaint(error: orjson.JSONDecodeError) -> str:
    """Returns what is wrong with a JSON text; the most common trouble in Go's words."""
    ended = "unexpected end of data" in error.msg or "empty" in error.msg
    return "unexpected end of JSON input" if ended else str(error)


def parse_yaml(body: bytes, kind: str) -> Any:
    import yaml

    from isvc.kube.go_yaml import Loader, check_shape

    try:
        check_shape(body, most_aliased=MAX_VALUES)  # a map that is merged into others is written out as they are read
        value = yaml.load(body, Loader=Loader)  # noqa: S506
        if b"*" in body and _size(value, {}) > MAX_VALUES:
            raise ValueError("document contains excessive aliasing")
        return orjson.loads(orjson.dumps(value))
    except (yaml.YAMLError, orjson.JSONEncodeError, ValueError) as error:
        raise refusals.unrecognized(kind, body, f"yaml: {error}") from None


def _size(value: Any, known: dict[int, int]) -> int:
    """Returns how many values it holds once aliases are written out. What contains itself is endless."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = MAX_VALUES + 1
        known[id(value)] = 1 + sum(
            _size(each, known) for each in (value.values() if isinstance(value, dict) else value)
        )
    return known[id(value)]


def outline(value: Any, description: Description) -> Object:
    """Checks that a body is an object of the expected kind, and fills in kind, version and metadata."""
    gvk = description.gvk
    if not isinstance(value, dict):
        raise _no_object(value, gvk.kind)
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field) or "", str):
            why = f"json: cannot unmarshal {go_type(value[field])} into Go struct field .{field} of type string"
            why = f"couldn't get version/kind; json parse error: {why}"
            raise refusals.unrecognized(gvk.kind, orjson.dumps(value), why)
    if description.custom and not value.get("kind"):
        text = orjson.dumps(value)
        raise refusals.unrecognized(gvk.kind, text, f"Object 'Kind' is missing in '{text.decode()}'")
    api_version = value.get("apiVersion") or gvk.api_version
    kind = value.get("kind") or gvk.kind
    if api_version != gvk.api_version or kind != gvk.kind:
        raise refusals.wrong_kind({**value, "apiVersion": api_version, "kind": kind}, gvk, description.custom)
    value["apiVersion"], value["kind"] = api_version, kind
    if value.get("metadata") is None:
        value["metadata"] = {}
    if description.custom:
        check_types(value, description)  # a built-in kind's strategy does it, in Go's words
    return value


def check_types(value: Object, description: Description) -> None:
    """Refuses wrong types in metadata: the rest of the pipeline relies on them."""
    if complaint := metadata.check_types(value):
        raise Undecodable(description.gvk, description.gvk.kind, complaint)


def go_type(value: Any) -> str:
    """Returns what Go's JSON decoder calls the type of a value."""
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def _no_object(value: Any, kind: str) -> BadRequest:
    found = go_type(value)
    struct = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {struct}"
    return refusals.unrecognized(kind, orjson.dumps(value), why)


def decode(value: Any, call: Call) -> Object:
    """Returns an object of the request's version, pruned and defaulted; unknown fields are refused or warned of."""
    obj = outline(value, call.description)
    unknown: list[str] = []
    obj = call.description.strategy.decode(obj, unknown)
    check_types(obj, call.description)
    report([f'unknown field "{path}"' for path in unknown], call)
    return obj


def read(call: Call) -> Object:
    """Returns the body of a create or update."""
    value = parse(call.request, call.description.gvk.kind, call.description.custom)
    if "fieldValidation" in call.request.query and call.request.media_type in ("", JSON):
        report([f'duplicate field "{path}"' for path in duplicates(call.request.body)], call)
    return decode(value, call)


def report(complaints: list[str], call: Call) -> None:
    """Refuses, warns or says nothing, as the request's fieldValidation asks."""
    if not complaints or call.field_validation == "Ignore":
        return
    if call.field_validation == "Warn":
        for complaint in complaints:
            call.request.warn(complaint)
        return
    gvk = call.description.gvk
    raise Undecodable(gvk, gvk.kind, "strict decoding error: " + ", ".join(complaints))


def duplicates(body: bytes) -> list[str]:
    """Returns keys that appear twice in an object of a JSON text, by path. Only for text that is known to parse."""
    found: list[list[str]] = []

    def pairs(items: list[tuple[str, Any]]) -> Any:
        keys: dict[str, Any] = {}
        repeats = []
        for key, value in items:
            if key in keys:
                repeats.append(key)
            keys[key] = value
        if repeats:
            found.append(repeats)
        return _Node(keys, repeats)

    tree = json.loads(body, object_pairs_hook=pairs)
    return _paths(tree, "") if found else []


class _Node:
    __slots__ = ("keys", "repeats")

    def __init__(self, keys: dict[str, Any], repeats: list[str]) -> None:
        self.keys = keys
        self.repeats = repeats


def _paths(value: Any, path: str) -> list[str]:
    if isinstance(value, list):
        return [each for index, item in enumerate(value) for each in _paths(item, f"{path}[{index}]")]
    if not isinstance(value, _Node):
        return []
    prefix = f"{path}." if path else ""
    below = [each for key, item in value.keys.items() for each in _paths(item, prefix + key)]
    return [prefix + key for key in value.repeats] + below
