"""What besides plain requests goes through the gateway of `isvc up`, as clients of other protocols see it."""

from __future__ import annotations

import json
import struct
from typing import Any

import grpc
from tests.up.machine import Machine, until
from websockets.sync.client import connect

from isvc.pods.modelserver.open_inference import SERVICE, message


def test_http2_reaches_a_model_as_http1_does(here):
    here.apply(here.example("iris.yaml"))
    here.wait_ready("iris")
    url = here.get("isvc", "iris")["status"]["url"] + "/v1/models/iris:predict"
    flags = ("-sS", "-w", " %{http_version}", "-d", "@examples/iris-input.json")
    for protocol, version in (("--http1.1", "1.1"), ("--http2-prior-knowledge", "2")):
        assert here.run("curl", protocol, *flags, url) == f'{{"predictions":[0,1,2]}} {version}'
    secure = json.loads((here.home / "run" / "up.json").read_text())["gateway_tls"]
    port = secure.rpartition(":")[2]
    host = f"iris-{here.namespace}.localhost"
    trust = ("--cacert", str(here.home / "tls" / "ca.crt"), "--resolve", f"{host}:{port}:127.0.0.1")
    url = f"https://{host}:{port}/v1/models/iris:predict?token=secret"
    assert here.run("curl", *trust, *flags, url) == '{"predictions":[0,1,2]} 2'
    log = here.home.parent / "access.log"
    until(lambda: '"POST /v1/models/iris:predict HTTP/2" 200' in log.read_text(), "the request in the log")
    assert "secret" not in log.read_text()
    gateway = here.gateway
    counted = here.run("curl", "-sS", f"{gateway}/-/metrics")
    assert f'isvc_gateway_requests_total{{code="200",service="{here.namespace}/iris-predictor"}}' in counted
    here.kubectl("delete", "isvc", "iris")


def test_a_server_that_speaks_websocket(here):
    here.apply(here.example("websocket.yaml"))
    here.wait_ready("echo")
    url = here.get("isvc", "echo")["status"]["url"].replace("http://", "ws://")
    with connect(url, proxy=None) as socket:
        for message in ("hello", "again"):
            socket.send(message)
            assert socket.recv(60) == message.upper()
    here.kubectl("delete", "-f", "examples/websocket.yaml")


ROUTES = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved}
spec:
  parentRefs: [{name: kserve-ingress-gateway, namespace: kserve}]
  hostnames: [moved.localhost]
  rules:
    - matches: [{path: {type: PathPrefix, value: /old}, headers: [{name: version, value: "2"}]}]
      filters:
        - type: RequestRedirect
          requestRedirect: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}, statusCode: 301}
    - backendRefs: [{name: nobody, port: 80}]
      retry: {attempts: 1, codes: [503], backoff: 1ms}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: moved}
spec:
  hosts: [virtual.localhost]
  http: [{redirect: {uri: /elsewhere}}]
"""


def head_of(here: Machine, path: str, host: str, *headers: str) -> str:
    gateway = here.gateway
    flags = [word for header in (f"Host: {host}", *headers) for word in ("-H", header)]
    return here.run("curl", "-sS", "-i", *flags, gateway + path)


def test_routes_of_both_kinds_are_served(here):
    here.apply(ROUTES)
    until(
        lambda: "location: http://virtual.localhost/elsewhere" in head_of(here, "/", "virtual.localhost").lower(), "vs"
    )
    until(
        lambda: f"Service {here.namespace}/nobody does not exist" in head_of(here, "/old", "moved.localhost"), "a rule"
    )
    assert "location: http://moved.localhost/new/x" in head_of(here, "/old/x", "moved.localhost", "Version: 2")
    [parent] = here.get("httproute", "moved")["status"]["parents"]
    assert {each["type"]: each["status"] for each in parent["conditions"]} == {
        "Accepted": "True",
        "ResolvedRefs": "False",
    }
    here.kubectl("delete", "httproute/moved", "virtualservice/moved")


def test_a_model_over_grpc(here):
    here.apply(here.example("grpc.yaml"))
    here.wait_ready("iris-grpc")
    gateway = here.gateway.removeprefix("http://")
    options = (("grpc.default_authority", f"iris-grpc-{here.namespace}.{gateway}"), ("grpc.enable_http_proxy", 0))
    row = struct.pack("<4f", 6.8, 2.8, 4.8, 1.4)
    with grpc.insecure_channel(gateway.replace("localhost", "127.0.0.1"), options) as channel:

        def ask(method: str, **fields: object) -> Any:
            rpc = channel.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=message(f"{method}Request").SerializeToString,
                response_deserializer=message(f"{method}Response").FromString,
            )
            return rpc(message(f"{method}Request")(**fields), timeout=60, wait_for_ready=True)

        assert ask("ServerReady").ready
        inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 4]}]
        answer = ask("ModelInfer", model_name="iris-grpc", inputs=inputs, raw_input_contents=[row])
        assert list(answer.raw_output_contents) == [struct.pack("<q", 1)]
    here.kubectl("delete", "-f", "examples/grpc.yaml")
