"""Questions and answers of Envoy's external processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.types import AGAIN, AGAIN_HEADER, ENDPOINT_HEADER, HELD, METADATA, MOVED_HEADER
from isvc.local.gateway.names import host_and_port
from isvc.local.gateway.routes.rules import Refusal

__all__ = ["ProcessingRequest", "ProcessingResponse", "Question", "echo", "go_on", "refuse", "route_again", "show"]

_GRPC_CODES: Final = {400: 13, 403: 7, 404: 12, 500: 13, 502: 14, 503: 14, 504: 4}
_UNKNOWN: Final = 2


@dataclass(frozen=True, slots=True)
class Question:
    """A request that Envoy asks about, by its headers."""

    host: str
    port: int
    method: str
    path: str  # without its query
    about: str  # the cluster that it is on its way to, or what else is asked
    is_second: bool  # whether it is routed for the second time
    has_body: bool

    @classmethod
    def of(cls, asked: ProcessingRequest, about: str) -> Question:
        headers = {each.key: each.raw_value.decode("latin-1") for each in asked.request_headers.headers.headers}
        host, port = host_and_port(headers.get(":authority", ""))
        return cls(
            host,
            port,
            headers.get(":method", ""),
            headers.get(":path", "").partition("?")[0],
            about,
            AGAIN_HEADER in headers,
            not asked.request_headers.end_of_stream,
        )


def refuse(refusal: Refusal) -> ProcessingResponse:
    """Returns an answer in place of a service's; Envoy puts the reason into the form that the client expects."""
    grpc_status = {"status": _GRPC_CODES.get(refusal.status, _UNKNOWN)}
    return ProcessingResponse(
        immediate_response={
            "status": {"code": refusal.status},
            "body": refusal.reason.encode(),
            "grpc_status": grpc_status,
            "details": "refused",
        }
    )


def show(body: bytes, content_type: str) -> ProcessingResponse:
    """Returns an answer with this body."""
    header = {"header": {"key": "content-type", "raw_value": content_type.encode()}}
    return ProcessingResponse(
        immediate_response={"status": {"code": 200}, "body": body, "headers": {"set_headers": [header]}}
    )


def go_on(endpoints: Sequence[Endpoint] = ()) -> ProcessingResponse:
    """Returns the permission to go on, to these endpoints if any are named: the first of them that is there."""
    answer = ProcessingResponse(request_headers={})
    answer.dynamic_metadata[METADATA] = {HELD: True}
    if endpoints:
        named = ",".join(map(str, endpoints))
        answer.dynamic_metadata["envoy.lb"] = {ENDPOINT_HEADER: named}
        header = {"header": {"key": ENDPOINT_HEADER, "raw_value": named.encode()}}
        answer.request_headers.response.header_mutation.set_headers.add(**header)
    return answer


def route_again() -> ProcessingResponse:
    """Returns the permission to go on to Envoy itself, which knows another route by now."""
    answer = go_on()
    answer.dynamic_metadata[METADATA][AGAIN] = True
    answer.request_headers.response.clear_route_cache = True
    header = {"header": {"key": MOVED_HEADER, "raw_value": b"1"}}
    answer.request_headers.response.header_mutation.set_headers.add(**header)
    return answer


def echo(asked: ProcessingRequest) -> ProcessingResponse:
    """Returns the answer that leaves a part of a request or an answer as it is."""
    match asked.WhichOneof("request"):
        case "request_body":
            part = {"body": asked.request_body.body, "end_of_stream": asked.request_body.end_of_stream}
            return ProcessingResponse(request_body={"response": {"body_mutation": {"streamed_response": part}}})
        case "request_trailers":
            return ProcessingResponse(request_trailers={})
        case "response_headers":
            return ProcessingResponse(response_headers={})
        case "response_trailers":
            return ProcessingResponse(response_trailers={})
        case _:
            return ProcessingResponse(request_headers={})
