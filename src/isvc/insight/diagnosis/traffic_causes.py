"""Causes on the way to the service: routes, and the gateways that they name."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.conditions import TRUE, condition_of
from isvc.kube.objects import dig, name_of
from isvc.serving import http_routes


def gateway(evidence: Evidence) -> Iterator[Finding]:
    """A gateway that a route needs is not there, or has nowhere to listen."""
    for route in evidence.of_kind("HTTPRoute"):
        for key in http_routes.gateways_of(route):
            if key not in evidence.gateways:
                continue
            found, chain = evidence.gateways[key], evidence.chain_to(route)
            if found is None:
                message = f"Gateway {key}, which HTTPRoute {name_of(route)} names, does not exist"
                remedy = "create it, or name another in the section ingress of ConfigMap inferenceservice-config"
                yield Finding("GatewayMissing", message, remedy, chain=chain)
            elif not dig(found, "status", "addresses"):
                programmed = condition_of(found, "Programmed")
                why = programmed.get("message") if programmed.get("status") != TRUE else ""
                message = f"Gateway {key} has no address{f': {why}' if why else ''}"
                remedy = (
                    "see whether the controller of its GatewayClass runs, and whether the cluster has load balancers"
                )
                level = Level.WARNS if evidence.is_ready else Level.BLOCKS
                yield Finding("GatewayWithoutAddress", message, remedy, level, (*chain, f"Gateway {key}"))


def route_refused(evidence: Evidence) -> Iterator[Finding]:
    for route in evidence.of_kind("HTTPRoute"):
        rejection = http_routes.rejection(route)
        if rejection is None:
            continue
        if rejection.reason == "ParentStatusNotAvailable":
            message = f"no gateway has accepted or refused HTTPRoute {name_of(route)} yet"
            remedy = "see whether a controller of the Gateway API runs, and has a GatewayClass for that gateway"
            yield Finding("RouteNotSeen", message, remedy, Level.WAITS, evidence.chain_to(route))
        else:
            message = f"HTTPRoute {name_of(route)} is refused ({rejection.reason}): {rejection.message}"
            remedy = "change hosts or backends of the route, or the listeners of its gateway"
            yield Finding("RouteRefused", message, remedy, chain=evidence.chain_to(route))
