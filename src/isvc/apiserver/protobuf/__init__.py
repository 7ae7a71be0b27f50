"""Request bodies in Kubernetes' protobuf, as the JSON-shaped objects that the rest of the server works with.

kubectl's typed commands (`create configmap`, `create deployment`, `cordon`) send protobuf and do not fall back to JSON.
The reverse is not needed: every such client also accepts JSON.
"""

from __future__ import annotations

import struct

from isvc.apiserver.protobuf.values import read_message
from isvc.apiserver.protobuf.wire import fields
from isvc.kube.builtin.types import META, message, message_of
from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK, Object

MAGIC = b"k8s\0"
#: Kinds of request that any group may send.
_OPTIONS = frozenset({"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "ListOptions", "GetOptions"})


def decode(body: bytes) -> Object:
    """The object in a `k8s\\0` envelope, with apiVersion and kind."""
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
    """apiVersion, kind and the encoded object of a runtime.Unknown."""
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
