"""Knative mode's ingress: an Istio VirtualService in front of the components, or what Knative itself offers.

The service's URL is derived from the URL that Knative gave to its first component in line. Once that is known, the
ingress counts as ready, also while a component behind it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from isvc.controllers.inferenceservice.ingress.virtual_service import Exposure, Gateways, virtual_service
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import ALIAS, INGRESS, Planned
from isvc.controllers.inferenceservice.status.edit import INGRESS_READY, STOPPED, Readiness, StatusEdit
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Answer, Child, Hold, Part, Retire, Want
from isvc.engine.policies import SPEC_AND_METADATA
from isvc.kube.conditions import FALSE, TRUE, UNKNOWN
from isvc.kube.objects import labels_of
from isvc.kube.resource import SERVICES, Resource
from isvc.serving import knative, names
from isvc.serving.config import CONFIG_MAP
from isvc.serving.config.sections import IngressConfig
from isvc.serving.hosts import additional_hosts, service_host, url_path
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import VIRTUAL_SERVICES
from isvc.serving.workload.service import external_name

KINDS: Final[frozenset[Resource]] = frozenset({VIRTUAL_SERVICES})


def is_chosen(settings: IngressConfig) -> bool:
    return True


def unchanged_hosts(observed: Observed, planned: Planned) -> Mapping[str, Sequence[str]]:
    return {}  # Knative has an activator of its own


def plan(observed: Observed, planned: Planned, readiness: Readiness) -> tuple[Part, ...]:
    gateway = observed.config.ingress.local_gateway_service
    if _virtual_host(observed) and not gateway:
        raise Refused(
            f"{CONFIG_MAP}: ingress.localGatewayService is required in the deployment mode Knative",
            remedy="set it in the ConfigMap, or disableIstioVirtualHost to true if Istio is not used",
        )
    alias = external_name({"name": observed.name, "namespace": observed.namespace}, gateway)
    wanted = Want((alias,)) if _virtual_host(observed) else Retire("no virtual host")
    return (
        Part(INGRESS, _route(observed, planned, readiness), KINDS),
        Part(ALIAS, wanted, frozenset({SERVICES}), frozenset({observed.name})),
    )


def fold(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    if observed.stopped:
        edit.mark(INGRESS_READY, FALSE, STOPPED)
        return
    readiness = edit.readiness()
    if not readiness[_first(observed)].url:
        if VIRTUAL_SERVICES in observed.served and (waiting := _waiting_for(observed, readiness)):
            edit.mark(INGRESS_READY, *waiting)
        return
    edit.fields["url"] = _public_url(observed, edit)
    host = observed.name if not observed.config.ingress.disable_istio_virtual_host else _backend(observed)
    edit.fields["address"] = {"url": f"http://{service_host(host, observed.namespace)}"}
    edit.mark(INGRESS_READY, TRUE)


def _virtual_host(observed: Observed) -> bool:
    return not observed.stopped and not observed.config.ingress.disable_istio_virtual_host


def _route(observed: Observed, planned: Planned, readiness: Readiness) -> Answer:
    if VIRTUAL_SERVICES not in observed.served:
        return Hold("NoVirtualServices", "Istio is not installed")
    if not _virtual_host(observed):
        return Retire("no virtual host")
    if waiting := _waiting_for(observed, readiness):
        return Hold(waiting[1], "")
    settings = observed.config.ingress
    gateways = Gateways(settings.ingress_gateway, settings.local_gateway, settings.knative_local_gateway_service)
    manifest = virtual_service(_exposure(observed, planned, readiness), gateways)
    return Want((Child(VIRTUAL_SERVICES, manifest, policy=SPEC_AND_METADATA),))


def _waiting_for(observed: Observed, readiness: Readiness) -> tuple[str, str] | None:
    """Returns the first component that is not ready, as a status and a reason for the ingress."""
    for kind in (names.PREDICTOR, names.TRANSFORMER, names.EXPLAINER):
        if getattr(observed.service.spec, kind) is not None and (status := readiness[kind].status) != TRUE:
            return (UNKNOWN if status == UNKNOWN else FALSE), f"{kind.title()} ingress not created"
    return None


def _exposure(observed: Observed, planned: Planned, readiness: Readiness) -> Exposure:
    settings = observed.config.ingress
    labels = labels_of(planned.service)
    host = _host(observed, readiness)
    internal = service_host(observed.name, observed.namespace)
    hidden = labels.get(knative.VISIBILITY_LABEL) == knative.CLUSTER_LOCAL or host == internal
    return Exposure(
        name=observed.name,
        namespace=observed.namespace,
        backend=_backend(observed),
        explainer=names.explainer(observed.name) if observed.service.spec.explainer is not None else None,
        host=host,
        internal=hidden,
        additional_hosts=() if hidden else additional_hosts(host, settings, observed.knative_domains),
        path=url_path(observed.name, observed.namespace, settings) if settings.path_template else None,
        path_host=settings.ingress_domain,
        labels=labels,
        annotations=knative.checked_initial_scale(observed.annotations, observed.allows_zero_initial_scale),
    )


def _first(observed: Observed) -> str:
    return names.TRANSFORMER if observed.service.spec.transformer is not None else names.PREDICTOR


def _backend(observed: Observed) -> str:
    """Returns the component that requests go to first."""
    if _first(observed) == names.TRANSFORMER:
        return names.transformer(observed.name)
    return names.predictor(observed.name, observed.service.spec.predictor.name)


def _host(observed: Observed, readiness: Readiness) -> str:
    """Returns the component's host without the component: `iris-predictor.ns.example.com` is `iris.ns.example.com`."""
    host, component = urlsplit(readiness[_first(observed)].url).netloc, _backend(observed)
    suffix = f"-{_first(observed)}"
    if host.startswith(component):
        return component.removesuffix(suffix) + host.removeprefix(component)
    return host.replace(suffix, "", 1)


def _public_url(observed: Observed, edit: StatusEdit) -> str:
    """The scheme of the ingress also becomes that of the first component's own URL."""
    settings = observed.config.ingress
    entry = edit.component(_first(observed))
    parts = urlsplit(entry["url"])._replace(scheme=settings.url_scheme)
    entry["url"] = urlunsplit(parts)
    if settings.path_template:
        path = url_path(observed.name, observed.namespace, settings)
        return f"{settings.url_scheme}://{settings.ingress_domain}{path}"
    return (
        entry["url"]
        if settings.disable_istio_virtual_host
        else urlunsplit(parts._replace(netloc=_host(observed, edit.readiness())))
    )
