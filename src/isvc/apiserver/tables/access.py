"""Columns of RBAC, certificate requests, API services, webhooks and admission policies."""

from __future__ import annotations

from collections.abc import Callable

from isvc.apiserver.tables.columns import AGE, CREATED_AT, NAME, NONE, Column, at, count, duration, wide
from isvc.kube.conditions import condition_of, conditions_of
from isvc.kube.objects import Object, dig


def _role(binding: Object) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind')}/{role.get('name')}"


def _subjects(kind: str) -> Callable[[Object], str]:
    def cell(binding: Object) -> str:
        found = [each for each in binding.get("subjects") or () if each.get("kind") == kind]
        named = ("/".join(filter(None, (each.get("namespace"), each.get("name")))) for each in found)
        return ", ".join(named)

    return cell


def _requested_duration(request: Object) -> str:
    seconds = dig(request, "spec", "expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def _certificate_state(request: Object) -> str:
    types = {each["type"] for each in conditions_of(request)}
    state = next((each for each in ("Denied", "Approved") if each in types), "Pending")
    state += ",Failed" if "Failed" in types else ""
    return f"{state},Issued" if dig(request, "status", "certificate") else state


def _served_by(service: Object) -> str:
    reference = dig(service, "spec", "service")
    return f"{reference.get('namespace')}/{reference.get('name')}" if reference else "Local"


def _available(service: Object) -> str:
    available = condition_of(service, "Available")
    status, reason = str(available.get("status", "Unknown")), available.get("reason")
    return status if status == "True" or not reason else f"{status} ({reason})"


def _parameter_kind(policy: Object) -> str:
    kind = dig(policy, "spec", "paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else "<unset>"


def _parameter(binding: Object) -> str:
    reference = dig(binding, "spec", "paramRef") or {}
    return f"{reference.get('namespace') or '*'}/{reference['name']}" if reference.get("name") else "<unset>"


ROLES = (NAME, CREATED_AT)
ROLE_BINDINGS = (
    NAME,
    Column("Role", _role),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)
CERTIFICATE_REQUESTS = (
    NAME,
    AGE,
    at("SignerName", "spec", "signerName", default=NONE),
    at("Requestor", "spec", "username"),
    Column("RequestedDuration", _requested_duration),
    Column("Condition", _certificate_state),
)
DEFINITIONS = (NAME, CREATED_AT)
WEBHOOKS = (NAME, count("Webhooks", "webhooks"), AGE)
POLICIES = (NAME, count("Validations", "spec", "validations"), Column("ParamKind", _parameter_kind), AGE)
POLICY_BINDINGS = (NAME, at("PolicyName", "spec", "policyName"), Column("ParamRef", _parameter), AGE)
API_SERVICES = (NAME, Column("Service", _served_by), Column("Available", _available), AGE)
