"""The v2 protocol over gRPC. Needs the extra `grpc`, and is imported only when a port for it is given.

Tensors come as typed contents or as raw bytes, and are answered in the same form.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from grpc import aio

from isvc.pods.modelserver.app import Server
from isvc.pods.modelserver.errors import InvalidInput, ServingError, Unsupported
from isvc.pods.modelserver.open_inference import SERVICE, message
from isvc.pods.modelserver.tensors import InferRequest, InferResponse, Tensor, check_shape, pack, unpack

log = logging.getLogger("isvc.pods.modelserver")

_MAX_MESSAGE: Final = 1 << 30
_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    404: grpc.StatusCode.NOT_FOUND,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_CONTENTS: Final = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
Method = Callable[[Any, Any], Awaitable[Any]]


async def serve(server: Server, host: str, port: int) -> aio.Server:
    """Returns a server that has started; the caller stops it."""
    service = _Service(server)
    handlers = {name: _handler(name, getattr(service, _snake(name))) for name in _METHODS}
    listener = aio.server(
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
            ("grpc.so_reuseport", 0),  # a port in use is an error, not a share of another's requests
        ]
    )
    listener.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    try:
        listener.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(f"cannot listen on port {port} for gRPC: {error}") from None
    await listener.start()
    return listener


_METHODS: Final = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _handler(name: str, method: Method) -> Any:
    async def call(request: Any, context: Any) -> Any:
        try:
            return await method(request, context)
        except ServingError as error:
            await context.abort(_CODES.get(error.status, grpc.StatusCode.INTERNAL), str(error))
        except NotImplementedError as error:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, str(error))
        except Exception as error:
            if isinstance(error, aio.AbortError):
                raise
            log.exception("%s", name)
            await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__} : {error}")

    return grpc.unary_unary_rpc_method_handler(
        call,
        request_deserializer=message(f"{name}Request").FromString,
        response_serializer=message(f"{name}Response").SerializeToString,
    )


class _Service:
    """One method for each of the protocol's."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def server_live(self, request: Any, context: Any) -> Any:
        return message("ServerLiveResponse")(live=True)

    async def server_ready(self, request: Any, context: Any) -> Any:
        return message("ServerReadyResponse")(ready=self._server.is_ready)

    async def model_ready(self, request: Any, context: Any) -> Any:
        return message("ModelReadyResponse")(ready=self._server.model(request.name).ready)

    async def server_metadata(self, request: Any, context: Any) -> Any:
        return message("ServerMetadataResponse")(**self._server.metadata())

    async def model_metadata(self, request: Any, context: Any) -> Any:
        model = self._server.model(request.name)
        types = {"inputs": model.input_types(), "outputs": model.output_types()}
        return message("ModelMetadataResponse")(name=model.name, **types)

    async def model_infer(self, request: Any, context: Any) -> Any:
        model = self._server.ready_model(request.model_name)
        headers = {name: value for name, value in context.invocation_metadata() or () if isinstance(value, str)}
        result = await self._server.run(model, "predict", decode(request), headers)
        if not isinstance(result, InferResponse):
            raise Unsupported(f"Model with name {model.name} does not answer in the v2 protocol.")
        return encode(result, raw=bool(request.raw_input_contents))


def decode(request: Any) -> InferRequest:
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise InvalidInput(f"{len(request.inputs)} inputs have {len(raw)} raw contents")
    if not request.inputs:
        raise InvalidInput("a request needs inputs")
    tensors = [_tensor(each, memoryview(raw[number]) if raw else None) for number, each in enumerate(request.inputs)]
    outputs = [{"name": each.name, "parameters": _parameters(each)} for each in request.outputs]
    return InferRequest(tensors, request.id, _parameters(request), outputs)


def _tensor(given: Any, raw: memoryview | None) -> Tensor:
    shape, name, datatype = list(given.shape), given.name, given.datatype
    check_shape(name, shape)
    if raw is not None:
        return Tensor(name, shape, datatype, unpack(name, datatype, shape, raw), _parameters(given))
    if datatype not in _CONTENTS:
        raise InvalidInput(f"input {name} has the datatype {datatype}, which has no typed contents")
    data = list(getattr(given.contents, _CONTENTS[datatype]))
    if datatype == "BYTES":
        data = [item.decode("utf-8", "replace") for item in data]
    return Tensor(name, shape, datatype, data, _parameters(given))


def _parameters(given: Any) -> dict[str, Any]:
    return {key: getattr(value, value.WhichOneof("parameter_choice")) for key, value in given.parameters.items()}


def encode(response: InferResponse, *, raw: bool) -> Any:
    answer = message("ModelInferResponse")(model_name=response.model_name, id=response.id)
    _set_parameters(answer, response.parameters)
    is_raw = raw or any(tensor.datatype not in _CONTENTS for tensor in response.outputs)
    for tensor in response.outputs:
        output = answer.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        _set_parameters(output, tensor.parameters)
        if is_raw:
            answer.raw_output_contents.append(pack(tensor))
        else:
            data = [str(item).encode() for item in tensor.data] if tensor.datatype == "BYTES" else tensor.data
            getattr(output.contents, _CONTENTS[tensor.datatype]).extend(data)
    return answer


def _set_parameters(answer: Any, parameters: dict[str, Any]) -> None:
    for key, value in parameters.items():
        if isinstance(value, bool):
            answer.parameters[key].bool_param = value
        elif isinstance(value, int):
            answer.parameters[key].int64_param = value
        else:
            answer.parameters[key].string_param = str(value)
