"""Whatever a client sends, the server answers in JSON, and never with a failure of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import example, given
from hypothesis import strategies as st

from isvc.pods.modelserver.app import Server
from isvc.pods.modelserver.frameworks import TabularModel
from isvc.pods.modelserver.tensors import BINARY_HEADER


class Counting(TabularModel):
    """Predicts the number of rows, whatever they hold: what fails is not the model."""

    def load(self) -> bool:
        self._ask = lambda rows: numpy.full(3, len(numpy.atleast_1d(numpy.asarray(rows, dtype=object))))
        self.ready = True
        return True


PATHS = ("/v1/models/m:predict", "/v2/models/m/infer", "/v1/models/m:explain")
WORDS = st.sampled_from(["inputs", "instances", "name", "shape", "datatype", "data", "parameters", "outputs", "id",
                         "binary_data_size", "binary_data_output", "binary_data", "content_type", "pd", "FP32", "BYTES",
                         "BOOL", "INT64"])  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | WORDS
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)
TENSORS = st.fixed_dictionaries(
    {"name": JSON | st.just("x"), "shape": JSON | st.just([2]), "datatype": JSON | WORDS, "data": JSON},
    optional={"parameters": JSON},
)
DOCUMENTS = (
    st.fixed_dictionaries({"instances": JSON | st.lists(JSON, max_size=3)})
    | st.fixed_dictionaries(
        {"inputs": st.lists(TENSORS, max_size=2)}, optional={"parameters": JSON, "outputs": JSON, "id": JSON}
    )
    | JSON
)
BODIES = DOCUMENTS.map(lambda document: json.dumps(document).encode()) | st.binary(max_size=30)
HEADERS = st.none() | st.sampled_from(["0", "5", "-1", "²", "999999999999999999999", "x", ""])
REQUESTS = st.tuples(st.sampled_from(PATHS), BODIES, HEADERS)

TENSOR: dict[str, Any] = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2]}


def v2(**changes: Any) -> tuple[str, bytes, None]:
    document = {"inputs": [TENSOR | changes.pop("tensor", {})], **changes}
    return PATHS[1], json.dumps(document).encode(), None


@given(st.lists(REQUESTS, min_size=1, max_size=20))
@example([v2(parameters=[1])])
@example([v2(outputs={"a": 1})])
@example([v2(outputs=[1])])
@example([v2(tensor={"datatype": ["FP32"]})])
@example([v2(tensor={"parameters": "x"})])
@example([v2(tensor={"shape": [True, 2]})])
@example([(PATHS[1], b"{}", "²")])
@example([(PATHS[0], b'{"instances": [{"a": 1}, 2]}', None)])
@example([(PATHS[0], b'{"instances": ' + b"[" * 900 + b"]" * 900 + b"}", None)])
@example([(PATHS[0], b"[" * 100_000, None)])
@example([(PATHS[0], b'{"instances": [NaN, Infinity]}', None)])
def test_any_request(requests: list[tuple[str, bytes, str | None]]) -> None:
    asyncio.run(_send(requests))


async def _send(requests: list[tuple[str, bytes, str | None]]) -> None:
    model = Counting("m", "")
    model.load()
    async with TestClient(TestServer(Server([model]).application())) as client:
        for path, body, length in requests:
            headers = {} if length is None else {BINARY_HEADER: length}
            async with client.post(path, data=body, headers=headers) as answer:
                text = await answer.text()
                assert answer.status < 500 or answer.status == 501, f"{path} {body!r} {length}: {text}"
                json.loads(text, parse_constant=pytest.fail)  # NaN is no JSON
