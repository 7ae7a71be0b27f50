"""What Kubernetes says about built-in kinds and their fields, for `kubectl explain`; read when first asked for."""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import orjson

from isvc.kube.schemas import Schema


def described(name: str, schema: Schema) -> Schema:
    """A built-in definition with descriptions, and the values that a field may have."""
    known = _descriptions().get(name)
    if known is None:
        return schema
    shown: Schema = {"description": known["description"], **schema} if known["description"] else dict(schema)
    if "properties" in schema:
        fields = known["fields"]
        shown["properties"] = {key: {**fields.get(key, {}), **each} for key, each in schema["properties"].items()}
    return shown


def of_field(name: str, field: str) -> str:
    """The description of one field of a built-in definition."""
    return str(_descriptions()[name]["fields"][field]["description"])


@cache
def _descriptions() -> dict[str, Any]:
    packed = resources.files("isvc.apiserver").joinpath("data/descriptions.json.gz").read_bytes()
    unpacked: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return unpacked
