"""Kubernetes' protobuf, from and to the JSON-shaped objects that the rest of the server works with.

kubectl's typed commands (`create configmap`, `create deployment`, `cordon`) send it and do not fall back to JSON. It is
written for the few clients that accept nothing else.
"""

from __future__ import annotations

import struct

from isvc.apiserver.protobuf.encoding import encode_field, write_message
from isvc.apiserver.protobuf.values import fields, read_message
from isvc.kube.builtin.types import META, message, message_of
from isvc.kube.errors import BadRequest, NotAcceptable
from isvc.kube.objects import GVK, Object

MAGIC = b"k8s\0"
#: Kinds of request that any group may send.
_OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "ListOptions", "GetOptions"})
#: Kinds of answers that are of no group's own.
_META_KINDS = frozenset(
    {"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "PartialObjectMetadata", "PartialObjectMetadataList"}
    | {"Status"}
)


def decode(body: bytes) -> Object:
    """Returns the object in a `k8s\0` envelope, with apiVersion and kind."""
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        api_version, kind, raw = _envelope(body[len(MAGIC) :])
        known = message(META + kind) if kind in _OPTIONS else message_of(GVK.parse(api_version, kind))
        if known is None:
            raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}"')
        return {"apiVersion": api_version, "kind": kind, **read_message(raw, known)}
    except (ValueError, OverflowError, struct.error) as error:  # Malformed, or text that is not UTF-8 or JSON
        raise BadRequest(f"the protobuf body could not be read: {error}") from error


def _envelope(data: bytes) -> tuple[str, str, bytes]:
    """Returns apiVersion, kind and the encoded object of a runtime.Unknown."""
    api_version = kind = ""
    raw = b""
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            for inner, text in fields(value):
                if inner == 1 and isinstance(text, bytes):
                    api_version = text.decode()
                elif inner == 2 and isinstance(text, bytes):
                    kind = text.decode()
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def encode(obj: Object) -> bytes:
    """Returns an object of a built-in type, or a list of them, in a `k8s\0` envelope."""
    gvk = GVK.parse(obj.get("apiVersion", "v1"), obj["kind"])
    kind_and_version = encode_field(1, gvk.api_version.encode()) + encode_field(2, gvk.kind.encode())
    return MAGIC + encode_field(1, kind_and_version) + encode_field(2, _raw(obj, gvk))


def _raw(obj: Object, gvk: GVK) -> bytes:
    known = message(META + gvk.kind) if gvk.kind in _META_KINDS else message_of(gvk)
    if known is not None:
        return write_message(obj, known)
    item = message_of(gvk._replace(kind=gvk.kind.removesuffix("List")))
    if item is None or not gvk.kind.endswith("List"):
        accepted = "application/json, application/yaml"
        raise NotAcceptable(f"only the following media types are accepted: {accepted}", details={})
    meta = encode_field(1, write_message(obj["metadata"], message(META + "ListMeta")))
    return meta + b"".join(encode_field(2, write_message(each, item)) for each in obj["items"])


def encode_event(event: Object) -> bytes:
    """Encodes a WatchEvent, whose object is in an envelope of its own."""
    return encode_field(1, event["type"].encode()) + encode_field(2, encode_field(1, encode(event["object"])))
