"""Routes through KEDA's interceptor, which is the laptop's gateway: they lead to whom an InterceptorRoute names."""

from __future__ import annotations

from isvc.kube.objects import Key, Object
from isvc.local.gateway.routes.table import RouteTable

ALIAS = "iris-predictor-interceptor.ns.svc.cluster.local"
PROXY = {"name": "keda-add-ons-http-interceptor-proxy", "namespace": "keda", "port": 8080}
INTERCEPTED: Object = {
    "metadata": {"name": "iris-predictor", "namespace": "ns"},
    "spec": {"target": {"service": "iris-predictor", "port": 80}, "rules": [{"hosts": [ALIAS, "iris.example.com"]}]},
}


def http_route(*backends: Object) -> Object:
    rewrite = {"type": "URLRewrite", "urlRewrite": {"hostname": ALIAS}}
    rule = {"backendRefs": list(backends), "filters": [rewrite], "timeouts": {"request": "660s"}}
    return {"metadata": {"name": "iris", "namespace": "ns"}, "spec": {"rules": [rule]}}


def table(*backends: Object) -> RouteTable:
    made = RouteTable()
    made.put_interceptor_route(Key("ns", "iris-predictor"), INTERCEPTED)
    made.put_http_route(Key("ns", "iris"), http_route(*backends), ["iris.localhost"])
    return made


def test_a_route_to_the_interceptor_leads_to_the_service_and_keeps_its_timeout() -> None:
    [rule] = table(PROXY).rules("iris.localhost")
    assert [(each.namespace, each.service, each.port) for each in rule.backends] == [("ns", "iris-predictor", 80)]
    assert rule.spec["timeouts"] == {"request": "660s"}


def test_a_canary_beside_it_keeps_its_share() -> None:
    [rule] = table({**PROXY, "weight": 90}, {"name": "iris-next", "port": 80, "weight": 10}).rules("iris.localhost")
    assert {each.service: each.weight for each in rule.backends} == {"iris-predictor": 90, "iris-next": 10}


def test_the_alias_itself_leads_there_and_so_does_the_host_of_an_ingress() -> None:
    made = table(PROXY)
    backend = {"service": {"name": "iris-predictor-interceptor", "port": {"number": 8080}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"rules": [{"host": "iris.example.com", "http": {"paths": paths}}]}
    made.put_ingress(Key("ns", "iris"), {"metadata": {"name": "iris", "namespace": "ns"}, "spec": spec})
    for host in (ALIAS, "iris.example.com"):
        assert made.rules(host)[0].backends[0].service == "iris-predictor"


def test_where_no_interceptor_route_is_left_the_reason_is_told() -> None:
    made = table(PROXY)
    made.put_interceptor_route(Key("ns", "iris-predictor"), None)
    [rule] = made.rules("iris.localhost")
    assert rule.backends[0].service == "iris-predictor-interceptor"  # which the gateway says has no port
