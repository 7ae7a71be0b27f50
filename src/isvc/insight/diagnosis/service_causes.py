"""Causes in the service itself, its namespace, the configuration, and what the API server says to its children."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isvc.api.annotations import STOP, is_stopped
from isvc.insight.diagnosis.accounts import missing_account
from isvc.insight.diagnosis.evidence import Evidence, failing_conditions
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.conditions import condition_of, conditions_of
from isvc.kube.objects import dig, is_being_deleted, name_of
from isvc.kube.readiness import NOT_RECONCILED, READY, is_observed
from isvc.serving.config import CONFIG_MAP

_CALL_FAILED = re.compile(r'failed calling webhook "([^"]+)"')
_DENIED = re.compile(r'admission webhook "([^"]+)" denied the request')
_OUR_WEBHOOKS = ".kserve-webhook-server."
_ABOVE_LIMIT = re.compile(r"\.resources\.requests: .* must be less than or equal to (\S+) limit of ([^\s,\]]+)")
_QUOTA = re.compile(r"exceeded quota: (\S+?),")


def namespace_deleted(evidence: Evidence) -> Iterator[Finding]:
    namespace = evidence.namespace
    if namespace is not None and (is_being_deleted(namespace) or dig(namespace, "status", "phase") == "Terminating"):
        message = f"namespace {name_of(namespace)} is being deleted, so nothing can be created in it"
        held = condition_of(namespace, "NamespaceContentRemaining").get("message") or ""
        remedy = "wait until it is gone, then create the namespace and the service again"
        yield Finding("NamespaceTerminating", message, f"{remedy}; {held}" if held else remedy)


def deleted(evidence: Evidence) -> Iterator[Finding]:
    if is_being_deleted(evidence.service):
        holders = ", ".join(dig(evidence.service, "metadata", "finalizers") or ()) or "nothing"
        message = f"{evidence.kind} {evidence.name} is being deleted, and waits for its finalizers: {holders}"
        yield Finding("BeingDeleted", message, "if that lasts, see whether its controller runs", Level.WAITS)


def stopped(evidence: Evidence) -> Iterator[Finding]:
    if is_stopped(evidence.service):
        message = f'it is stopped by its annotation {STOP}: "true"'
        remedy = f"to start it, kubectl annotate {evidence.kind.lower()} {evidence.name} {STOP}-"
        yield Finding("Stopped", message, remedy)


def bad_config(evidence: Evidence) -> Iterator[Finding]:
    """A bad section stops nothing that runs: the last good configuration stays in force, until the manager restarts."""
    if evidence.config:
        level = Level.WARNS if evidence.is_ready else Level.BLOCKS
        message, remedy = evidence.config, "apply the ConfigMap that comes with the manager"
        if message.startswith(CONFIG_MAP):
            message, remedy = f"ConfigMap {message}", "mend that key of the ConfigMap; nothing needs to be restarted"
        yield Finding("BadConfiguration", message, remedy, level)


def not_planned(evidence: Evidence) -> Iterator[Finding]:
    if evidence.problem is not None:
        yield evidence.problem


def name_taken(evidence: Evidence) -> Iterator[Finding]:
    for message in evidence.taken:
        yield Finding("NameTaken", message, "rename or delete one of the two")


def child_refused(evidence: Evidence) -> Iterator[Finding]:
    for child, message in evidence.refused.items():
        yield refusal(f"{child} cannot be created", message)


def refusal(what: str, message: str) -> Finding:
    """Returns why the API server says no: a quota, an account that is missing, a webhook, or something else."""
    if missing := missing_account(what, message):
        return missing
    if found := _CALL_FAILED.search(message):
        remedy = f"see whether the pods behind webhook {found[1]} run and its Service has endpoints"
        return Finding("WebhookUnreachable", f"{what}, because webhook {found[1]} does not answer: {message}", remedy)
    if (found := _DENIED.search(message)) and _OUR_WEBHOOKS in found[1]:  # no policy, but what pods are made from
        remedy = "mend what it names, in the service or beside it"
        return Finding("ChildRefused", f"{what}: {message[found.end() :].lstrip(': ')}", remedy)
    if found:
        remedy = f"change the service so that the policy behind {found[1]} allows it, or ask who owns that policy"
        return Finding("DeniedByWebhook", f"{what}, because webhook {found[1]} denies it: {message}", remedy)
    if found := _QUOTA.search(message):
        remedy = f"ask for less, remove something else, or raise ResourceQuota {found[1]}"
        return Finding("QuotaExceeded", f"{what}, because ResourceQuota {found[1]} is used up: {message}", remedy)
    if found := _ABOVE_LIMIT.search(message):
        remedy = f"set resources.requests.{found[1]} of the service, too: what it leaves out is that of its runtime"
        return Finding("ChildRefused", f"{what}: {message}", f"{remedy}; or raise the limit of {found[2]}")
    return Finding("ChildRefused", f"{what}: {message}", "change the service so that the API server accepts it")


def not_reconciled(evidence: Evidence) -> Iterator[Finding]:
    """Nobody has looked at the service, or not since it was changed."""
    remedy = "see whether its controller manager runs, and what it logs"
    if not dig(evidence.service, "status", "conditions"):
        message = f"no controller has reported on {evidence.kind} {evidence.name} yet"
        yield Finding(NOT_RECONCILED, message, remedy, Level.WAITS)
    elif not is_observed(evidence.service):
        message = f"the controller has not seen the latest change of {evidence.kind} {evidence.name} yet"
        yield Finding(NOT_RECONCILED, message, remedy, Level.WAITS)


def malformed_status(evidence: Evidence) -> Iterator[Finding]:
    """Something else than our controllers has written the status, on a server that does not check it."""
    found = dig(evidence.service, "status", "conditions") or []
    if found != conditions_of(evidence.service):
        shown = type(found).__name__ if not isinstance(found, list) else "list of something else"
        message = f"status.conditions of {evidence.kind} {evidence.name} is no list of conditions, but a {shown}"
        yield Finding("MalformedStatus", message, "see that a manager runs: it writes the status anew", Level.WAITS)


def condition_says(evidence: Evidence) -> Iterator[Finding]:
    """Repeats what the status says, where nothing else explains it."""
    failing = failing_conditions(evidence.service)
    failing.sort(key=lambda each: (each.get("type") == READY, each.get("status") != "False"))
    if failing and not evidence.is_ready:
        worst = failing[0]
        why = worst.get("message") or worst.get("reason") or "no reason is given"
        yield Finding("ConditionNotTrue", f"{worst['type']} is {worst['status']}: {why}", "", Level.WAITS)
