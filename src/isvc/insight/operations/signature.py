"""A request to begin with, made from what a model says of its inputs (the metadata of the v2 protocol)."""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from isvc.insight.operations import NotPossible
from isvc.insight.operations.endpoint import find_endpoint
from isvc.kube.objects import Object, name_of
from isvc.toolkit.client import Client

WITHIN: Final = 2.0  # seconds: a form is shown without, rather than late
MOST_VALUES: Final = 1000  # more than anybody reads in a form
_SMALL: Final = 1 << 20
_VALUES: Final[dict[str, Any]] = {"BYTES": "text", "BOOL": False}


async def sample_from_model(client: Client, service: Object, *, v1: bool, direct: bool) -> dict[str, Any] | None:
    """Returns a request with inputs as the model names them; None where it does not say."""
    try:
        endpoint = find_endpoint(service, {}, f"/v2/models/{name_of(service)}", direct=direct)
        metadata = orjson.loads(await endpoint.get(client, WITHIN, _SMALL))
    except (NotPossible, orjson.JSONDecodeError):
        return None
    return v1_sample(metadata) if v1 else v2_sample(metadata)


def v2_sample(metadata: Any) -> dict[str, Any] | None:
    """Returns a request of one row, in which every size that may vary is 1; None for what is no metadata."""
    inputs = _inputs(metadata)
    if not inputs:
        return None
    return {
        "inputs": [
            {"name": name, "shape": shape, "datatype": datatype, "data": [_value(datatype)] * math.prod(shape)}
            for name, datatype, shape in inputs
        ]
    }


def v1_sample(metadata: Any) -> dict[str, Any] | None:
    """Returns the same in the v1 protocol, whose instances are rows; a model of several inputs has them by name."""
    inputs = _inputs(metadata)
    if not inputs:
        return None
    rows = {name: _nest(shape[1:], _value(datatype)) for name, datatype, shape in inputs}
    return {"instances": [next(iter(rows.values())) if len(rows) == 1 else rows]}


def _inputs(metadata: Any) -> list[tuple[str, str, list[int]]]:
    found: list[tuple[str, str, list[int]]] = []
    try:
        for each in metadata["inputs"]:
            shape = [size if size > 0 else 1 for size in map(int, each["shape"])]
            found.append((str(each["name"]), str(each["datatype"]), shape))
    except (KeyError, TypeError, ValueError):
        return []
    return found if sum(math.prod(shape) for _, _, shape in found) <= MOST_VALUES else []


def _value(datatype: str) -> Any:
    return _VALUES.get(datatype, 1.0 if datatype.startswith(("FP", "BF")) else 1)


def _nest(shape: list[int], value: Any) -> Any:
    return [_nest(shape[1:], value) for _ in range(shape[0])] if shape else value
