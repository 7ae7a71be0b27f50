"""Validates roles, role bindings and CertificateSigningRequests."""

from __future__ import annotations

import base64

from isvc.apiserver.builtin.validation.checks import Errors, check_name, one_of
from isvc.apiserver.field_errors import Struct, invalid, not_supported, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object
from isvc.wire.x509.check import signing_request_problem

_RBAC = "rbac.authorization.k8s.io"


_MIN_SECONDS = 600


def role(obj: Object) -> Errors:
    namespaced = obj["kind"] == "Role"
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        urls = rule.get("nonResourceURLs")
        if urls:
            if namespaced:
                yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                words = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{path}.nonResourceURLs", urls, words)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Object) -> Errors:
    reference = obj["roleRef"]
    yield from one_of("roleRef.apiGroup", reference.get("apiGroup"), (_RBAC,))
    kinds = ("Role", "ClusterRole") if obj["kind"] == "RoleBinding" else ("ClusterRole",)
    yield from one_of("roleRef.kind", reference.get("kind"), kinds)
    if not reference.get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(f"subjects[{index}]", subject, obj["kind"] == "RoleBinding")


def _subject(path: str, subject: Object, in_namespace: bool) -> Errors:
    kind, name = subject.get("kind"), subject.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from check_name(f"{path}.name", name, names.subdomain)
        if subject.get("apiGroup"):
            yield not_supported(f"{path}.apiGroup", subject["apiGroup"], ("",))
        if not in_namespace and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        yield from one_of(f"{path}.apiGroup", subject.get("apiGroup"), (_RBAC,))
    else:
        yield not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def role_binding_update(new: Object, old: Object) -> Errors:
    if new["roleRef"] != old["roleRef"]:
        reference = new["roleRef"]
        shown = Struct(APIGroup=reference.get("apiGroup"), Kind=reference.get("kind"), Name=reference.get("name"))
        yield invalid("roleRef", shown, "cannot change roleRef")


def request(obj: Object) -> Errors:
    spec = obj["spec"]
    if problem := signing_request_problem(base64.b64decode(spec.get("request") or "")):
        yield invalid("spec.request", spec.get("request"), problem)
    if not spec.get("usages"):
        yield required("spec.usages", "usages must be provided")
    name = spec.get("signerName") or ""
    if not name:
        yield required("spec.signerName")
    elif "." not in name.partition("/")[0] or not name.partition("/")[2]:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid("spec.signerName", name, why)
    if (spec.get("expirationSeconds") or _MIN_SECONDS) < _MIN_SECONDS:
        why = f"may not specify a duration less than {_MIN_SECONDS} seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", spec["expirationSeconds"], why)
