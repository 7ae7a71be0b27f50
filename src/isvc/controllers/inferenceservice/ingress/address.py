"""The URLs of a service in Standard mode: public by the domain template, inside the cluster by its Service."""

from __future__ import annotations

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.engine.outcome import Outcome
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import SERVICES
from isvc.serving.hosts import domain_name, service_host
from isvc.serving.workload.service import http_target_port


def entrance(planned: Planned) -> Object:
    """The Service that requests go to first: the transformer's where there is one."""
    first = planned.deployed.get("transformer") or planned.deployed["predictor"]
    return next(child.manifest for child in first.children if child.resource == SERVICES)


def report_addresses(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    settings = observed.config.ingress
    edit.fields["url"] = f"{settings.url_scheme}://{domain_name(observed.name, planned.service, settings)}"
    wanted = entrance(planned)
    service = outcome.live(SERVICES, name_of(wanted)) or wanted
    host = service_host(name_of(wanted), observed.namespace)
    if dig(service, "spec", "clusterIP") == "None":
        host = f"{host}:{http_target_port(service)}"  # a headless Service does not translate ports
    edit.fields["address"] = {"url": f"http://{host}"}
