"""InferencePools that name an endpoint picker: a real one is asked, by the protocol of the inference extension."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from grpc import aio
from tests.ports import free_port
from tests.unit.local.gateway.raw import named

from isvc.kube.objects import Key, Object
from isvc.kube.resource import PODS, SERVICES
from isvc.local.gateway.routes.rules import Target
from isvc.local.node.pods.ports import PORTS_ANNOTATION
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2
from isvc.wire.x509.issue import issue_authority, issue_serving

HEADER = "x-gateway-destination-endpoint"
PLAIN = {"appProtocol": "kubernetes.io/h2c"}


class Picker(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Names an endpoint for each request when it has seen all of it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.bodies: list[bytes] = []

    def service(self, details: Any) -> Any:
        assert details.method == "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
        return grpc.stream_stream_rpc_method_handler(
            self.process,
            request_deserializer=ProcessingRequest.FromString,
            response_serializer=ProcessingResponse.SerializeToString,
        )

    async def process(self, requests: AsyncIterator[ProcessingRequest], context: Any) -> AsyncIterator[object]:
        body = b""
        async for asked in requests:
            match asked.WhichOneof("request"):
                case "request_body":
                    body += asked.request_body.body
                    if asked.request_body.end_of_stream:
                        self.bodies.append(body)
                        yield self.choice()
                        yield streamed("request_body", body)
                case "response_headers":
                    yield ProcessingResponse(response_headers={})
                case "response_body":
                    part = asked.response_body
                    yield streamed("response_body", part.body, is_last=part.end_of_stream)
                case "response_trailers":
                    yield ProcessingResponse(response_trailers={})

    def choice(self) -> ProcessingResponse:
        answer = ProcessingResponse(request_headers={})
        answer.dynamic_metadata["envoy.lb"] = {HEADER: self.endpoint}
        header = {"header": {"key": HEADER, "raw_value": self.endpoint.encode()}}
        answer.request_headers.response.header_mutation.set_headers.add(**header)
        return answer


def streamed(part: str, body: bytes, *, is_last: bool = True) -> ProcessingResponse:
    mutation = {"body_mutation": {"streamed_response": {"body": body, "end_of_stream": is_last}}}
    return ProcessingResponse(**{part: {"response": mutation}})


@asynccontextmanager
async def listening(picker: Picker, credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[int]:
    server = aio.server()
    server.add_generic_rpc_handlers((picker,))
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def pod(name: str, port: int) -> Object:
    annotations = {PORTS_ANNOTATION: f'{{"8000": {port}}}'}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "llm"}, "annotations": annotations}
    return {"metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def serve_pool(gateway, sites, mode: str, resource=INFERENCE_POOLS) -> list[int]:
    """Returns the ports of the two pods of a pool that has `picker` as its picker."""
    ports = [await sites(named("first")), await sites(named("second"))]
    for name, port in zip(("first", "second"), ports, strict=True):
        gateway.put(PODS, pod(name, port))
    metadata = {"name": "pool", "namespace": "default"}
    if resource == INFERENCE_POOLS:
        picker: Object = {"endpointPickerRef": {"name": "picker", "port": {"number": 80}, "failureMode": mode}}
        spec = {"selector": {"matchLabels": {"app": "llm"}}, "targetPorts": [{"number": 8000}], **picker}
    else:
        picker = {"extensionRef": {"name": "picker", "portNumber": 80, "failureMode": mode}}
        spec = {"selector": {"app": "llm"}, "targetPortNumber": 8000, **picker}
    gateway.put(resource, {"metadata": metadata, "spec": spec})
    gateway.gateway.backends.mark_changed(Target(Key("default", "pool"), resource))
    reference = {"group": resource.group, "kind": resource.kind, "name": "pool"}
    await gateway.http_route(["h.test"], [{"backendRefs": [reference]}])
    return ports


async def asked(gateway, times: int = 6) -> set[tuple[int, str]]:
    answers = [await gateway.session.post("/v1/completions", data=b"{}") for _ in range(times)]
    return {(answer.status, await answer.text()) for answer in answers}


@pytest.fixture(autouse=True)
def _clean(gateway):
    yield
    for resource in (PODS, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2):
        for key in gateway.all_keys(resource):
            gateway.remove(resource, key.name, key.namespace)
            if resource != PODS:
                gateway.gateway.backends.mark_changed(Target(key, resource))


@pytest.mark.parametrize("resource", [INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2], ids=["v1", "v1alpha2"])
async def test_requests_go_where_the_picker_of_their_pool_says(gateway, sites, resource):
    picker = Picker("")
    async with listening(picker) as port:
        await gateway.service("picker", (port, True), **PLAIN)
        ports = await serve_pool(gateway, sites, "FailClose", resource)
        for name, endpoint in zip(("first", "second"), ports, strict=True):
            picker.endpoint = f"127.0.0.1:{endpoint}"
            assert await asked(gateway) == {(200, name)}
    assert picker.bodies == [b"{}"] * 12


async def test_a_picker_has_tls_unless_its_port_says_otherwise(gateway, sites):
    now = datetime.now(UTC)
    pair = issue_serving(issue_authority("nobody", now), ("picker",), now, timedelta(days=1))
    picker = Picker("")
    async with listening(picker, grpc.ssl_server_credentials([(pair.key, pair.certificate)])) as port:
        await gateway.service("picker", (port, True))
        picker.endpoint = f"127.0.0.1:{(await serve_pool(gateway, sites, 'FailClose'))[1]}"
        assert await asked(gateway) == {(200, "second")}


async def test_without_an_answer_a_request_fails_or_goes_to_any_endpoint_as_the_pool_says(gateway, sites):
    await gateway.service("picker", (free_port(), True), **PLAIN)
    await serve_pool(gateway, sites, "FailClose")
    [(status, text)] = await asked(gateway)
    assert status == 503
    assert "the endpoint picker of default/pool does not answer" in text
    await serve_pool(gateway, sites, "FailOpen")
    assert (await gateway.session.get("/v1/models")).status == 200  # with a body Envoy cannot: it has sent that away
    await gateway.service("picker", **PLAIN)
    assert {status for status, _ in await asked(gateway)} == {200}


async def test_the_gateway_picks_where_the_picker_is_its_own_or_not_there(gateway, sites):
    await serve_pool(gateway, sites, "FailClose")
    assert {status for status, _ in await asked(gateway)} == {200}
    await gateway.service("picker", (free_port(), True), **PLAIN)
    assert {status for status, _ in await asked(gateway)} == {503}
    service = gateway.get(SERVICES, "picker", "default")
    owners = [{"kind": "LLMInferenceService", "name": "llm"}]
    gateway.put(SERVICES, {**service, "metadata": {**service["metadata"], "ownerReferences": owners}})
    gateway.gateway.backends.mark_changed(Target(Key("default", "picker")))
    await gateway.published()
    assert {status for status, _ in await asked(gateway)} == {200}
