"""Reports the router in the status of a service: routes, gateways, pools, group, addresses and URL."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router import gateways, pools
from isvc.controllers.llmisvc.router.addresses import sourced_addresses, url_of, workload_address
from isvc.controllers.llmisvc.router.group import Group
from isvc.controllers.llmisvc.router.plan import DIVERGENCE, Router
from isvc.controllers.llmisvc.router.readiness import route_problem
from isvc.controllers.llmisvc.router.urls import Discovered
from isvc.controllers.llmisvc.router.validation import reference_problem
from isvc.controllers.llmisvc.status.conditions import (
    GATEWAYS_READY,
    GROUP_DEGRADED,
    GROUP_READY,
    HTTP_ROUTES_READY,
    INFERENCE_POOL_READY,
)
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.kube.objects import Key, Object, name_of
from isvc.serving.llm import names
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

STOPPED = ("Stopped", "Service is stopped")


def report(edit: StatusEdit, area: Router, applied: Applied) -> None:
    """Reports the conditions and fields that follow from what is there now."""
    observed = applied.observed
    _report_group(edit, area.group)
    if observed.stopped or observed.route is None:
        _report_no_route(edit, observed)
        if observed.stopped:
            _report_stopped(edit, observed)
            return
    if applied.is_refused(area):
        edit.clear(GATEWAYS_READY)
        return
    routes = _routes(area.route, applied)
    if area.urls is not None:
        _report_addresses(edit, observed, routes, area.urls)
    if area.stop is not None:
        for condition in {GATEWAYS_READY, HTTP_ROUTES_READY} - {area.stop.condition}:
            edit.clear(condition)
        return
    reached = gateways.gateways_of(routes)
    _report_pool(edit, applied, reached)
    _report_gateways(edit, observed, reached)
    _report_routes(edit, observed, routes)


def _report_stopped(edit: StatusEdit, observed: Observed) -> None:
    """References that are wrong are wrong also for a stopped service; the scheduler's report has said so."""
    if reference_problem(observed) is None:
        for condition in (GATEWAYS_READY, HTTP_ROUTES_READY, INFERENCE_POOL_READY):
            edit.mark(condition, "False", *STOPPED)


def _routes(route: Object | None, applied: Applied) -> list[Object]:
    """Returns the user's own, then ours, as the API server has it."""
    routes = list(applied.observed.network.routes.values())
    if route is not None:
        routes.append(applied.live(HTTP_ROUTES, name_of(route)) or route)
    return routes


def _report_group(edit: StatusEdit, group: Group | None) -> None:
    if group is None:
        edit.clear(GROUP_READY)
    else:
        edit.mark(GROUP_READY, "True")
    if group is not None and group.divergent:
        edit.mark(GROUP_DEGRADED, "True", DIVERGENCE, group.divergence())
    else:
        edit.clear(GROUP_DEGRADED)
    router = {key: value for key, value in (edit.fields.get("router") or {}).items() if key != "group"}
    edit.fields["router"] = {**router, "group": group.report()} if group else router


def _report_no_route(edit: StatusEdit, observed: Observed) -> None:
    for field in ("router", "url", "address", "addresses"):
        edit.fields.pop(field, None)
    if not observed.stopped:
        encrypted = observed.settings.enable_tls
        edit.fields["addresses"] = [workload_address(observed.namespace, observed.name, encrypted=encrypted)]


def _report_addresses(
    edit: StatusEdit, observed: Observed, routes: Sequence[Object], urls: Sequence[Discovered]
) -> None:
    name, namespace, scheme = observed.name, observed.namespace, observed.config.ingress.url_scheme
    edit.fields["router"] = {**(edit.fields.get("router") or {}), "gateways": gateways.observed_gateways(routes)}
    edit.fields["url"] = url_of(urls, namespace, name, scheme)
    edit.fields["addresses"] = sourced_addresses(urls, observed.merged.raw, namespace, name)


def _report_pool(edit: StatusEdit, applied: Applied, reached: Sequence[Key]) -> None:
    observed, theirs = applied.observed, applied.observed.users_pool
    router = {key: value for key, value in (edit.fields.get("router") or {}).items() if key != "scheduler"}
    if observed.scheduler is None:
        edit.clear(INFERENCE_POOL_READY)
        edit.fields["router"] = router
        return
    if router:
        edit.fields["router"] = {**router, "scheduler": _scheduler(observed, theirs)}
    if theirs:
        problem = pools.pool_problem(observed.network.pools[INFERENCE_POOLS, theirs], reached)
    else:
        problem = _own_pool_problem(applied, reached)
    edit.mark(INFERENCE_POOL_READY, *(("False", *problem) if problem else ("True",)))


def _scheduler(observed: Observed, theirs: str) -> Object:
    name = theirs or names.inference_pool(observed.name)
    return {
        "inferencePool": {"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind, "name": name},
        "service": {"group": "", "kind": "Service", "name": names.picker_service(observed.scheduler, observed.name)},
    }


def _own_pool_problem(applied: Applied, reached: Sequence[Key]) -> tuple[str, str] | None:
    """One pool that is accepted is enough; of two that are not, the one of the newer group says why."""
    name = names.inference_pool(applied.observed.name)
    live = [applied.live(resource, name) for resource in (INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)]
    problems = [pools.pool_problem(pool, reached) for pool in live if pool is not None]
    if not problems:
        title = f"{applied.observed.namespace}/{name}"
        return pools.ABSENT, f"Inference Pool {title} not found (checked v1 and v1alpha2)"
    return None if None in problems else problems[0]


def _report_gateways(edit: StatusEdit, observed: Observed, reached: Sequence[Key]) -> None:
    if not observed.gateways:
        edit.clear(GATEWAYS_READY)
    elif unready := gateways.unready(reached, observed.network):
        listed = " ".join(map(str, unready))
        edit.mark(GATEWAYS_READY, "False", "GatewaysNotReady", f"The following Gateways are not ready: [{listed}]")
    else:
        edit.mark(GATEWAYS_READY, "True")


def _report_routes(edit: StatusEdit, observed: Observed, routes: Sequence[Object]) -> None:
    if observed.route is None or observed.route.http is None:
        edit.clear(HTTP_ROUTES_READY)
    elif problems := [problem for route in routes if (problem := route_problem(route))]:
        message = f"The following HTTPRoutes are not ready: [{' '.join(problems)}]"
        edit.mark(HTTP_ROUTES_READY, "False", "HTTPRoutesNotReady", message)
    else:
        edit.mark(HTTP_ROUTES_READY, "True")
