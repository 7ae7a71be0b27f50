"""Requests and responses of the Open Inference (v2) protocol, in JSON and with its binary tensor extension.

numpy is imported where a tensor becomes an array, so that a transformer in plain Python needs none.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import orjson

from isvc.pods.modelserver.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINARY_HEADER = "Inference-Header-Content-Length"
MOST_DIMENSIONS = 64

_DTYPES = {
    "BOOL": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
_DATATYPES = {dtype: datatype for datatype, dtype in _DTYPES.items()}


@dataclass(slots=True)
class Tensor:
    name: str
    shape: list[int]
    datatype: str
    data: list[Any]
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_numpy(cls, name: str, array: NDArray[Any]) -> Tensor:
        datatype = _DATATYPES.get(str(array.dtype), "BYTES")
        flat = array.astype(str) if datatype == "BYTES" else array
        return cls(name, list(array.shape), datatype, flat.ravel().tolist())

    def as_numpy(self) -> NDArray[Any]:
        import numpy

        try:
            return numpy.array(self.data, dtype=_DTYPES[self.datatype]).reshape(self.shape)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidInput(f"input {self.name} is not {self.datatype} of shape {self.shape}: {error}") from None

    def to_json(self) -> dict[str, Any]:
        body = {"name": self.name, "shape": self.shape, "datatype": self.datatype, "data": self.data}
        return {**body, "parameters": self.parameters} if self.parameters else body


@dataclass(slots=True)
class InferRequest:
    inputs: list[Tensor]
    id: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wants_binary(self) -> bool:
        return bool(self.parameters.get("binary_data_output"))

    def answer(self, model_name: str, outputs: list[Tensor]) -> InferResponse:
        """Returns a response with the request's id, or one of its own."""
        return InferResponse(model_name, outputs, self.id or str(uuid.uuid4()))

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"inputs": [tensor.to_json() for tensor in self.inputs]}
        optional = {"id": self.id, "parameters": self.parameters, "outputs": self.outputs}
        return body | {key: value for key, value in optional.items() if value}


@dataclass(slots=True)
class InferResponse:
    model_name: str
    outputs: list[Tensor]
    id: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"model_name": self.model_name, "id": self.id}
        if self.parameters:
            body["parameters"] = self.parameters
        return body | {"outputs": [tensor.to_json() for tensor in self.outputs]}


def decode_request(body: bytes, header_length: str | None) -> InferRequest:
    """Returns a request body; `header_length` is the value of the binary extension's header, when it was sent."""
    if header_length is not None and not (header_length.isascii() and header_length.isdigit()):
        raise InvalidInput(f"{BINARY_HEADER} is not a number: {header_length}")
    end = len(body) if header_length is None else int(header_length)
    document = json_object(body[:end])
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise InvalidInput('Expected "inputs" to be a list')
    binary = memoryview(body)[end:]
    tensors = []
    for item in inputs:
        tensor, used = _decode_tensor(item, binary)
        binary = binary[used:]
        tensors.append(tensor)
    outputs = document.get("outputs") or []
    if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
        raise InvalidInput('Expected "outputs" to be a list of objects')
    for output in outputs:
        _parameters(output, "an output")
    return InferRequest(tensors, str(document.get("id") or ""), _parameters(document, "the request"), outputs)


def decode_response(document: dict[str, Any]) -> InferResponse:
    outputs = [_decode_tensor(item, memoryview(b""))[0] for item in document.get("outputs", [])]
    parameters = document.get("parameters") or {}
    return InferResponse(str(document.get("model_name", "")), outputs, str(document.get("id", "")), parameters)


def encode_response(response: InferResponse, request: InferRequest) -> tuple[bytes, int | None]:
    """Returns the body, and the length of its JSON part when binary tensors follow it."""
    wanted = {str(o.get("name")): o.get("parameters") or {} for o in request.outputs}
    document = response.to_json()
    tail = b""
    for tensor, shown in zip(response.outputs, document["outputs"], strict=True):
        if wanted.get(tensor.name, {}).get("binary_data", request.wants_binary):
            packed = pack(tensor)
            del shown["data"]
            shown["parameters"] = {**tensor.parameters, "binary_data_size": len(packed)}
            tail += packed
    head = orjson.dumps(document)
    return (head + tail, len(head)) if tail else (head, None)


def json_object(body: bytes) -> dict[str, Any]:
    """Returns the JSON object in a request."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"Unrecognized request format: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInput("Unrecognized request format: expected a JSON object")
    return document


def _parameters(holder: dict[str, Any], what: str) -> dict[str, Any]:
    parameters = holder.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise InvalidInput(f'Expected "parameters" of {what} to be an object')
    return parameters


def _decode_tensor(item: Any, binary: memoryview) -> tuple[Tensor, int]:
    if not isinstance(item, dict):
        raise InvalidInput("each input has to be an object with name, shape, datatype and data")
    name, shape, datatype = item.get("name"), item.get("shape"), item.get("datatype")
    if not isinstance(name, str):
        raise InvalidInput("an input has no name")
    parameters = _parameters(item, f"input {name}")
    if not isinstance(datatype, str) or datatype not in _DTYPES:
        raise InvalidInput(f"input {name} has the unknown datatype {datatype}: one of {', '.join(_DTYPES)}")
    if not isinstance(shape, list):
        raise InvalidInput(f"input {name} has no valid shape")
    check_shape(name, shape)
    size = parameters.get("binary_data_size")
    if size is None:
        data = item.get("data")
        if not isinstance(data, list):
            raise InvalidInput(f"input {name} has no data")
        return Tensor(name, shape, datatype, data, parameters), 0
    if not isinstance(size, int) or not 0 <= size <= len(binary):
        raise InvalidInput(f"input {name} announces {size} bytes of data, but {len(binary)} follow")
    rest = {key: value for key, value in parameters.items() if key != "binary_data_size"}
    return Tensor(name, shape, datatype, unpack(name, datatype, shape, binary[:size]), rest), size


def check_shape(name: str, shape: list[Any]) -> None:
    """Refuses what is no shape, and more dimensions than numpy has: a product of a million numbers takes hours."""
    if len(shape) > MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise InvalidInput(f"input {name} has no valid shape")


def unpack(name: str, datatype: str, shape: list[int], raw: memoryview) -> list[Any]:
    """Returns the elements of a tensor that came as bytes."""
    if datatype not in _DTYPES:
        raise InvalidInput(f"input {name} has the unknown datatype {datatype}: one of {', '.join(_DTYPES)}")
    if datatype == "BYTES":
        items: list[Any] = []
        while raw:
            length = int.from_bytes(raw[:4], "little")
            items.append(bytes(raw[4 : 4 + length]).decode("utf-8", "replace"))
            raw = raw[4 + length :]
    else:
        import numpy

        dtype = numpy.dtype(_DTYPES[datatype])
        if len(raw) % dtype.itemsize:
            raise InvalidInput(f"input {name}: {len(raw)} bytes are no whole number of {datatype}")
        items = numpy.frombuffer(raw, dtype=dtype).tolist()
    if len(items) != prod(shape):
        raise InvalidInput(f"input {name} has {len(items)} elements, its shape {shape} asks for {prod(shape)}")
    return items


def pack(tensor: Tensor) -> bytes:
    """Returns the elements of a tensor as bytes."""
    if tensor.datatype == "BYTES":
        encoded = [str(item).encode() for item in tensor.data]
        return b"".join(struct.pack("<I", len(item)) + item for item in encoded)
    return tensor.as_numpy().tobytes()
