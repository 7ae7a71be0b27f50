"""A Knative Service: one Configuration, which has its template, and one Route, which has its traffic."""

from __future__ import annotations

from isvc.kube.conditions import FALSE, TRUE, UNKNOWN, Conditions, ConditionSet, conditions_of, find
from isvc.kube.objects import (
    LAST_APPLIED,
    Key,
    Object,
    annotations_of,
    dig,
    generation_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    without,
)
from isvc.local.controllers.children import NotOwned, ensure
from isvc.local.knative.kinds import CONFIGURATIONS, ROUTES, SERVICE, SERVICE_UID
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch

CONDITIONS = ConditionSet(("ConfigurationsReady", "RoutesReady"))
_LATEST: Object = {"latestRevision": True, "percent": 100}


def controller(context: Context) -> Controller:
    async def reconcile(key: Key) -> None:
        service = context.find(KNATIVE_SERVICES, key)
        if service is None:
            return
        owner = KNATIVE_SERVICES.typed(service)
        status = CONDITIONS.edit(conditions_of(service), context.timestamp())
        status.initialize()
        fields: Object = {}
        try:
            configuration = await ensure(context, CONFIGURATIONS, configuration_of(service), owner)
            fields |= _configuration_fields(status, configuration)
        except NotOwned as error:
            status.mark_false("ConfigurationsReady", "NotOwned", str(error))
        try:
            route = await ensure(context, ROUTES, route_of(service), owner)
            fields |= _route_fields(status, route, fields)
        except NotOwned as error:
            status.mark_false("RoutesReady", "NotOwned", str(error))
        fields |= {"conditions": status.result(), "observedGeneration": generation_of(service)}
        await context.write_status(KNATIVE_SERVICES, service, fields)

    watches = [
        Watch(KNATIVE_SERVICES),
        Watch(CONFIGURATIONS, to=OwnerOf(KNATIVE_SERVICES)),
        Watch(ROUTES, to=OwnerOf(KNATIVE_SERVICES)),
    ]
    return Controller("knative-service", reconcile, watches)


def configuration_of(service: Object) -> Object:
    return {"metadata": _metadata(service), "spec": {"template": service["spec"]["template"]}}


def route_of(service: Object) -> Object:
    """Returns the Route with its traffic, where the latest revision is that of the Service's Configuration."""
    targets = dig(service, "spec", "traffic") or [_LATEST]
    traffic = [
        each if each.get("revisionName") else {**each, "configurationName": name_of(service)} for each in targets
    ]
    return {"metadata": _metadata(service), "spec": {"traffic": traffic}}


def _metadata(service: Object) -> Object:
    annotations = without(annotations_of(service), (LAST_APPLIED,))
    labels = {**labels_of(service), SERVICE: name_of(service), SERVICE_UID: uid_of(service)}
    named = {"name": name_of(service), "namespace": namespace_of(service)}
    return {**named, "labels": labels, "annotations": annotations}


def _configuration_fields(status: Conditions, configuration: Object) -> Object:
    known = _follow_child(status, "ConfigurationsReady", "Configuration", configuration)
    names = ("latestCreatedRevisionName", "latestReadyRevisionName")
    return {name: known[name] for name in names if known.get(name)}


def _route_fields(status: Conditions, route: Object, fields: Object) -> Object:
    known = _follow_child(status, "RoutesReady", "Route", route)
    if status.status("RoutesReady") == TRUE and not _is_migrated(known, fields):
        why = "Traffic is not yet migrated to the latest revision."
        status.mark_unknown("RoutesReady", "TrafficNotMigrated", why)
    return {name: known[name] for name in ("url", "address", "traffic") if known.get(name)}


def _follow_child(status: Conditions, condition: str, kind: str, child: Object) -> Object:
    """Returns the status of a child, which the condition follows once it is about the child's spec as it is now."""
    known: Object = child.get("status") or {}
    if known.get("observedGeneration") == dig(child, "metadata", "generation"):
        follow(status, condition, known)
    else:
        why = f"The {kind} is still working to reflect the latest desired specification."
        status.mark_unknown(condition, "OutOfDate", why)
    return known


def _is_migrated(route: Object, fields: Object) -> bool:
    """Returns whether traffic for the latest revision goes to the one that is ready now."""
    latest = [each for each in route.get("traffic") or () if each.get("latestRevision")]
    return all(each.get("revisionName") == fields.get("latestReadyRevisionName") for each in latest)


def follow(status: Conditions, kind: str, followed: Object) -> None:
    """Sets a condition as the Ready of another object."""
    ready = find(followed.get("conditions") or (), "Ready")
    if ready is None:
        return
    marks = {TRUE: status.mark_true, FALSE: status.mark_false, UNKNOWN: status.mark_unknown}
    marks[ready["status"]](kind, ready.get("reason", ""), ready.get("message", ""))
