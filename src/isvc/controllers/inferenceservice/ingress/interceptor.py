"""What leads requests through KEDA's interceptor, for components that are scaled by them.

Routes rewrite the host to the component's alias, so that the interceptor knows whom a request is for, or leave it as it
is where they cannot. Callers in the cluster use the alias itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned
from isvc.engine.plan import Child
from isvc.serving.hosts import is_hidden
from isvc.serving.thirdparty import HTTP_ROUTES, REFERENCE_GRANTS
from isvc.serving.workload.http_metric import alias, interceptor_route, reference_grant

REQUEST_SECONDS = 60
"""How long a request may take, where neither the service nor the configuration says anything else."""


class Routes(Protocol):
    """The part of `builders.Ingress` that matters here."""

    @property
    def KINDS(self) -> frozenset[object]: ...

    def unchanged_hosts(self, observed: Observed, planned: Planned) -> Mapping[str, Sequence[str]]: ...


def children(observed: Observed, planned: Planned, ingress: Routes) -> tuple[Child, ...]:
    return tuple(_children(observed, planned, ingress))


def _children(observed: Observed, planned: Planned, ingress: Routes) -> Iterator[Child]:
    interceptor = observed.config.autoscaler.interceptor
    hosts = ingress.unchanged_hosts(observed, planned)
    through = [each for each in planned.deployed.values() if each.metric is not None]
    for deployed in through:
        yield alias(deployed.component, interceptor)
        yield _route(observed, deployed, hosts.get(deployed.component.name, ()))
    exposed = HTTP_ROUTES in ingress.KINDS and not is_hidden(planned.service, observed.config.ingress)
    elsewhere = interceptor.namespace != observed.namespace
    if through and exposed and elsewhere and REFERENCE_GRANTS in observed.served:
        yield reference_grant(observed.namespace, interceptor)


def _route(observed: Observed, deployed: Deployed, hosts: Sequence[str]) -> Child:
    assert deployed.metric is not None
    unlimited = observed.config.ingress.disable_http_route_timeout
    timeout = None if unlimited else request_seconds(observed, deployed.kind)
    return interceptor_route(deployed.component, deployed.metric, deployed.service, hosts, timeout)


def request_seconds(observed: Observed, kind: str) -> int:
    """Returns how long a request to a component may take once there is a pod for it."""
    spec = getattr(observed.service.spec, kind)
    return REQUEST_SECONDS if spec.timeout is None else int(spec.timeout)
