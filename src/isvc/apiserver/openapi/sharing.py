"""Objects that stand more than once in schemas of custom resources, written once and referred to.

kubectl parses the document of a kind anew for every object that it creates or applies, to learn whether the server
validates fields. That of InferenceServices has the fields of a container forty times.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Final

import orjson

from isvc.apiserver.openapi.schemas import V3
from isvc.kube.objects import Object
from isvc.kube.schemas import change_inner

_WORTH_IT: Final = 100  # bytes; a reference has about half as many


def share(schemas: dict[str, Object]) -> dict[str, Object]:
    """Returns schemas that mean the same to who follows references, and those that they refer to now."""
    sharing = _Sharing()
    for schema in schemas.values():
        sharing.count(schema)
    return {name: _map(schema, sharing.refer) for name, schema in schemas.items()} | dict(sharing.shared.values())


class _Sharing:
    def __init__(self) -> None:
        self.repeated: Counter[bytes] = Counter()
        self.shared: dict[bytes, tuple[str, Object]] = {}

    def count(self, schema: Object) -> Object:
        if content := _content(schema):
            self.repeated[content] += 1
        return _map(schema, self.count)

    def refer(self, schema: Object) -> Object:
        content = _content(schema)
        if self.repeated[content] < 2:
            return _map(schema, self.refer)
        if content not in self.shared:
            inner = {key: value for key, value in schema.items() if key != "description"}
            name = f"shared.{len(self.shared)}.Object"  # `kubectl explain` shows the last part as the field's type
            self.shared[content] = name, {}
            self.shared[content] = name, _map(inner, self.refer)
        text = {"description": schema["description"]} if "description" in schema else {}
        return V3.reference(self.shared[content][0], text)


def _content(schema: Object) -> bytes:
    """Returns a hash of what an object with known fields says, but for its description; nothing of what is short."""
    if schema.get("type") != "object" or "properties" not in schema:
        return b""
    text = orjson.dumps({**schema, "description": None}, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).digest() if len(text) >= _WORTH_IT else b""


def _map(schema: Object, change: Callable[[Object], Object]) -> Object:
    """Returns a schema whose fields and items are changed."""
    return {**schema, **change_inner(schema, change)}
