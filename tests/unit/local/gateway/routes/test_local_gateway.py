"""The VirtualService that KServe makes in Knative mode, and Knative's Route behind it, in one gateway."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from isvc.controllers.inferenceservice.ingress.virtual_service import Exposure, Gateways, virtual_service
from isvc.kube.objects import Object
from isvc.local.knative.kinds import LOCAL_GATEWAY
from isvc.serving.hosts import service_host

EXPOSURE = Exposure(
    name="iris",
    namespace="default",
    backend="iris-predictor",
    explainer=None,
    host="iris-default.localhost",
    internal=False,
    path="/serving/default/iris",
    path_host="localhost",
)
LOCAL_HOST = service_host(LOCAL_GATEWAY.name, LOCAL_GATEWAY.namespace)
COMPONENT = "iris-predictor.default.svc.cluster.local"


async def echo(request: web.BaseRequest) -> web.Response:
    headers = {name: request.headers.get(name) for name in ("Host", "KServe-Isvc-Name", "Origin")}
    return web.Response(text=json.dumps({"path": request.path_qs, **headers}))


async def routed(gateway, *hosts: str) -> None:
    """The VirtualService of a service, and the route of its component for these hosts."""
    await gateway.virtual_service(virtual_service(EXPOSURE, Gateways("public", "local", LOCAL_HOST)))
    references: list[Object] = [{"name": "iris-predictor-00001", "port": 80}]
    await gateway.http_route(list(hosts), [{"backendRefs": references}])


@pytest.mark.parametrize(
    ("host", "path", "seen"),
    [
        ("localhost", "/serving/default/iris/v1/models/iris?a=b", "/v1/models/iris?a=b"),
        ("iris-default.localhost", "/v1/models/iris", "/v1/models/iris"),
        ("iris.default.svc.cluster.local", "/x", "/x"),
        (COMPONENT, "/x", "/x"),
    ],
)
async def test_a_component_is_reached_by_every_name_of_its_service(gateway, sites, host, path, seen):
    await gateway.service("iris-predictor-00001", (await sites(echo), True))
    await routed(gateway, COMPONENT)
    origin = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    said = json.loads(await (await gateway.session.get(path, headers={"Host": host, **origin})).text())
    assert (said["path"], said["Host"], said["Origin"]) == (seen, COMPONENT, f"http://{host}")
    assert said["KServe-Isvc-Name"] == (None if host == COMPONENT else "iris")


async def test_a_name_that_no_component_has_is_told(gateway):
    await routed(gateway, "other.default.svc.cluster.local")
    answer = await gateway.session.get("/", headers={"Host": "iris-default.localhost"})
    assert answer.status == 500
    assert (await answer.json())["error"] == "Service default/iris-predictor does not exist"


async def test_a_name_that_leads_back_is_refused(gateway):
    made = virtual_service(EXPOSURE, Gateways("public", "local", LOCAL_HOST))
    made["spec"]["hosts"].append(COMPONENT)
    for rule in made["spec"]["http"]:
        rule.pop("match")
    await gateway.virtual_service(made)
    answer = await gateway.session.get("/", headers={"Host": "localhost"})
    assert answer.status == 503
    assert f"leads to {COMPONENT}, which no Knative Service has" in (await answer.json())["error"]
