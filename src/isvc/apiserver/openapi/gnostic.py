"""The version 2 document in protobuf, which is the only form in which kubectl asks for it (for a `List`, say).

The messages are those of the gnostic project's OpenAPIv2.proto; only what kubectl reads is written: definitions with
their types and kinds, and which parameters a PATCH of a kind takes.
"""

from __future__ import annotations

from collections.abc import Iterable

from isvc.apiserver.protobuf.encoding import encode_field
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema

_KIND = "x-kubernetes-group-version-kind"


def encode(document: Object) -> bytes:
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(encode_field(2, _pair(path, _path_item(item))) for path, item in document["paths"].items())
    definitions = b"".join(
        encode_field(1, _pair(name, _schema(each))) for name, each in document["definitions"].items()
    )
    return _text(1, document["swagger"]) + encode_field(2, info) + encode_field(8, paths) + encode_field(9, definitions)


def _schema(schema: Schema) -> bytes:
    parts = [_text(1, schema.get("$ref")), _text(2, schema.get("format")), _text(4, schema.get("description"))]
    parts += [_text(19, each) for each in schema.get("required") or ()]
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        parts.append(encode_field(21, encode_field(1, _schema(others))))
    if schema.get("type"):
        parts.append(encode_field(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(encode_field(23, encode_field(1, _schema(schema["items"]))))
    properties = schema.get("properties") or {}
    if properties:
        known = b"".join(encode_field(1, _pair(name, _schema(each))) for name, each in properties.items())
        parts.append(encode_field(25, known))
    extensions = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    parts += [encode_field(31, _pair(key, _text(2, _yaml(value)))) for key, value in extensions.items()]
    return b"".join(parts)


def _path_item(item: Object) -> bytes:
    patch = item.get("patch")
    if patch is None:
        return b""
    parameters = b"".join(encode_field(8, _parameter(each["name"])) for each in patch["parameters"])
    kind = encode_field(13, _pair(_KIND, _text(2, _yaml(patch[_KIND]))))
    return encode_field(8, _text(5, patch["operationId"]) + parameters + kind)


def _parameter(name: str) -> bytes:
    """Returns a query parameter, under the three layers of choices that there are for one."""
    query = _text(2, "query") + _text(4, name) + _text(6, "string")
    return encode_field(1, encode_field(2, encode_field(3, query)))


def _pair(name: str, value: bytes) -> bytes:
    return _text(1, name) + encode_field(2, value)


def _yaml(value: object) -> str:
    """Extensions are YAML; JSON is YAML too, but kubectl's parser wants block style for kinds."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return "".join(f"- {_entries(each.items(), '  ')}" for each in value)
    if isinstance(value, dict):
        return _entries(value.items(), "")
    if isinstance(value, list):
        return "".join(f"- {each}\n" for each in value)
    return f"{str(value).lower() if isinstance(value, bool) else value}\n"


def _entries(items: Iterable[tuple[str, object]], indent: str) -> str:
    return indent.join(f'{key}: "{value}"\n' for key, value in items)


def _text(number: int, value: str | None) -> bytes:
    return encode_field(number, value.encode()) if value else b""
