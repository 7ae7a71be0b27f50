"""Validates roles, role bindings, webhook configurations and CertificateSigningRequests."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from isvc.apiserver import field_errors
from isvc.apiserver.builtin.validation.checks import Errors, check_name, one_of, selector
from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.field_errors import Struct, invalid, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object
from isvc.wire.x509.check import signing_request_problem

_RBAC = "rbac.authorization.k8s.io"
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_ONLY = {"operations": "operations", "apiGroups": "API groups", "apiVersions": "API versions"}


_MIN_SECONDS = 600


def role(obj: Object) -> Errors:
    namespaced = obj["kind"] == "Role"
    for index, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            yield field_errors.required(f"{path}.verbs", "verbs must contain at least one value")
        urls = rule.get("nonResourceURLs")
        if urls:
            if namespaced:
                words = "namespaced rules cannot apply to non-resource URLs"
                yield field_errors.invalid(f"{path}.nonResourceURLs", urls, words)
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                words = "rules cannot apply to both regular resources and non-resource URLs"
                yield field_errors.invalid(f"{path}.nonResourceURLs", urls, words)
            continue
        if not rule.get("apiGroups"):
            yield field_errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield field_errors.required(f"{path}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Object) -> Errors:
    reference = obj["roleRef"]
    yield from one_of("roleRef.apiGroup", reference.get("apiGroup"), (_RBAC,))
    kinds = ("Role", "ClusterRole") if obj["kind"] == "RoleBinding" else ("ClusterRole",)
    yield from one_of("roleRef.kind", reference.get("kind"), kinds)
    if not reference.get("name"):
        yield field_errors.required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(f"subjects[{index}]", subject, obj["kind"] == "RoleBinding")


def _subject(path: str, subject: Object, in_namespace: bool) -> Errors:
    kind, name = subject.get("kind"), subject.get("name") or ""
    if not name:
        yield field_errors.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from check_name(f"{path}.name", name, names.subdomain)
        if subject.get("apiGroup"):
            yield field_errors.not_supported(f"{path}.apiGroup", subject["apiGroup"], ("",))
        if not in_namespace and not subject.get("namespace"):
            yield field_errors.required(f"{path}.namespace")
    elif kind in ("User", "Group"):
        yield from one_of(f"{path}.apiGroup", subject.get("apiGroup"), (_RBAC,))
    else:
        yield field_errors.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))


def role_binding_update(new: Object, old: Object) -> Errors:
    if new["roleRef"] != old["roleRef"]:
        reference = new["roleRef"]
        shown = Struct(APIGroup=reference.get("apiGroup"), Kind=reference.get("kind"), Name=reference.get("name"))
        yield field_errors.invalid("roleRef", shown, "cannot change roleRef")


def webhooks(obj: Object) -> Errors:
    for index, hook in enumerate(obj.get("webhooks") or ()):
        yield from _webhook(f"webhooks[{index}]", hook)


def _webhook(path: str, hook: Object) -> Errors:
    name = hook.get("name") or ""
    problems = names.subdomain(name)
    if not problems and len(name.split(".")) < 3:
        problems = ["should be a domain with at least three segments separated by dots"]
    for words in problems:
        yield field_errors.invalid(f"{path}.name", name, words)
    versions = hook.get("admissionReviewVersions")
    if not versions:
        yield field_errors.required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(versions):
        words = "must include at least one of v1, v1beta1"
        yield field_errors.invalid(f"{path}.admissionReviewVersions", versions, words)
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule(f"{path}.rules[{index}]", rule)
    yield from one_of(f"{path}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
    yield from one_of(f"{path}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        yield field_errors.required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    if not 1 <= hook["timeoutSeconds"] <= 30:
        words = "the timeout value must be between 1 and 30 seconds"
        yield field_errors.invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], words)
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector(f"{path}.{key}", hook.get(key))
    yield from _client(f"{path}.clientConfig", hook["clientConfig"])
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        try:
            compile_expression(condition.get("expression") or "")
        except CelError as error:
            inner = f"{path}.matchConditions[{index}].expression"
            yield field_errors.invalid(inner, condition.get("expression"), f"compilation failed: {error}")


def _client(path: str, client: Object) -> Errors:
    if ("url" in client) == ("service" in client):
        yield field_errors.required(path, "exactly one of url or service is required")
    elif "url" in client:
        scheme = urlsplit(client["url"]).scheme
        if scheme != "https":
            words = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            yield field_errors.invalid(f"{path}.url", scheme, words)
    else:
        for key in ("name", "namespace"):
            if not client["service"].get(key):
                yield field_errors.required(f"{path}.service.{key}", f"service {key} is required")


def _rule(path: str, rule: Object) -> Errors:
    for key, words in _ONLY.items():
        values = rule.get(key)
        if not values:
            yield field_errors.required(f"{path}.{key}")
        elif "*" in values and len(values) > 1:
            yield field_errors.invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {words}")
        elif key == "operations":
            for index, each in enumerate(values):
                yield from one_of(f"{path}.operations[{index}]", each, _OPERATIONS)
    resources = rule.get("resources")
    if not resources:
        yield field_errors.required(f"{path}.resources")
    elif "*" in resources and any("/" not in each for each in resources if each != "*"):
        words = "if '*' is present, must not specify other resources without subresources"
        yield field_errors.invalid(f"{path}.resources", resources, words)
    yield from one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))


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
