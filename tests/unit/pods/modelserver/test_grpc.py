"""The v2 protocol over gRPC: a real server, and grpcio as its client."""

from __future__ import annotations

import asyncio
import struct
import sys
from typing import Any

import grpc
import pytest
from grpc import aio
from tests.ports import free_port

from isvc.pods.modelserver import InferRequest, InferResponse, Model
from isvc.pods.modelserver.app import Server
from isvc.pods.modelserver.grpc_service import serve
from isvc.pods.modelserver.open_inference import SERVICE, message
from isvc.pods.modelserver.tensors import Tensor


class Echo(Model):
    """Answers with its inputs."""

    def predict(self, payload: Any, headers: Any) -> Any:
        assert isinstance(payload, InferRequest)
        if payload.parameters.get("fail"):
            raise RuntimeError("as asked")
        outputs = [Tensor(each.name, each.shape, each.datatype, each.data) for each in payload.inputs]
        return InferResponse(self.name, outputs, payload.id, {"heard": headers.get("say", "")})

    def input_types(self) -> list[dict[str, Any]]:
        return [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]


@pytest.fixture
async def call():
    echo, sleeping = Echo("echo"), Echo("sleeping")
    echo.load()
    port = free_port()
    server = await serve(Server([echo, sleeping], "1.0"), "127.0.0.1", port)
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)]) as channel:

        async def ask(method: str, metadata: tuple[tuple[str, str], ...] = (), **fields: Any) -> Any:
            rpc = channel.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=message(f"{method}Request").SerializeToString,
                response_deserializer=message(f"{method}Response").FromString,
            )
            return await rpc(message(f"{method}Request")(**fields), metadata=metadata, timeout=60, wait_for_ready=True)

        yield ask
    await server.stop(0)


async def refused(asking: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as caught:
        await asking
    return caught.value.code(), caught.value.details() or ""


async def test_health_and_metadata(call):
    assert (await call("ServerLive")).live
    assert not (await call("ServerReady")).ready  # one of its models is not
    assert (await call("ModelReady", name="echo")).ready
    assert not (await call("ModelReady", name="sleeping")).ready
    about = await call("ServerMetadata")
    assert (about.name, about.version, list(about.extensions)) == ("isvc-modelserver", "1.0", ["binary_tensor_data"])
    model = await call("ModelMetadata", name="echo")
    assert (model.name, model.inputs[0].name, list(model.inputs[0].shape)) == ("echo", "x", [-1, 4])


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("BOOL", "bool_contents", [True, False]),
        ("INT8", "int_contents", [-1, 127]),
        ("INT32", "int_contents", [-1, 2**31 - 1]),
        ("INT64", "int64_contents", [-1, 2**63 - 1]),
        ("UINT16", "uint_contents", [0, 65535]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("FP32", "fp32_contents", [0.5, -2.0]),
        ("FP64", "fp64_contents", [0.1, -2.0]),
        ("BYTES", "bytes_contents", [b"a", "ü".encode()]),
    ],
)
async def test_typed_contents_come_back_typed(call, datatype, field, values):
    given = {"name": "x", "datatype": datatype, "shape": [2], "contents": {field: values}}
    answer = await call("ModelInfer", (("say", "hello"),), model_name="echo", id="7", inputs=[given])
    assert (answer.id, answer.model_name, answer.parameters["heard"].string_param) == ("7", "echo", "hello")
    (output,) = answer.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("x", datatype, [2])
    assert list(getattr(output.contents, field)) == values
    assert not answer.raw_output_contents


@pytest.mark.parametrize(
    ("datatype", "shape", "raw"),
    [
        ("FP32", [2, 1], struct.pack("<2f", 1.5, -2)),
        ("FP16", [2], struct.pack("<2e", 1.5, -2)),
        ("INT64", [0], b""),
        ("BYTES", [2], b"\1\0\0\0a\0\0\0\0"),
    ],
)
async def test_raw_contents_come_back_raw(call, datatype, shape, raw):
    given = {"name": "x", "datatype": datatype, "shape": shape}
    answer = await call("ModelInfer", model_name="echo", inputs=[given], raw_input_contents=[raw])
    assert list(answer.raw_output_contents) == [raw]
    assert list(answer.outputs[0].shape) == shape


FP32 = {"name": "x", "datatype": "FP32", "shape": [2]}


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"model_name": "nobody"}, "NOT_FOUND", "Model with name nobody does not exist."),
        ({"model_name": "sleeping"}, "UNAVAILABLE", "not ready"),
        ({"model_name": "echo"}, "INVALID_ARGUMENT", "needs inputs"),
        ({"model_name": "echo", "inputs": [FP32], "raw_input_contents": [b"", b""]}, "INVALID_ARGUMENT", "2 raw"),
        ({"model_name": "echo", "inputs": [FP32], "raw_input_contents": [b"123"]}, "INVALID_ARGUMENT", "whole number"),
        ({"model_name": "echo", "inputs": [FP32], "raw_input_contents": [b"1234"]}, "INVALID_ARGUMENT", "1 elements"),
        (
            {"model_name": "echo", "inputs": [{**FP32, "datatype": "X"}], "raw_input_contents": [b""]},
            "INVALID_ARGUMENT",
            "unknown datatype X",
        ),
        ({"model_name": "echo", "inputs": [{**FP32, "datatype": "FP16"}]}, "INVALID_ARGUMENT", "no typed contents"),
        ({"model_name": "echo", "inputs": [{**FP32, "shape": [-1]}]}, "INVALID_ARGUMENT", "no valid shape"),
        (
            {"model_name": "echo", "inputs": [FP32], "parameters": {"fail": {"bool_param": True}}},
            "INTERNAL",
            "RuntimeError : as asked",
        ),
    ],
)
async def test_what_is_wrong_is_said_with_the_codes_of_grpc(call, fields, code, reason):
    got, said = await refused(call("ModelInfer", **fields))
    assert got.name == code
    assert reason in said


async def test_the_program_serves_both_on_ports_of_their_own(tmp_path):
    (tmp_path / "echo.py").write_text(
        "from isvc.pods.modelserver import Model\n\n\nclass Echo(Model):\n    def predict(self, payload, headers):\n"
        "        return {'predictions': []}\n"
    )
    http, over_grpc = free_port(), free_port()
    flags = [f"--http_port={http}", f"--grpc_port={over_grpc}", "--host=127.0.0.1"]
    command = [sys.executable, "-m", "isvc.pods.modelserver", "--model_class=echo.py:Echo", "--model_name=echo", *flags]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path)
    try:
        async with aio.insecure_channel(f"127.0.0.1:{over_grpc}", options=[("grpc.enable_http_proxy", 0)]) as channel:
            rpc = channel.unary_unary(
                f"/{SERVICE}/ServerReady", response_deserializer=message("ServerReadyResponse").FromString
            )
            assert (await rpc(b"", timeout=60, wait_for_ready=True)).ready
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 60) == 0
