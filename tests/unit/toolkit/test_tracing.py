"""Traces as a collector gets them, their spans read with OpenTelemetry's own messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from aiohttp import web
from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2
from tests.waiting import until

from isvc.kube.errors import ServiceUnavailable
from isvc.kube.objects import Key
from isvc.toolkit.client.transport import Answered
from isvc.toolkit.controller import Controller, Result
from isvc.toolkit.reconciling import CURRENT, note_answer
from isvc.toolkit.tracing import Collector, Tracer

Span: Any = vars(trace_pb2)["Span"]  # made when the module is imported, where no type checker sees it


@pytest.fixture
async def received(unused_port: int) -> AsyncIterator[list[tuple[str, bytes]]]:
    requests: list[tuple[str, bytes]] = []

    async def take(request: web.Request) -> web.Response:
        requests.append((request.headers.get("x-key", ""), await request.read()))
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_port).start()
    yield requests
    await runner.cleanup()


@pytest.fixture
def unused_port() -> int:
    from tests.ports import free_port

    return free_port()


async def work_off(controller: Controller, tracer: Tracer, *keys: Key) -> None:
    controller._tracer = tracer
    for key in keys:
        await controller._reconcile_once(key)


async def test_a_reconcile_and_its_requests_are_one_trace(received, unused_port):
    ids = []

    async def reconcile(key: Key) -> Result | None:
        reconciling = CURRENT.get()
        assert reconciling is not None
        ids.append(reconciling.id)
        note_answer(Answered("PATCH", "/apis/apps/v1/namespaces/models/deployments/iris?x=1", 200, 0.25, 1000.5))
        if key.name == "broken":
            raise ServiceUnavailable("not now")
        return None

    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{unused_port}/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b",
    }
    collector = Collector.of_environment(environment)
    assert collector is not None
    tracer = Tracer(collector, "isvc-manager")
    await tracer.start()
    await work_off(
        Controller("inferenceservice", reconcile, ()), tracer, Key("models", "iris"), Key("models", "broken")
    )
    await tracer.stop()
    [(key, body)] = received
    assert key == "a b"
    [resource] = orjson.loads(body)["resourceSpans"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "isvc-manager"}}]
    [scope] = resource["scopeSpans"]
    first, request, second, _ = (json_format.ParseDict(each, Span()) for each in scope["spans"])
    assert (first.name, request.name) == (
        "reconcile inferenceservice",
        "PATCH /apis/apps/v1/namespaces/models/deployments",
    )
    assert request.trace_id == first.trace_id != second.trace_id
    assert request.parent_span_id == first.span_id
    assert (request.start_time_unix_nano, request.end_time_unix_nano) == (1000_250_000_000, 1000_500_000_000)
    said = {each.key: each.value.string_value for each in first.attributes}
    assert said == {
        "controller": "inferenceservice",
        "k8s.namespace.name": "models",
        "k8s.object.name": "iris",
        "result": "success",
    }
    assert (first.status.code, second.status.code) == (0, 2)
    assert ids[0].replace("-", "").encode() in body


async def test_a_collector_that_does_not_answer_holds_nothing_up(unused_port, caplog, monkeypatch):
    monkeypatch.setattr("isvc.toolkit.tracing.PERIOD", 0.01)

    async def reconcile(key: Key) -> Result | None:
        return None

    tracer = Tracer(Collector(f"http://127.0.0.1:{unused_port}/v1/traces"), "isvc-manager")
    await tracer.start()
    controller = Controller("inferenceservice", reconcile, ())
    await work_off(controller, tracer, Key("models", "iris"))
    await until(lambda: "cannot be sent" in caplog.text, "it says so")
    await work_off(controller, tracer, Key("models", "iris"))
    await asyncio.wait_for(tracer.stop(), 30)
    assert caplog.text.count("cannot be sent") == 1


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/own"}, "http://c/own"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None),
    ],
)
def test_where_traces_go_is_what_opentelemetrys_variables_say(environment, url):
    collector = Collector.of_environment(environment)
    assert (collector and collector.url) == url
