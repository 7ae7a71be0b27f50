"""Defaults of namespaces, role bindings, webhooks, admission policies, API services, priorities and flow control."""

from __future__ import annotations

from isvc.kube.objects import Object

_RBAC = "rbac.authorization.k8s.io"


def namespace(obj: Object) -> None:
    name = obj["metadata"].get("name")
    if name:
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    obj["status"].setdefault("phase", "Active")


def role_binding(obj: Object) -> None:
    if not obj["roleRef"].get("apiGroup"):
        obj["roleRef"]["apiGroup"] = _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def webhooks(obj: Object) -> None:
    for hook in obj.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        if obj["kind"] == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = hook["clientConfig"].get("service")
        if service is not None:
            service.setdefault("port", 443)


def priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def admission_policy(obj: Object) -> None:
    obj["spec"].setdefault("failurePolicy", "Fail")
    _match(obj["spec"].get("matchConstraints"))


def admission_policy_binding(obj: Object) -> None:
    _match(obj["spec"].get("matchResources"))


def _match(match: Object | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())):
        rule.setdefault("scope", "*")


def api_service(obj: Object) -> None:
    if "service" in obj["spec"]:
        obj["spec"]["service"].setdefault("port", 443)


def flow_schema(obj: Object) -> None:
    obj["spec"]["matchingPrecedence"] = obj["spec"].get("matchingPrecedence") or 1000


def priority_level(obj: Object) -> None:
    for name, shares in (("exempt", 0), ("limited", 30)):
        level = obj["spec"].get(name)
        if level is not None:
            if level.get("nominalConcurrencyShares") is None:
                level["nominalConcurrencyShares"] = shares
            level.setdefault("lendablePercent", 0)
            queuing = (level.get("limitResponse") or {}).get("queuing")
            if queuing is not None:
                for key, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                    queuing[key] = queuing.get(key) or value
