"""A Kubernetes Ingress: one host for the service, one for each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isvc.controllers.inferenceservice.ingress.address import report_addresses
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import INGRESS, Planned
from isvc.controllers.inferenceservice.status.edit import INGRESS_READY, STOPPED, Readiness, StatusEdit
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Answer, Child, Hold, Part, Retire, Want
from isvc.engine.policies import SPEC
from isvc.kube.conditions import TRUE
from isvc.kube.objects import Object, annotations_of
from isvc.kube.resource import INGRESSES, Resource
from isvc.serving import names
from isvc.serving.config.sections import IngressConfig
from isvc.serving.hosts import domain_name, is_hidden, without_port
from isvc.serving.workload.service import PORT

KINDS: Final[frozenset[Resource]] = frozenset({INGRESSES})


def is_chosen(settings: IngressConfig) -> bool:
    return True  # where nothing else is configured


def unchanged_hosts(observed: Observed, planned: Planned) -> Mapping[str, Sequence[str]]:
    """An Ingress can neither rewrite a host nor lead to another namespace: its hosts reach the interceptor as such."""
    if is_hidden(planned.service, observed.config.ingress):
        return {}
    found: dict[str, list[str]] = {}
    for host, component in _targets(observed, planned):
        found.setdefault(component, []).append(host)
    return found


def plan(observed: Observed, planned: Planned, readiness: Readiness) -> tuple[Part, ...]:
    return (Part(INGRESS, _answer(observed, planned, readiness), KINDS),)


def _answer(observed: Observed, planned: Planned, readiness: Readiness) -> Answer:
    if observed.stopped or is_hidden(planned.service, observed.config.ingress):
        return Retire("not exposed")
    if waiting := _waiting_for(observed, readiness):
        return Hold(f"{waiting} ingress not created", "")
    return Want((Child(INGRESSES, _ingress(observed, planned), policy=SPEC),))


def fold(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    conditions = edit.conditions
    if observed.stopped:
        if (INGRESSES, observed.name) in observed.live:
            conditions.mark_false(INGRESS_READY, STOPPED)
        return
    hidden = is_hidden(planned.service, observed.config.ingress)
    if not hidden and (waiting := _waiting_for(observed, edit.readiness())):
        conditions.mark_false(INGRESS_READY, f"{waiting} ingress not created")
        return
    report_addresses(edit, observed, planned, outcome)
    conditions.mark_true(INGRESS_READY)


def _waiting_for(observed: Observed, readiness: Readiness) -> str:
    """Returns the component that has to be ready before an Ingress makes sense, if it is not."""
    spec = observed.service.spec
    needed = [names.PREDICTOR]
    if spec.transformer is not None:
        needed.append(names.TRANSFORMER)
    elif spec.explainer is not None:
        needed.append(names.EXPLAINER)
    return next((kind.title() for kind in needed if readiness[kind].status != TRUE), "")


def _ingress(observed: Observed, planned: Planned) -> Object:
    spec: Object = {"rules": _rules(observed, planned)}
    if observed.config.ingress.ingress_class_name is not None:
        spec["ingressClassName"] = observed.config.ingress.ingress_class_name
    return INGRESSES.manifest(
        {"name": observed.name, "namespace": observed.namespace, "annotations": dict(annotations_of(observed.raw))},
        spec=spec,
    )


def _rules(observed: Observed, planned: Planned) -> list[Object]:
    through = {each.component.name for each in planned.deployed.values() if each.metric is not None}
    port = observed.config.autoscaler.interceptor.port
    return [
        _rule(host, names.interceptor_alias(component), port) if component in through else _rule(host, component, PORT)
        for host, component in _targets(observed, planned)
    ]


def _targets(observed: Observed, planned: Planned) -> list[tuple[str, str]]:
    """Returns each host, and the component that it leads to."""

    def host(name: str) -> str:
        return without_port(domain_name(name, planned.service, observed.config.ingress))

    spec = observed.service.spec
    predictor = names.predictor(observed.name, spec.predictor.name)
    transformer, explainer = names.transformer(observed.name), names.explainer(observed.name)
    if spec.transformer is not None and spec.explainer is not None:
        targets = [(host(explainer), explainer), (host(observed.name), transformer), (host(transformer), transformer)]
    elif spec.transformer is not None:
        # Without an explainer KServe sends the transformer's own host to the predictor, and clients rely on it.
        targets = [(host(observed.name), transformer), (host(transformer), predictor)]
    elif spec.explainer is not None:
        targets = [(host(observed.name), predictor), (host(explainer), explainer)]
    else:
        targets = [(host(observed.name), predictor)]
    return [*targets, (host(predictor), predictor)]


def _rule(host: str, service: str, port: int) -> Object:
    backend = {"service": {"name": service, "port": {"number": port}}}
    return {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
