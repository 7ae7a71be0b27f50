"""The URLs of a service in Standard mode: public by the domain or path template, inside the cluster by its Service."""

from __future__ import annotations

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.engine.outcome import Outcome
from isvc.kube.objects import dig, name_of
from isvc.kube.resource import SERVICES
from isvc.serving import names
from isvc.serving.hosts import public_place, service_host
from isvc.serving.workload.service import http_target_port


def report_addresses(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    edit.fields["url"] = _public_url(observed, planned)
    edit.fields["address"] = {"url": f"http://{_internal_host(observed, planned, outcome)}"}


def _internal_host(observed: Observed, planned: Planned, outcome: Outcome) -> str:
    """Returns the host for callers in the cluster, through the interceptor where somebody has to wake the component."""
    first = planned.entrance
    if first.metric is not None:
        alias = names.interceptor_alias(first.component.name)
        return f"{service_host(alias, observed.namespace)}:{observed.config.autoscaler.interceptor.port}"
    wanted = first.service
    service = outcome.live(SERVICES, name_of(wanted)) or wanted
    host = service_host(name_of(wanted), observed.namespace)
    if dig(service, "spec", "clusterIP") == "None":
        return f"{host}:{http_target_port(service)}"  # a headless Service does not translate ports
    return host


def _public_url(observed: Observed, planned: Planned) -> str:
    settings = observed.config.ingress
    return f"{settings.url_scheme}://{public_place(observed.name, planned.service, settings)}"
