"""The URLs of a service in Standard mode: public by the domain or path template, inside the cluster by its Service."""

from __future__ import annotations

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.engine.outcome import Outcome
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import SERVICES
from isvc.serving.hosts import domain_name, is_hidden, service_host, url_path
from isvc.serving.workload.service import http_target_port


def entrance(planned: Planned) -> Object:
    """Returns the Service that requests go to first: the transformer's where there is one."""
    first = planned.deployed.get("transformer") or planned.deployed["predictor"]
    return next(child.manifest for child in first.children if child.resource == SERVICES)


def report_addresses(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    edit.fields["url"] = _public_url(observed, planned)
    wanted = entrance(planned)
    service = outcome.live(SERVICES, name_of(wanted)) or wanted
    host = service_host(name_of(wanted), observed.namespace)
    if dig(service, "spec", "clusterIP") == "None":
        host = f"{host}:{http_target_port(service)}"  # a headless Service does not translate ports
    edit.fields["address"] = {"url": f"http://{host}"}


def _public_url(observed: Observed, planned: Planned) -> str:
    settings = observed.config.ingress
    place = domain_name(observed.name, planned.service, settings)
    if settings.has_path_urls and not is_hidden(planned.service, settings):
        place = settings.ingress_domain + url_path(observed.name, observed.namespace, settings).removesuffix("/")
    return f"{settings.url_scheme}://{place}"
